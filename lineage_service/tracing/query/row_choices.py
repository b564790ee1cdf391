"""The rows of a dataset that fulfil a condition: a page to choose from, or all as starts of a trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import monotonic
from typing import Any

from lineage_service.conditions.filters import Where
from lineage_service.errors import InvalidQueryError, NothingMatchesError, TimeBudgetError
from lineage_service.lineage import Choice, Choices, Record
from lineage_service.queries import RowQuery, TraceQuery
from lineage_service.tracing.columns.application import OpenedApplication
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.columns.time_budget import time_budget
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.json_values import read_json
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.query.dataset_rows import MOST_STARTS, DatasetRows, Sought
from lineage_service.tracing.query.requested_columns import request_of
from lineage_service.tracing.query.shown_records import Show
from lineage_service.tracing.walk.result import Position
from lineage_service.tracing.walk.starts import node_named
from spark_agent import contract

__all__ = ["RowChoices", "columns_of"]

_MOST_WARNINGS = 10
#: The part of its time in which matches behind the page are counted.
_COUNT_SHARE = 0.5


class _CountEnded(Exception):
    """The time in which matches are counted is spent."""


class RowChoices:
    """Of one flow store."""

    def __init__(self, locations: RecordLocations, show: Show, *, time_budget_s: float) -> None:
        self._locations = locations
        self._rows = DatasetRows(locations, time_budget_s=time_budget_s)
        self._show, self._time_budget_s = show, time_budget_s

    def page(self, opened: OpenedApplication[Snapshot], query: RowQuery, where: Where | None) -> Choices:
        """Raises NothingMatchesError, InvalidQueryError, TimeBudgetError."""
        cursor = opened.snapshot.cursor()
        after = _read_cursor(query.cursor)
        warnings: dict[str, None] = {}
        with time_budget(cursor, self._time_budget_s) as check:
            sought = self._rows.sought(opened, query.dataset, query.node, query.direction)
            places, total = self._chosen(opened, query, where, sought, after, warnings, check)
            listed = places[: query.limit]
            records = self._records(opened, cursor, listed, check)
        application = opened.application
        last = listed[-1] if len(places) > query.limit else None
        return Choices(
            application_id=application.application_id,
            name=application.name,
            started=application.started,
            direction=sought.direction,
            dataset=query.dataset,
            where=query.where,
            nodes=tuple(
                contract.node_id(application.application_id, node) for node in sorted(sought.files_of)
            ),
            total=total,
            files=sought.files,
            choices=tuple(
                _choice(contract.node_id(application.application_id, place.node), record)
                for place, record in zip(listed, records, strict=True)
            ),
            next=None if last is None else f"{last.node}:{last.partition}:{last.offset}",
            warnings=tuple(warnings)[:_MOST_WARNINGS],
        )

    def starts(
        self, opened: OpenedApplication[Snapshot], query: TraceQuery, condition: str, check: Check
    ) -> list[Position]:
        """All that match, in the runs in which a trace begins.

        Raises NothingMatchesError, InvalidQueryError where they are too many.
        """
        where, warnings = Where(condition), dict[str, None]()
        sought = self._rows.sought(opened, query.path, query.node, query.direction)
        starts: list[Position] = []
        places = self._rows.matches(opened, sought.files_of, where, check, warnings)
        for count, place in enumerate(self._timely(places), start=1):
            if count > MOST_STARTS:
                raise InvalidQueryError(
                    f"more than {MOST_STARTS:,} rows fulfil the condition, and a trace starts at "
                    f"{MOST_STARTS:,} at most: ask for fewer"
                )
            runs = opened.graph.holders_of(place.node, place.partition, query.direction)
            starts += (
                Position(place.node, place.partition, place.offset, run.number)
                for run in runs
                if place.offset < opened.graph.count(place.node, run.number)
            )
        if not starts:
            raise self._nothing(opened, query, sought, warnings)
        return starts

    def _chosen(
        self,
        opened: OpenedApplication[Snapshot],
        query: RowQuery,
        where: Where | None,
        sought: Sought,
        after: tuple[int, int, int] | None,
        warnings: dict[str, None],
        check: Check,
    ) -> tuple[list[Position], int | None]:
        """The places of the page, one more if there is a next one; and how many match, if it is known."""
        if where is not None:
            places, total = self._matches(opened, sought, where, query.limit, after, warnings, check)
            if not places and after is None:
                raise self._nothing(opened, query, sought, warnings)
            return places, total
        if query.row is None or query.dataset is None:
            return [], None
        node, partition, offset = self._locations.find(
            opened.graph.topology,
            query.dataset,
            query.row,
            check,
            direction=sought.direction,
            node=None if query.node is None else node_named(opened.graph, query.node).number,
        )[0]
        return [
            Position(node, partition, offset, opened.graph.holders_of(node, partition, "forward")[0].number)
        ], 1

    def _matches(
        self,
        opened: OpenedApplication[Snapshot],
        sought: Sought,
        where: Where,
        limit: int,
        after: tuple[int, int, int] | None,
        warnings: dict[str, None],
        check: Check,
    ) -> tuple[list[Position], int | None]:
        """The first matches, one more than `limit` if there are so many, and how many there are in all.

        That is None where it is not known in time, and on later pages.
        """
        places: list[Position] = []
        count, until = 0, monotonic() + _COUNT_SHARE * self._time_budget_s

        def counted() -> None:
            check()
            if len(places) > limit and (after is not None or monotonic() >= until):
                raise _CountEnded

        try:
            for place in self._rows.matches(opened, sought.first, where, counted, warnings, after):
                count += 1
                if len(places) <= limit:
                    places.append(place)
                counted()
        except _CountEnded:
            return places, None
        except TimeBudgetError:
            raise self._too_slow() from None
        is_all = after is None and not any(_is_unseen(warning) for warning in warnings)
        return places, count if is_all else None

    def _timely(self, places: Iterator[Position]) -> Iterator[Position]:
        try:
            yield from places
        except TimeBudgetError:
            raise self._too_slow() from None

    def _too_slow(self) -> TimeBudgetError:
        return TimeBudgetError(
            f"the search for rows took longer than its {self._time_budget_s:g} s: name fewer files, such as "
            "one folder of a partition, or give the service more time (LINEAGE_TRACE_SECONDS)"
        )

    def _records(
        self, opened: OpenedApplication[Snapshot], cursor: Any, places: Sequence[Position], check: Check
    ) -> list[Record]:
        records: list[Record] = []
        for number in dict.fromkeys(place.node for place in places):
            node = opened.graph.topology.nodes[number]
            mine = [place for place in places if place.node == number]
            columns = request_of(node)
            records += self._show(opened, cursor, node, mine, values=True, check=check, columns=columns)
        return records

    @staticmethod
    def _nothing(
        opened: OpenedApplication[Snapshot],
        query: RowQuery | TraceQuery,
        sought: Sought,
        warnings: dict[str, None],
    ) -> NothingMatchesError:
        application, graph = opened.application, opened.graph
        records = sum(
            graph.count(number, run.number) for number in sought.first for run in graph.holders(number)
        )
        files = (
            f"{sought.files:,} file{'' if sought.files == 1 else 's'}" if sought.files else "captured values"
        )
        did = "wrote" if sought.direction == "backward" else "read"
        but = "".join(f"; {warning}" for warning in list(warnings)[:_MOST_WARNINGS])
        return NothingMatchesError(
            f"no row fulfils {query.where}: {files} with {records:,} records were looked at that "
            f"{application.application_id} ({application.name}) {did}{but}"
        )


def _is_unseen(warning: str) -> bool:
    """What was looked at all the same, though it has changed, can be counted."""
    return "has changed since the run" not in warning


def _choice(node_id: str, record: Record) -> Choice:
    source = record.source
    return Choice(
        node_id=node_id,
        record_id=record.record_id,
        path=None if source is None else source.path,
        row=None if source is None else source.row,
        line=None if source is None else source.line,
        columns=columns_of(record),
        text=record.value if source is None else source.text,
        warning=None if source is None else source.warning,
    )


def columns_of(record: Record) -> dict[str, Any] | None:
    """Of a row of text, and of a value that is no object of JSON, the one column is `value`."""
    source = record.source
    if source is not None:
        return source.columns or (None if source.text is None else {"value": source.text})
    if record.value is None:
        return None
    columns = read_json(record.value) if record.value_type == "json" else None
    return columns or {"value": record.value}


def _read_cursor(text: str | None) -> tuple[int, int, int] | None:
    if text is None:
        return None
    numbers = text.split(":")
    if len(numbers) != 3 or not all(n.isascii() and n.isdigit() and len(n) < 19 for n in numbers):
        raise InvalidQueryError(f"cursor {text!r} was not given by this endpoint")
    node, partition, offset = map(int, numbers)
    return node, partition, offset

"""The records of one node, page by page, and the search among them by text, key and position.

A search goes through partitions and offsets in order and ends with its page, so that the first page of a huge
file is there soon. What it has not seen it does not count. When most of its time is spent, its result is what
it found, and a cursor from where to go on.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from heapq import merge
from time import monotonic

from lineage_service.conditions.filters import Where
from lineage_service.errors import InvalidQueryError, TimeBudgetError
from lineage_service.lineage import RecordPage
from lineage_service.queries import RecordQuery
from lineage_service.tracing.columns.application import OpenedApplication
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.columns.time_budget import time_budget
from lineage_service.tracing.files.file_parts import ORC, PARQUET, format_of
from lineage_service.tracing.files.file_systems import UnreadableError
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.files.record_search import Matching
from lineage_service.tracing.query.requested_columns import RequestedColumns
from lineage_service.tracing.query.requested_records import HAS_KEY, HOLDS_TEXT, Place, RequestedRecords
from lineage_service.tracing.query.shown_records import Show
from lineage_service.tracing.query.value_search import search_of
from lineage_service.tracing.walk.starts import has_records
from spark_agent import contract

__all__ = ["RecordPages"]

#: The part of its time that a search in files may take; the rest is for showing what it found.
_SEARCH_SHARE = 0.7
#: Positions with a key that are looked at together for a text.
_KEYED = 1_000
_MOST_WARNINGS = 10
_RECORDS_PASS = (
    "rows pass this operation on their way from a source to an output; it has no records of its own"
)


class _SearchEnded(Exception):
    """The part of the time that a search may take is spent: what it found is the result."""


@dataclass(frozen=True, slots=True)
class _Matches:
    """The first places that match, one more than are shown if there are so many."""

    places: Sequence[Place]
    total: int | None
    searched_to: Place | None = None  # where it ended before its end
    warnings: tuple[str, ...] = ()

    def with_warnings(self, warnings: Iterable[str]) -> _Matches:
        """Some of them; what was not looked at is not counted."""
        every = tuple(dict.fromkeys((*self.warnings, *warnings)))
        return replace(self, total=None if every else self.total, warnings=_some(every))


class RecordPages:
    """Finds the pages of records that queries request."""

    def __init__(self, locations: RecordLocations, show: Show, *, time_budget_s: float) -> None:
        self._locations, self._show, self._time_budget_s = locations, show, time_budget_s

    def page(self, opened: OpenedApplication[Snapshot], query: RecordQuery) -> RecordPage:
        """Raises NotFoundError, TimeBudgetError."""
        cursor = opened.snapshot.cursor()
        search_until = monotonic() + _SEARCH_SHARE * self._time_budget_s
        with time_budget(cursor, self._time_budget_s) as check:
            requested = RequestedRecords(opened, cursor, query, check, search_until)
            matches = self._matches(requested)
            matches = replace(matches, warnings=_some(matches.warnings))
            listed = matches.places[: query.limit]
            last = listed[-1] if len(matches.places) > query.limit else matches.searched_to
            columns = RequestedColumns(query.columns)
            request = columns.of(requested.node)
            positions = requested.positions(listed)
            records = self._show(
                opened, cursor, requested.node, positions, values=True, check=check, columns=request
            )
            schema = None if request is None else columns.shown(request, records)
            columns.check()
            return RecordPage(
                node_id=contract.node_id(opened.application.application_id, requested.node.number),
                total=matches.total,
                records=records,
                next=f"{last[0]}:{last[1]}" if last is not None else None,
                warnings=matches.warnings,
                schema=schema,
            )

    def _matches(self, requested: RequestedRecords) -> _Matches:
        query = requested.query
        if not has_records(requested.node):
            return _Matches((), None, warnings=(_RECORDS_PASS,))
        if query.where is not None:
            return self._with_condition(requested, query.where)
        if query.key is None and query.text is None:
            return _all(requested)
        if query.key is None:
            return self._with_text(requested, query.text or "")
        if query.text is None:
            total = requested.count_of_key(query.key)
            return _Matches(requested.stored(HAS_KEY, query.key, query.limit + 1), total)
        return self._with_key_and_text(requested, query.key, query.text)

    def _with_key_and_text(self, requested: RequestedRecords, key: str, text: str) -> _Matches:
        limit, is_first_page = requested.query.limit, requested.query.cursor is None
        places: list[Place] = []
        warnings = tuple(self._unsearched(requested))
        while len(places) <= limit:
            keyed = requested.stored(HAS_KEY, key, _KEYED)
            if not keyed:
                return _Matches(
                    places, len(places) if is_first_page and not warnings else None, warnings=warnings
                )
            holding = self._holding(requested, keyed, text)
            places += [place for place in keyed if place in holding]
            requested.first = (keyed[-1][0], keyed[-1][1] + 1)
        return _Matches(places[: limit + 1], None, warnings=warnings)

    def _holding(self, requested: RequestedRecords, places: Sequence[Place], text: str) -> set[Place]:
        """Which of some places hold the text, in the store or in a file."""
        return self._in_rows(requested, places, text) | requested.holding(places, text)

    def _in_rows(self, requested: RequestedRecords, places: Sequence[Place], text: str) -> set[Place]:
        rows = self._locations.rows_of(requested.node, places, requested.check)
        folded = text.casefold()
        return {place for place, row in rows.items() if folded in (row.text or "").casefold()}

    def _with_text(self, requested: RequestedRecords, text: str) -> _Matches:
        node = requested.node
        warnings = dict.fromkeys(self._unsearched(requested))
        in_store = requested.stored(HOLDS_TEXT, text, requested.query.limit + 1)
        marked = ((partition, offset, True) for partition, offset in in_store)
        if format_of(node) not in (PARQUET, ORC):
            matching = partial(self._locations.matching, node, text=text)
            return self._gathered(requested, marked, matching, warnings)
        with self._locations.search(node, text, ended=requested.opened.application.ended) as search:
            with time_budget(search.database, self._time_budget_s):
                matches = self._gathered(requested, marked, search.matching, warnings)
            return matches.with_warnings(search.warnings)

    def _with_condition(self, requested: RequestedRecords, condition: str) -> _Matches:
        if requested.query.text is not None or requested.query.key is not None:
            raise InvalidQueryError("where stands alone: say what text or key says as a condition")
        warnings = dict.fromkeys(self._unsearched(requested, is_of_columns=True))
        with (
            search_of(requested, self._locations, Where(condition)) as search,
            time_budget(search.database, self._time_budget_s),
        ):
            matches = self._gathered(requested, (), search.matching, warnings)
        return matches.with_warnings(search.warnings)

    def _gathered(
        self,
        requested: RequestedRecords,
        in_store: Iterable[tuple[int, int, bool]],
        matching: Matching,
        warnings: dict[str, None],
    ) -> _Matches:
        """The first matches of the store and of files; `warnings` may become more."""
        limit = requested.query.limit
        places: list[Place] = []
        done: Place | None = None
        with closing(self._in_files(requested, matching, warnings)) as in_files:
            try:
                for partition, offset, is_match in merge(in_store, in_files):
                    if is_match and places[-1:] != [(partition, offset)]:
                        places.append((partition, offset))
                        if len(places) > limit:
                            return _Matches(places, None, warnings=tuple(warnings))
                    if is_match or offset:
                        done = (partition, offset if is_match else offset - 1)
            except _SearchEnded:
                if done is None:
                    raise TimeBudgetError(
                        f"the search took longer than its time of {self._time_budget_s:g} s; ask again, "
                        "and it goes on where it ended, or ask for one partition"
                    ) from None
                said = "the search ended with its time, before it saw all records: next goes on from there"
                return _Matches(places, None, done, (said, *warnings))
        is_all = requested.query.cursor is None and not warnings
        return _Matches(places, len(places) if is_all else None, warnings=tuple(warnings))

    def _unsearched(self, requested: RequestedRecords, *, is_of_columns: bool = False) -> Iterable[str]:
        """What a search does not read: it must not deny what it never saw.

        One for a condition, `is_of_columns`, has said by an error that there are no values.
        """
        node, partitions = (
            requested.node,
            [partition for partition in requested.runs if requested.count(partition)],
        )
        of_files = self._locations.unsearched(node, partitions)
        if of_files is not None:
            yield of_files
        elif (
            not is_of_columns
            and partitions
            and not self._locations.has_files(node, partitions)
            and not self._has_values(requested)
        ):
            yield (
                "no values of this operation were captured, so only keys were searched: search a source or "
                "an output, or run the job again with spark.lineage.detailed=true"
            )

    @staticmethod
    def _has_values(requested: RequestedRecords) -> bool:
        return requested.node.number in requested.opened.graph.blocks.valued

    def _in_files(
        self, requested: RequestedRecords, matching: Matching, warnings: dict[str, None]
    ) -> Generator[tuple[int, int, bool], None, None]:
        """(partition, offset, True) of each match.

        Between them (partition, offset, False), when all before that one were looked at.
        """

        def check() -> None:
            if monotonic() >= requested.search_until:
                raise _SearchEnded

        first_partition, first_offset = requested.first
        for partition in sorted(requested.runs):
            if partition < first_partition:
                continue
            check()
            first = first_offset if partition == first_partition else 0
            count = requested.count(partition)
            try:
                for offset, is_match in matching(partition, first=first, last=count, check=check):
                    yield partition, offset, is_match
            except UnreadableError as error:
                warnings[f"partition {partition} was not searched to its end: {error}"] = None
            yield partition, count, False


def _all(requested: RequestedRecords) -> _Matches:
    """Without a search: counted, not looked for."""
    limit, total = requested.query.limit, 0
    places: list[Place] = []
    for partition in sorted(requested.runs):
        count = requested.count(partition)
        least = requested.least[1] if partition == requested.least[0] else 0
        total += max(count - least, 0)
        if partition >= requested.first[0]:
            first = requested.first[1] if partition == requested.first[0] else 0
            places += [
                (partition, offset) for offset in range(first, min(count, first + limit + 1 - len(places)))
            ]
    return _Matches(places, total)


def _some(warnings: Iterable[str]) -> tuple[str, ...]:
    every = tuple(warnings)
    if len(every) <= _MOST_WARNINGS:
        return every
    return (*every[:_MOST_WARNINGS], f"and {len(every) - _MOST_WARNINGS:,} more partitions")

"""Explanations: makes of places that `tracing.explain` has found what people see, and counts a plain trace.

Stays in one application. Knows nothing of how the places were found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple

import duckdb
import numpy as np

from lineage_service.errors import InvalidQueryError, TimeBudgetError
from lineage_service.lineage import (
    ExplainedRow,
    Explanation,
    ExplanationRule,
    ExplanationTurn,
    Record,
)
from lineage_service.queries import ExplanationQuery, TraceQuery
from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.time_budget import time_budget
from lineage_service.tracing.explain import explainer, explanation
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.query.failures import FailureReader
from lineage_service.tracing.query.given_values import given_values
from lineage_service.tracing.query.local_traces import LocalTraces
from lineage_service.tracing.query.open_applications import Opened
from lineage_service.tracing.query.requested_columns import RequestedColumns
from lineage_service.tracing.query.row_set_reader import doubts_of
from lineage_service.tracing.query.row_sets import LINEAGE_IS_OPEN, sources_of
from lineage_service.tracing.query.shown_records import Show
from lineage_service.tracing.query.shown_starts import shown_starts
from lineage_service.tracing.query.trace_starts import TraceStarts
from lineage_service.tracing.walk import cursors
from lineage_service.tracing.walk.result import Position
from lineage_service.tracing.walk.walk_cache import WalkCache
from spark_agent import contract

__all__ = ["ExplanationReader"]

#: What counting the rows of a plain trace may take: the count only stands beside.
PLAIN_SECONDS = 1.0
_NO_RUN = 0
_CURSOR = re.compile(r"([0-9]{1,10}):([0-9]{1,10}):([0-9]{1,18})")


class _Place(NamedTuple):
    """Of a record of a source, in the order of lists."""

    node: int
    partition: int
    offset: int


class ExplanationReader:
    """Of one flow store."""

    def __init__(
        self,
        starts: TraceStarts,
        traces: LocalTraces,
        failures: FailureReader,
        walks: WalkCache,
        show: Show,
        *,
        time_budget_s: float,
    ) -> None:
        self._starts, self._traces, self._failures = starts, traces, failures
        self._walks, self._show, self._time_budget_s = walks, show, time_budget_s

    def explanation(self, application_id: str, query: ExplanationQuery) -> Explanation:
        """Raises NotFoundError, InvalidQueryError, TimeBudgetError."""
        if not query.starts:
            raise InvalidQueryError("say which records: without one there is nothing to explain")
        after = _place_of(query.cursor)
        asked = TraceQuery(
            direction="backward", starts=query.starts, across=False, limit=query.limit, values=True
        )
        opened, begin = self._starts.opened(application_id, asked)
        doubts = doubts_of(self._failures, opened, asked)
        cursor = opened.snapshot.database.cursor()
        try:
            with time_budget(cursor, self._time_budget_s) as check:
                starts = [*begin, *self._starts.named(opened, cursor, asked, check)]
                explained = explainer.explain(opened.snapshot, starts, check)
                shown = _Shown(opened, cursor, self._show, query.limit, check)
                named = shown_starts(self._show, opened, cursor, starts, asked, check, RequestedColumns(None))
                places, following = _page(explained.rows, after, query.limit)
                rows = shown.rows(places)
                is_first = query.cursor is None
                turns = tuple(map(shown.turn, explained.turns)) if is_first else ()
                is_counted = query.plain and is_first
                plain = self._plain_total(opened, asked, starts, check) if is_counted else None
        except TimeBudgetError:
            raise TimeBudgetError(
                f"the explanation was not found within {self._time_budget_s:g} s: ask for fewer records at "
                "once, or give it more time (LINEAGE_TRACE_SECONDS, --trace-seconds)"
            ) from None
        application = opened.application
        reasons = [
            *(f"{reason[:1].upper()}{reason[1:]}." for reason in dict.fromkeys(doubts.reasons)),
            *explained.reasons,
            *([] if application.complete else [LINEAGE_IS_OPEN]),
        ]
        exact = explained.exact and not doubts.reasons
        return Explanation(
            kind="concise" if exact and explained.is_captured else "bound",
            application_id=application.application_id,
            name=application.name,
            starts=tuple(named),
            rows=rows,
            total=explained.total,
            of=explained.of,
            plain_total=plain,
            turns=turns,
            rules=tuple(_rule(opened, rule) for rule in explained.rules) if is_first else (),
            given_values=tuple(given_values(opened, starts)),
            exact=exact,
            complete=application.complete and not doubts.are_unknown,
            reasons=tuple(reasons),
            next=None if following is None else ":".join(map(str, following)),
        )

    def _plain_total(
        self, opened: Opened, query: TraceQuery, starts: Sequence[Position], check: Check
    ) -> int | None:
        """The input records of a plain trace; None if they were not counted, which fails no query."""
        until = monotonic() + PLAIN_SECONDS
        name = "plain", cursors.digest(opened.application.application_id, query), *starts
        trace = self._walks.take(name) or self._traces.new(opened, query, None, starts)
        try:
            trace.advance(_ended_at(until, check))
        except (_NoTimeLeft, TimeBudgetError, InvalidQueryError, duckdb.InterruptException):
            return None
        finally:
            self._walks.put(name, trace)
        walk = trace.segments[opened.application.application_id][1]
        return sum(
            walk.size(offsets)
            for node in sources_of(opened)
            for offsets in walk.by_partition(node.number).values()
        )


class _NoTimeLeft(Exception):
    """The part of the time for the plain trace is spent."""


def _ended_at(until: float, check: Check) -> Check:
    def check_both() -> None:
        check()
        if monotonic() >= until:
            raise _NoTimeLeft

    return check_both


@dataclass(frozen=True, slots=True)
class _Shown:
    """Makes what people see of places, at most `limit` of each list."""

    opened: Opened
    cursor: duckdb.DuckDBPyConnection
    show: Show
    limit: int
    check: Check

    def rows(self, places: Sequence[_Place]) -> tuple[ExplainedRow, ...]:
        """Of sources."""
        return tuple(self._rows([Position(*place, self._holder(place)) for place in places]))

    def turn(self, turn: explanation.Turn) -> ExplanationTurn:
        return ExplanationTurn(
            loop=turn.loop,
            turn=turn.turn,
            node_id=self._node_id(turn.node),
            name=self._name(turn.node),
            total=turn.total,
            records=tuple(record for _, record in self._records(turn.positions[: self.limit])),
            until=turn.until[: self.limit],
            rows_total=turn.sources_total,
            rows=tuple(self._rows(turn.sources[: self.limit])),
        )

    def _rows(self, positions: Sequence[Position]) -> Iterator[ExplainedRow]:
        for position, record in self._records(positions):
            yield _row(self._node_id(position.node), self._name(position.node), record)

    def _records(self, positions: Sequence[Position]) -> Iterator[tuple[Position, Record]]:
        """In the order of the positions; each node is asked once."""
        by_node: dict[int, list[Position]] = {}
        for position in positions:
            by_node.setdefault(position.node, []).append(position)
        records: dict[Position, Record] = {}
        for number, of_node in by_node.items():
            node = self.opened.graph.topology.nodes[number]
            shown = self.show(self.opened, self.cursor, node, of_node, values=True, check=self.check)
            records |= zip(of_node, shown, strict=True)
        return ((position, records[position]) for position in positions)

    def _holder(self, place: _Place) -> int:
        """The run whose record is shown. One that failed is none of those that count: it has no texts."""
        runs = self.opened.graph.holders_of(place.node, place.partition, "backward")
        return next((run.number for run in runs), _NO_RUN)

    def _node_id(self, number: int) -> str:
        return contract.node_id(self.opened.application.application_id, number)

    def _name(self, number: int) -> str:
        return self.opened.graph.topology.nodes[number].name


def _row(node_id: str, name: str, record: Record) -> ExplainedRow:
    row = record.source
    return ExplainedRow(
        node_id=node_id,
        name=name,
        record_id=record.record_id,
        path=None if row is None else row.path,
        row=None if row is None else row.row,
        line=None if row is None else row.line,
        text=(record.value or record.key) if row is None else row.text,
        warning=None if row is None else row.warning,
    )


def _rule(opened: Opened, rule: explanation.Rule) -> ExplanationRule:
    node = opened.graph.topology.nodes[rule.node]
    return ExplanationRule(
        node_id=contract.node_id(opened.application.application_id, node.number),
        name=node.name,
        call_site=node.call_site,
        rule=rule.rule,
        kept=rule.kept,
        of=rule.of,
    )


Rows = Mapping[int, Mapping[int, Integers]]
"""Source -> partition -> offsets, ascending."""


def _page(rows: Rows, after: _Place | None, limit: int) -> tuple[list[_Place], _Place | None]:
    """(the places behind `after`, the last of them if there are more)."""
    places: list[_Place] = []
    for node, partitions in sorted(rows.items()):
        for partition, offsets in sorted(partitions.items()):
            first = 0
            if after is not None and (node, partition) <= after[:2]:
                is_same = (node, partition) == after[:2]
                first = int(np.searchsorted(offsets, after.offset, "right")) if is_same else len(offsets)
            behind = offsets[first : first + limit + 1 - len(places)]
            places += [_Place(node, partition, offset) for offset in behind.tolist()]
            if len(places) > limit:
                return places[:limit], places[limit - 1]
    return places, None


def _place_of(cursor: str | None) -> _Place | None:
    """Raises InvalidQueryError."""
    if cursor is None:
        return None
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidQueryError(f"cursor {cursor[:80]!r} was not given by this endpoint")
    return _Place(*map(int, match.groups()))

"""Explanations: makes of places that `tracing.explain` has found what people see, and counts a plain trace.

Stays in one application. Knows nothing of how the places were found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from time import monotonic
from typing import Any

import duckdb
import numpy as np

from lineage_service.errors import InvalidQueryError, TimeBudgetError
from lineage_service.lineage import (
    Explanation,
    ExplanationCheck,
    ExplanationRule,
    Verification,
)
from lineage_service.queries import ExplanationQuery, TraceQuery
from lineage_service.tracing.columns.time_budget import time_budget
from lineage_service.tracing.explain import explainer, explanation
from lineage_service.tracing.explain.checks import Check, checks_of
from lineage_service.tracing.explain.how import how
from lineage_service.tracing.explain.meeting_point import Rows
from lineage_service.tracing.files import decompression
from lineage_service.tracing.query.demanded_rows import DemandedRows, check_demanded
from lineage_service.tracing.query.explained_records import ExplainedRecords, Place
from lineage_service.tracing.query.failures import FailureReader
from lineage_service.tracing.query.given_values import given_values
from lineage_service.tracing.query.how_texts import shown_how
from lineage_service.tracing.query.local_traces import LocalTraces
from lineage_service.tracing.query.meetings import ExplainedPair, check_same
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
_MOST_CHECKS = 10
_CURSOR = re.compile(r"([0-9]{1,10}):([0-9]{1,10}):([0-9]{1,18})")


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
        check_same(query)
        check_demanded(query)
        after = _place_of(query.cursor)
        asked = TraceQuery(
            direction="backward", starts=query.starts, across=False, limit=query.limit, values=True
        )
        opened, begin = self._starts.opened(application_id, asked)
        doubts = doubts_of(self._failures, opened, asked)
        cursor = opened.snapshot.cursor()
        try:
            with time_budget(cursor, self._time_budget_s) as check:
                starts = [*begin, *self._starts.named(opened, cursor, asked, check)]
                demanded = DemandedRows.of(opened, self._starts, cursor, query, starts, check)
                explained = explainer.explain(opened.snapshot, [*starts, *demanded.starts], check)
                pair = ExplainedPair.of(opened, self._starts, cursor, asked, check) if query.same else None
                met = None if pair is None else pair.meeting
                shown = ExplainedRecords(opened, cursor, self._show, query.limit, check, met, demanded.places)
                named = shown_starts(self._show, opened, cursor, starts, asked, check, RequestedColumns(None))
                places, following = _page(explained.rows, after, query.limit)
                rows = shown.rows(places)
                is_first = query.cursor is None
                beside = dict[str, Any]()
                if is_first and pair is not None:
                    beside["same"] = pair.shown(shown, explained, asked)
                if is_first and query.how:
                    beside |= shown_how(shown, how(opened.snapshot, starts, check))
                if is_first and query.demanded:
                    beside["demanded"] = demanded.shown(shown)
                checks = checks_of(opened.graph.topology.checked, starts, explained.rows)
                if is_first:
                    beside["checks"] = tuple(
                        _shown_check(shown, one, query.limit) for one in checks[:_MOST_CHECKS]
                    )
                if checks and checks[0].is_of_these_rows:
                    beside |= {"kind": "verified", "verified": _verification(checks[0])}
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
            kind=beside.pop("kind", "concise" if exact and explained.is_captured else "bound"),
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
            **beside,
        )

    def _plain_total(
        self, opened: Opened, query: TraceQuery, starts: Sequence[Position], check: decompression.Check
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


def _ended_at(until: float, check: decompression.Check) -> decompression.Check:
    def check_both() -> None:
        check()
        if monotonic() >= until:
            raise _NoTimeLeft

    return check_both


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


def _verification(check: Check) -> Verification:
    return Verification(runs=check.runs, added=check.added_by_runs, minimal=check.is_minimal)


def _shown_check(shown: ExplainedRecords, check: Check, limit: int) -> ExplanationCheck:
    return ExplanationCheck(
        checked_at=check.time,
        these_rows=check.is_of_these_rows,
        runs=check.runs,
        minimal=check.is_minimal,
        total=check.total,
        added=shown.rows(_page(check.added, None, limit)[0]),
        added_total=check.added_total,
        left_out_total=check.left_out,
        notes=check.notes,
    )


def _page(rows: Rows, after: Place | None, limit: int) -> tuple[list[Place], Place | None]:
    """(the places behind `after`, the last of them if there are more)."""
    places: list[Place] = []
    for node, partitions in sorted(rows.items()):
        for partition, offsets in sorted(partitions.items()):
            first = 0
            if after is not None and (node, partition) <= after[:2]:
                is_same = (node, partition) == after[:2]
                first = int(np.searchsorted(offsets, after.offset, "right")) if is_same else len(offsets)
            behind = offsets[first : first + limit + 1 - len(places)]
            places += [Place(node, partition, offset) for offset in behind.tolist()]
            if len(places) > limit:
                return places[:limit], places[limit - 1]
    return places, None


def _place_of(cursor: str | None) -> Place | None:
    """Raises InvalidQueryError."""
    if cursor is None:
        return None
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidQueryError(f"cursor {cursor[:80]!r} was not given by this endpoint")
    return Place(*map(int, match.groups()))

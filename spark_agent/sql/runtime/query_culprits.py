"""Which row of a scan a task of a query failed on, by what the task reports and by the plan. Pure.

Promises that a record is called certain only if no other one was at hand, and that what is named otherwise is
an upper bound or nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from spark_agent.driver import error_descriptions
from spark_agent.sql.rewrite.plan_nodes import PlanNode
from spark_agent.sql.rewrite.row_paths import RowPath, path_above

__all__ = [
    "UNKNOWN",
    "Culprit",
    "FailingPlan",
    "Report",
    "Scan",
    "Tap",
    "culprit_of",
    "scan_at_hand",
    "with_rows_at_hand",
]

#: As ScanPositions.java has it: an id is a partition and a position in it.
_POSITION_BITS = 33
_OF_PYTHON = re.compile("Python|Pandas|Arrow")
_TOO_LARGE = re.compile("overflow|out.of.range", re.IGNORECASE)

_SHUFFLED = (
    "the task read what other tasks had made (a shuffle, a cache), and does not know which row it failed on"
)
_SEVERAL = "the task read several inputs, and it is not known on which row of which it failed"
_READING = "the input could not be read behind this many of its records: {rows:,}"
_PREFILTERED = "it may have come from a condition on a row of the input that was not a record yet"
_UNREAD = "it may be a row of one of several inputs that was not a record yet"
_BEFORE = "it came before the task had a row of its input"
UNKNOWN = "the task read rows of an input, but it is not known what became of them before it failed"
_JOINED = (
    "the input row is the one at hand, but it may have met rows of the other side of a join or of a subquery"
)
_MERGED = "it may be the values of a group together that are too large, and not those of one row"
_OTHERS = "the task brought rows of several inputs together, and it is not known on which of them it failed"
_BATCH = "Python was given rows in batches, and this is one of those that it had not given back"
_BEHIND = "it came behind an operator that takes all rows of a task first, so it may be any of them"
_ANY = "it may be any row that the task had read by then"

Report = dict[str, Any]
"""What FailureReport.java says of a task; `Scan` and `Tap` are parts of it."""
Scan = dict[str, Any]
Tap = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FailingPlan:
    """What is remembered of a query.

    `is_streamed`: no scan is read alternately, and no row is persisted. `batch`: how many results of a
    function for rows Python gives back at once, if there is one.
    """

    nodes: tuple[PlanNode, ...]
    is_streamed: bool
    batch: int | None

    @property
    def numbers(self) -> frozenset[int]:
        return frozenset(
            number for node in self.nodes for number in (node.number, *node.parents, *node.id_parents)
        )

    @property
    def python_operators(self) -> list[PlanNode]:
        """Those that call functions of Python."""
        return [node for node in self.nodes if node.kind == "operator" and _OF_PYTHON.search(node.name)]


@dataclass(frozen=True, slots=True)
class Culprit:
    """The record `position` of the scan, or one from `first` on; None if it is not known.

    With `first` alone it is a row that was not a record yet: one behind those that were read.
    """

    position: int | None = None
    first: int | None = None
    is_certain: bool = False
    reason: str = ""


def culprit_of(report: Report, scans: Sequence[Scan], plan: FailingPlan | None) -> Culprit:
    """The record at hand when the task failed."""
    scan = scan_at_hand(scans)
    if scan is None and scans and _may_be_unread(report, scans, plan):
        return Culprit(first=scans[0]["rows"], reason=_UNREAD)
    if scan is None:
        return Culprit(reason=_SEVERAL if scans else _SHUFFLED)
    if report["origin"] == "scan":
        return Culprit(first=scan["rows"], reason=_READING.format(rows=scan["rows"]))
    if _may_be_unread(report, [scan], plan):
        return Culprit(first=scan["rows"], reason=_PREFILTERED)
    if plan is None or not scan["rows"]:
        return Culprit(reason=UNKNOWN if scan["rows"] else _BEFORE)
    return _by_plan(report, scans, scan, plan)


def with_rows_at_hand(report: Report, plan: FailingPlan | None) -> list[Scan]:
    """The scans of a task on whose rows it may have failed; those without a row where one may be unread."""
    scans: list[Scan] = report["scans"]
    if len(scans) == 1 or _may_be_unread(report, scans, plan):
        return scans
    return [scan for scan in scans if scan["rows"]]


def _may_be_unread(report: Report, scans: Sequence[Scan], plan: FailingPlan | None) -> bool:
    """May it be a row of one of these scans that was not a record yet?"""
    numbers = {scan["node"] for scan in scans}
    nodes = () if plan is None else plan.nodes
    is_prefiltered = any(path_above(nodes, number).is_prefiltered for number in numbers if nodes)
    return report["origin"] == "scan" or (report["origin"] != "python" and is_prefiltered)


def _by_plan(report: Report, scans: Sequence[Scan], scan: Scan, plan: FailingPlan) -> Culprit:
    path = path_above(plan.nodes, scan["node"])
    is_being_read = path.is_being_read(is_within_file=scan["is_within_file"] if scan["parts"] else None)
    is_streamed = is_being_read and plan.is_streamed
    # Without a file it is not seen that a scan has ended, and that a task reads the other side of a union.
    is_at_hand = is_streamed and (scan["is_within_file"] or not path.has_union)
    if report["origin"] == "row" and is_at_hand and not path.has_unknown and not path.batched:
        if not path.has_others and _may_be_of_group(report, path):
            if len(scans) > 1 or path.has_union:  # the group has rows of others, too
                return Culprit(reason=_MERGED)
            return Culprit(scan["rows"] - 1, 0, reason=_MERGED)
        reason = _JOINED if path.has_others else ""
        return Culprit(scan["rows"] - 1, is_certain=not reason, reason=reason)
    if path.has_others or path.has_union or len(scans) > 1:
        return Culprit(reason=_OTHERS if path.has_others else _SEVERAL)
    at = _at_call(report, plan, scan, path) if is_streamed else None
    if at is not None:
        return Culprit(at, is_certain=True)
    first, last = 0, scan["rows"] - 1
    if is_streamed and report["origin"] != "elsewhere":
        first, last = _window(report, plan, scan, path)
    return Culprit(last, first, reason=_reason(path, is_behind=not is_being_read))


def scan_at_hand(scans: Sequence[Scan]) -> Scan | None:
    """The one that the task was reading, if it was reading one."""
    current = scans if len(scans) == 1 else [scan for scan in scans if scan["is_within_file"]]
    return current[0] if len(current) == 1 and current[0]["passes"] <= 1 else None


def _may_be_of_group(report: Report, path: RowPath) -> bool:
    """May it be the sum or the mean of a group that is too large, rather than an expression of the row?"""
    is_aggregated = any(node.name == "Aggregate" for node in path.ends)
    return is_aggregated and _TOO_LARGE.search(report["message"]) is not None


def _window(report: Report, plan: FailingPlan, scan: Scan, path: RowPath) -> tuple[int, int]:
    """(first, last) of the records of a scan that have not come to the end of the path."""
    last = scan["rows"] - 1
    taps = _taps_behind(report, plan, path)
    if not path.is_in_order or not taps:
        return 0, last
    seen = max((position for tap in taps for position in _positions(tap, scan)), default=-1)
    # A worker that raises has given back all batches before; one that was killed may not.
    if plan.batch and path.gives_row_for_row and error_descriptions.is_of_worker(report["message"]):
        return min(seen + 1, last), min(seen + plan.batch, last)
    return min(max(seen, 0), last), last


def _at_call(report: Report, plan: FailingPlan, scan: Scan, path: RowPath) -> int | None:
    """The record of a scan on which a function for rows failed, where its worker said the place in the batch.

    Every batch before has come to the end of the path. All are full, but for the last one.
    """
    call, taps = report.get("call"), _taps_behind(report, plan, path)
    if report["origin"] != "python" or call is None or not taps or not path.is_in_order:
        return None
    if not path.calls_for_each or not error_descriptions.is_of_worker(report["message"]):
        return None
    begin = 1 + max((position for tap in taps for position in _positions(tap, scan)), default=-1)
    index, size = call
    if not 0 <= index < size or begin + size > scan["rows"]:
        return None
    # Arrow gives a batch back for each that it gets. Rows that are pickled come in lists of one size.
    is_last = begin + size == scan["rows"]
    is_of_size = plan.batch is not None and begin % plan.batch == 0 and (size == plan.batch or is_last)
    return begin + index if is_of_size or not path.gives_row_for_row else None


def _taps_behind(report: Report, plan: FailingPlan, path: RowPath) -> list[Tap]:
    """The taps that rows come to at the end of a path."""
    ends = {node.number for node in path.ends}
    nodes = {plan.nodes[-1].number} if not ends else set(_rows_before(plan.nodes, ends))
    return [tap for tap in report["taps"] if tap["node"] in nodes]


def _positions(tap: Tap, scan: Scan) -> Iterator[int]:
    """The last records of a partition of a scan that a tap has seen."""
    for source, row_id in zip(tap["sources"], tap["ids"], strict=True):
        if source == scan["node"] and row_id >= 0 and row_id >> _POSITION_BITS == scan["split"]:
            yield row_id & ((1 << _POSITION_BITS) - 1)


def _rows_before(nodes: Sequence[PlanNode], ends: set[int]) -> Iterator[int]:
    """The nodes of the rows that come to these operators, one of the internal nodes of each."""
    for node in nodes:
        if node.kind == "step" and node.operation in ends and not node.parents:
            yield node.number


def _reason(path: RowPath, *, is_behind: bool) -> str:
    if path.batched and not path.has_unknown:
        return _BATCH
    return _BEHIND if is_behind and path.ends else _ANY

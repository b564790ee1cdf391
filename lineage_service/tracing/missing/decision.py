"""Which of several operators left a row out, computed again from the row and what each operator computes.

The agent sends the expressions of operators (docs/contract.md). What is not surely computed as Spark has
computed it decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lineage_service.evaluation.expressions import Columns
from lineage_service.evaluation.scanned_row import of_folders, of_json_text, of_line
from lineage_service.evaluation.steps import Step, Verdict, scan_columns, verdict_of
from lineage_service.evaluation.values import Result
from lineage_service.lineage import SourceRow
from lineage_service.tracing.files.file_parts import LINES, ORC, PARQUET, format_of
from lineage_service.tracing.files.partition_folders import partition_values
from lineage_service.tracing.missing.droppers import LIMITS, Candidate
from lineage_service.tracing.missing.other_sides import OtherSides
from lineage_service.tracing.model.elements import TopologyNode
from spark_agent import contract

__all__ = ["Decision", "EndedRecord", "dropped_at"]

Nodes = Mapping[int, TopologyNode]
#: Ways from a record to an operator that are looked at.
_MOST_PATHS = 16


@dataclass(frozen=True, slots=True)
class EndedRecord:
    """The last record with an id that a row became: of a scan, of a cache, or of a group.

    `source` is its row in a file, if it has one. `is_unread`: no task gave it on, so a scan left it out.
    """

    node: TopologyNode
    source: SourceRow | None = None
    is_unread: bool = False


@dataclass(frozen=True, slots=True)
class _Passed:
    """An operator on a path, and the input by which the row comes."""

    node: TopologyNode
    side: int


@dataclass(frozen=True, slots=True)
class Decision:
    """The one of several candidates, and why it was; None: `reason` says why that is not known."""

    candidate: Candidate | None
    why: str = ""
    reason: str = ""


def dropped_at(
    nodes: Nodes,
    record: EndedRecord,
    candidates: Sequence[Candidate],
    sides: OtherSides | None = None,
    values: Mapping[str, Result] | None = None,
) -> Decision:
    """By the candidates, in the order in which rows pass them, and by the rows of the other sides of joins.

    What it gives is promised to be exact, given that one of them left the row out. `values` are those of the
    row, where they are known better than by its text.
    """
    paths = _paths(nodes, record.node, candidates)
    if len(paths) != 1:
        return Decision(None, reason="the row may have taken several ways" if paths else "")
    if any(candidate.node.name in LIMITS or candidate.node.kind == "sink" for candidate in candidates):
        sides = None  # of another side of a join not all may have been read
    steps = [
        Step(
            passed.node.name,
            passed.node.expressions,
            passed.side,
            None if sides is None else sides.of(passed.node, passed.side),
        )
        for passed in paths[0]
    ]
    columns: list[Columns] = scan_columns(
        record.node.expressions,
        [column.name for column in record.node.schema],
        _values(record) if values is None else values,
    )
    # Where the scan stands in the plan several times, it is not known which time this path begins at.
    verdicts = {verdict_of(steps, of_scan) for of_scan in columns} or {verdict_of(steps, {})}
    ended = {verdict.candidates for verdict in verdicts}
    if len(ended) != 1 or not all(verdict.is_exact for verdict in verdicts):
        return Decision(None, reason=next((one.reason for one in verdicts if one.reason), ""))
    (verdict, *_) = verdicts
    operator = paths[0][verdict.candidates[0]].node
    if record.is_unread and operator.name != "Filter":
        return Decision(None)  # what is behind a scan may be why its task ended early
    one = next((candidate for candidate in candidates if candidate.node.number == operator.number), None)
    return Decision(None) if one is None else Decision(one, _why(verdicts))


def _why(verdicts: set[Verdict]) -> str:
    reasons = {verdict.why for verdict in verdicts}
    return reasons.pop() if len(reasons) == 1 else ""


def _paths(nodes: Nodes, record: TopologyNode, candidates: Sequence[Candidate]) -> list[list[_Passed]]:
    """The ways from a record to the last candidate, past all of them."""
    begin = record.number if record.operation is None else record.operation
    sides = {candidate.node.number: candidate.side for candidate in candidates}
    paths: list[list[_Passed]] = []
    for path in _down(nodes, candidates[-1].node.number, begin):
        passed = {one.node.number: one.side for one in path}
        if all(number in passed and side in (None, passed[number]) for number, side in sides.items()):
            paths.append(path)
        if len(paths) > _MOST_PATHS:
            break
    return paths


def _down(nodes: Nodes, number: int, begin: int) -> Iterator[list[_Passed]]:
    """The ways from `begin` up to an operator, with it."""
    node = nodes[number]
    for side, parent in enumerate(node.parents):
        last = _Passed(node, side)
        if parent == begin:
            yield [last]
        elif nodes[parent].relation == contract.CARRIED:
            yield from ([*path, last] for path in _down(nodes, parent, begin))


def _values(record: EndedRecord) -> dict[str, Result]:
    """The columns of its row, as its scan has read them. None of a file that may be another one by now."""
    node, row = record.node, record.source
    if row is None or row.text is None or row.warning is not None or _is_doubtful(row.text):
        return {}
    partitions = () if node.dataset is None else node.dataset.partitions
    in_file = [column for column in node.schema if column.name not in partitions]
    format = format_of(node)
    if format in LINES:
        values = of_line(format, row.text, in_file, (node.expressions or {}).get("options", {}))
    elif format in (PARQUET, ORC):
        values = of_json_text(row.text, in_file)
    else:
        return {}
    in_folders = [column for column in node.schema if column.name in partitions]
    return {**values, **of_folders(partition_values(row.path), in_folders)}


def _is_doubtful(text: str) -> bool:
    """Was it cut, or is it not all UTF-8?"""
    return text.endswith("…") or "\ufffd" in text

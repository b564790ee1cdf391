"""Which operators of query plans may leave a row out that comes in by one of their inputs. Pure.

By the names that Spark's plans have for them. What is not known here may leave out any row: so a list of
candidates is never too short.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lineage_service.tracing.files.file_parts import PARQUET, format_of
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.model.plan_edges import KEEPING

__all__ = ["LIMITS", "Candidate", "ends_ids", "join_type", "may_drop", "of_unread", "without_doubles"]

#: Operators that end a task before it has read all of its rows.
LIMITS = frozenset(("GlobalLimit", "LocalLimit", "Tail"))


@dataclass(frozen=True, slots=True)
class Candidate:
    """An operator that may have left a row out. `side` is the input of a join by which the row came."""

    node: TopologyNode
    side: int | None = None


#: Operators that give each row on, some of them more than once.
_GIVING_ON = KEEPING | {
    "LogicalRDD",
    "ExternalRDD",
    "Union",
    "Expand",
    "Window",
    "WindowInPandas",
    "ArrowWindowPython",
    "AttachDistributedSequence",
    "LimitAll",
}
_JOIN = "Join"
_JOIN_TYPE = re.compile(r"\w+")
#: Join type -> the inputs whose rows it gives on, each at least once.
_KEPT_SIDES = {
    "LeftOuter": (0,),
    "LeftSingle": (0,),
    "RightOuter": (1,),
    "FullOuter": (0, 1),
    "ExistenceJoin": (0,),
}
#: Of these the rows of the second input come out of no row, and are sources only where a tap saw them.
_LEFT_ONLY = frozenset(("LeftSemi", "LeftAnti", "ExistenceJoin"))


def join_type(node: TopologyNode) -> str:
    """Of a join, as Spark names it; else empty."""
    match = _JOIN_TYPE.match(node.description) if node.name == _JOIN else None
    return "" if match is None else match[0]


def may_drop(node: TopologyNode, side: int) -> bool:
    """May a row that comes by this input come out of it not at all?"""
    if node.name == _JOIN:
        return side not in _KEPT_SIDES.get(join_type(node), ())
    return node.name not in _GIVING_ON or (side > 0 and node.name not in ("Union",))


def ends_ids(node: TopologyNode, side: int) -> bool:
    """Are rows that come by this input named by no row that comes out?"""
    return side == 1 and join_type(node) in _LEFT_ONLY


def without_doubles(candidates: Sequence[Candidate]) -> list[tuple[Candidate, bool]]:
    """(candidate, whether it has doubles) without those that Spark made of another one behind them.

    These leave rows out earlier: whatever they leave out, the other one would.
    """
    names = [candidate.node.name for candidate in candidates]
    doubles = {
        at: next((late for late in range(at + 1, len(names)) if names[late] == _MADE_OF.get(name)), None)
        for at, name in enumerate(names)
    }
    return [
        (candidate, at in doubles.values()) for at, candidate in enumerate(candidates) if doubles[at] is None
    ]


#: Operator -> that of which it was made.
_MADE_OF = {"LocalLimit": "GlobalLimit", "WindowGroupLimit": "Filter"}


def of_unread(node: TopologyNode, candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """Those because of which a scan may not have given a row.

    Either a limit ended its task, or a condition right above it was pushed into it. Into some scans none is,
    because rows are numbered there in their order; of these only whole files are left out.
    """
    limits = tuple(one for one in candidates if one.node.name in LIMITS or one.node.kind == "sink")
    pushed = tuple(one for one in candidates[:1] if _is_pushed(one.node, node))
    return (*pushed, *limits)


def _is_pushed(operator: TopologyNode, scan: TopologyNode) -> bool:
    """Into a scan of Parquet; into another one what says which folders are read."""
    is_above = operator.name == "Filter" and scan.number in operator.parents
    dataset = scan.dataset
    return is_above and (dataset is None or format_of(scan) == PARQUET or bool(dataset.partitions))

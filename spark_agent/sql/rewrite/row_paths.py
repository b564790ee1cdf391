"""Which operators of a plan take rows one by one on their way from a scan, as far as that is known.

If an error comes while a row is evaluated, that row is the last one that the scan has given, unless an
operator between them holds rows back. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from spark_agent.sql.rewrite.plan_nodes import PlanNode

#: Operators that give what they make of a row before they take the next one.
_BY_ROW = frozenset(
    (
        "CollectMetrics",
        "Expand",
        "Filter",
        "Generate",
        "GlobalLimit",
        "LimitAll",
        "LocalLimit",
        "Offset",
        "Project",
        "RebalancePartitions",
        "Repartition",
        "RepartitionByExpression",
        "ResolvedHint",
        "Sample",
        "SubqueryAlias",
        "TypedFilter",
        "Union",
        "View",
    )
)
#: Those that take all rows of a task before they give one, or whose rows another task reads. Spark sorts rows
#: before a window.
_TAKING_ALL = frozenset(
    ("Aggregate", "Deduplicate", "Distinct", "ScalarSubquery", "Sort", "Window", "WindowGroupLimit")
)
#: Those of the first that may stop before a scan has given all rows.
_STOPPING = frozenset(("GlobalLimit", "LocalLimit"))
#: Those that give rows in their order, and may have taken many more by then.
_BATCHED = frozenset(("BatchEvalPython", "ArrowEvalPython"))
#: Of these, the one that calls a function for each row.
ROW_PYTHON = "BatchEvalPython"
#: Those that give one row of each row.
_KEEPING = frozenset(("Project", "ResolvedHint", "SubqueryAlias", "View"))
#: Those that bring rows together with others, row by row of one side.
_JOINING = frozenset(("Join",))


@dataclass(frozen=True, slots=True)
class RowPath:
    """The operators above a scan, up to the first ones that take all rows."""

    operators: tuple[PlanNode, ...]
    ends: tuple[PlanNode, ...]  # operators that take all rows
    has_unknown: bool
    has_others: bool  # may a row meet rows of another input
    is_prefiltered: bool  # may a condition fail before the scan has counted its row

    @property
    def batched(self) -> tuple[PlanNode, ...]:
        """Operators that call Python for many rows at once."""
        return tuple(node for node in self.operators if node.name in _BATCHED)

    def is_being_read(self, *, is_within_file: bool | None) -> bool:
        """Is the scan still giving rows, so that no operator that takes all rows has begun to give any?

        None for `is_within_file`: its rows are not those of files, and only the path can tell.
        """
        return not self.ends if is_within_file is None else is_within_file and not self.may_end_early

    @property
    def may_end_early(self) -> bool:
        """May an operator that takes all rows have them, while the scan has more?"""
        return bool(self.ends) and any(node.name in _STOPPING for node in self.operators)

    @property
    def gives_row_for_row(self) -> bool:
        """Does exactly one operator call Python, row by row, and no other one leave rows out or make more?"""
        return [node.name for node in self.operators if node.name not in _KEEPING] == [ROW_PYTHON]

    @property
    def calls_for_each(self) -> bool:
        """Does exactly one operator call Python, and no other one leave rows out or make more?"""
        return [node.name in _BATCHED for node in self.operators if node.name not in _KEEPING] == [True]

    @property
    def has_union(self) -> bool:
        """May a task have other rows beside those of the scan, which no scan of it has given?"""
        return any(node.name == "Union" and len(node.parents) > 1 for node in self.operators)

    @property
    def is_in_order(self) -> bool:
        """Do rows come out in the order in which the scan gives them?"""
        return not self.has_unknown and not self.has_others


def calls_python(nodes: Iterable[PlanNode]) -> bool:
    """Does an operator call Python for many rows at once, so that its worker knows on which one it fails?"""
    return any(node.name in _BATCHED for node in nodes)


def path_above(nodes: Sequence[PlanNode], scan: int) -> RowPath:
    """The path from the node `scan` to the output of a plan, whose node is the last one.

    Where a scan's rows are another node's, an operator of its own stands for it.
    """
    above: Mapping[int, list[PlanNode]] = _above(nodes)
    by_number = {node.number: node for node in nodes}
    operators: dict[int, PlanNode] = {}
    ends: dict[int, PlanNode] = {}
    has_unknown = has_others = False
    leaves = [by_number[scan]] if scan in by_number else above[scan]
    frontier = [node for leaf in leaves for node in above[leaf.number]]
    while frontier:
        node = frontier.pop()
        if node.number in operators or node.number in ends or node is nodes[-1]:
            continue
        if node.name in _TAKING_ALL:
            ends[node.number] = node
            continue
        operators[node.number] = node
        parents = [by_number[parent].name for parent in node.parents if parent in by_number]
        has_others |= node.name in _JOINING or "ScalarSubquery" in parents
        has_others |= len(node.parents) > 1 and node.name != "Union"
        has_unknown |= node.name not in _BY_ROW | _BATCHED | _JOINING
        frontier += above[node.number]
    is_prefiltered = any(leaf.is_prefiltered for leaf in leaves)
    return RowPath(tuple(operators.values()), tuple(ends.values()), has_unknown, has_others, is_prefiltered)


def _above(nodes: Iterable[PlanNode]) -> Mapping[int, list[PlanNode]]:
    above: dict[int, list[PlanNode]] = defaultdict(list)
    for node in nodes:
        for parent in node.parents:
            above[parent].append(node)
    return above

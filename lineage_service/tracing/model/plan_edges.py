"""How many rows passed between the operators of a query plan, and where they moved between tasks.

Only scans, groupings, caches and outputs have runs, which say what came by and in which stage of Spark. From
these both are followed along the operators that give on each row that they take. What does not follow is left
unsaid: None, or no shuffle. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.model.lineage_graph import LineageGraph
from spark_agent import contract

__all__ = ["KEEPING", "PlanEdges"]

_Edge: TypeAlias = "tuple[int, int]"

#: Operators that give each row on once, by the names that Spark's plans have for them.
KEEPING = frozenset(
    {
        "Project",
        "Sort",
        "Repartition",
        "RepartitionByExpression",
        "RebalancePartitions",
        "SubqueryAlias",
        "View",
        "ResolvedHint",
        "CollectMetrics",
        "BatchEvalPython",
        "ArrowEvalPython",
        "InMemoryRelation",
        "CTERelationRef",
    }
)
#: Operators that move rows between tasks unless a run says otherwise; how their descriptions then end.
_MOVING = {
    "Sort": ", true",
    "Repartition": ", true",
    "RepartitionByExpression": "",
    "RebalancePartitions": "",
}
#: And those that may. So may all in which rows meet by keys.
_MAY_MOVE = frozenset({"Join", "GlobalLimit", "Offset", *_MOVING})


class PlanEdges:
    """The edges of all plans of an application, by the numbers of their nodes."""

    def __init__(self, graph: LineageGraph) -> None:
        self._graph = graph
        self._nodes = graph.topology.nodes
        self._taps: dict[int, list[int]] = defaultdict(
            list
        )  # operator -> the internal nodes that saw its rows enter
        for node in sorted(self._nodes.values(), key=lambda node: node.number):
            is_read = node.number in graph.topology.children  # not so those that say which rows decide groups
            if node.kind == "step" and node.by_id and node.operation is not None and is_read:
                self._taps[node.operation].append(node.number)
        self._own = {number: node for number, node in self._nodes.items() if self._is_of_plan(node)}
        #: Rows that went from one node to another, where that is known.
        self.rows: Mapping[_Edge, int] = self._followed(dict(self._counted()))
        #: Edges on which rows moved between tasks.
        self.shuffles: frozenset[_Edge] = frozenset(self._moved())

    def __contains__(self, node: int) -> bool:
        return node in self._own

    @staticmethod
    def _is_of_plan(node: TopologyNode) -> bool:
        return node.is_public and (node.by_id or node.relation == contract.CARRIED)

    def _children(self, number: int) -> list[int]:
        return [child for child in self._graph.topology.children.get(number, ()) if child in self._own]

    def _taps_of_sides(self, number: int) -> Mapping[int, int]:
        """The internal nodes that saw the rows of each input enter; empty where they are not known."""
        taps, parents = self._taps.get(number, []), self._own[number].parents
        return dict(zip(parents, taps, strict=True)) if len(taps) == len(parents) else {}

    # -- rows ------------------------------------------------------------------------------------------

    def _counted(self) -> Iterable[tuple[_Edge, int]]:
        """What runs say themselves: rows that scans gave, that entered groups, that reached an output."""
        for number, node in self._own.items():
            if not node.parents:
                if node.by_id and not _is_sparse(node):
                    for child in self._children(number):
                        yield (number, child), self._entered(number)
            elif node.by_id and len(node.parents) == 1:
                yield (node.parents[0], number), self._entered(number)
            else:
                for parent, tap in self._taps_of_sides(number).items():
                    if self._graph.holders(tap):
                        yield (parent, number), self._entered(tap)

    def _entered(self, number: int) -> int:
        return sum(self._graph.count(number, run.number) for run in self._graph.holders(number))

    def _followed(self, rows: dict[_Edge, int]) -> dict[_Edge, int]:
        """And along operators that keep each row, up and down."""
        keeping = [
            (number, node.parents[0])
            for number, node in sorted(self._own.items())
            if node.name in KEEPING and len(node.parents) == 1
        ]
        for number, parent in keeping:
            if (parent, number) in rows:
                for child in self._children(number):
                    rows.setdefault((number, child), rows[parent, number])
        for number, parent in reversed(keeping):
            counts = [rows[number, child] for child in self._children(number) if (number, child) in rows]
            if counts:
                rows.setdefault((parent, number), max(counts))
        return rows

    # -- stages ----------------------------------------------------------------------------------------

    def _moved(self) -> Iterable[_Edge]:
        """From the sources on: in which stages rows were seen last, none where they have moved since."""
        ahead = self._seen_next()
        behind: dict[int, frozenset[int]] = {}
        for number, node in sorted(self._own.items()):
            taps = self._taps_of_sides(number)
            seen = {
                side: self._stages(taps[side]) if side in taps else behind.get(side, frozenset())
                for side in node.parents
            }
            moved = {side for side in seen if self._moves(node, side, seen, ahead[number])}
            yield from ((side, number) for side in sorted(moved))
            stayed = [stages for side, stages in seen.items() if side not in moved]
            behind[number] = self._stages(number) if node.by_id else frozenset().union(*stayed)

    def _moves(
        self, node: TopologyNode, side: int, seen: Mapping[int, frozenset[int]], ahead: frozenset[int]
    ) -> bool:
        """Do its rows go to other tasks on their way into an operator?"""
        if seen[side] and ahead:
            return (node.name in _MAY_MOVE or node.number in self._taps) and not seen[side] & ahead
        if node.name == "Join":  # where one side stays in its stage, the other is brought to it
            return any(stages & ahead for stages in seen.values())
        ending = _MOVING.get(node.name)
        return ending is not None and node.description.endswith(ending)

    def _seen_next(self) -> dict[int, frozenset[int]]:
        """In which stages the rows that each operator gives are seen next."""
        ahead: dict[int, frozenset[int]] = {}
        for number in sorted(self._own, reverse=True):
            ahead[number] = frozenset()
            for child in self._children(number):
                tap = self._taps_of_sides(child).get(number)
                if self._own[child].by_id:
                    ahead[number] |= self._stages(child)
                else:
                    ahead[number] |= ahead[child] if tap is None else self._stages(tap)
        return ahead

    def _stages(self, number: int) -> frozenset[int]:
        return frozenset(run.stage for run in self._graph.holders(number) if run.stage is not None)


def _is_sparse(node: TopologyNode) -> bool:
    """A scan whose records are known by the rows of files: it may have given on only some of them."""
    return any("row" in part for info in node.partitions.values() for part in info.get("parts", ()))

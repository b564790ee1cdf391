"""The paths that rows of a query plan take, from where their ids were seen to where they are seen next. Pure.

Operators between two such places have no records. A row that was seen at the first place and not at the next
was left out by an operator in between.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from lineage_service.tracing.missing.droppers import Candidate, ends_ids, may_drop, without_doubles
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.model.lineage_graph import LineageGraph
from lineage_service.tracing.model.plan_edges import PlanEdges
from spark_agent import contract

__all__ = ["DeadPath", "PlanPaths"]

#: Paths of one row that are told apart.
_MOST_PATHS = 64


@dataclass(frozen=True, slots=True)
class DeadPath:
    """A path on which a row was not seen again. `is_cut`: its rows are in no output by that path."""

    candidates: tuple[Candidate, ...]
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class _Step:
    """An operator on a path, and the input by which rows come."""

    node: TopologyNode
    side: int


class PlanPaths:
    """The plans of one application."""

    def __init__(self, graph: LineageGraph) -> None:
        self._graph, self._topology = graph, graph.topology
        #: Operator -> the nodes that saw ids of rows that enter it.
        self._taps: dict[int, list[int]] = defaultdict(list)
        for number, node in graph.topology.nodes.items():
            if node.by_id and number in graph.topology.id_sources:
                self._taps[number if node.operation is None else node.operation].append(number)
        self._rows = PlanEdges(graph).rows

    def dead(self, number: int, arrived: Collection[int], allowed: Collection[int]) -> list[DeadPath]:
        """Of records of a node that `arrived` at these taps: each path on which they ended, to a next tap.

        Only by way of `allowed` nodes.
        """
        node = self._topology.nodes[number]
        begin = number if node.operation is None else node.operation
        operation = self._topology.nodes[begin]
        # Of a semi-join: rows of its second input that no row of the first one met.
        steps = (_Step(operation, 1),) if begin != number and operation.name == "Join" else ()
        paths: list[DeadPath] = []
        for at, path in enumerate(self._paths(number, begin, frozenset(arrived), allowed, steps)):
            if at >= _MOST_PATHS:
                break
            if path not in paths:
                paths.append(path)
        return paths

    def _paths(
        self,
        number: int,
        at: int,
        arrived: frozenset[int],
        allowed: Collection[int],
        steps: tuple[_Step, ...],
    ) -> Iterator[DeadPath]:
        """Depth first: a plan has no circles."""
        for child in self._topology.children.get(at, ()):
            if child not in allowed and not self._taps_among(child, allowed):
                continue
            node = self._topology.nodes[child]
            for side, parent in enumerate(node.parents):
                if parent == at:
                    yield from self._through(number, _Step(node, side), arrived, allowed, steps)

    def _taps_among(self, operator: int, allowed: Collection[int]) -> bool:
        return any(tap in allowed for tap in self._taps.get(operator, ()))

    def _through(
        self,
        number: int,
        step: _Step,
        arrived: frozenset[int],
        allowed: Collection[int],
        steps: tuple[_Step, ...],
    ) -> Iterator[DeadPath]:
        child = step.node.number
        taps = [] if self._is_beside_tap(step) else self._taps.get(child, [])
        mine = [tap for tap in taps if number in self._topology.id_sources.get(tap, ())]
        if arrived.intersection(mine):
            if step.node.name == "Window":  # the row itself goes on, too
                yield from self._paths(number, child, arrived, allowed, ())
            return
        steps = (*steps, step)
        if mine:
            yield self._dead(steps[:-1], step if step.node.limit is not None else None)
        elif taps or ends_ids(step.node, step.side):
            last = (Candidate(step.node, step.side),) if ends_ids(step.node, step.side) else ()
            yield DeadPath((*self._candidates(steps[:-1]), *last), is_cut=True)
        elif step.node.relation == contract.CARRIED and step.node.kind != "sink":
            yield from self._paths(number, child, arrived, allowed, steps)

    @staticmethod
    def _is_beside_tap(step: _Step) -> bool:
        """A semi-join writes down the rows of its second input only."""
        return step.node.name == "Join" and step.side == 0

    def _dead(self, steps: tuple[_Step, ...], last: _Step | None) -> DeadPath:
        candidates = self._candidates(steps)
        if last is not None and self._binds(last.node, last.node.limit):
            candidates.append(Candidate(last.node))
        return DeadPath(tuple(candidates))

    def _candidates(self, steps: tuple[_Step, ...]) -> list[Candidate]:
        dropping = [
            Candidate(step.node, step.side if step.node.name == "Join" else None)
            for step in steps
            if may_drop(step.node, step.side)
        ]
        return [
            candidate
            for candidate, has_doubles in without_doubles(dropping)
            if has_doubles or not self._kept_all(candidate.node)
        ]

    def _kept_all(self, node: TopologyNode) -> bool:
        """By the rows that were counted, where they were."""
        if node.name not in _ONE_FOR_ONE or len(node.parents) != 1:
            return False
        children = self._topology.children.get(node.number, ())
        passed_on = [self._rows.get((node.number, child)) for child in children]
        if len(passed_on) != 1 or passed_on[0] is None:
            return False
        taken = self._rows.get((node.parents[0], node.number))
        is_below = (
            node.name in _LIMITS and node.description.isdigit() and passed_on[0] < int(node.description)
        )
        return taken == passed_on[0] or is_below

    def _binds(self, sink: TopologyNode, limit: int | None) -> bool:
        runs = self._graph.holders(sink.number)
        return limit is not None and sum(self._graph.count(sink.number, run.number) for run in runs) >= limit


#: Operators that give each row once or not at all.
_ONE_FOR_ONE = frozenset(("Filter", "TypedFilter", "GlobalLimit", "LocalLimit", "Offset", "Tail"))
_LIMITS = frozenset(("GlobalLimit",))

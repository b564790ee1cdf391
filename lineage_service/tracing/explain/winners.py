"""Outputs that one of their inputs alone decided: a minimum, the latest, one of several equal records.

The agent has seen that the function gave this input back, at every merge. So the other inputs of the group
explain nothing: the output is there without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import numpy.typing as npt

from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.interval_join import distinct, input_counts
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.explain.decided_groups import DecidedGroups
from lineage_service.tracing.explain.explanation import Rule
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.model.topology import operation_of
from lineage_service.tracing.walk.backward import GroupInputs
from lineage_service.tracing.walk.frontiers import Frontiers, bounds_of
from spark_agent import contract

__all__ = ["CapturedWinners", "silent_merges", "winner_rules"]

_Marks = npt.NDArray[np.bool_]


class CapturedWinners:
    """Those that an agent has seen. For `BackwardSteps`."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._flows, self._annotations = snapshot.flows, snapshot.annotations
        self._annotated = snapshot.graph.blocks.annotated
        self._groups = DecidedGroups(snapshot)
        relations = snapshot.graph.blocks.relations
        topology = snapshot.graph.topology
        #: The nodes at which records are merged by their keys: before and behind the shuffle of an RDD.
        self.merging = frozenset(
            node
            for node in relations
            if contract.CODES in relations[node] and not _is_of_query(operation_of(topology, node))
        )

    def of(self, node: int, run: int, positions: Integers) -> tuple[_Marks, Integers] | None:
        if not self.are_said(node, run):
            return None
        has_winner, inputs = self._annotations.at(node, run, contract.WINNERS, positions)
        return (has_winner, inputs) if len(inputs) else None

    def of_groups(self, node: int, groups: Integers, check: Callable[[], None]) -> Iterator[GroupInputs]:
        return self._groups.of(node, groups, check)

    def are_merged(self, node: int, run: int, positions: Integers) -> _Marks:
        """Which of distinct, ascending outputs were made of several inputs, and none alone decided them."""
        chosen = self.of(node, run, positions)
        left = np.ones(len(positions), bool) if chosen is None else ~chosen[0]
        if bool(left.any()):
            left[left] = self.input_counts(node, run, positions[left]) > 1
        return left

    def are_groups_merged(self, node: int, groups: Integers, check: Callable[[], None]) -> _Marks:
        """Which of distinct, ascending groups of a query have several rows, and nothing says which count."""
        left = np.ones(len(groups), bool)
        for part in self._groups.of(node, groups, check):
            left[part.groups] = False
        if bool(left.any()):
            left[left] = self._groups.row_counts(node, groups[left], check) > 1
        return left

    def input_counts(self, node: int, run: int, positions: Integers) -> Integers:
        """How many inputs each of distinct, ascending outputs of a merge has."""
        return input_counts(self._flows.near(node, run, outputs=bounds_of(positions)), positions)

    def row_count(self, node: int, groups: Integers, check: Callable[[], None]) -> int:
        """How many rows distinct, ascending groups of a query have."""
        return int(self._groups.row_counts(node, groups, check).sum())

    def are_said(self, node: int, run: int) -> bool:
        """Has a run said of any output what decided it?"""
        return (node, run, contract.WINNERS) in self._annotated


def _is_of_query(operation: TopologyNode | None) -> bool:
    return operation is not None and operation.relation == contract.CARRIED


def winner_rules(snapshot: Snapshot, frontiers: Frontiers, nodes: Iterable[int]) -> list[Rule]:
    """What winners have left out at these nodes, by operation.

    An aggregation merges twice, before and behind its shuffle. What was kept is counted where records came
    in; what was left out behind the shuffle counts as one record each.
    """
    winners, kept_at, left_out = CapturedWinners(snapshot), dict[int, int](), dict[int, int]()
    topology = snapshot.graph.topology
    for node in sorted(set(nodes) & topology.groups.keys(), reverse=True):
        kept, rows = _group_counts(winners, frontiers, node)
        operation = operation_of(topology, node)
        if kept and operation is not None:
            kept_at[operation.number] = kept_at.get(operation.number, 0) + kept
            left_out[operation.number] = left_out.get(operation.number, 0) + rows - kept
    for node in sorted(set(nodes) & snapshot.graph.blocks.winning, reverse=True):
        kept, inputs = _counts(winners, frontiers, node)
        operation = operation_of(topology, node)
        if kept and operation is not None:
            kept_at[operation.number] = kept
            left_out[operation.number] = left_out.get(operation.number, 0) + inputs - kept
    return [
        Rule(node=node, rule="winner", kept=kept, of=kept + left_out[node]) for node, kept in kept_at.items()
    ]


def _counts(winners: CapturedWinners, frontiers: Frontiers, node: int) -> tuple[int, int]:
    """(how many inputs won, how many inputs their outputs have)."""
    kept = inputs = 0
    for run, (_, positions) in frontiers.at(node).items():
        frontiers.check()
        outputs = distinct(positions)
        chosen = winners.of(node, run, outputs)
        if chosen is not None:
            won = len(distinct(chosen[1]))
            kept += won
            inputs += max(won, int(winners.input_counts(node, run, outputs[chosen[0]]).sum()))
    return kept, inputs


def _group_counts(winners: CapturedWinners, frontiers: Frontiers, node: int) -> tuple[int, int]:
    """(how many rows were enough for groups of a query, how many rows these groups have)."""
    kept = rows = 0
    for _, groups in frontiers.at(node).values():
        different = distinct(groups)
        parts = list(winners.of_groups(node, different, frontiers.check))
        if parts:
            kept += sum(len(distinct(part.records)) for part in parts)
            decided = different[distinct(np.concatenate([part.groups for part in parts]))]
            rows += max(kept, winners.row_count(node, decided, frontiers.check))
    return kept, rows


def silent_merges(snapshot: Snapshot, frontiers: Frontiers, nodes: Iterable[int]) -> list[int]:
    """The operations of which a task said nothing of what decided its outputs, though others did.

    Its merge spilled, or it has given up to look.
    """
    winners, silent = CapturedWinners(snapshot), set[int]()
    for node in set(nodes) & snapshot.graph.blocks.winning:
        operation = operation_of(snapshot.graph.topology, node)
        for run, (_, positions) in frontiers.at(node).items():
            frontiers.check()
            if operation is None or operation.number in silent:
                break
            if bool(winners.are_merged(node, run, distinct(positions)).any()) and not winners.are_said(
                node, run
            ):
                silent.add(operation.number)
    return sorted(silent)

"""Outputs that one of their inputs alone decided: a minimum, the latest, one of several equal records.

The agent has seen that the function gave this input back, at every merge. So the other inputs of the group
explain nothing: the output is there without them.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.interval_join import distinct, input_counts
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.explain.explanation import Rule
from lineage_service.tracing.model.topology import operation_of
from lineage_service.tracing.walk.frontiers import Frontiers, bounds_of
from spark_agent import contract

__all__ = ["CapturedWinners", "silent_merges", "winner_rules"]

_Marks = npt.NDArray[np.bool_]


class CapturedWinners:
    """Those that an agent has seen. For `BackwardSteps`."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._flows, self._annotations = snapshot.flows, snapshot.annotations
        self._nodes = snapshot.graph.blocks.winning
        relations = snapshot.graph.blocks.relations
        #: The nodes at which records are merged by their keys.
        self.merging = frozenset(node for node in relations if contract.CODES in relations[node])

    def of(self, node: int, run: int, positions: Integers) -> tuple[_Marks, Integers] | None:
        if node not in self._nodes:
            return None
        has_winner, inputs = self._annotations.at(node, run, contract.WINNERS, positions)
        return (has_winner, inputs) if len(inputs) else None

    def are_merged(self, node: int, run: int, positions: Integers) -> _Marks:
        """Which of distinct, ascending outputs were made of several inputs, and none alone decided them."""
        chosen = self.of(node, run, positions)
        left = np.ones(len(positions), bool) if chosen is None else ~chosen[0]
        if bool(left.any()):
            left[left] = self.input_counts(node, run, positions[left]) > 1
        return left

    def input_counts(self, node: int, run: int, positions: Integers) -> Integers:
        """How many inputs each of distinct, ascending outputs of a merge has."""
        return input_counts(self._flows.near(node, run, outputs=bounds_of(positions)), positions)

    def are_said(self, node: int, run: int) -> bool:
        """Has a run said of any output what decided it?"""
        return any(of_run == run for of_run, _ in self._annotations.every(node, contract.WINNERS))


def winner_rules(snapshot: Snapshot, frontiers: Frontiers, nodes: Iterable[int]) -> list[Rule]:
    """What winners have left out at these nodes, by operation.

    An aggregation merges twice, before and behind its shuffle. What was kept is counted where records came
    in; what was left out behind the shuffle counts as one record each.
    """
    winners, kept_at, left_out = CapturedWinners(snapshot), dict[int, int](), dict[int, int]()
    for node in sorted(set(nodes) & snapshot.graph.blocks.winning, reverse=True):
        kept, inputs = _counts(winners, frontiers, node)
        operation = operation_of(snapshot.graph.topology, node)
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

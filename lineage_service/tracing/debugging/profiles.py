"""The features of the tasks of an application: tallies of what their units gave, operation by operation.

A task here is one run of one operation over one partition, the one whose records are shown. Tasks of one
operation are compared with each other. Operations of which each input gives one output say nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.debugging.scores import Sides
from lineage_service.tracing.debugging.tallies import Tally
from lineage_service.tracing.debugging.unit_tallies import Stream, UnitRequest, UnitTally, unit_tallies
from lineage_service.tracing.model.lineage_graph import LineageGraph
from lineage_service.tracing.model.topology import shuffled_nodes
from spark_agent import contract

__all__ = [
    "FEATURES",
    "Feature",
    "Profile",
    "Siblings",
    "profile_of",
    "public_node",
    "task_count",
    "unit_requests",
]

Feature = Literal["outputs", "inputs", "dropped", "records"]
"""Outputs per input, inputs per output, inputs without an output, records that a task read of a shuffle."""

FEATURES: dict[Feature, tuple[Sides, bool]] = {
    "outputs": ("both", True),
    "inputs": ("both", True),
    "dropped": ("none", True),
    "records": ("upper", False),
}
"""Which units of a feature may be extreme, and whether means of tasks are compared."""

#: Relations of blocks: of which each row is an input; and which may name an output several times.
_SPANNING = frozenset((contract.COUNTS, contract.RANGES))
_GROUPING = frozenset((contract.CODES, contract.GATHER, contract.PAIRS, contract.IDS))


@dataclass(frozen=True, slots=True)
class Siblings:
    """The tasks of one operation, by one feature. `units[k]` are those of the run `runs[k]`, at least one."""

    node: int
    feature: Feature
    runs: tuple[int, ...]
    units: tuple[UnitTally, ...]

    @property
    def tallies(self) -> tuple[Tally, ...]:
        return tuple(of_run.tally for of_run in self.units)


@dataclass(frozen=True, slots=True)
class Profile:
    """All that can be compared."""

    siblings: tuple[Siblings, ...]


def profile_of(snapshot: Snapshot, check: Callable[[], None]) -> Profile:
    """Reads all flows that say something. Raises StoreUnavailableError."""
    graph = snapshot.graph
    tallies = unit_tallies(snapshot.flows, unit_requests(graph), check)
    by_feature: dict[tuple[int, Feature], list[tuple[int, UnitTally]]] = defaultdict(list)
    for (node, run), of_stream in sorted(tallies.items(), key=lambda item: item[0]):
        if of_stream.fan_out is not None:
            by_feature[node, "outputs"].append((run, of_stream.fan_out))
            by_feature[node, "dropped"].append((run, _dropped_of(of_stream.fan_out.tally)))
        if of_stream.fan_in is not None:
            by_feature[node, "inputs"].append((run, of_stream.fan_in))
    for node, run, records in _shuffled_records(graph):
        by_feature[node, "records"].append((run, UnitTally(Tally.of(np.array([records])))))
    siblings = tuple(
        Siblings(node, feature, tuple(run for run, _ in tasks), tuple(units for _, units in tasks))
        for (node, feature), tasks in sorted(by_feature.items())
    )
    return Profile(siblings)


def task_count(graph: LineageGraph) -> int:
    """The tasks of all operations, whether they can be compared or not."""
    public = [node.number for node in graph.topology.nodes.values() if node.is_public]
    return sum(len(graph.holders(node)) for node in public)


def _dropped_of(fan_out: Tally) -> UnitTally:
    """1 for each input without an output, 0 for the others."""
    zeros = fan_out.count_of(0)
    return UnitTally(Tally.of_counts(np.array([fan_out.size - zeros, zeros])))


def unit_requests(graph: LineageGraph) -> dict[Stream, UnitRequest]:
    """By task: the flows that say more than that each input gives one output."""
    requests: dict[Stream, UnitRequest] = {}
    for node, relations in graph.blocks.relations.items():
        is_spanning = relations <= _SPANNING
        if node not in graph.topology.nodes or contract.SPANS in relations:
            continue
        if relations & _SPANNING and not is_spanning:
            continue
        for run in graph.holders(node):
            before = graph.parent_in_run.get((run.number, node))
            if graph.is_flowing(node, run.number):
                requests[node, run.number] = UnitRequest(
                    inputs=0 if before is None else graph.count(before, run.number),
                    has_fan_out=before is not None and relations != {contract.CODES},
                    has_fan_in=bool(relations & _GROUPING),
                    is_spanning=is_spanning,
                )
    return requests


def public_node(graph: LineageGraph, number: int) -> int:
    """The operation that a node is a part of, or itself."""
    node = graph.topology.nodes[number]
    if node.is_public or node.operation is None or node.operation not in graph.topology.nodes:
        return number
    return node.operation


def _shuffled_records(graph: LineageGraph) -> Iterator[tuple[int, int, int]]:
    """(node, run, records) of tasks that read what others wrote."""
    for node in sorted(shuffled_nodes(graph.topology)):
        for run in graph.holders(node):
            if run.input == node and run.number >= 0:
                yield node, run.number, run.inputs

"""The shape of one application's lineage: nodes, task runs, and how task runs hang together.

Pure. `topology_builder` makes it from events: there it is decided which run counts for which partition, so
that a result never mixes two computations of one partition. The walk over positions happens in `walk`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lineage_service.tracing.model.elements import FailedRun, Link, TaskRun, TopologyNode
from spark_agent import contract

__all__ = ["Topology", "operation_of", "shuffled_nodes", "sides_of", "upper_bound_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    application_id: str
    nodes: Mapping[int, TopologyNode]
    children: Mapping[int, tuple[int, ...]]
    runs: Mapping[int, TaskRun]
    links: tuple[Link, ...]
    #: (run, node, node before it in the run), sinks of actions included.
    chain: tuple[tuple[int, int, int], ...]
    runs_of: Mapping[int, tuple[int, ...]] = field(repr=False)
    #: Sink of an aggregating action that ended well -> the run that holds its one record.
    result_of: Mapping[int, int]
    #: Sink of an aggregating action -> the runs whose records entered.
    entered: Mapping[int, tuple[int, ...]]
    #: Runs whose input came from runs that are not known: they have only an upper bound of their inputs.
    unresolved: frozenset[int]
    #: (node, partition) of which such runs have read what some run has made that was not reported.
    lost: frozenset[tuple[int, int]]
    #: Node whose records are named by ids -> the nodes that name them, and the other way round.
    id_targets: Mapping[int, tuple[int, ...]]
    id_sources: Mapping[int, tuple[int, ...]]
    #: (node with ids, partition) -> the run that counts.
    run_of_partition: Mapping[tuple[int, int], int] = field(repr=False)
    #: Runs of internal nodes that count, too: they computed the same part of a plan in another stage.
    in_other_stages: frozenset[int]
    #: Node of the relation `keyed` -> the run that stands for its groups.
    groups: Mapping[int, int]
    #: Runs of outputs with a limit: their flows may speak of more records than they have.
    limited: frozenset[int] = frozenset()
    #: Runs that an error has ended. They are among `runs` only where a trace is to begin in them.
    failed: Mapping[int, FailedRun] = field(default_factory=dict, repr=False)
    #: Events that say on which rows a job gave which records again.
    checked: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    #: Operators of queries that were not followed: none of their nodes has records.
    unfollowed: frozenset[int] = frozenset()

    def is_counted(self, node: int, run: TaskRun) -> bool:
        """Is it, of the runs that hold a partition of a node with ids, the one that the ids name?"""
        return self.run_of_partition.get((node, run.partition)) == run.number

    def entered_from(self, sink: int, parent: int) -> list[int]:
        """The runs of one of its inputs whose records entered an aggregating action."""
        runs = ((number, self.runs[number]) for number in self.entered.get(sink, ()))
        return [number for number, run in runs if parent in (run.input, *run.nodes)]

    def runs_at(self, node: int, partition: int) -> list[TaskRun]:
        """The runs that hold the records of one partition of a node, the earliest first."""
        runs = map(self.runs.__getitem__, self.runs_of.get(node, ()))
        return [run for run in runs if run.partition == partition]


def operation_of(topology: Topology, number: int) -> TopologyNode | None:
    """The operation that an internal node is a part of; of any other node itself."""
    node = topology.nodes.get(number)
    if node is None or node.is_public or node.operation is None:
        return node
    return topology.nodes.get(node.operation, node)


def sides_of(node: TopologyNode | None) -> tuple[int, ...]:
    """The nodes that stand for the sides of a cartesian product; their records are those of its runs."""
    return node.parents if node is not None and node.relation == contract.PRODUCT else ()


def upper_bound_of(topology: Topology, node: int) -> tuple[int, ...]:
    """The nodes whose records are an upper bound of what an unresolved run has read of `node`.

    What is executed in the JVM has no runs where none was resolved: then it is what this is made of.
    """
    bound: dict[int, None] = {}
    stack = list(reversed(topology.nodes[node].parents))
    while stack:
        number = stack.pop()
        parent = topology.nodes.get(number)
        if parent is not None and parent.relation in (contract.STATIC, contract.ZIP):
            stack += reversed(parent.parents)
        elif parent is not None:
            bound[number] = None
    return tuple(bound)


def shuffled_nodes(topology: Topology) -> frozenset[int]:
    """Nodes whose records other tasks wrote: runs begin with them, and no run has made them.

    A node that was cached begins runs, too, but another run has made it. Before the first run has come, none
    is known.
    """
    outputs = {number for _, number, _ in topology.chain}
    sides = {side for node in topology.nodes.values() for side in sides_of(node)}
    return frozenset(
        number
        for number in {run.input for run in topology.runs.values()} - outputs - sides
        if (node := topology.nodes.get(number)) is not None
        and node.relation == contract.FLOWS
        and node.parents
        and not node.by_id
        and node.kind != "sink"  # what a driver has of its records is a run of the sink itself
    )

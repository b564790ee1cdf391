"""What both engines know of an application before they walk: which task runs count, what the store holds of
each node, how many records a run has there, who read what whom wrote.

It follows from the topology and the receipts of blocks, and from two things that only flows say: each engine
reads these in its own way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Protocol, TypeVar

from lineage_service.completeness import Receipt
from lineage_service.tracing.model.elements import Link, TaskRun
from lineage_service.tracing.model.families import Families, families_of, nodes_between
from lineage_service.tracing.model.live_runs import live_runs
from lineage_service.tracing.model.lost_partitions import lost_partitions
from lineage_service.tracing.model.stored_blocks import stored_blocks
from lineage_service.tracing.model.topology import Topology, sides_of, upper_bound_of
from spark_agent import contract

__all__ = ["FlowReader", "LineageGraph", "grouped"]

K = TypeVar("K")
T = TypeVar("T")


class FlowReader(Protocol):
    """What only the flows of an application say."""

    def writers(self, nodes: Collection[int]) -> Iterable[tuple[int, int]]:
        """(run that read, run that wrote) of the flows of these nodes."""

    def outputs(self, node: int, run: int) -> int:
        """How many outputs the flows of a node in a run speak of."""


class LineageGraph:
    """One application at one version of the flow store; it does not change."""

    def __init__(self, topology: Topology, receipts: Iterable[Receipt], flows: FlowReader) -> None:
        self.topology = topology
        self.blocks = stored_blocks(topology, receipts)
        self._flows = flows
        shuffled = sorted(set(flows.writers(self._crossing())))  # (run that read, run that wrote)
        self.live = live_runs(topology, shuffled)
        #: Run that wrote a shuffle -> runs that read it.
        self.readers_of: Mapping[int, tuple[int, ...]] = grouped(
            (writer, reader) for reader, writer in shuffled
        )
        #: Node -> what its records are the outputs of, and where its outputs were read.
        self.links_of: Mapping[int, tuple[Link, ...]] = grouped((link.node, link) for link in topology.links)
        self.links_from: Mapping[int, tuple[Link, ...]] = grouped(
            (link.parent_node, link) for link in topology.links
        )
        #: (run, node) -> the node before it in the run.
        self.parent_in_run = {(run, node): parent for run, node, parent in topology.chain}
        #: Node -> runs that read it, where it is not known from which runs.
        self.unresolved_at: Mapping[int, tuple[int, ...]] = grouped(
            (topology.runs[run].input, run) for run in sorted(topology.unresolved & self.live)
        )
        #: Node -> such nodes that its records may stand in.
        self.unresolved_from: Mapping[int, tuple[int, ...]] = grouped(
            (bound, node) for node in sorted(self.unresolved_at) for bound in upper_bound_of(topology, node)
        )
        #: Node -> partitions that unknown runs have read; None: any.
        self.lost = lost_partitions(topology, self._read_of_unknown(shuffled))
        cached = [link for link in topology.links if link.node == link.parent_node]
        #: Nodes whose cached records runs that do not count read, too.
        self.read_in_vain = frozenset(link.node for link in cached if link.run not in self.live)
        self._makers = {(link.node, link.run): link.parent_run for link in cached}
        self._only_runs: dict[int, Mapping[int, int]] = {}
        self._runs_of_partitions: dict[int, Mapping[int, tuple[TaskRun, ...]]] = {}
        self._flow_rows = self.blocks.rows_in(self.live)
        self._between: dict[tuple[int, int], frozenset[int]] = {}

    def nodes_between(self, low: int, high: int) -> frozenset[int]:
        """As `families.nodes_between`; what was found is kept. Of versions that follow each other, say."""
        between = self._between.get((low, high))
        if between is None:
            between = self._between[low, high] = nodes_between(self.topology, low, high)
        return between

    @cached_property
    def parts_of(self) -> Mapping[int, frozenset[int]]:
        """The operations that consist of several nodes -> these, the operation's own among them."""
        inside = ((node.operation, number) for number, node in self.topology.nodes.items())
        parts = grouped(
            (operation, number)
            for operation, number in inside
            if operation is not None and not self.topology.nodes[number].is_public
        )
        return {operation: frozenset((operation, *numbers)) for operation, numbers in parts.items()}

    @cached_property
    def families(self) -> Families:
        """Its loop variables."""
        return families_of(self.topology)

    def _crossing(self) -> frozenset[int]:
        """The nodes whose flows may lead from one task to another."""
        inputs = {run.input for run in self.topology.runs.values()} | self.blocks.repeating
        return frozenset(inputs & (self.blocks.stepping | self.blocks.pairing))

    def _read_of_unknown(self, shuffled: Iterable[tuple[int, int]]) -> set[int]:
        """The nodes that live runs read of runs that are not known."""
        runs = self.topology.runs
        return {
            runs[reader].input for reader, writer in shuffled if writer not in runs and reader in self.live
        }

    def is_exact(self, node: int) -> bool:
        """Is each record's path through `node` known? A partition whose rows were followed is exact."""
        at, runs = self.topology.nodes[node], [self.topology.runs[run] for run in self.runs_of(node)]
        is_followed = bool(runs) and all(node in run.overridden for run in runs)
        return at.exact or (at.relation == contract.PARTITION and is_followed)

    def is_flowing(self, node: int, run: int) -> bool:
        """The store holds how this run's outputs of `node` relate to its inputs."""
        if node not in self.blocks.flowing:
            return False
        relation = self.topology.nodes[node].relation
        return relation == contract.FLOWS or node in self.topology.runs[run].overridden

    def upper_bound_of(self, node: int) -> tuple[int, ...]:
        """The nodes all of whose records may have come to `node`, where it is not known which did."""
        if node in self.unresolved_at:
            return upper_bound_of(self.topology, node)
        return self.topology.nodes[node].parents

    def may_be_lost(self, node: int, runs: Iterable[int]) -> bool:
        """May a run that is not known have read what these have of the node?"""
        if node not in self.lost:
            return False
        partitions = self.lost[node]
        return any(partitions is None or self.topology.runs[run].partition in partitions for run in runs)

    def maker(self, node: int, run: int) -> int:
        """The run that made what `run` has of the node, where it read a cache: that one sent texts."""
        return self._makers.get((node, run), run)

    def runs_of(self, node: int) -> list[int]:
        """The live ones."""
        return [run for run in self.topology.runs_of.get(node, ()) if run in self.live]

    def only_runs(self, node: int) -> Mapping[int, int]:
        """The partitions of a node that one live run holds, and that run."""
        only_runs = self._only_runs.get(node)
        if only_runs is None:
            partitions = grouped((self.topology.runs[run].partition, run) for run in self.runs_of(node))
            only_runs = {partition: runs[0] for partition, runs in partitions.items() if len(runs) == 1}
            self._only_runs[node] = only_runs
        return only_runs

    def holders(self, node: int) -> list[TaskRun]:
        """One run for each partition of a node: the one whose records are shown."""
        by_partition: dict[int, list[TaskRun]] = defaultdict(list)
        for number in self.runs_of(node):
            run = self.topology.runs[number]
            by_partition[run.partition].append(run)
        return [self._shown(node, by_partition[partition]) for partition in sorted(by_partition)]

    def _shown(self, node: int, runs: Sequence[TaskRun]) -> TaskRun:
        """Of the runs of a partition the one that ids name, else that with the most: `take` reads a few."""
        if len(runs) == 1:
            return runs[0]
        counted = [run for run in runs if self.topology.is_counted(node, run)]
        if counted:
            return counted[-1]
        if len({run.input for run in runs}) == 1:
            return max(runs, key=lambda run: run.inputs)  # without a look at the flows
        return max(runs, key=lambda run: self.count(node, run.number))

    def holders_of(self, node: int, partition: int, direction: str) -> list[TaskRun]:
        """The runs that a trace from a record starts in.

        Backward from one computation only, never from a mixture; forward from all that an output was made
        from, so that every action over a shared RDD is reached.
        """
        runs_of = self._runs_of_partitions.get(node)
        if runs_of is None:
            runs = map(self.topology.runs.__getitem__, self.runs_of(node))
            runs_of = self._runs_of_partitions[node] = grouped((run.partition, run) for run in runs)
        holders = list(runs_of.get(partition, ()))
        if direction == "backward":
            counted = [run for run in holders if self.topology.is_counted(node, run)]
            return counted or [self._shown(node, holders)] if holders else []
        return holders

    def written_at(self, node: int, writer: int) -> int | None:
        """The node at which another run holds what `node` read of it; None: its manifest has not arrived."""
        run = self.topology.runs.get(writer)
        if run is None:
            return None
        if node in self.blocks.pairing:  # these were written by the last nodes of their runs
            return run.nodes[-1] if run.nodes else None
        return next(iter(self.topology.nodes[node].parents), None)

    def count(self, node: int, run_number: int) -> int:
        """How many records `node` has in a run."""
        run, nodes = self.topology.runs[run_number], self.topology.nodes
        if node == run.input or node in sides_of(nodes.get(run.input)):
            return run.inputs
        if node not in run.nodes:  # the sink of an action
            parents = nodes[node].parents
            return self.count(parents[0], run_number) if parents else 0
        if node in run.counts:
            return run.counts[node]
        if node in run.overridden:
            return self._flows.outputs(node, run_number)
        index = run.nodes.index(node)
        # What follows without changing the count says it too: the counter at the end of the chain.
        for later in run.nodes[index + 1 :]:
            following = nodes.get(later)  # what an action adds for itself was never registered
            if following is None or following.relation != contract.IDENTITY or later in run.overridden:
                break
        else:
            return run.outputs
        for at in reversed(run.nodes[: index + 1]):
            if nodes[at].relation != contract.IDENTITY or at in run.overridden:
                return self._flows.outputs(at, run_number)
        return run.inputs

    def count_flows(self, node: int) -> int | None:
        """How many (input, output) pairs a node has; None where only an upper bound is known."""
        relation = self.topology.nodes[node].relation
        if relation in (contract.CARRIED, contract.KEYED) or self.topology.nodes[node].limit is not None:
            return None  # its rows are of others, or of more records than were given on
        if node in self._flow_rows and node not in self.blocks.spanning:
            return self._flow_rows[node]
        if relation == contract.AGGREGATE:
            return sum(
                self.count(parent, run)
                for parent in self.topology.nodes[node].parents
                for run in self.topology.entered_from(node, parent)
            )
        if relation in (contract.IDENTITY, contract.FLOWS, contract.STATIC, contract.ZIP, contract.PRODUCT):
            return sum(self.count(node, run.number) for run in self.holders(node))
        return None


def grouped(pairs: Iterable[tuple[K, T]]) -> dict[K, tuple[T, ...]]:
    """The second of each pair by the first, in order."""
    groups: dict[K, list[T]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return {key: tuple(values) for key, values in groups.items()}

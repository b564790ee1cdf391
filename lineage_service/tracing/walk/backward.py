"""One step backward: from the records at one node to those that they were made of.

Steps that follow from the topology alone (a map, a cached RDD, a union) move arrays. Only where a node has
flows are these read, and only those row groups that can hold what is looked for. `forward` is the inverse,
case by case.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from lineage_service.tracing.columns.column_cache import NO_RUN, Integers
from lineage_service.tracing.columns.flow_slices import Slice
from lineage_service.tracing.columns.interval_join import (
    OF_OUTPUTS,
    OF_SPANS,
    distinct,
    inputs_of_outputs,
    inputs_of_ranges,
    inputs_of_spans,
    within,
)
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.walk.flow_lookup import in_runs
from lineage_service.tracing.walk.frontiers import Frontier, Frontiers, Records, bounds_of, distinct_records
from lineage_service.tracing.walk.id_lookup import node_of, records_of_ids
from spark_agent import contract

__all__ = ["BackwardSteps", "GroupInputs", "Winners"]

_Inputs = tuple[int, "Integers | None", Integers]
"""(run that wrote them, indices of the outputs, inputs); no indices where all have the same origin."""


class GroupInputs(NamedTuple):
    """Records at `node` that are enough for some groups."""

    node: int
    run: int | None  # None: `records` are ids of the node; else positions of this run
    groups: Integers  # for each record, which of the groups it is enough for
    records: Integers


class Winners(Protocol):
    """Which of the inputs of an output decided it."""

    def of(self, node: int, run: int, positions: Integers) -> tuple[npt.NDArray[np.bool_], Integers] | None:
        """(which of ascending outputs one input alone decided, these inputs). None where none of them has."""

    def of_groups(self, node: int, groups: Integers, check: Callable[[], None]) -> Iterable[GroupInputs]:
        """What decided ascending groups. A group that is not named is made of all its records."""


class BackwardSteps:
    """The steps of one walk, over its frontiers. For one thread."""

    def __init__(self, snapshot: Snapshot, frontiers: Frontiers, winners: Winners | None = None) -> None:
        """With `winners`, an output that has one leads to it alone."""
        self._winners = winners
        self._flows, self._graph, self._topology = snapshot.flows, snapshot.graph, snapshot.graph.topology
        self._frontiers = frontiers

    def step(self, node: int) -> None:
        """Add the inputs of the records at `node`."""
        self.add_copies(node)
        frontier = self._frontiers.at(node)
        of_relation = _BY_RELATION.get(self._topology.nodes[node].relation)
        if of_relation is not None:
            of_relation(self, node, frontier)
            return
        self._follow_links(node, frontier)
        self._bound_unresolved(node, frontier)
        self._within_runs(node, frontier)
        flowing = {run: records for run, records in frontier.items() if self._graph.is_flowing(node, run)}
        self._follow_flows(node, flowing)

    def add_copies(self, node: int) -> None:
        """A cached RDD is read by other runs than those that computed it: its records stand in both."""
        for link in self._graph.links_of.get(node, ()):
            if link.parent_node == node:
                for origins, positions in self._frontiers.parts_at(node, link.run):
                    self._frontiers.add(node, link.parent_run, origins, positions)

    # -- relations that need no flows ----------------------------------------------------------------

    def _every_input(self, node: int, frontier: Frontier) -> None:
        """The upper bound of an operation that is not captured: all records of all its inputs."""
        is_sink = self._topology.nodes[node].kind == "sink"
        for run, (origins, _) in frontier.items():
            for parent in self._graph.upper_bound_of(node):
                runs = [run] if is_sink else self._graph.runs_of(parent)
                self._frontiers.add_every_record(parent, origins, runs)

    def _everything_that_entered(self, sink: int, frontier: Frontier) -> None:
        """The one record of an aggregating action: made of all that its jobs read."""
        for parent in self._topology.nodes[sink].parents:
            runs = [run for run in self._topology.entered_from(sink, parent) if run in self._graph.live]
            for origins, _ in frontier.values():
                self._frontiers.add_every_record(parent, origins, runs, is_exact=True)

    def _with_the_keys(self, node: int, frontier: Frontier) -> None:
        """Groups are made of the records with their keys, in whatever run; in most there may be none."""
        self._frontiers.is_exact &= self._topology.nodes[node].exact
        left = list(frontier.values())
        if self._winners is not None:
            left = [self._groups_left(self._winners, node, *records) for records in left]
        for parent in self._topology.nodes[node].parents:
            for run in self._graph.runs_of(parent):
                for records in left:
                    self._frontiers.add(parent, run, *records, are_distinct=True)

    def _groups_left(
        self, winners: Winners, node: int, origins: Integers | None, groups: Integers
    ) -> Records:
        """Follow what decided groups. Gives those that all their records decided."""
        are_left = np.ones(len(groups), bool)
        for node_there, run, at, records in winners.of_groups(node, groups, self._frontiers.check):
            are_left[at] = False
            of_records = None if origins is None else origins[at]
            if run is None:
                self._add_ids(node_there, of_records, records)
            else:
                self._frontiers.add(node_there, run, of_records, records)
        if are_left.all():
            return origins, groups
        return None if origins is None else origins[are_left], groups[are_left]

    def _follow_links(self, node: int, frontier: Frontier) -> None:
        """To the runs whose outputs were read, where that is known without flows."""
        for link in self._graph.links_of.get(node, ()):
            if link.run in frontier and link.parent_node != node:
                origins, positions = frontier[link.run]
                inside = within(positions, link.start, link.start + link.count - 1)
                self._frontiers.add(
                    link.parent_node,
                    link.parent_run,
                    None if origins is None else origins[inside],
                    positions[inside] - np.int64(link.start),
                )

    def _bound_unresolved(self, node: int, frontier: Frontier) -> None:
        for run, records in frontier.items():
            if run in self._topology.unresolved and self._topology.runs[run].input == node:
                self._frontiers.is_exact = False  # also where no run has read what it comes from
                self._every_input(node, {run: records})

    def _within_runs(self, node: int, frontier: Frontier) -> None:
        """To the node before in each run, where there are no flows."""
        at = self._topology.nodes[node]
        for run, records in frontier.items():
            parent = self._graph.parent_in_run.get((run, node))
            if parent is None or self._graph.is_flowing(node, run):
                continue
            if at.relation == contract.IDENTITY:
                self._frontiers.add(parent, run, *records, are_distinct=True)
            elif at.relation == contract.PARTITION:
                self._frontiers.add_every_record(parent, records[0], [run], is_exact=at.exact)

    # -- flows ---------------------------------------------------------------------------------------

    def _follow_flows(self, node: int, frontier: Frontier) -> None:
        if self._winners is not None:
            frontier = self._follow_winners(self._winners, node, frontier)
        blocks = self._graph.blocks
        lookups = {
            run: (len(positions), self._flows.near(node, run, outputs=bounds_of(positions)))
            for run, (_, positions) in frontier.items()
        }
        look_up = partial(self._inputs_of, frontier, node)
        for run, parts in in_runs(look_up, lookups, OF_SPANS if node in blocks.spanning else OF_OUTPUTS):
            origins = frontier[run][0]
            for writer, index, inputs in parts:
                assert index is not None or origins is None
                self._add_inputs(node, run, writer, None if origins is None else origins[index], inputs)

    def _follow_winners(self, winners: Winners, node: int, frontier: Frontier) -> Frontier:
        """To the winners of those outputs that have one. The others are left."""
        left: dict[int, Records] = {}
        for run, (origins, positions) in frontier.items():
            chosen = winners.of(node, run, positions)
            if chosen is None:
                left[run] = origins, positions
                continue
            has_winner, inputs = chosen
            if origins is None:
                self._add_inputs(node, run, NO_RUN, None, distinct(inputs))
            else:
                self._add_inputs(node, run, NO_RUN, origins[has_winner], inputs)
            others = ~has_winner
            if others.any():
                left[run] = None if origins is None else origins[others], positions[others]
        return left

    def _inputs_of(
        self, frontier: Frontier, node: int, run: int, slices: Sequence[Slice]
    ) -> Sequence[_Inputs]:
        """What the records of a run were made of."""
        self._frontiers.check()
        origins, positions = frontier[run]
        if node in self._graph.blocks.ranging:
            check_few = self._frontiers.check_few
            parts = inputs_of_ranges(slices, positions, check_few, with_indices=origins is not None)
        elif node in self._graph.blocks.spanning:
            parts = inputs_of_spans(slices, positions, with_indices=origins is not None)
        else:
            parts = inputs_of_outputs(slices, positions)
        if origins is not None:
            inputs, records = [], 0
            for part in parts:
                inputs.append(part)
                records += len(part[2])
                self._frontiers.check_few(records)
            return inputs
        # Merged here, so that what was read need not stay until all runs are done.
        by_writer: dict[int, list[Records]] = defaultdict(list)
        for writer, _, of_writer in parts:
            if len(of_writer):
                by_writer[writer].append((None, of_writer))
        return [(writer, None, distinct_records(several)[1]) for writer, several in by_writer.items()]

    def _add_inputs(
        self, node: int, run: int, writer: int, origins: Integers | None, inputs: Integers
    ) -> None:
        """Put what the flows of a run name where it stands."""
        of_ids = node_of(writer)
        if of_ids is not None:
            self._add_ids(of_ids, origins, inputs)
            return
        parent, of_run = self._input_of(node, run, writer)
        if parent is None or parent not in self._topology.nodes:
            self._frontiers.is_exact = False  # a writer whose manifest has not arrived
        else:
            self._frontiers.add(parent, of_run, origins, inputs, are_distinct=origins is None)

    def _add_ids(self, node: int, origins: Integers | None, ids: Integers) -> None:
        """Put the records of some ids of `node` there."""
        self._frontiers.is_exact &= self._topology.nodes[node].exact
        for run, chosen, positions in records_of_ids(self._topology, node, ids):
            if run is None:
                self._frontiers.is_exact = False  # a partition whose manifest has not arrived
            else:
                self._frontiers.add(node, run, None if origins is None else origins[chosen], positions)

    def _input_of(self, node: int, reader: int, writer: int) -> tuple[int | None, int]:
        """The node before in the run, or what another run wrote for `node` to read; and that run."""
        if writer in (NO_RUN, reader):
            return self._graph.parent_in_run.get((reader, node)), reader
        return self._graph.written_at(node, writer), writer


_BY_RELATION: Mapping[str, Callable[[BackwardSteps, int, Frontier], None]] = {
    contract.DATASET: BackwardSteps._every_input,
    contract.AGGREGATE: BackwardSteps._everything_that_entered,
    contract.KEYED: BackwardSteps._with_the_keys,
}

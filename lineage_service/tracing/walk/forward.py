"""One step forward: from the records at one node to those that they went into.

Steps that follow from the topology alone (a map, a cached RDD, a union) move arrays. Only where a node has
flows are these read, and only those row groups that can hold what is looked for. `backward` is the inverse,
case by case.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from lineage_service.tracing.columns.column_cache import NO_RUN
from lineage_service.tracing.columns.flow_slices import Slice
from lineage_service.tracing.columns.interval_join import (
    INPUTS,
    OF_SPANS,
    outputs_of_inputs,
    outputs_of_ranges,
    within,
)
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.walk.flow_lookup import Lookup, in_runs
from lineage_service.tracing.walk.frontiers import Frontier, Frontiers, Records, bounds_of
from lineage_service.tracing.walk.id_lookup import ids_of, mark_of
from spark_agent import contract

__all__ = ["ForwardSteps"]

_Readers = Mapping[int, Sequence[tuple[int, int]]]
"""Reading run -> (what its rows name in `in_run`, the run whose records these are)."""


class ForwardSteps:
    """The steps of one walk, over its frontiers. For one thread."""

    def __init__(self, snapshot: Snapshot, frontiers: Frontiers) -> None:
        self._flows, self._graph, self._topology = snapshot.flows, snapshot.graph, snapshot.graph.topology
        self._frontiers = frontiers

    def step(self, node: int) -> None:
        """Add the outputs that the records at `node` went into."""
        self._add_copies(node)
        frontier = self._frontiers.at(node)
        self._follow_links(node, frontier)
        for reader in filter(self._matters, self._graph.unresolved_from.get(node, ())):
            for origins, _ in frontier.values():
                self._frontiers.add_every_record(reader, origins, self._graph.unresolved_at[reader])
        self._frontiers.is_exact &= not self._graph.may_be_lost(node, frontier)
        for child in filter(self._matters, self._topology.children.get(node, ())):
            of_relation = _BY_RELATION.get(self._topology.nodes[child].relation, ForwardSteps._through_runs)
            of_relation(self, node, child, frontier)
        self._follow_ids(node, frontier)

    def _matters(self, node: int) -> bool:
        return self._frontiers.towards is None or node in self._frontiers.towards

    def _add_copies(self, node: int) -> None:
        """A cached RDD is read by other runs than those that computed it: its records stand in both."""
        for link in self._graph.links_from.get(node, ()):
            if link.node == node:
                for origins, positions in self._frontiers.parts_at(node, link.parent_run):
                    read = positions < link.count
                    self._frontiers.add(
                        node, link.run, None if origins is None else origins[read], positions[read]
                    )

    def _follow_links(self, node: int, frontier: Frontier) -> None:
        """To the runs that read these outputs, where that is known without flows."""
        for link in self._graph.links_from.get(node, ()):
            is_read = link.parent_run in frontier and link.run in self._graph.live
            if is_read and link.node != node and self._matters(link.node):
                origins, positions = frontier[link.parent_run]
                inside = within(positions, 0, link.count - 1)
                self._frontiers.add(
                    link.node,
                    link.run,
                    None if origins is None else origins[inside],
                    positions[inside] + np.int64(link.start),
                )

    # -- by the relation of the child ----------------------------------------------------------------

    def _into_all(self, node: int, child: int, frontier: Frontier) -> None:
        """The upper bound of an operation that is not captured: all its records."""
        for origins, _ in frontier.values():
            self._frontiers.add_every_record(child, origins, self._graph.runs_of(child))

    def _into_groups(self, node: int, child: int, frontier: Frontier) -> None:
        self._frontiers.is_exact &= self._topology.nodes[child].exact
        for records in frontier.values():
            self._frontiers.add(child, self._topology.groups[child], *records)

    def _into_result(self, node: int, child: int, frontier: Frontier) -> None:
        """The one record of an aggregating action."""
        for run, (origins, _) in frontier.items():
            if run in self._topology.entered.get(child, ()):
                result = self._topology.result_of[child]
                self._frontiers.add_every_record(child, origins, [result], is_exact=True)

    def _through_runs(self, node: int, child: int, frontier: Frontier) -> None:
        """Within the runs that hold both nodes, and from those that wrote a shuffle to its readers."""
        at, flowing = self._topology.nodes[child], dict[int, Records]()
        for run, records in frontier.items():
            if self._graph.parent_in_run.get((run, child)) != node:
                continue
            if self._graph.is_flowing(child, run):
                flowing[run] = records
            elif at.relation == contract.IDENTITY:
                self._frontiers.add(child, run, *records, are_distinct=True)
            elif at.relation == contract.PARTITION:
                self._frontiers.add_every_record(child, records[0], [run], is_exact=at.exact)
        self._follow_flows(child, {run: [(NO_RUN, run)] for run in flowing}, flowing)
        self._follow_flows(child, self._readers_across(child, frontier), frontier)

    # -- flows ---------------------------------------------------------------------------------------

    def _readers_across(self, child: int, frontier: Frontier) -> _Readers:
        """The runs that read what these wrote; several jobs may have read a shuffle."""
        readers: dict[int, list[tuple[int, int]]] = defaultdict(list)
        if child in self._graph.blocks.pairing:  # names single records: only its rows say of which runs
            for reader in self._flows.runs(child):
                readers[reader] = [(writer, writer) for writer in frontier if writer > NO_RUN]
        elif child in self._graph.blocks.stepping:
            for writer in frontier:
                for reader in self._graph.readers_of.get(writer, ()):
                    readers[reader].append((writer, writer))
        return {run: writers for run, writers in readers.items() if run in self._graph.live}

    def _follow_ids(self, node: int, frontier: Frontier) -> None:
        """To the nodes that name records of this one by their ids."""
        for target in filter(self._matters, self._topology.id_targets.get(node, ())):
            if frontier and target in self._topology.nodes:
                mark = mark_of(node)
                readers = {run: [(mark, mark)] for run in self._graph.runs_of(target)}
                self._follow_flows(target, readers, {mark: ids_of(self._topology, node, frontier)})

    def _follow_flows(self, child: int, readers: _Readers, frontier: Frontier) -> None:
        """By the rows of each reading run that name records of the frontier."""
        if not readers:
            return
        targets = self._frontiers.targets
        among = None if targets is None else targets.among.at(child)
        columns = OF_SPANS if child in self._graph.blocks.spanning else INPUTS
        look_up = partial(self._outputs_of, child, readers, frontier, among)
        for reader, parts in in_runs(look_up, self._lookups(child, readers, frontier, among), columns):
            for origins, outputs in parts:
                self._frontiers.add(child, reader, origins, outputs)

    def _lookups(
        self, child: int, readers: _Readers, frontier: Frontier, among: Frontier | None
    ) -> dict[int, Lookup]:
        """The rows of each reading run that may matter."""
        bounds = {run: bounds_of(positions) for run, (_, positions) in frontier.items() if len(positions)}
        lookups: dict[int, Lookup] = {}
        for reader, named in readers.items():
            runs = [run for _, run in named if run in bounds]
            if runs and (among is None or reader in among):
                low, high = min(bounds[run][0] for run in runs), max(bounds[run][1] for run in runs)
                outputs = None if among is None else bounds_of(among[reader][1])
                rows = self._flows.near(child, reader, outputs, inputs=(low, high))
                lookups[reader] = sum(len(frontier[run][1]) for run in runs), rows
        return lookups

    def _outputs_of(
        self,
        child: int,
        readers: _Readers,
        frontier: Frontier,
        among: Frontier | None,
        reader: int,
        slices: Sequence[Slice],
    ) -> list[Records]:
        """(origins, outputs) of a reading run."""
        self._frontiers.check()
        among_outputs = None if among is None else among[reader][1]
        parts: list[Records] = []
        for rows in slices:
            for in_run, of_run in readers[reader]:
                origins, positions = frontier[of_run]
                if child in self._graph.blocks.ranging:
                    index, outputs = outputs_of_ranges(
                        rows,
                        positions,
                        among_outputs,
                        self._frontiers.check_few,
                        with_indices=origins is not None,
                    )
                else:
                    index, outputs = outputs_of_inputs(rows, positions, in_run, among_outputs)
                if len(index):
                    parts.append((None if origins is None else origins[index], outputs))
        return parts


_BY_RELATION: Mapping[str, Callable[[ForwardSteps, int, int, Frontier], None]] = {
    contract.DATASET: ForwardSteps._into_all,
    contract.KEYED: ForwardSteps._into_groups,
    contract.AGGREGATE: ForwardSteps._into_result,
}

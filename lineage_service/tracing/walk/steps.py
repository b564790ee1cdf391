"""One step of a trace: from a set of records at one node to the records next to it.

A set is arrays of positions by run. An `origin` may travel with each position, so that many starts can be
walked at once and told apart; a walk without origins holds half as much. Steps that follow from the topology
alone (a map, a cached RDD, a union) move arrays; only where a node has flows are these read, and only those
row groups that can hold what is looked for. `backward` and `forward` are inverse to each other, case by case.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from lineage_service.errors import InvalidQueryError
from lineage_service.tracing.columns.flow_files import NO_RUN, Integers, Slice
from lineage_service.tracing.columns.interval_join import (
    INPUTS,
    OF_OUTPUTS,
    OF_SPANS,
    distinct,
    inputs_of_outputs,
    inputs_of_spans,
    is_ascending,
    outputs_of_inputs,
    within,
)
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.walk.id_lookup import ids_of, mark_of, node_of, records_of_ids
from spark_agent import contract

__all__ = ["Integers", "Listed", "Records", "TooManyError", "Walk"]

T = TypeVar("T")
Records = tuple[Integers | None, Integers]
"""(origins, positions) of one run; positions ascend. No origins: all records have the same one."""
Listed = Mapping[tuple[int, int], Integers]
"""(node, split) -> positions, ascending."""

#: Row groups of several runs are read at once: the libraries that do the work let go of Python's lock.
_pool = ThreadPoolExecutor(min(4, os.cpu_count() or 1), thread_name_prefix="trace")
#: More records are not walked where all of a node count: their positions would take a gibibyte.
_MOST_OF_ALL = 1 << 27
_NONE = np.zeros(0, np.int64)
#: Positions of one run for which another thread is worth its while.
_MUCH = 1 << 14


_Lookup = tuple[int, Sequence[Slice]]
"""How many values are looked up in flows, and which rows of these may hold some."""


class TooManyError(Exception):
    """A walk came to more records than its caller allows."""


class Walk:
    """The sets of one walk, by node and run. For one thread."""

    def __init__(
        self,
        snapshot: Snapshot,
        most: int | None = None,
        among: Walk | None = None,
        listed: Listed | None = None,
    ) -> None:
        """A step that would put more than `most` records at one node raises TooManyError.

        Of the records that a step forward leads to, only those of `among` matter, and of public nodes only
        those that are `listed`, ascending: others may be there or not.
        """
        #: Called before each piece of work; ends the walk by what it raises.
        self.check: Callable[[], None] = lambda: None
        self.is_exact = True
        #: The nodes that a step forward may lead to; None: all.
        self.towards: Collection[int] | None = None
        self.most = most
        self._among, self._listed = among, listed
        self._added: dict[int, int] = defaultdict(int)
        self._flows = snapshot.flows
        self._graph = snapshot.graph
        self._topology = snapshot.graph.topology
        self._sets: dict[int, dict[int, list[Records]]] = defaultdict(lambda: defaultdict(list))
        self._are_distinct: set[tuple[int, int]] = set()

    def add(
        self,
        node: int,
        run: int,
        origins: Integers | None,
        positions: Integers,
        *,
        are_distinct: bool = False,
    ) -> None:
        """Put records at `node`. Those that are distinct and ascending need not be sorted again."""
        self.check()
        if run in self._topology.limited:
            inside = positions < self._topology.runs[run].outputs
            positions, origins = positions[inside], None if origins is None else origins[inside]
        if len(positions):
            self._added[node] += len(positions)
            self._check_few(self._added[node])
            parts = self._sets[node][run]
            parts.append((origins, positions))
            if are_distinct and len(parts) == 1:
                self._are_distinct.add((node, run))
            else:
                self._are_distinct.discard((node, run))

    def put(self, node: int, records: Mapping[int, Records]) -> None:
        """What `node` holds from now on, by run, in place of the same records with other origins."""
        self._sets[node] = defaultdict(
            list, {run: [records_of_run] for run, records_of_run in records.items()}
        )
        self._are_distinct.update((node, run) for run in records)

    def without_origins(self) -> None:
        """Go on with all records as ones of one origin."""
        for runs in self._sets.values():
            for run, parts in runs.items():
                runs[run] = [(None, positions) for _, positions in parts]
        self._are_distinct.clear()

    def _check_few(self, records: int) -> None:
        if self.most is not None and records > self.most:
            raise TooManyError

    @property
    def bytes(self) -> int:
        """Memory of all positions and origins. Arrays that stand at several nodes count once."""
        arrays = {
            id(array): array.nbytes
            for runs in self._sets.values()
            for parts in runs.values()
            for part in parts
            for array in part
            if array is not None
        }
        return sum(arrays.values())

    def added(self, node: int) -> int:
        """How many records were put at a node, some maybe more than once."""
        return self._added.get(node, 0)

    def nodes(self) -> set[int]:
        """The nodes that hold records."""
        return set(self._sets)

    def at(self, node: int) -> dict[int, Records]:
        """The distinct records of `node`, by run."""
        parts_of = self._sets.get(node)
        if parts_of is None:
            return {}
        for run, parts in parts_of.items():
            if (node, run) not in self._are_distinct:
                self.check()
                parts_of[run] = [_distinct(parts)]
                self._are_distinct.add((node, run))
        return {run: parts[0] for run, parts in parts_of.items()}

    # -- backward ------------------------------------------------------------------------------------

    def backward(self, node: int) -> None:
        """Add the inputs of the records at `node`."""
        relation = self._topology.nodes[node].relation
        for link in self._graph.links_of.get(node, ()):
            if link.parent_node == node and link.run in self._sets[node]:
                # A cached RDD is read by other runs than those that computed it: its records stand in both.
                for origins, positions in self._sets[node][link.run]:
                    self.add(node, link.parent_run, origins, positions)
        frontier = self.at(node)
        if relation == contract.DATASET:
            self._every_input(node, frontier)
            return
        if relation == contract.AGGREGATE:
            self._everything_that_entered(node, frontier)
            return
        if relation == contract.KEYED:
            self._with_the_keys(node, frontier)
            return
        for link in self._graph.links_of.get(node, ()):
            if link.run in frontier and link.parent_node != node:
                origins, positions = frontier[link.run]
                inside = within(positions, link.start, link.start + link.count - 1)
                self.add(
                    link.parent_node,
                    link.parent_run,
                    None if origins is None else origins[inside],
                    positions[inside] - np.int64(link.start),
                )
        for run, records in frontier.items():
            if run in self._topology.unresolved and self._topology.runs[run].input == node:
                self.is_exact = False  # also where no run has read what it comes from
                self._every_input(node, {run: records})
            parent = self._graph.parent_in_run.get((run, node))
            if parent is None or self._graph.is_flowing(node, run):
                continue
            if relation == contract.IDENTITY:
                self.add(parent, run, *records, are_distinct=True)
            elif relation == contract.PARTITION:
                self._every_record(parent, records[0], [run], is_exact=self._topology.nodes[node].exact)
        self._backward_flows(
            node, {run: r for run, r in frontier.items() if self._graph.is_flowing(node, run)}
        )

    def _backward_flows(self, node: int, frontier: Mapping[int, Records]) -> None:
        is_spanning = node in self._graph.blocks.spanning

        def inputs_of_run(run: int, slices: Sequence[Slice]) -> list[tuple[int, Integers | None, Integers]]:
            self.check()
            origins, positions = frontier[run]
            if is_spanning:
                parts = inputs_of_spans(slices, positions, with_indices=origins is not None)
            else:
                parts = inputs_of_outputs(slices, positions)
            if origins is not None:
                pieces, records = [], 0
                for part in parts:
                    pieces.append(part)
                    records += len(part[2])
                    self._check_few(records)
                return pieces
            # Put together here, so that what was read need not stay until all runs are done.
            by_writer: dict[int, list[Records]] = defaultdict(list)
            for writer, _, inputs in parts:
                if len(inputs):
                    by_writer[writer].append((None, inputs))
            return [(writer, None, _distinct(several)[1]) for writer, several in by_writer.items()]

        flows = self._flows
        asked = {
            run: (len(positions), flows.near(node, run, outputs=_bounds(positions)))
            for run, (_, positions) in frontier.items()
        }
        for run, parts in self._of_runs(inputs_of_run, asked, OF_SPANS if is_spanning else OF_OUTPUTS):
            origins = frontier[run][0]
            for writer, index, inputs in parts:
                of_ids = node_of(writer)
                assert index is not None or origins is None
                if of_ids is not None:
                    self._add_ids(of_ids, None if origins is None else origins[index], inputs)
                    continue
                parent, of_run = self._input_of(node, run, writer)
                if parent is None or parent not in self._topology.nodes:
                    self.is_exact = False  # a writer whose manifest has not arrived
                elif origins is None:
                    self.add(parent, of_run, None, inputs, are_distinct=True)
                else:
                    self.add(parent, of_run, origins[index], inputs)

    def _add_ids(self, node: int, origins: Integers | None, ids: Integers) -> None:
        """Put the records of some ids of `node` there."""
        self.is_exact &= self._topology.nodes[node].exact
        for run, chosen, positions in records_of_ids(self._topology, node, ids):
            if run is None:
                self.is_exact = False  # a split whose manifest has not arrived
            else:
                self.add(node, run, None if origins is None else origins[chosen], positions)

    def _with_the_keys(self, node: int, frontier: Mapping[int, Records]) -> None:
        """Groups are made of the records with their keys, in whatever run; in most there may be none."""
        self.is_exact &= self._topology.nodes[node].exact
        for parent in self._topology.nodes[node].parents:
            for run in self._graph.runs_of(parent):
                for records in frontier.values():
                    self.add(parent, run, *records, are_distinct=True)

    def _input_of(self, node: int, reader: int, writer: int) -> tuple[int | None, int]:
        """The node before in the run, or what another run wrote for `node` to read; and that run."""
        if writer in (NO_RUN, reader):
            return self._graph.parent_in_run.get((reader, node)), reader
        return self._graph.written_at(node, writer), writer

    def _every_input(self, node: int, frontier: Mapping[int, Records]) -> None:
        """The bound of an operation that is not captured: all records of all its inputs."""
        is_sink = self._topology.nodes[node].kind == "sink"
        for run, (origins, _) in frontier.items():
            for parent in self._graph.upper_bound_of(node):
                self._every_record(parent, origins, [run] if is_sink else self._graph.runs_of(parent))

    def _everything_that_entered(self, sink: int, frontier: Mapping[int, Records]) -> None:
        """The one record of an aggregating action: made of all that its jobs read."""
        runs = [run for run in self._topology.entered.get(sink, ()) if run in self._graph.live]
        for origins, _ in frontier.values():
            for parent in self._topology.nodes[sink].parents:
                self._every_record(parent, origins, runs, is_exact=True)

    # -- forward -------------------------------------------------------------------------------------

    def forward(self, node: int) -> None:
        """Add the outputs that the records at `node` went into."""
        for link in self._graph.links_from.get(node, ()):
            if link.node == node and link.parent_run in self._sets[node]:
                for origins, positions in self._sets[node][link.parent_run]:
                    read = positions < link.count
                    self.add(node, link.run, None if origins is None else origins[read], positions[read])
        frontier = self.at(node)
        for link in self._graph.links_from.get(node, ()):
            is_read = link.parent_run in frontier and link.run in self._graph.live
            if is_read and link.node != node and self._matters(link.node):
                origins, positions = frontier[link.parent_run]
                inside = within(positions, 0, link.count - 1)
                self.add(
                    link.node,
                    link.run,
                    None if origins is None else origins[inside],
                    positions[inside] + np.int64(link.start),
                )
        for reader in filter(self._matters, self._graph.unresolved_from.get(node, ())):
            for origins, _ in frontier.values():
                self._every_record(reader, origins, self._graph.unresolved_at[reader])
        self.is_exact &= not self._graph.may_be_lost(node, frontier)
        for child in filter(self._matters, self._topology.children.get(node, ())):
            relation = self._topology.nodes[child].relation
            if relation == contract.DATASET:
                for origins, _ in frontier.values():
                    self._every_record(child, origins, self._graph.runs_of(child))
                continue
            if relation == contract.KEYED:
                self.is_exact &= self._topology.nodes[child].exact
                for records in frontier.values():
                    self.add(child, self._topology.groups[child], *records)
                continue
            if relation == contract.AGGREGATE:
                for run, (origins, _) in frontier.items():
                    if run in self._topology.entered.get(child, ()):
                        self._every_record(child, origins, [self._topology.result_of[child]], is_exact=True)
                continue
            in_run = {
                run: records
                for run, records in frontier.items()
                if self._graph.parent_in_run.get((run, child)) == node
            }
            for run, records in in_run.items():
                if self._graph.is_flowing(child, run):
                    continue
                if relation == contract.IDENTITY:
                    self.add(child, run, *records, are_distinct=True)
                elif relation == contract.PARTITION:
                    self._every_record(child, records[0], [run], is_exact=self._topology.nodes[child].exact)
            self._forward_flows(
                child, {run: r for run, r in in_run.items() if self._graph.is_flowing(child, run)}
            )
            self._forward_across(child, frontier)
        for target in filter(self._matters, self._topology.id_targets.get(node, ())):
            if frontier and target in self._topology.nodes:
                mark = mark_of(node)
                readers = {run: [(mark, mark)] for run in self._graph.runs_of(target)}
                self._forward_rows(target, readers, {mark: ids_of(self._topology, node, frontier)})

    def _matters(self, node: int) -> bool:
        return self.towards is None or node in self.towards

    def _forward_flows(self, child: int, frontier: Mapping[int, Records]) -> None:
        """Within a run: from the node before `child` to `child`."""
        self._forward_rows(child, {run: [(NO_RUN, run)] for run in frontier}, frontier)

    def _forward_across(self, child: int, frontier: Mapping[int, Records]) -> None:
        """From the runs that wrote a shuffle to those that read it; several jobs may have read it."""
        readers: dict[int, list[tuple[int, int]]] = defaultdict(list)
        if child in self._graph.blocks.pairing:  # names single records: only its rows say of which runs
            for reader in self._flows.runs(child):
                readers[reader] = [(writer, writer) for writer in frontier if writer > NO_RUN]
        elif child in self._graph.blocks.stepping:
            for writer in frontier:
                for reader in self._graph.readers_of.get(writer, ()):
                    readers[reader].append((writer, writer))
        readers = {run: writers for run, writers in readers.items() if run in self._graph.live}
        self._forward_rows(child, readers, frontier)

    def _forward_rows(
        self, child: int, readers: Mapping[int, list[tuple[int, int]]], frontier: Mapping[int, Records]
    ) -> None:
        """Rows of each reading run that name (`in_run`, the run whose records these are)."""
        among = self._among.at(child) if self._among is not None else None
        is_spanning = child in self._graph.blocks.spanning

        def outputs_of_run(reader: int, slices: Sequence[Slice]) -> list[tuple[Integers | None, Integers]]:
            self.check()
            outputs_among = None if among is None else among[reader][1]
            parts: list[tuple[Integers | None, Integers]] = []
            for rows in slices:
                for in_run, of_run in readers[reader]:
                    origins, positions = frontier[of_run]
                    index, outputs = outputs_of_inputs(rows, positions, in_run, outputs_among)
                    if len(index):
                        parts.append((None if origins is None else origins[index], outputs))
            return parts

        bounds = {run: _bounds(positions) for run, (_, positions) in frontier.items() if len(positions)}
        asked = {}
        for reader, named in readers.items():
            writers = [of_run for _, of_run in named if of_run in bounds]
            if writers and (among is None or reader in among):
                low, high = min(bounds[run][0] for run in writers), max(bounds[run][1] for run in writers)
                outputs = _bounds(among[reader][1]) if among is not None else None
                slices = self._flows.near(child, reader, outputs, inputs=(low, high))
                asked[reader] = sum(len(frontier[run][1]) for run in writers), slices
        for reader, parts in self._of_runs(outputs_of_run, asked, OF_SPANS if is_spanning else INPUTS):
            for origins, outputs_found in parts:
                self.add(child, reader, origins, outputs_found)

    # -- shared --------------------------------------------------------------------------------------

    @staticmethod
    def _of_runs(
        lookup: Callable[[int, Sequence[Slice]], T], asked: Mapping[int, _Lookup], columns: Collection[str]
    ) -> Iterator[tuple[int, T]]:
        """What `lookup` gives for each run of `asked`, with the rows that may matter there.

        Much is worked out side by side. Little over rows that are in memory is done here: to hand it to other
        threads takes longer.
        """
        heavy = [
            run
            for run, (size, slices) in asked.items()
            if size > _MUCH or not all(rows.is_at_hand(columns) for rows in slices)
        ]
        ahead = {run: asked[run][1] for run in heavy} if len(heavy) > 1 else {}
        results = _pool.map(lookup, ahead, ahead.values()) if ahead else iter(())
        # One by one: what was found of a run may be large, and is taken apart before the next is.
        for run, (_, slices) in asked.items():
            yield run, next(results) if run in ahead else lookup(run, slices)

    def _every_record(
        self, node: int, origins: Integers | None, runs: Iterable[int], *, is_exact: bool = False
    ) -> None:
        self.is_exact &= is_exact
        for run in runs:
            count = self._graph.count(node, run)
            self._check_few(count)
            each_of = None if origins is None else np.unique(origins)
            among = None if each_of is None else self._asked_of(node, run)
            size = count if among is None else min(count, len(among))
            records = self.added(node) + size * (1 if each_of is None else len(each_of))
            if records > _MOST_OF_ALL:
                raise InvalidQueryError(
                    f"the trace comes to all {records:,} records of node {node}, more than are held at once "
                    f"({_MOST_OF_ALL:,}): end it before with depth= or to=, or trace on Spark"
                )
            every = np.arange(count, dtype=np.int64) if among is None else among[among < count]
            if each_of is None:
                self.add(node, run, None, every, are_distinct=True)
                continue
            for origin in each_of:
                self.add(node, run, np.full(len(every), origin, np.int64), every)

    def _asked_of(self, node: int, run: int) -> Integers | None:
        """The positions of a run that matter; None: all of them."""
        if self._listed is not None and self._topology.nodes[node].is_public:
            return self._listed.get((node, self._topology.runs[run].partition), _NONE)
        if self._among is not None:
            return self._among.at(node).get(run, (None, _NONE))[1]
        return None


def _bounds(ascending: Integers) -> tuple[int, int]:
    return int(ascending[0]), int(ascending[-1])


def _distinct(parts: list[Records]) -> Records:
    if len(parts) == 1 and is_ascending(parts[0][1]):
        return parts[0]
    if parts[0][0] is None:
        ordered = sorted((part[1] for part in parts), key=lambda positions: int(positions[0]))
        return None, distinct(np.concatenate(ordered) if len(ordered) > 1 else ordered[0])
    origins = np.concatenate([part[0] for part in parts if part[0] is not None])
    positions = np.concatenate([part[1] for part in parts])
    order = np.lexsort((origins, positions))
    origins, positions = origins[order], positions[order]
    is_new = np.ones(len(order), bool)
    is_new[1:] = (positions[1:] != positions[:-1]) | (origins[1:] != origins[:-1])
    return origins[is_new], positions[is_new]

"""Groups of queries of which few rows are enough: that of a minimum, or one of several equal ones.

The agent says of an operation which rows of a group count. Where they are named, the explanation goes on from
the group to these. Where any one is as good as the others, it takes the first one that is stored. That also
holds of a group of which none is named: a minimum of nulls is null of each of them alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

import numpy as np

from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.interval_join import input_counts, inputs_of_outputs
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.walk.backward import GroupInputs
from lineage_service.tracing.walk.frontiers import bounds_of
from spark_agent import contract

__all__ = ["DecidedGroups"]

_SEVERAL = 2
#: Larger than the number of any row.
_NO_ROW = np.iinfo(np.int64).max


class DecidedGroups:
    """Of one application."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot, self._graph = snapshot, snapshot.graph
        self._nodes = snapshot.graph.topology.nodes
        #: Operation -> its nodes of winners.
        self._winners: dict[int, list[int]] = defaultdict(list)
        for number in sorted(snapshot.graph.blocks.winning):
            node = self._nodes[number]
            if node.by_id and node.operation is not None:
                self._winners[node.operation].append(number)

    def of(self, node: int, groups: Integers, check: Callable[[], None]) -> Iterator[GroupInputs]:
        """The rows that are enough for ascending groups of a node. Without any, all of a group count."""
        operation = self._nodes[node].operation
        decided_by = None if operation is None else self._nodes[operation].decided_by
        is_left = np.full(len(groups), decided_by in (contract.BY_WINNERS, contract.BY_ONE))
        if decided_by == contract.BY_WINNERS:
            for winners in self._winners.get(operation or 0, ()):
                for part in self._named(winners, groups, check):
                    is_left[part.groups] = False
                    yield part
        [left] = np.nonzero(is_left)
        if len(left):
            for part in self._first(node, groups[left], check):
                yield part._replace(groups=left[part.groups])

    def row_counts(self, node: int, groups: Integers, check: Callable[[], None]) -> Integers:
        """How many rows each of distinct, ascending groups of a node has. Of frames of windows: several."""
        counts = np.zeros(len(groups), np.int64)
        for run, codes_node, (at, codes) in self._codes(node, groups, check):
            different, places = np.unique(codes, return_inverse=True)
            if codes_node in self._graph.blocks.ranging:
                of_codes = np.full(len(different), _SEVERAL)
            else:
                flows = self._snapshot.flows.near(codes_node, run, outputs=bounds_of(different))
                of_codes = input_counts(flows, different)
            np.add.at(counts, at, of_codes[places])
        return counts

    def _named(self, winners: int, groups: Integers, check: Callable[[], None]) -> Iterator[GroupInputs]:
        topology = self._graph.topology
        for source in topology.id_sources.get(winners, ()):
            for run in self._graph.runs_of(winners):
                check()
                is_named, ids = self._snapshot.annotations.at(winners, run, contract.WINNERS, groups)
                if len(ids):
                    yield GroupInputs(source, None, np.flatnonzero(is_named), ids)

    def _first(self, node: int, groups: Integers, check: Callable[[], None]) -> Iterator[GroupInputs]:
        is_left = np.ones(len(groups), bool)
        for run, codes_node, (at, codes) in self._codes(node, groups, check):
            rows_node = self._graph.parent_in_run.get((run, codes_node))
            at, codes = at[is_left[at]], codes[is_left[at]]
            if rows_node is None or not len(at):
                continue
            different, places = np.unique(codes, return_inverse=True)
            rows = np.full(len(groups), _NO_ROW)
            np.minimum.at(rows, at, self._first_rows(codes_node, run, different)[places])
            of_run = np.flatnonzero(rows < _NO_ROW)
            if len(of_run):
                is_left[of_run] = False
                yield GroupInputs(rows_node, run, of_run, rows[of_run])
            if not is_left.any():
                return

    def _first_rows(self, codes_node: int, run: int, codes: Integers) -> Integers:
        """The first row of each code."""
        rows = np.full(len(codes), _NO_ROW)
        flows = self._snapshot.flows.near(codes_node, run, outputs=bounds_of(codes))
        for _, index, inputs in inputs_of_outputs(flows, codes):
            assert index is not None
            np.minimum.at(rows, index, inputs)
        return rows

    def _codes(
        self, node: int, groups: Integers, check: Callable[[], None]
    ) -> Iterator[tuple[int, int, tuple[Integers, Integers]]]:
        """(run, node of codes, (indices of groups, the codes of these)), by partition and run."""
        runs_here = self._graph.topology.runs
        for keys in self._nodes[node].parents:
            for run in sorted(self._graph.runs_of(keys), key=lambda run: (runs_here[run].partition, run)):
                check()
                codes_node = self._graph.parent_in_run.get((run, keys))
                flows = self._snapshot.flows.near(keys, run, outputs=bounds_of(groups))
                parts = [(index, codes) for _, index, codes in inputs_of_outputs(flows, groups)]
                if codes_node is not None and parts:
                    at = np.concatenate([index for index, _ in parts if index is not None])
                    codes = np.concatenate([of_part for _, of_part in parts])
                    yield run, codes_node, (at, codes)

"""One step of a trace: from a set of records at one node to the records next to it.

A set is arrays of positions by run; an `origin` travels with each position, so that many starts can be walked
at once and told apart. Steps that follow from the topology alone (a map, a cached RDD, a union) move arrays;
only where a node has flows is the store asked, once for the whole set. `backward` and `forward` are inverse
to each other, case by case.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lineage_service.tracing.snapshot import Snapshot
from spark_agent import contract

Integers = npt.NDArray[np.int64]
Records = tuple[Integers, Integers]
"""(origins, positions), of one run."""


class Walk:
    """The sets of one walk, by node and run."""

    def __init__(self, snapshot: Snapshot, cursor: duckdb.DuckDBPyConnection) -> None:
        self.is_exact = True
        self._snapshot = snapshot
        self._topology = snapshot.topology
        self._cursor = cursor
        self._sets: dict[int, dict[int, list[Records]]] = defaultdict(lambda: defaultdict(list))

    def add(self, node: int, run: int, origins: Integers, positions: Integers) -> None:
        """Put records at `node`."""
        if len(positions):
            self._sets[node][run].append((origins, positions))

    def nodes(self) -> set[int]:
        """The nodes that hold records."""
        return set(self._sets)

    def at(self, node: int) -> dict[int, Records]:
        """The distinct records of `node`, by run."""
        held = self._sets.get(node)
        if held is None:
            return {}
        for run, parts in held.items():
            held[run] = [_distinct(parts)]
        return {run: parts[0] for run, parts in held.items()}

    # -- backward ------------------------------------------------------------------------------------

    def backward(self, node: int) -> None:
        """Add the inputs of the records at `node`."""
        relation = self._topology.nodes[node].relation
        for link in self._snapshot.links_of.get(node, ()):
            if link.parent_node == node and link.run in self._sets[node]:
                # A cached RDD is read by other runs than those that computed it: its records stand in both.
                for origins, positions in self._sets[node][link.run]:
                    self.add(node, link.parent_run, origins, positions)
        here = self.at(node)
        if relation == contract.DATASET:
            self._every_input(node, here)
            return
        for link in self._snapshot.links_of.get(node, ()):
            if link.run in here and link.parent_node != node:
                origins, positions = here[link.run]
                inside = (positions >= link.start) & (positions < link.start + link.count)
                self.add(link.parent_node, link.parent_run, origins[inside], positions[inside] - link.start)
        for run, records in here.items():
            if run in self._topology.unplaced and self._topology.runs[run].input == node:
                self._every_input(node, {run: records})
            parent = self._snapshot.parent_in_run.get((run, node))
            if parent is None or self._is_flowing(node, run):
                continue
            if relation == contract.IDENTITY:
                self.add(parent, run, *records)
            elif relation == contract.PARTITION:
                self._every_record(parent, records[0], [run])
        self._backward_flows(node, {run: r for run, r in here.items() if self._is_flowing(node, run)})

    def _is_flowing(self, node: int, run: int) -> bool:
        """The store holds how this run's outputs of `node` relate to its inputs."""
        if node not in self._snapshot.flowing:
            return False
        relation = self._topology.nodes[node].relation
        return relation == contract.FLOWS or node in self._topology.runs[run].overridden

    def _backward_flows(self, node: int, here: Mapping[int, Records]) -> None:
        if not here:
            return
        condition = "true"
        if node in self._snapshot.spanning:
            matched = (
                "here ASOF JOIN "
                "(SELECT * FROM flows WHERE node = $node AND run IN (SELECT run FROM here)) AS flows "
                "ON here.run = flows.run AND here.pos >= flows.out_pos"
            )
            position = "flows.in_pos + (here.pos - flows.out_pos) * flows.in_step"
            condition = "here.pos < flows.out_pos + flows.out_count"
        else:
            matched = (
                "here JOIN flows ON flows.node = $node AND here.run = flows.run AND here.pos = flows.out_pos"
            )
            position = "flows.in_pos"
        found = self._query(
            "SELECT here.origin, here.run AS reader, coalesce(flows.in_run, here.run) AS run, "
            f"{position} AS pos FROM {matched} WHERE {condition}",
            here,
            node=node,
        )
        for (reader, run), origins, positions in _by_runs(found, "reader", "run"):
            # The input is at the node before in the run, or at the last node of a shuffle's writer.
            writer = self._topology.runs.get(run)
            parent = (
                self._snapshot.parent_in_run.get((run, node))
                if reader == run
                else writer.nodes[-1]
                if writer is not None and writer.nodes
                else None
            )
            if parent is None or parent not in self._topology.nodes:
                self.is_exact = False  # a writer whose manifest has not arrived
            else:
                self.add(parent, run, origins, positions)

    def _every_input(self, node: int, here: Mapping[int, Records]) -> None:
        """The bound of an operation that is not captured: all records of all its inputs."""
        is_sink = self._topology.nodes[node].kind == "sink"
        for run, (origins, _) in here.items():
            for parent in self._topology.nodes[node].parents:
                self._every_record(parent, origins, [run] if is_sink else self._runs_of(parent))

    # -- forward -------------------------------------------------------------------------------------

    def forward(self, node: int) -> None:
        """Add the outputs that the records at `node` went into."""
        for link in self._snapshot.links_from.get(node, ()):
            if link.node == node and link.parent_run in self._sets[node]:
                for origins, positions in self._sets[node][link.parent_run]:
                    self.add(node, link.run, origins, positions)
        here = self.at(node)
        for link in self._snapshot.links_from.get(node, ()):
            if link.parent_run in here and link.node != node and link.run in self._snapshot.effective:
                origins, positions = here[link.parent_run]
                inside = positions < link.count
                self.add(link.node, link.run, origins[inside], positions[inside] + link.start)
        for child in self._topology.children.get(node, ()):
            relation = self._topology.nodes[child].relation
            if relation == contract.DATASET:
                for origins, _ in here.values():
                    self._every_record(child, origins, self._runs_of(child))
                continue
            in_run = {
                run: records
                for run, records in here.items()
                if self._snapshot.parent_in_run.get((run, child)) == node
            }
            for run, records in in_run.items():
                if self._is_flowing(child, run):
                    continue
                if relation == contract.IDENTITY:
                    self.add(child, run, *records)
                elif relation == contract.PARTITION:
                    self._every_record(child, records[0], [run])
            self._forward_flows(child, {run: r for run, r in in_run.items() if self._is_flowing(child, run)})
            self._forward_shuffle(child, here)

    def _forward_flows(self, child: int, here: Mapping[int, Records]) -> None:
        """Within a run: from the node before `child` to `child`."""
        if not here:
            return
        flows = (
            "(SELECT * FROM flows "
            "WHERE node = $child AND in_run IS NULL AND run IN (SELECT run FROM here)) AS flows"
        )
        # One input, any number of outputs: flatMap, and everything that names single positions.
        found = self._query(
            "SELECT here.origin, here.run, "
            "unnest(range(flows.out_pos, flows.out_pos + flows.out_count)) AS pos "
            f"FROM here JOIN {flows} ON here.run = flows.run AND here.pos = flows.in_pos "
            "WHERE flows.in_step = 0 OR flows.out_count = 1",
            here,
            child=child,
        )
        for (run,), origins, positions in _by_runs(found, "run"):
            self.add(child, run, origins, positions)
        if child not in self._snapshot.spanning:
            return
        found = self._query(
            "SELECT here.origin, here.run, flows.out_pos + here.pos - flows.in_pos AS pos FROM here "
            f"ASOF JOIN (SELECT * FROM {flows} WHERE in_step = 1 AND out_count > 1) AS flows "
            "ON here.run = flows.run AND here.pos >= flows.in_pos "
            "WHERE here.pos < flows.in_pos + flows.out_count",
            here,
            child=child,
        )
        for (run,), origins, positions in _by_runs(found, "run"):
            self.add(child, run, origins, positions)

    def _forward_shuffle(self, child: int, here: Mapping[int, Records]) -> None:
        """From the runs that wrote a shuffle to those that read it; several jobs may have read it."""
        written = {run: records for run, records in here.items() if run in self._snapshot.readers_of}
        if child not in self._snapshot.spanning or not written:
            return
        found = self._query(
            "SELECT here.origin, flows.run, flows.out_pos + here.pos - flows.in_pos AS pos FROM "
            "(SELECT here.*, readers.run AS reader "
            "FROM here JOIN readers ON readers.writer = here.run) AS here ASOF JOIN "
            "(SELECT * FROM flows WHERE node = $child AND in_run IN (SELECT run FROM here)) AS flows "
            "ON here.reader = flows.run AND here.run = flows.in_run AND here.pos >= flows.in_pos "
            "WHERE here.pos < flows.in_pos + flows.out_count",
            written,
            child=child,
        )
        for (run,), origins, positions in _by_runs(found, "run"):
            if run in self._snapshot.effective:
                self.add(child, run, origins, positions)

    # -- shared --------------------------------------------------------------------------------------

    def _query(self, select: str, here: Mapping[int, Records], **parameters: int) -> dict[str, Any]:
        """Rows of `select` as arrays by column; `here` is the set as a table (origin, run, pos)."""
        table = pa.table(
            {
                "origin": np.concatenate([origins for origins, _ in here.values()]),
                "run": np.concatenate([np.full(len(p), run, np.int64) for run, (_, p) in here.items()]),
                "pos": np.concatenate([positions for _, positions in here.values()]),
            }
        )
        self._cursor.register("here", table)
        try:
            return self._cursor.execute(select, parameters).fetchnumpy()
        finally:
            self._cursor.unregister("here")

    def _runs_of(self, node: int) -> list[int]:
        return [run for run in self._topology.runs_of.get(node, ()) if run in self._snapshot.effective]

    def _every_record(self, node: int, origins: Integers, runs: Iterable[int]) -> None:
        self.is_exact = False
        for origin in np.unique(origins):
            for run in runs:
                count = self._snapshot.count(node, run)
                self.add(node, run, np.full(count, origin, np.int64), np.arange(count, dtype=np.int64))


def _distinct(parts: list[Records]) -> Records:
    if len(parts) == 1:
        origins, positions = parts[0]
    else:
        origins = np.concatenate([part[0] for part in parts])
        positions = np.concatenate([part[1] for part in parts])
    if not len(origins) or origins.min() == origins.max():
        unique = np.unique(positions)
        return np.full(len(unique), origins[0] if len(origins) else 0, np.int64), unique
    pairs = np.unique(np.stack([origins, positions]), axis=1)
    return pairs[0], pairs[1]


def _by_runs(found: Mapping[str, Any], *names: str) -> Iterable[tuple[tuple[int, ...], Integers, Integers]]:
    """The rows of a query, one group for each combination of the run columns `names`."""
    columns = [np.asarray(found[name], np.int64) for name in names]
    origins, positions = np.asarray(found["origin"], np.int64), np.asarray(found["pos"], np.int64)
    if not len(positions):
        return
    keys, inverse = np.unique(np.stack(columns), axis=1, return_inverse=True)
    inverse = inverse.reshape(-1)
    for index in range(keys.shape[1]):
        chosen = inverse == index if keys.shape[1] > 1 else slice(None)
        yield tuple(int(key) for key in keys[:, index]), origins[chosen], positions[chosen]

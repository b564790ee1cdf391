"""One step of a trace: from a set of records at one node to the records next to it.

A set is arrays of positions by run; an `origin` travels with each position, so that many starts can be walked
at once and told apart. Steps that follow from the topology alone (a map, a cached RDD, a union) move arrays;
only where a node has flows is the store asked, once for the whole set. `backward` and `forward` are inverse
to each other, case by case.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
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


class TooManyError(Exception):
    """A walk came to more records than its caller allows."""


class Walk:
    """The sets of one walk, by node and run."""

    def __init__(
        self,
        snapshot: Snapshot,
        cursor: duckdb.DuckDBPyConnection,
        most: int | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """A step that would put more than `most` records at one node raises TooManyError.

        `check` is called before each piece of work, and ends the walk by what it raises.
        """
        self.is_exact = True
        self._most = most
        self._check = check
        self._added: dict[int, int] = defaultdict(int)
        self._snapshot = snapshot
        self._topology = snapshot.topology
        self._cursor = cursor
        self._sets: dict[int, dict[int, list[Records]]] = defaultdict(lambda: defaultdict(list))
        self._are_distinct: set[tuple[int, int]] = set()

    def add(
        self, node: int, run: int, origins: Integers, positions: Integers, *, are_distinct: bool = False
    ) -> None:
        """Put records at `node`. Those that are distinct and ascending need not be sorted again."""
        self._check()
        if len(positions):
            self._added[node] += len(positions)
            if self._most is not None and self._added[node] > self._most:
                raise TooManyError
            parts = self._sets[node][run]
            parts.append((origins, positions))
            if are_distinct and len(parts) == 1:
                self._are_distinct.add((node, run))
            else:
                self._are_distinct.discard((node, run))

    def nodes(self) -> set[int]:
        """The nodes that hold records."""
        return set(self._sets)

    def at(self, node: int) -> dict[int, Records]:
        """The distinct records of `node`, by run."""
        held = self._sets.get(node)
        if held is None:
            return {}
        for run, parts in held.items():
            if (node, run) not in self._are_distinct:
                self._check()
                held[run] = [_distinct(parts)]
                self._are_distinct.add((node, run))
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
        if relation == contract.AGGREGATE:
            self._everything_that_entered(node, here)
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
                self.add(parent, run, *records, are_distinct=True)
            elif relation == contract.PARTITION:
                self._every_record(parent, records[0], [run], is_exact=self._topology.nodes[node].exact)
        self._backward_flows(node, {run: r for run, r in here.items() if self._is_flowing(node, run)})

    def _is_flowing(self, node: int, run: int) -> bool:
        """The store holds how this run's outputs of `node` relate to its inputs."""
        if node not in self._snapshot.flowing:
            return False
        relation = self._topology.nodes[node].relation
        return relation == contract.FLOWS or node in self._topology.runs[run].overridden

    def _backward_flows(self, node: int, here: Mapping[int, Records]) -> None:
        if node in self._snapshot.pairing:
            self._backward_pairs(node, here)
        elif node in self._snapshot.spanning:
            for run, (origins, positions) in here.items():
                self._backward_spans(node, run, origins, positions)
        elif here:
            found = self._query(
                "SELECT here.origin, here.run, flows.in_pos AS pos FROM here JOIN flows "
                f"ON flows.node = {node} AND here.run = flows.run AND here.pos = flows.out_pos "
                f"WHERE flows.run IN ({_listed(here)})",
                here,
            )
            for run, origins, positions in _by_run(found):
                self._add_input(node, run, run, origins, positions)

    def _backward_pairs(self, node: int, here: Mapping[int, Records]) -> None:
        """Single records, of this run or of others; these were written by the last nodes of their runs."""
        if not here:
            return
        found = self._query(
            "SELECT here.origin, coalesce(flows.in_run, -flows.run) AS run, flows.in_pos AS pos "
            f"FROM here JOIN flows ON flows.node = {node} AND here.run = flows.run "
            f"AND here.pos = flows.out_pos WHERE flows.run IN ({_listed(here)})",
            here,
        )
        for of_run, origins, positions in _by_run(found):
            run = abs(of_run)
            writer = self._topology.runs.get(run)
            if of_run < 0:  # the same run
                parent = self._snapshot.parent_in_run.get((run, node))
            else:
                parent = writer.nodes[-1] if writer is not None and writer.nodes else None
            if parent is None or parent not in self._topology.nodes:
                self.is_exact = False  # a writer whose manifest has not arrived
            else:
                self.add(parent, run, origins, positions)

    def _backward_spans(self, node: int, run: int, origins: Integers, positions: Integers) -> None:
        """The span that holds each position, by binary search: spans lie side by side in output order."""
        spans = self._cursor.execute(
            "SELECT out_pos, out_count, in_pos, in_step, coalesce(in_run, run) AS in_run FROM flows "
            f"WHERE node = {node} AND run = {run} "
            f"AND out_pos <= {int(positions.max())} AND out_pos + out_count > {int(positions.min())} "
            "ORDER BY out_pos",
        ).fetchnumpy()
        if not len(spans["out_pos"]):
            return
        at = np.maximum(np.searchsorted(spans["out_pos"], positions, side="right") - 1, 0)
        into = positions - spans["out_pos"][at]
        inside = (into >= 0) & (into < spans["out_count"][at])
        at, into, origins = at[inside], into[inside], origins[inside]
        inputs, writers = spans["in_pos"][at] + into * spans["in_step"][at], spans["in_run"][at]
        for writer in np.unique(writers).tolist():
            chosen = writers == writer
            self._add_input(node, run, writer, origins[chosen], inputs[chosen])

    def _add_input(self, node: int, reader: int, run: int, origins: Integers, positions: Integers) -> None:
        """The input is at the node before in the run, or at what another run wrote for `node` to read."""
        parent: int | None
        if reader == run:
            parent = self._snapshot.parent_in_run.get((run, node))
        else:
            is_known = run in self._topology.runs  # else the writer's manifest has not arrived
            parent = next(iter(self._topology.nodes[node].parents), None) if is_known else None
        if parent is None or parent not in self._topology.nodes:
            self.is_exact = False
        else:
            self.add(parent, run, origins, positions)

    def _every_input(self, node: int, here: Mapping[int, Records]) -> None:
        """The bound of an operation that is not captured: all records of all its inputs."""
        is_sink = self._topology.nodes[node].kind == "sink"
        for run, (origins, _) in here.items():
            for parent in self._topology.nodes[node].parents:
                self._every_record(parent, origins, [run] if is_sink else self._runs_of(parent))

    def _everything_that_entered(self, sink: int, here: Mapping[int, Records]) -> None:
        """The one record of an aggregating action: made of all that its jobs read."""
        runs = [run for run in self._topology.entered.get(sink, ()) if run in self._snapshot.effective]
        for origins, _ in here.values():
            for parent in self._topology.nodes[sink].parents:
                self._every_record(parent, origins, runs, is_exact=True)

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
            if relation == contract.AGGREGATE:
                for run, (origins, _) in here.items():
                    if run in self._topology.entered.get(child, ()):
                        self._every_record(child, origins, [self._topology.result_of[child]], is_exact=True)
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
                    self.add(child, run, *records, are_distinct=True)
                elif relation == contract.PARTITION:
                    self._every_record(child, records[0], [run], is_exact=self._topology.nodes[child].exact)
            self._forward_flows(child, {run: r for run, r in in_run.items() if self._is_flowing(child, run)})
            self._forward_shuffle(child, here)
            self._forward_pairs(child, here)

    def _forward_flows(self, child: int, here: Mapping[int, Records]) -> None:
        """Within a run: from the node before `child` to `child`."""
        if not here:
            return
        flows = f"(SELECT * FROM flows WHERE node = {child} AND run IN ({_listed(here)}) AND in_run IS NULL)"
        # One input, any number of outputs: flatMap, and everything that names single positions.
        self._add_found(
            child,
            "SELECT here.origin, here.run, "
            "unnest(range(flows.out_pos, flows.out_pos + flows.out_count)) AS pos "
            f"FROM here JOIN {flows} AS flows ON here.run = flows.run AND here.pos = flows.in_pos "
            "WHERE flows.in_step = 0 OR flows.out_count = 1",
            here,
        )
        if child in self._snapshot.stepping:
            self._add_found(
                child,
                "SELECT here.origin, here.run, flows.out_pos + here.pos - flows.in_pos AS pos FROM here "
                f"ASOF JOIN (SELECT * FROM {flows} WHERE in_step = 1 AND out_count > 1) AS flows "
                "ON here.run = flows.run AND here.pos >= flows.in_pos "
                "WHERE here.pos < flows.in_pos + flows.out_count",
                here,
            )

    def _forward_shuffle(self, child: int, here: Mapping[int, Records]) -> None:
        """From the runs that wrote a shuffle to those that read it; several jobs may have read it."""
        written = {run: records for run, records in here.items() if run in self._snapshot.readers_of}
        if child not in self._snapshot.stepping or not written:
            return
        if child in self._snapshot.repeating:
            self._forward_product(child, written)
            return
        self._add_found(
            child,
            "SELECT here.origin, flows.run, flows.out_pos + here.pos - flows.in_pos AS pos FROM "
            "(SELECT here.*, readers.run AS reader "
            "FROM here JOIN readers ON readers.writer = here.run) AS here ASOF JOIN "
            f"(SELECT * FROM flows WHERE node = {child} AND in_run IN ({_listed(written)})) AS flows "
            "ON here.reader = flows.run AND here.run = flows.in_run AND here.pos >= flows.in_pos "
            "WHERE here.pos < flows.in_pos + flows.out_count",
            written,
        )

    def _forward_product(self, side: int, written: Mapping[int, Records]) -> None:
        """As a shuffle, but each record was read many times: a span of step 0 is one record, all of it."""
        spans = f"(SELECT * FROM flows WHERE node = {side} AND in_run IN ({_listed(written)}))"
        self._add_found(
            side,
            "SELECT here.origin, spans.run, "
            "unnest(range(spans.out_pos, spans.out_pos + spans.out_count)) AS pos "
            f"FROM here JOIN {spans} AS spans ON here.run = spans.in_run AND here.pos = spans.in_pos "
            "WHERE spans.in_step = 0",
            written,
        )
        self._add_found(
            side,
            "SELECT here.origin, spans.run, spans.out_pos + here.pos - spans.in_pos AS pos "
            f"FROM here JOIN {spans} AS spans ON here.run = spans.in_run AND here.pos >= spans.in_pos "
            "AND here.pos < spans.in_pos + spans.out_count WHERE spans.in_step = 1",
            written,
        )

    def _forward_pairs(self, child: int, here: Mapping[int, Records]) -> None:
        """From other runs to those that name single records of them."""
        written = {run: records for run, records in here.items() if run in self._snapshot.readers_of}
        if child in self._snapshot.pairing and written:
            self._add_found(
                child,
                "SELECT here.origin, flows.run, flows.out_pos AS pos FROM here JOIN flows "
                f"ON flows.node = {child} AND here.run = flows.in_run AND here.pos = flows.in_pos "
                f"WHERE flows.in_run IN ({_listed(written)})",
                written,
            )

    def _add_found(self, node: int, select: str, here: Mapping[int, Records]) -> None:
        for run, origins, positions in _by_run(self._query(select, here)):
            if run in self._snapshot.effective:
                self.add(node, run, origins, positions)

    # -- shared --------------------------------------------------------------------------------------

    def _query(self, select: str, here: Mapping[int, Records]) -> dict[str, Any]:
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
            return self._cursor.execute(select).fetchnumpy()
        finally:
            self._cursor.unregister("here")

    def _runs_of(self, node: int) -> list[int]:
        return [run for run in self._topology.runs_of.get(node, ()) if run in self._snapshot.effective]

    def _every_record(
        self, node: int, origins: Integers, runs: Iterable[int], *, is_exact: bool = False
    ) -> None:
        self.is_exact &= is_exact
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


def _by_run(found: Mapping[str, Any]) -> Iterable[tuple[int, Integers, Integers]]:
    """The rows (origin, run, pos) of a query as (run, origins, positions)."""
    runs = np.asarray(found["run"], np.int64)
    origins, positions = np.asarray(found["origin"], np.int64), np.asarray(found["pos"], np.int64)
    if not len(runs):
        return
    order = np.argsort(runs, kind="stable")
    bounds = np.flatnonzero(np.diff(runs[order])) + 1
    for part in np.split(order, bounds):
        yield int(runs[part[0]]), origins[part], positions[part]


def _listed(runs: Iterable[int]) -> str:
    """Run numbers for an IN list: written out, so that whole row groups of other runs are passed over."""
    return ", ".join(str(int(run)) for run in runs)

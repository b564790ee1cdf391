"""One step of a trace: from a set of records at one node to the records next to it, set-based, in DuckDB.

A set is a table (origin, run, pos). `origin` travels along, so that many starts can be walked at once and
told apart. `Walk` owns the tables; `backward` and `forward` add to the sets of the neighbouring nodes. The
two are inverse to each other, statement by statement.
"""

from __future__ import annotations

from collections.abc import Iterable

import duckdb

from lineage_service.tracing.snapshot import Snapshot
from spark_agent import contract


class Walk:
    """The sets of one walk, in temporary tables of one cursor."""

    def __init__(self, snapshot: Snapshot, name: str, cursor: duckdb.DuckDBPyConnection) -> None:
        self.snapshot = snapshot
        self.table = name
        self.is_exact = True
        self._cursor = cursor
        self._topology = snapshot.topology
        cursor.execute(
            f"CREATE OR REPLACE TEMP TABLE {name} (node INTEGER, origin BIGINT, run BIGINT, pos BIGINT)"
        )

    def add(self, node: int, records: Iterable[tuple[int, int, int]]) -> None:
        """Put (origin, run, pos) records at `node`."""
        rows = [(node, *record) for record in records]
        if rows:
            self._cursor.executemany(f"INSERT INTO {self.table} VALUES (?, ?, ?, ?)", rows)

    def nodes(self) -> list[int]:
        return sorted(self._column(f"SELECT DISTINCT node FROM {self.table}"))

    def _column(self, select: str) -> list[int]:
        return [value for (value,) in self._cursor.execute(select).fetchall()]

    def _take(self, node: int, *, is_backward: bool) -> None:
        """Make `here` the distinct records at `node`.

        A cached RDD is read by other runs than those that computed it: its records stand in both.
        """
        self._cursor.execute(
            f"CREATE OR REPLACE TEMP TABLE here AS SELECT DISTINCT origin, run, pos FROM {self.table} "
            "WHERE node = ?",
            [node],
        )
        if node in self.snapshot.rereads:
            near, far = ("run", "parent_run") if is_backward else ("parent_run", "run")
            self._cursor.execute(
                f"INSERT INTO here SELECT here.origin, links.{far}, here.pos FROM here JOIN links "
                f"ON links.node = ? AND links.parent = ? AND links.{near} = here.run",
                [node, node],
            )

    def _insert(self, select: str, parameters: list[object]) -> None:
        self._cursor.execute(f"INSERT INTO {self.table} {select}", parameters)

    # -- backward ------------------------------------------------------------------------------------

    def backward(self, node: int) -> None:
        """Add the inputs of the records at `node`."""
        self._take(node, is_backward=True)
        relation = self._topology.nodes[node].relation
        if relation == contract.DATASET:
            self._every_input(node)
            return
        if node in self.snapshot.linked:
            self._backward_links(node)
        if self._topology.unplaced:
            self._unplaced_inputs(node)
        if node in self.snapshot.flowing:
            self._backward_flows(node)
        if relation == contract.IDENTITY:
            self._insert(
                "SELECT chain.parent, here.origin, here.run, here.pos FROM here JOIN chain "
                "ON chain.run = here.run AND chain.node = ? AND NOT chain.overridden",
                [node],
            )
        elif relation == contract.PARTITION:
            self._whole_splits_backward(node)

    def _backward_flows(self, node: int) -> None:
        # The input is at the node before in the run, or at the node that ends the writing run of a shuffle.
        parent = (
            "LEFT JOIN chain ON chain.run = here.run AND chain.node = $node "
            "LEFT JOIN runs AS writer ON writer.run = flows.in_run"
        )
        target = "coalesce(writer.last, chain.parent)"
        if node in self.snapshot.spanning:
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
            position, condition = "flows.in_pos", "true"
        self._insert(
            f"SELECT {target}, here.origin, coalesce(flows.in_run, here.run), {position} "
            f"FROM {matched} {parent} WHERE {condition} AND {target} IS NOT NULL",
            {"node": node},  # type: ignore[arg-type]
        )

    def _backward_links(self, node: int) -> None:
        self._insert(
            "SELECT links.parent, here.origin, links.parent_run, here.pos - links.start FROM here JOIN links "
            "ON links.node = ? AND links.parent <> links.node AND links.run = here.run "
            "AND here.pos >= links.start AND here.pos < links.start + links.count",
            [node],
        )

    def _whole_splits_backward(self, node: int) -> None:
        pairs = self._cursor.execute(
            "SELECT DISTINCT here.origin, here.run, chain.parent FROM here JOIN chain "
            "ON chain.run = here.run AND chain.node = ?",
            [node],
        ).fetchall()
        for origin, run, parent in pairs:
            self._every_record(parent, origin, [run])

    def _every_input(self, node: int) -> None:
        """The bound of an operation that is not captured: all records of all its inputs."""
        origins = [
            origin for (origin,) in self._cursor.execute("SELECT DISTINCT origin FROM here").fetchall()
        ]
        here = self._column("SELECT DISTINCT run FROM here")
        sink = self._topology.nodes[node].kind == "sink"
        for parent in self._topology.nodes[node].parents:
            found = here if sink else self._runs_of(parent)
            for origin in origins:
                self._every_record(parent, origin, found)

    def _unplaced_inputs(self, node: int) -> None:
        """The bound where it is not known which runs a run has read: all records of the inputs."""
        for run in self._column("SELECT DISTINCT run FROM here"):
            if run in self._topology.unplaced and self._topology.runs[run].input == node:
                for origin in self._column("SELECT DISTINCT origin FROM here"):
                    for parent in self._topology.nodes[node].parents:
                        self._every_record(parent, origin, self._runs_of(parent))

    # -- forward -------------------------------------------------------------------------------------

    def forward(self, node: int) -> None:
        """Add the outputs that the records at `node` went into."""
        self._take(node, is_backward=False)
        if node in self.snapshot.link_parents:
            self._insert(
                "SELECT links.node, here.origin, links.run, here.pos + links.start FROM here JOIN links "
                "ON links.parent = ? AND links.node <> links.parent AND links.parent_run = here.run "
                "AND here.pos < links.count AND links.run IN (SELECT run FROM effective)",
                [node],
            )
        for child in self._topology.children.get(node, ()):
            relation = self._topology.nodes[child].relation
            if child in self.snapshot.flowing:
                self._forward_flows(node, child)
            if relation == contract.IDENTITY:
                self._insert(
                    "SELECT chain.node, here.origin, here.run, here.pos FROM here JOIN chain "
                    "ON chain.run = here.run AND chain.node = ? AND chain.parent = ? "
                    "AND NOT chain.overridden",
                    [child, node],
                )
            elif relation == contract.PARTITION:
                self._whole_splits_forward(node, child)
            elif relation == contract.DATASET:
                self._every_output(child)

    def _forward_flows(self, node: int, child: int) -> None:
        inside = (
            "(SELECT flows.* FROM flows JOIN chain ON chain.run = flows.run AND chain.node = flows.node "
            "WHERE flows.node = $child AND chain.parent = $node AND flows.in_run IS NULL "
            "AND flows.run IN (SELECT run FROM here))"
        )
        parameters = {"node": node, "child": child}
        # One input, any number of outputs: flatMap, and everything that names single positions.
        self._insert(
            "SELECT $child, here.origin, here.run, "
            "unnest(range(flows.out_pos, flows.out_pos + flows.out_count)) "
            f"FROM here JOIN {inside} AS flows ON here.run = flows.run AND here.pos = flows.in_pos "
            "WHERE flows.in_step = 0 OR flows.out_count = 1",
            parameters,  # type: ignore[arg-type]
        )
        if child not in self.snapshot.spanning:
            return
        shifted = "flows.out_pos + here.pos - flows.in_pos"
        self._insert(
            f"SELECT $child, here.origin, here.run, {shifted} FROM here ASOF JOIN "
            f"(SELECT * FROM {inside} WHERE in_step = 1 AND out_count > 1) AS flows "
            "ON here.run = flows.run AND here.pos >= flows.in_pos "
            "WHERE here.pos < flows.in_pos + flows.out_count",
            parameters,  # type: ignore[arg-type]
        )
        # A shuffle may be read by several jobs: once for each reading run.
        self._insert(
            f"SELECT $child, here.origin, flows.run, {shifted} FROM "
            "(SELECT here.*, readers.run AS reader FROM here JOIN readers ON readers.writer = here.run "
            "JOIN effective ON effective.run = readers.run) AS here "
            "ASOF JOIN "
            "(SELECT * FROM flows WHERE node = $child AND in_run IN (SELECT run FROM here)) AS flows "
            "ON here.reader = flows.run AND here.run = flows.in_run AND here.pos >= flows.in_pos "
            "WHERE here.pos < flows.in_pos + flows.out_count",
            {"child": child},  # type: ignore[arg-type]
        )

    def _whole_splits_forward(self, node: int, child: int) -> None:
        pairs = self._cursor.execute(
            "SELECT DISTINCT here.origin, here.run FROM here JOIN chain "
            "ON chain.run = here.run AND chain.node = ? AND chain.parent = ?",
            [child, node],
        ).fetchall()
        for origin, run in pairs:
            self._every_record(child, origin, [run])

    def _every_output(self, child: int) -> None:
        origins = [
            origin for (origin,) in self._cursor.execute("SELECT DISTINCT origin FROM here").fetchall()
        ]
        for origin in origins:
            self._every_record(child, origin, self._runs_of(child))

    # -- bounds --------------------------------------------------------------------------------------

    def _runs_of(self, node: int) -> list[int]:
        return [run for run in self._topology.runs_of.get(node, ()) if run in self.snapshot.effective]

    def _every_record(self, node: int, origin: int, runs: Iterable[int]) -> None:
        self.is_exact = False
        for run in runs:
            count = record_count(self.snapshot, self._cursor, node, run)
            self._insert("SELECT ?, ?, ?, unnest(range(?))", [node, origin, run, count])


def record_count(snapshot: Snapshot, cursor: duckdb.DuckDBPyConnection, node: int, run_number: int) -> int:
    """How many records `node` has in a run."""
    topology = snapshot.topology
    run = topology.runs[run_number]
    if node == run.input:
        return run.inputs
    if node not in run.nodes:  # the sink of an action
        parents = topology.nodes[node].parents
        return record_count(snapshot, cursor, parents[0], run_number) if parents else 0
    if node in run.counts:
        return run.counts[node]
    index = run.nodes.index(node)
    if node in run.overridden:
        return _flowing_count(cursor, node, run_number)
    # What follows without changing the count says it too: the counter at the end of the chain.
    action = topology.nodes.get(run.action) if run.action is not None else None
    for later in run.nodes[index + 1 :]:
        following = topology.nodes.get(later, action)  # a step of the action itself was never registered
        if following is None or following.relation != contract.IDENTITY or later in run.overridden:
            break
    else:
        return run.outputs
    for position in range(index, -1, -1):
        at = run.nodes[position]
        if topology.nodes[at].relation != contract.IDENTITY or at in run.overridden:
            return _flowing_count(cursor, at, run_number)
    return run.inputs


def _flowing_count(cursor: duckdb.DuckDBPyConnection, node: int, run_number: int) -> int:
    (largest,) = cursor.execute(
        "SELECT max(out_pos + out_count) FROM flows WHERE node = ? AND run = ?", [node, run_number]
    ).fetchone() or (None,)
    return int(largest or 0)

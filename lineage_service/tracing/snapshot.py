"""One application's lineage at one version of the flow store, ready to be walked.

Holds an in-memory DuckDB whose view `flows` reads the store's Parquet files in place, and small tables made
from the topology. Every question takes a cursor of its own, so questions may run side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import duckdb

from lineage_service.tracing.topology import Topology, effective_runs
from spark_agent import contract

#: Block relations whose rows speak of spans of outputs, each with one input; the others name single outputs.
SPANS_OF_OUTPUTS = frozenset({contract.COUNTS, contract.SPANS})

_FLOW_COLUMNS = (
    "node INTEGER, run BIGINT, out_pos BIGINT, out_count BIGINT, "
    "in_pos BIGINT, in_step TINYINT, in_run BIGINT"
)
_RECORD_COLUMNS = "node INTEGER, run BIGINT, pos BIGINT, kind VARCHAR, type VARCHAR, text VARCHAR"


@dataclass(frozen=True)
class Snapshot:
    """What is needed to walk. `spanning` are the nodes whose flows are spans, `flowing` those with flows."""

    topology: Topology
    database: duckdb.DuckDBPyConnection
    effective: frozenset[int]
    spanning: frozenset[int]
    flowing: frozenset[int]
    valued: frozenset[int]
    rereads: frozenset[int]  # nodes whose outputs are read again by other runs (cached RDDs)
    linked: frozenset[int]  # nodes with links to what they read
    link_parents: frozenset[int]  # nodes that links lead to
    flows_of: dict[int, int]  # node -> rows in `flows` of effective runs


@dataclass(frozen=True)
class Receipt:
    """One stored block, as the `blocks` table has it."""

    run: int
    seq: int
    node: int
    relation: str
    rows: int


def open_snapshot(
    topology: Topology, flow_files: Sequence[str], record_files: Sequence[str], receipts: Iterable[Receipt]
) -> Snapshot:
    """A snapshot over the given files. Paths are Parquet files of one application."""
    database = duckdb.connect(":memory:")
    database.execute("SET threads = 2")
    _view(database, "flows", flow_files, _FLOW_COLUMNS)
    _view(database, "records", record_files, _RECORD_COLUMNS)
    database.execute("CREATE TABLE runs (run BIGINT, split INTEGER, input INTEGER, last INTEGER)")
    database.execute("CREATE TABLE chain (run BIGINT, node INTEGER, parent INTEGER, overridden BOOLEAN)")
    database.execute(
        "CREATE TABLE links "
        "(node INTEGER, run BIGINT, parent INTEGER, parent_run BIGINT, start BIGINT, count BIGINT)"
    )
    runs = topology.runs
    _fill(
        database,
        "runs",
        [(r.number, r.split, r.input, r.nodes[-1] if r.nodes else r.input) for r in runs.values()],
    )
    _fill(
        database,
        "chain",
        [(run, node, parent, node in runs[run].overridden) for run, node, parent in topology.chain],
    )
    _fill(
        database,
        "links",
        [(k.node, k.run, k.parent_node, k.parent_run, k.start, k.count) for k in topology.links],
    )
    known = {(each.run, each.seq): each for each in receipts if each.run in runs}
    spanning = {each.node for each in known.values() if each.relation in SPANS_OF_OUTPUTS}
    texts = (contract.KEYS, contract.VALUES)
    flowing = {each.node for each in known.values() if each.relation not in texts}
    valued = {each.node for each in known.values() if each.relation == contract.VALUES}
    shuffles = {run.input for run in runs.values()} & spanning
    shuffled: list[tuple[int, int]] = []
    if shuffles:
        shuffled = database.execute(
            "SELECT DISTINCT run, in_run FROM flows WHERE in_run IS NOT NULL AND node IN (SELECT unnest(?))",
            [sorted(shuffles)],
        ).fetchall()
    database.execute("CREATE TABLE readers (run BIGINT, writer BIGINT)")
    _fill(database, "readers", shuffled)
    effective = effective_runs(topology, shuffled)
    database.execute("CREATE TABLE effective (run BIGINT)")
    _fill(database, "effective", [(run,) for run in effective])
    flows_of: dict[int, int] = {}
    for each in known.values():
        if each.run in effective and each.relation not in texts:
            flows_of[each.node] = flows_of.get(each.node, 0) + each.rows
    return Snapshot(
        topology=topology,
        database=database,
        effective=effective,
        spanning=frozenset(spanning),
        flowing=frozenset(flowing),
        valued=frozenset(valued),
        rereads=frozenset(link.node for link in topology.links if link.node == link.parent_node),
        linked=frozenset(link.node for link in topology.links),
        link_parents=frozenset(link.parent_node for link in topology.links),
        flows_of=flows_of,
    )


def _view(database: duckdb.DuckDBPyConnection, name: str, files: Sequence[str], columns: str) -> None:
    if not files:
        database.execute(f"CREATE TABLE {name} ({columns})")
        return
    names = ", ".join(column.split()[0] for column in columns.split(", "))
    listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
    database.execute(
        f"CREATE VIEW {name} AS SELECT {names} FROM read_parquet([{listed}], hive_partitioning = false)"
    )


def _fill(database: duckdb.DuckDBPyConnection, table: str, rows: Sequence[tuple[object, ...]]) -> None:
    if rows:
        marks = ", ".join("?" for _ in rows[0])
        database.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)

"""One application's lineage at one version of the flow store, ready to be walked.

Flows are read by row group (`flow_files`), keys and values by an in-memory DuckDB whose view `records` reads
the store's Parquet files in place. Every question takes a cursor of its own: they may run side by side.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import duckdb

from lineage_service.tracing.flow_files import NO_RUN, ColumnCache, FlowFiles
from lineage_service.tracing.topology import Link, Topology, effective_runs, sides_of
from spark_agent import contract

T = TypeVar("T")

_RECORD_COLUMNS = "node INTEGER, run BIGINT, pos BIGINT, kind VARCHAR, type VARCHAR, text VARCHAR"


@dataclass(frozen=True)
class Snapshot:
    """What is needed to walk."""

    topology: Topology
    flows: FlowFiles
    database: duckdb.DuckDBPyConnection
    effective: frozenset[int]
    spanning: frozenset[int]  # nodes whose flows are spans of outputs that lie side by side
    stepping: frozenset[int]  # those whose spans may have as many inputs as outputs
    repeating: frozenset[int]  # those whose spans name an input many times: sides of cartesian products
    pairing: frozenset[int]  # those whose flows name single records of other runs
    flowing: frozenset[int]  # nodes with flows
    keyed: frozenset[int]  # nodes with keys or values
    valued: frozenset[int]  # nodes with values
    readers_of: Mapping[int, tuple[int, ...]]  # run that wrote a shuffle -> runs that read it
    links_of: Mapping[int, tuple[Link, ...]]  # node -> what its records are the outputs of
    links_from: Mapping[int, tuple[Link, ...]]  # node -> where its outputs were read
    parent_in_run: Mapping[tuple[int, int], int]  # (run, node) -> the node before it in the run
    flows_of: Mapping[int, int]  # node -> rows in `flows` of effective runs

    def is_exact(self, node: int) -> bool:
        """Is each record's way through `node` known? A partition whose rows were followed is no bound."""
        at = self.topology.nodes[node]
        runs = [
            self.topology.runs[run] for run in self.topology.runs_of.get(node, ()) if run in self.effective
        ]
        return at.exact or (
            at.relation == contract.PARTITION and bool(runs) and all(node in run.overridden for run in runs)
        )

    def count(self, node: int, run_number: int) -> int:
        """How many records `node` has in a run."""
        run = self.topology.runs[run_number]
        nodes = self.topology.nodes
        if node == run.input or node in sides_of(nodes.get(run.input)):
            return run.inputs
        if node not in run.nodes:  # the sink of an action
            parents = nodes[node].parents
            return self.count(parents[0], run_number) if parents else 0
        if node in run.counts:
            return run.counts[node]
        if node in run.overridden:
            return self.flows.outputs(node, run_number)
        index = run.nodes.index(node)
        # What follows without changing the count says it too: the counter at the end of the chain.
        for later in run.nodes[index + 1 :]:
            following = nodes.get(later)  # what an action adds for itself was never registered
            if following is None or following.relation != contract.IDENTITY or later in run.overridden:
                break
        else:
            return run.outputs
        for position in range(index, -1, -1):
            at = run.nodes[position]
            if nodes[at].relation != contract.IDENTITY or at in run.overridden:
                return self.flows.outputs(at, run_number)
        return run.inputs


@dataclass(frozen=True)
class Receipt:
    """One stored block, as the `blocks` table has it."""

    run: int
    seq: int
    node: int
    relation: str
    rows: int


def open_snapshot(
    topology: Topology,
    flow_files: Sequence[str],
    record_files: Sequence[str],
    receipts: Iterable[Receipt],
    cache: ColumnCache | None = None,
) -> Snapshot:
    """A snapshot over the given files. Paths are Parquet files of one application."""
    read = FlowFiles(flow_files, cache)
    database = duckdb.connect(":memory:")
    database.execute("SET threads = 2")
    _view(database, "records", record_files, _RECORD_COLUMNS)
    runs = topology.runs
    known = {(each.run, each.seq): each for each in receipts if each.run in runs}.values()
    texts = (contract.KEYS, contract.VALUES)
    flows = [each for each in known if each.relation not in texts]
    stepping = frozenset(each.node for each in flows if each.relation == contract.SPANS)
    counting = frozenset(each.node for each in flows if each.relation == contract.COUNTS)
    repeating = frozenset(side for node in topology.nodes.values() for side in sides_of(node))
    pairing = frozenset(each.node for each in flows if each.relation == contract.PAIRS)
    shuffles = ({run.input for run in runs.values()} | repeating) & (stepping | pairing)
    shuffled = sorted(
        {
            (run, writer)
            for node in shuffles
            for run in read.runs(node)
            for each in read.slices(node, run)
            for writer in each.writers
            if writer != NO_RUN
        }
    )
    effective = effective_runs(topology, shuffled)
    flows_of: dict[int, int] = defaultdict(int)
    for each in flows:
        if each.run in effective:
            flows_of[each.node] += each.rows
    return Snapshot(
        topology=topology,
        flows=read,
        database=database,
        effective=effective,
        spanning=stepping | counting,
        stepping=stepping,
        repeating=repeating,
        pairing=pairing,
        flowing=frozenset(each.node for each in flows),
        keyed=frozenset(each.node for each in known if each.relation in texts),
        valued=frozenset(each.node for each in known if each.relation == contract.VALUES),
        readers_of=_grouped((writer, reader) for reader, writer in shuffled),
        links_of=_grouped((link.node, link) for link in topology.links),
        links_from=_grouped((link.parent_node, link) for link in topology.links),
        parent_in_run={(run, node): parent for run, node, parent in topology.chain},
        flows_of=flows_of,
    )


def _grouped(pairs: Iterable[tuple[int, T]]) -> dict[int, tuple[T, ...]]:
    groups: dict[int, list[T]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return {key: tuple(values) for key, values in groups.items()}


def _view(database: duckdb.DuckDBPyConnection, name: str, files: Sequence[str], columns: str) -> None:
    if not files:
        database.execute(f"CREATE TABLE {name} ({columns})")
        return
    names = ", ".join(column.split()[0] for column in columns.split(", "))
    listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
    database.execute(
        f"CREATE VIEW {name} AS SELECT {names} FROM read_parquet([{listed}], hive_partitioning = false)"
    )

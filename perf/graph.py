"""Measures how fast flows come into Neo4j: records and links a second, ours, the thesis's and APOC's way.

    python -m perf.graph [--records 90000] [--rounds 3] [--out perf/results] [--jars .cache/lineage/jars]

Starts a Neo4j of its own (or uses --uri) and writes seeded application graphs into it, in turns. Each round
writes a graph in each way; the first round is not counted. A graph has a third of its records at each of
three nodes, a link from each record of the first to one of the second, and from each of the second to one of
a tenth of the third (a shuffle, by Zipf's law). Then four writers at once, each with graphs of its own.
Figures are medians; where the server's process is known, its CPU time stands beside the wall time, which a
busy machine spoils.
Writes graph-DATE.json and .md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import neo4j
import neo4j.exceptions
import numpy as np
import psutil

import lineage_cypher
from lineage_service.cli.stack.down import stop
from lineage_service.cli.stack.up import start
from lineage_service.graph.application_rows import ApplicationGraph, NodeRecords
from lineage_service.graph.application_writer import ApplicationWriter
from lineage_service.graph.neo4j_store import Neo4jGraph
from lineage_service.graph.row_values import BATCH_ROWS
from lineage_service.settings import Settings
from perf.tables import publish
from spark_agent import contract

SEED, NODES, MAX_FLOWS, WRITERS = 7, (1, 2, 3), 10**9, 4
THESIS_ROWS = 15_000

Pairs = list[tuple[int, int]]
"""(target, source), places of records in a run."""

#: The thesis: one UNWIND of the batch, MERGE on flowId, then SET of the rest; links plainly in the same way.
THESIS_RECORDS = (
    "UNWIND $rows AS row MERGE (flow:LineageFlow {flowId: row.flowId}) "
    "SET flow.nodeId = row.nodeId, flow.applicationId = row.applicationId, flow.hashIn = row.hashIn, "
    "flow.hashOut = row.hashOut, flow.val = row.val"
)
THESIS_LINKS = (
    "UNWIND $rows AS row MATCH (source:LineageFlow {flowId: row.source}) "
    "MATCH (target:LineageFlow {flowId: row.target}) MERGE (source)-[:flow]->(target)"
)
#: Grouped by target, so that no two of the parallel batches have the same one.
APOC_LINKS = (
    "CALL apoc.periodic.iterate('UNWIND $rows AS row RETURN row', "
    "'MATCH (target:LineageFlow {flowId: row.target}) UNWIND row.sources AS flowId "
    "MATCH (source:LineageFlow {flowId: flowId}) MERGE (source)-[:flow]->(target)', "
    "{batchSize: 2000, parallel: true, concurrency: 4, retries: 10, params: {rows: $rows}}) "
    "YIELD retries, failedBatches, errorMessages RETURN retries, failedBatches, errorMessages"
)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m perf.graph", description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=90_000, help="records of a run (default: 90000)")
    parser.add_argument("--rounds", type=int, default=3, help="counted rounds (default: 3)")
    parser.add_argument("--uri", help="a Neo4j that runs, without authentication; without it: one of its own")
    parser.add_argument("--jars", type=Path, default=Path(".cache/lineage/jars"), help="folder of the jars")
    parser.add_argument("--out", type=Path, default=Path("perf/results"), help="folder of the results")
    options = parser.parse_args(argv)
    with _server(options.uri, options.jars) as (uri, process):
        figures = _measured(uri, process, options.records, options.rounds)
    figures["bytes_a_record"] = None if options.uri else _bytes(options.records, options.jars)
    publish(options.out, "graph", figures, _page(figures))
    return 0


@contextmanager
def _server(uri: str | None, jars: Path) -> Iterator[tuple[str, psutil.Process | None]]:
    if uri:
        yield uri, None
        return
    with tempfile.TemporaryDirectory(prefix="lineage-perf-") as folder:
        home = Path(folder)
        try:
            started = start(Settings(home=home), only="neo4j", jars=jars.absolute()).servers["neo4j"]
            yield started.addresses["bolt"], psutil.Process(started.pid)
        finally:
            stop(home)


class _Clock:
    """Wall time of a piece of work, and the CPU time of this process and of the server in it, in seconds."""

    def __init__(self, server: psutil.Process | None) -> None:
        self._server = server

    def __call__(self, work: Callable[[], Any]) -> dict[str, float]:
        server, client, wall = self._cpu(), time.process_time(), time.perf_counter()
        work()
        return {
            "wall": time.perf_counter() - wall,
            "client": time.process_time() - client,
            "server": self._cpu() - server,
        }

    def _cpu(self) -> float:
        if self._server is None:
            return 0.0
        times = self._server.cpu_times()
        return float(times.user + times.system)


class _Bench:
    def __init__(self, uri: str, records: int) -> None:
        self.driver = neo4j.GraphDatabase.driver(
            uri, notifications_min_severity="OFF", telemetry_disabled=True
        )
        self.graph = Neo4jGraph(uri)
        self.records = records - records % len(NODES)
        self.apoc: list[dict[str, Any]] = []
        self.graph.migrate()

    def close(self) -> None:
        self.graph.close()
        self.driver.close()

    def begin(self, graph: Neo4jGraph) -> tuple[str, str, ApplicationGraph]:
        """An application that ended, claimed, and its run."""
        app = f"perf-{uuid.uuid4().hex[:12]}"
        events: list[dict[str, Any]] = [
            {
                "type": contract.NODE_REGISTERED,
                "application_id": app,
                "time": 1,
                "node": node,
                "name": "map",
                "description": "map at job.py:12",
                "kind": "operator",
                "relation": "identity",
                "exact": True,
            }
            for node in NODES
        ]
        events.append({"type": contract.APPLICATION_ENDED, "application_id": app, "time": 2, "counters": {}})
        graph.write_events(events)
        claim = graph.claim(app, MAX_FLOWS)
        assert claim
        return app, claim, _run(app, self.records)

    def writer(self, app: str, claim: str) -> ApplicationWriter:
        return ApplicationWriter(self.graph._connection.transact, app, claim)

    def ours(self, clock: _Clock) -> tuple[dict[str, float], dict[str, float]]:
        app, claim, run = self.begin(self.graph)
        element_ids: list[str] = []
        # The two halves of `ApplicationWriter.write`, timed apart.
        writer = self.writer(app, claim)
        records = clock(lambda: element_ids.extend(writer.write_records(run)))
        links = clock(lambda: writer.write_links(run, element_ids))
        self.check_and_delete(app, run)
        return records, links

    def thesis(
        self, clock: _Clock, batch_rows: int = THESIS_ROWS
    ) -> tuple[dict[str, float], dict[str, float]]:
        app, _, run = self.begin(self.graph)
        ids, rows = _ids(run), []
        for column in run.columns:
            for flow_id, hash_in in zip(column.flow_ids, column.hash_ins, strict=True):
                node_id = contract.node_id(app, column.node)
                rows.append(
                    {
                        "flowId": flow_id,
                        "nodeId": node_id,
                        "applicationId": app,
                        "hashIn": hash_in,
                        "hashOut": flow_id,
                        "val": None,
                    }
                )
        pairs = [
            {"source": ids[source], "target": ids[target]}
            for source, target in zip(run.sources, run.targets, strict=True)
        ]
        records = clock(lambda: self._each(THESIS_RECORDS, rows, batch_rows))
        links = clock(lambda: self._each(THESIS_LINKS, pairs, batch_rows))
        self.check_and_delete(app, run)
        return records, links

    def apoc_links(self, clock: _Clock) -> tuple[dict[str, float], dict[str, float]]:
        app, claim, run = self.begin(self.graph)
        ids = _ids(run)
        records = clock(lambda: self.writer(app, claim).write_records(run))
        pairs = zip(run.targets, run.sources, strict=True)
        rows = [
            {"target": ids[target], "sources": [ids[source] for _, source in group]}
            for target, group in groupby(pairs, key=lambda pair: pair[0])
        ]

        def link() -> None:
            with self.driver.session() as session:
                counters = session.run(APOC_LINKS, rows=rows).single(strict=True)
            self.apoc.append({name: counters[name] for name in ("retries", "failedBatches", "errorMessages")})

        links = clock(link)
        self.check_and_delete(app, None)
        return records, links

    def link_until_done(self, links: dict[str, Any]) -> int:
        """How many deadlocks it took."""
        for tried in range(100):
            try:
                with self.driver.session() as session, session.begin_transaction() as transaction:
                    transaction.run(lineage_cypher.statement("flow/link_elements"), links).consume()
                    transaction.commit()
                return tried
            except neo4j.exceptions.TransientError as error:
                if error.code != "Neo.TransientError.Transaction.DeadlockDetected":
                    raise
            time.sleep(0.05 * tried)
        raise RuntimeError("a batch met deadlocks a hundred times")

    def _each(self, statement: str, rows: Sequence[Any], batch_rows: int) -> None:
        with self.driver.session() as session:
            for at in range(0, len(rows), batch_rows):
                batch = rows[at : at + batch_rows]
                session.execute_write(_consume, statement, batch)

    def check_and_delete(self, app: str, run: ApplicationGraph | None) -> None:
        records, _, _ = self.driver.execute_query(
            "MATCH (flow:LineageFlow) WHERE flow.flowId STARTS WITH $app + '#' "
            "RETURN count(flow) AS records, sum(COUNT { (flow)-[:flow]->() }) AS links",
            app=app,
        )
        if run is not None:
            assert (records[0]["records"], records[0]["links"]) == (run.records, len(run.targets))
        self.graph.delete_application(app)


def _consume(transaction: neo4j.ManagedTransaction, statement: str, rows: Sequence[Any]) -> None:
    transaction.run(statement, rows=rows).consume()


def _ids(run: ApplicationGraph) -> list[str]:
    return [flow_id for column in run.columns for flow_id in column.flow_ids]


def _run(app: str, records: int) -> ApplicationGraph:
    rng = np.random.default_rng(SEED)
    per_node = records // len(NODES)
    ids = [[f"{app}#{node}#{at % 4}#{at // 4}" for at in range(per_node)] for node in NODES]
    last = 2 * per_node + rng.zipf(1.3, per_node) % max(per_node // 10, 1)
    sources = np.arange(2 * per_node)
    targets = np.concatenate([np.arange(per_node, 2 * per_node), last])
    order = np.lexsort((sources, targets))
    return ApplicationGraph(
        columns=[
            NodeRecords(
                node=node,
                flow_ids=ids[at],
                hash_ins=ids[at - 1] if at == 1 else [None] * per_node,
                vals=[None] * per_node,
            )
            for at, node in enumerate(NODES)
        ],
        sources=sources[order].tolist(),
        targets=targets[order].tolist(),
        is_exact=True,
    )


def _measured(uri: str, server: psutil.Process | None, records: int, rounds: int) -> dict[str, Any]:
    bench, clock = _Bench(uri, records), _Clock(server)
    ways: dict[str, Callable[[_Clock], tuple[dict[str, float], dict[str, float]]]] = {
        "thesis": bench.thesis,
        "small": partial(bench.thesis, batch_rows=BATCH_ROWS),
        "ours": bench.ours,
        "apoc": bench.apoc_links,
    }
    timings: dict[str, list[tuple[dict[str, float], dict[str, float]]]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, way in ways.items():
            measured = way(clock)
            if turn:
                timings[name].append(measured)
    figures: dict[str, Any] = {
        "python": platform.python_version(),
        "neo4j": bench.driver.get_server_info().agent,
        "driver": neo4j.__version__,
        "machine": f"{os.cpu_count()} cores",
        "records": bench.records,
        "links": 2 * bench.records // len(NODES),
        "rounds": rounds,
        "ways": {
            name: {
                "records": _rates(bench.records, [timing[0] for timing in measured]),
                "links": _rates(2 * bench.records // len(NODES), [timing[1] for timing in measured]),
            }
            for name, measured in timings.items()
        },
        "apoc": bench.apoc[1:],
        "one_run_in_parallel": _one_run_in_parallel(bench),
        "four_writers": _four(uri, bench, clock, rounds),
    }
    figures["machine"] += f", load {os.getloadavg()[0]:.1f} at the end"
    bench.close()
    return figures


def _rates(count: int, measured: Sequence[dict[str, float]]) -> dict[str, float]:
    return {
        "a_second": round(statistics.median(count / timing["wall"] for timing in measured)),
        "slowest": round(min(count / timing["wall"] for timing in measured)),
        "fastest": round(max(count / timing["wall"] for timing in measured)),
        "server_us": round(statistics.median(1e6 * timing["server"] / count for timing in measured), 1),
        "client_us": round(statistics.median(1e6 * timing["client"] / count for timing in measured), 1),
    }


def _four(uri: str, bench: _Bench, clock: _Clock, rounds: int) -> dict[str, Any]:
    """Four writers, each with a driver of its own, as four processes have."""
    graphs = [Neo4jGraph(uri) for _ in range(WRITERS)]
    begun = [[bench.begin(graph) for _ in range(rounds)] for graph in graphs]

    def write(graph: Neo4jGraph, mine: list[tuple[str, str, ApplicationGraph]]) -> None:
        for app, claim, run in mine:
            assert graph.write_application(app, claim, run)

    with ThreadPoolExecutor(WRITERS) as pool:
        seconds = clock(lambda: list(pool.map(write, graphs, begun)))["wall"]
    for mine in begun:
        for app, _, _ in mine:
            bench.graph.delete_application(app)
    count = WRITERS * rounds * bench.records
    figures_of_graph = {
        "records_and_links_a_second": round(count * (1 + 2 / len(NODES)) / seconds),
        "deadlocks": sum(graph.counters.deadlocks for graph in graphs),
        "retries": sum(graph.counters.retries for graph in graphs),
    }
    for graph in graphs:
        graph.close()
    return figures_of_graph


def _one_run_in_parallel(bench: _Bench) -> dict[str, Any]:
    """Deadlocks of four writers that make the links of one run: why ours has one writer for each."""
    figures: dict[str, Any] = {}
    for name, rounds_of in (("by_target", _by_target), ("in_rounds", _in_rounds)):
        app, claim, run = bench.begin(bench.graph)
        element_ids = bench.writer(app, claim).write_records(run)
        began, deadlocks = time.perf_counter(), 0
        for batches in rounds_of(list(zip(run.targets, run.sources, strict=True))):
            batches_of_ids = [_elements(pairs, element_ids) for pairs in batches if pairs]
            with ThreadPoolExecutor(WRITERS) as pool:
                deadlocks += sum(pool.map(bench.link_until_done, batches_of_ids))
        figures[name] = {
            "links_a_second": round(len(run.targets) / (time.perf_counter() - began)),
            "deadlocks": deadlocks,
        }
        bench.check_and_delete(app, run)
    return figures


def _by_target(pairs: Pairs) -> list[list[Pairs]]:
    """Each writer owns a fourth of the targets; batches of 5,000 links."""
    parts = [[pair for pair in pairs if pair[0] % WRITERS == at] for at in range(WRITERS)]
    longest = max(map(len, parts))
    return [[part[at : at + 5_000] for at in range(0, longest, 5_000) for part in parts]]


def _in_rounds(pairs: Pairs) -> list[list[Pairs]]:
    """Batches of one round share no record: every two of eight classes meet in one of its rounds."""
    classes = 2 * WRITERS
    cells: dict[frozenset[int], Pairs] = {}
    for pair in pairs:
        cells.setdefault(frozenset(end % classes for end in pair), []).append(pair)
    rounds = [[{classes - 1, at}] for at in range(classes - 1)]
    for at, meetings in enumerate(rounds):
        for apart in range(1, WRITERS):
            meetings.append({(at + apart) % (classes - 1), (at - apart) % (classes - 1)})
    rounds.append([{at} for at in range(classes)])
    return [[cells.get(frozenset(meeting), []) for meeting in meetings] for meetings in rounds]


def _elements(pairs: Pairs, element_ids: Sequence[str]) -> dict[str, Any]:
    pairs = sorted(pairs)
    return {
        "targets": [element_ids[target] for target, _ in pairs],
        "sources": [element_ids[source] for _, source in pairs],
    }


def _bytes(records: int, jars: Path) -> int:
    """What one record with its links takes on the disk of a new server, without the log of transactions."""

    def stopped_size() -> int:
        stop(home)  # which writes everything to its place
        return sum(
            path.stat().st_size for path in (home / "neo4j/data/databases").rglob("*") if path.is_file()
        )

    with tempfile.TemporaryDirectory(prefix="lineage-perf-") as folder:
        home = Path(folder)
        sizes = []
        try:
            for is_full in (False, True):
                started = start(Settings(home=home), only="neo4j", jars=jars.absolute()).servers["neo4j"]
                bench = _Bench(started.addresses["bolt"], records)
                if is_full:
                    app, claim, run = bench.begin(bench.graph)
                    assert bench.graph.write_application(app, claim, run)
                bench.close()
                sizes.append(stopped_size())
        finally:
            stop(home)
    return round((sizes[1] - sizes[0]) / bench.records)


def _page(figures: dict[str, Any]) -> str:
    four = figures["four_writers"]
    apoc = figures["apoc"]
    stored = figures["bytes_a_record"]
    titles = {
        "thesis": f"the thesis: UNWIND, MERGE, {THESIS_ROWS:,} rows a transaction",
        "small": f"the same, {BATCH_ROWS:,} rows",
        "ours": "`write_application`",
        "apoc": "links by apoc.periodic.iterate, parallel, by target",
    }
    rows = [
        f"| {titles[name]} | {_cells(way['records'])} | {_cells(way['links'])} |\n"
        for name, way in figures["ways"].items()
    ]
    errors = json.dumps([counters["errorMessages"] for counters in apoc])
    return (
        "# How fast flows come into Neo4j\n\n"
        f"`python -m perf.graph`, Python {figures['python']}, driver {figures['driver']}, "
        f"{figures['neo4j']}, {figures['machine']}. "
        f"Runs of {figures['records']:,} records and {figures['links']:,} links, "
        f"{figures['rounds']} rounds, in turns; one writer; medians, in brackets slowest and fastest.\n\n"
        "| | records a second | CPU of the server, client | links a second | CPU of the server, client |\n"
        "|---|---|---|---|---|\n"
        + "".join(rows)
        + f"\nAPOC tried batches again {sum(counters['retries'] for counters in apoc)} times and gave up "
        f"{sum(counters['failedBatches'] for counters in apoc)}; its errors: {errors[:400]}.\n\n"
        "Four writers of the links of one run, by flow/link_elements without a lock: "
        f"{_parallel(figures, 'by_target')} where each owns its targets, "
        f"{_parallel(figures, 'in_rounds')} where the batches of a round share no record.\n\n"
        "Four writers at once, each with its own applications: "
        f"{four['records_and_links_a_second']:,} records and links a second together, "
        f"{four['deadlocks']} deadlocks, {four['retries']} retries.\n"
        + (f"\nA record with its links takes {stored:,} bytes on disk.\n" if stored else "")
    )


def _parallel(figures: dict[str, Any], name: str) -> str:
    figure = figures["one_run_in_parallel"][name]
    return f"{figure['links_a_second']:,} links a second and {figure['deadlocks']} deadlocks"


def _cells(rates: dict[str, float]) -> str:
    return (
        f"{rates['a_second']:,} ({rates['slowest']:,} to {rates['fastest']:,}) "
        f"| {rates['server_us']} µs, {rates['client_us']} µs"
    )


if __name__ == "__main__":
    sys.exit(main())

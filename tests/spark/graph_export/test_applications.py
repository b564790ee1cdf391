"""All flows of an application in the graph, against pairs that are computed a second, stupid way."""

from __future__ import annotations

import operator
import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import neo4j as driver
import pytest
from pyspark import TaskContext

from lineage_service.graph.application_rows import ApplicationGraph
from lineage_service.graph_export.application_reader import TooManyFlows, application_graph
from lineage_service.queries import TraceQuery
from lineage_service.testing.graph import MemoryGraph
from tests.support.spark.application import Application, run_application

DEADLINE_S = 240.0
LEFT = [f"k{i % 7} {i}" for i in range(60)]
RIGHT = [f"k{i % 5} {1000 + i}" for i in range(12)]
LEFT_SPLITS, RIGHT_SPLITS = 4, 3

Name = tuple[str, str]
"""An operation and the value of one of its records."""
Pairs = Counter[tuple[Name, Name]]


def pair(text: str) -> tuple[str, int]:
    key, number = text.split()
    return key, int(number)


def once_wrong(text: str) -> str:
    if text == "k5 33" and TaskContext.get().attemptNumber() == 0:
        raise ValueError("the first attempt")
    return text


def is_kept(text: str) -> bool:
    return not text.endswith("3")


def job(output: Path) -> Callable[[Any], None]:
    def run(context: Any) -> None:
        left = context.parallelize(LEFT, LEFT_SPLITS).map(once_wrong).filter(is_kept)
        sums = left.keyBy(lambda text: text.split()[0]).mapValues(lambda text: int(text.split()[1]))
        sums = sums.reduceByKey(operator.add, 3)
        joined = sums.join(context.parallelize(RIGHT, RIGHT_SPLITS).map(pair), 2)
        joined.map(repr).saveAsTextFile(str(output))

    return run


# -- the second, stupid way ----------------------------------------------------------------------------


def expected_pairs(output: Path) -> Pairs:
    """Every (input record, output record), each named by its operation and its value."""

    def named(name: str, value: object) -> Name:
        return name, value if isinstance(value, str) else str(value)

    lefts = [("parallelize", row) for row in places(len(LEFT), LEFT_SPLITS)]
    rights = [("parallelize", row) for row in places(len(RIGHT), RIGHT_SPLITS)]
    pairs: list[tuple[Name, Name]] = []
    sums: dict[str, int] = {}
    for place, text in zip(lefts, LEFT, strict=True):
        pairs.append((place, ("map", text)))
        if is_kept(text):
            key, number = pair(text)
            pairs.append((("map", text), ("filter", text)))
            pairs.append((("filter", text), ("keyBy", f'["{key}", "{text}"]')))
            pairs.append((("keyBy", f'["{key}", "{text}"]'), ("mapValues", f'["{key}", {number}]')))
            sums[key] = sums.get(key, 0) + number
    for text in filter(is_kept, LEFT):
        key, number = pair(text)
        value = f'["{key}", {number}]'
        pairs.append((("mapValues", value), ("reduceByKey", f'["{key}", {sums[key]}]')))
    rows = {
        line: f"write#{int(part.name.removeprefix('part-'))}#{row}"
        for part in output.glob("part-*")
        for row, line in enumerate(part.read_text().splitlines())
    }
    for place, text in zip(rights, RIGHT, strict=True):
        key, number = pair(text)
        value = f'["{key}", {number}]'
        pairs.append((place, ("map", value)))
        if key in sums:
            joined = f'["{key}", [{sums[key]}, {number}]]'
            line = repr((key, (sums[key], number)))
            pairs.append((("map", value), ("join", joined)))
            pairs.append((("reduceByKey", f'["{key}", {sums[key]}]'), ("join", joined)))
            pairs.append((("join", joined), ("map", line)))
            pairs.append((("map", line), ("saveAsTextFile", rows.pop(line))))
    assert not rows
    return Counter((named(*source), named(*target)) for source, target in pairs)


def places(count: int, splits: int) -> Iterator[str]:
    """Where parallelize puts each of `count` records."""
    for split in range(splits):
        start, end = (at * count // splits for at in (split, split + 1))
        yield from (f"read#{split}#{row}" for row in range(end - start))


# -- what Spark and the graphs say ---------------------------------------------------------------------


@dataclass
class Finished:
    application: Application
    output: Path
    servers: str


@pytest.fixture(scope="module")
def finished(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """The job, run once: shuffles, a join, several splits, an attempt that failed."""
    folder = tmp_path_factory.mktemp("whole-runs")
    _, application = run_application(
        kafka.bootstrap_servers,
        folder / "store",
        job(folder / "output"),
        master="local[2,4]",
        spark_lineage_detailed="true",
    )
    assert application is not None
    return Finished(application, folder / "output", kafka.bootstrap_servers)


def run_of(finished: Finished, max_flows: int) -> ApplicationGraph | TooManyFlows:
    questions = finished.application.questions
    return application_graph(questions._applications.open(finished.application.application_id), max_flows)


def pairs_of(flows: Mapping[str, Mapping[str, Any]], links: Iterator[tuple[str, str]]) -> Pairs:
    def name(flow_id: str) -> Name:
        flow = flows[flow_id]
        # Records of sources and sinks are named by their places.
        place = flow_id.split("#", 2)[2]
        return flow["name"], place if place.startswith(("read", "write")) else flow["val"]

    return Counter((name(source), name(target)) for source, target in links)


def test_all_flows_are_those_of_the_data(finished: Finished) -> None:
    run = run_of(finished, 10_000)
    assert isinstance(run, ApplicationGraph)
    assert run.is_exact
    app, graph = finished.application.application_id, MemoryGraph()
    graph.write_events(finished.application.events)
    claim = graph.claim(app, 10_000)
    assert claim
    assert graph.write_application(app, claim, run)
    expected = expected_pairs(finished.output)
    assert pairs_of(graph.flows, iter(graph.flow_links)) == expected
    inputs = Counter(target for _, target in expected.elements())
    names = set(inputs) | {source for source, _ in expected}
    # Each place of the smaller source is one of the larger source too.
    assert len(graph.flows) == run.records == len(names) + len(RIGHT)
    hash_ins = {flow["flowId"]: flow.get("hashIn") for flow in graph.flows.values()}
    for target in {target for _, target in graph.flow_links}:
        sources = [source for source, of in graph.flow_links if of == target]
        assert hash_ins[target] == (sources[0] if len(sources) == 1 else None)


def test_all_flows_are_what_traces_of_all_outputs_and_inputs_list(finished: Finished) -> None:
    run = run_of(finished, 10_000)
    assert isinstance(run, ApplicationGraph)
    ids = [flow_id for column in run.columns for flow_id in column.flow_ids]
    links = {(ids[source], ids[target]) for source, target in zip(run.sources, run.targets, strict=True)}
    traced = set()
    for flow_id in ids:
        if "#write#" in flow_id:
            query = TraceQuery(record=flow_id, direction="backward", limit=10_000)
            trace = finished.application.questions.trace(finished.application.application_id, query)
            traced |= {(flow.hash_in, flow.hash_out) for flow in trace.flows}
    assert traced
    assert traced <= links


def test_an_application_beyond_the_budget_is_counted_and_left(finished: Finished) -> None:
    run = run_of(finished, 10_000)
    assert isinstance(run, ApplicationGraph)
    most = max(run.records, len(run.targets))
    assert isinstance(run_of(finished, most), ApplicationGraph)
    for budget in (0, 10, most - 1):
        assert run_of(finished, budget) == TooManyFlows(run.records)


#: `lineage consume` with small batches, which dies in the transaction of its n-th batch of flows.
CONSUMER = """
import os, signal, sys
from lineage_service.graph import application_writer, row_values
row_values.BATCH_ROWS, application_writer.CLAIM_S = 40, 1.0
left, run_steps = iter(range(int(sys.argv.pop(1)))), application_writer.run_steps
def dying(transaction, steps):
    found = run_steps(transaction, steps)
    if steps[0][0] != "application/hold" and next(left, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)
    return found
application_writer.run_steps = dying
from lineage_service.cli.main import main
sys.exit(main())
"""


@pytest.mark.thorough
def test_flows_are_in_neo4j_once_after_consumers_were_killed_and_after_a_replay(
    finished: Finished, neo4j: Any, tmp_path: Path
) -> None:
    app = finished.application.application_id
    topics = finished.application.topics
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LINEAGE_")}
    environment |= {
        "LINEAGE_HOME": str(tmp_path / "home"),
        "LINEAGE_STORE": str(tmp_path / "flows"),
        "LINEAGE_KAFKA_BOOTSTRAP_SERVERS": finished.servers,
        "LINEAGE_NODE_TOPIC": topics["node"],
        "LINEAGE_FLOW_TOPIC": topics["flow"],
        "LINEAGE_CONSUMER_GROUP": f"group-{uuid.uuid4().hex}",
        "LINEAGE_NEO4J_URI": neo4j.uri,
        "LINEAGE_NEO4J_USER": neo4j.user,
        "LINEAGE_NEO4J_PASSWORD": neo4j.password,
        "LINEAGE_METRICS": "false",
    }

    def consume(batches: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", CONSUMER, str(batches), "consume"]
        return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)

    def state() -> str | None:
        records, _, _ = graph.execute_query(
            "MATCH (a:LineageApplication {applicationId: $app}) RETURN a.flows AS flows", app=app
        )
        return records[0]["flows"] if records else None

    def wait_for_all() -> None:
        deadline = time.monotonic() + DEADLINE_S
        while state() != "all":
            assert time.monotonic() < deadline
            time.sleep(0.2)

    expected = expected_pairs(finished.output)
    auth = (neo4j.user, neo4j.password) if neo4j.password else None
    with driver.GraphDatabase.driver(neo4j.uri, auth=auth, notifications_min_severity="OFF") as graph:
        for batches in (12, 3, 12):  # among new links, then among records and links that are there in part
            killed = consume(batches)
            assert killed.wait(DEADLINE_S) == -signal.SIGKILL
            assert state() == "not yet"
        last = consume(10_000)
        try:
            wait_for_all()
            assert pairs_in(graph, app) == expected
            graph.execute_query(
                "MATCH (a:LineageApplication {applicationId: $app}) "
                "SET a.flows = 'not yet', a.flowsBudget = -1",
                app=app,
            )
            wait_for_all()
            assert pairs_in(graph, app) == expected
        finally:
            last.terminate()
            assert last.wait(DEADLINE_S) == 0


def pairs_in(graph: driver.Driver, app: str) -> Pairs:
    records, _, _ = graph.execute_query(
        "MATCH (f:LineageFlow {applicationId: $app}) RETURN properties(f) AS flow", app=app
    )
    flows = {record["flow"]["flowId"]: record["flow"] for record in records}
    assert len(flows) == len(records)
    links, _, _ = graph.execute_query(
        "MATCH (f:LineageFlow {applicationId: $app})-[:flow]->(g) RETURN f.flowId, g.flowId", app=app
    )
    return pairs_of(flows, iter([(link[0], link[1]) for link in links]))

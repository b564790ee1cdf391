from __future__ import annotations

import logging
import random
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import lineage_cypher
from lineage_service.graph import row_values
from lineage_service.graph.graph_store import GraphRefusedError, GraphStore, GraphUnavailableError
from lineage_service.graph.neo4j_store import Neo4jGraph
from lineage_service.graph.row_values import GraphDataError
from spark_agent import contract
from tests.support.graphs import (
    Event,
    GraphUnderTest,
    MemoryUnderTest,
    Neo4jUnderTest,
    _ordered,
    ended,
    link,
    node,
    opened,
    record,
    started,
)

# -- the two graphs, and what stands in them ----------------------------------------------------------


@pytest.fixture
def neo4j_graph(neo4j: Any) -> Iterator[Neo4jUnderTest]:
    yield from opened(neo4j)


# -- what is told of an application -------------------------------------------------------------------


def test_an_application_that_started_runs(graph: GraphUnderTest, app: str) -> None:
    graph.store.write_events([started(app)])
    (application,) = graph.content(app)["applications"]
    assert application.pop("startRevision").startswith("0000000000000001000-")
    assert application == {
        "applicationId": app,
        "name": "word count",
        "detailed": True,
        "sparkVersion": "4.3.0",
        "user": "ada",
        "started": 1_000,
        "state": "running",
    }


def test_an_application_whose_end_comes_first_is_ended(graph: GraphUnderTest, app: str) -> None:
    graph.store.write_events([ended(app)])
    assert graph.content(app)["applications"][0]["state"] == "ended"
    graph.store.write_events([started(app)])
    (application,) = graph.content(app)["applications"]
    assert (application["state"], application["started"], application["ended"]) == ("ended", 1_000, 2_000)
    assert application["counters"] == '{"dropped": 0, "runs": 3}'


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_of_an_end_that_was_told_twice_the_later_word_is_in_the_graph(
    graph: GraphUnderTest, app: str, order: tuple[int, ...]
) -> None:
    error = {"type": "ValueError", "message": "no day", "frame": "job.py:5"}
    good = {**ended(app), "state": "succeeded"}
    bad = {**good, "time": good["time"] + 1, "state": "failed", "error": error}
    told = [started(app), good, bad]
    for at in order:
        graph.store.write_events([told[at]])
    (application,) = graph.content(app)["applications"]
    assert (application["state"], application["error"]) == ("failed", "ValueError: no day")
    graph.store.write_events([{**good, "time": bad["time"] + 1}])
    (application,) = graph.content(app)["applications"]
    assert application["state"] == "ended"
    assert "error" not in application


def test_a_node_has_what_its_event_says(graph: GraphUnderTest, app: str) -> None:
    dataset = {"namespace": "file", "name": "/data/in.txt", "format": "text"}
    more: dict[str, Any] = {
        "kind": "source",
        "call_site": "job.py:3",
        "operation": None,
        "reason": "",
        "dataset": dataset,
    }
    graph.store.write_events([node(app, 0, "textFile", **more)])
    (stored,) = graph.content(app)["nodes"]
    assert stored.pop("revision").startswith("0000000000000001100-")
    assert stored == {
        "nodeId": f"{app}#0",
        "applicationId": app,
        "node": 0,
        "name": "textFile",
        "description": "textFile at job.py:0",
        "kind": "source",
        "step": False,
        "relation": "identity",
        "exact": True,
        "callSite": "job.py:3",
        "dataset": "/data/in.txt",
        "datasetNamespace": "file",
        "datasetFormat": "text",
        "registered": 1_100,
    }


def test_a_step_knows_its_operation_and_why_it_is_not_exact(graph: GraphUnderTest, app: str) -> None:
    graph.store.write_events([node(app, 4, kind="step", operation=6, exact=False, reason="pipe")])
    (stored,) = graph.content(app)["nodes"]
    assert (stored["step"], stored["operation"], stored["exact"], stored["reason"]) == (
        True,
        6,
        False,
        "pipe",
    )


def test_a_link_before_its_nodes_waits_for_them(graph: GraphUnderTest, app: str) -> None:
    graph.store.write_events([link(app, 1, 2)])
    assert graph.content(app)["nodes"] == [
        {"nodeId": f"{app}#{number}", "applicationId": app, "node": number} for number in (1, 2)
    ]
    graph.store.write_events([node(app, 2, "filter"), node(app, 1, "map")])
    content = graph.content(app)
    assert [stored["name"] for stored in content["nodes"]] in (["map", "filter"], ["filter", "map"])
    assert content["sends_to"] == [[f"{app}#1", f"{app}#2", {"ports": [0]}]]


def test_a_node_that_is_joined_with_itself_has_one_link_with_both_ports(
    graph: GraphUnderTest, app: str
) -> None:
    graph.store.write_events([link(app, 1, 2, port=1)])
    graph.store.write_events([link(app, 1, 2, port=0), link(app, 1, 2, port=1)])
    assert graph.content(app)["sends_to"] == [[f"{app}#1", f"{app}#2", {"ports": [0, 1]}]]


def test_the_later_account_of_a_node_stays_whole(graph: GraphUnderTest, app: str) -> None:
    graph.store.write_events([node(app, 1, "later", time=2), node(app, 1, "earlier", time=1, reason="why")])
    graph.store.write_events([node(app, 1, "earliest", time=0, call_site="job.py:9")])
    (stored,) = graph.content(app)["nodes"]
    assert stored["name"] == "later"
    assert not {"reason", "callSite"} & stored.keys()
    graph.store.write_events([node(app, 1, "latest", time=3)])
    assert graph.content(app)["nodes"][0]["name"] == "latest"


def test_events_that_say_nothing_of_the_graph_write_nothing(graph: GraphUnderTest, app: str) -> None:
    graph.store.write_events([{"type": contract.RUN_COMMITTED, "application_id": app, "time": 1}])
    graph.store.write_events([{"type": contract.PARTITIONS, "application_id": app, "time": 1}])
    graph.store.write_events([])
    assert not any(graph.content(app).values())


def test_half_a_surrogate_pair_in_a_text_is_replaced(graph: GraphUnderTest, app: str) -> None:
    graph.store.write_events([node(app, 1, "a\ud800b")])
    assert graph.content(app)["nodes"][0]["name"] == "a?b"


def test_counts_stay_when_nodes_and_links_are_told_again(graph: GraphUnderTest, app: str) -> None:
    graph.store.write_counts(app, {1: 10, 2: 4}, {(1, 2): 4})
    graph.store.write_events([node(app, 1), node(app, 2), link(app, 1, 2)])
    graph.store.write_counts(app, {2: 5}, {})
    content = graph.content(app)
    assert sorted((stored["node"], stored["records"]) for stored in content["nodes"]) == [(1, 10), (2, 5)]
    assert content["sends_to"] == [[f"{app}#1", f"{app}#2", {"flows": 4, "ports": [0]}]]


def test_a_trace_stands_with_the_names_of_its_nodes(graph: GraphUnderTest, app: str) -> None:
    graph.store.write_events([node(app, 1, "map"), node(app, 2, "reduceByKey")])
    records = [record(app, 1, 0, hash_in="read#0#0", val="a"), record(app, 1, 1), record(app, 2, 0)]
    ids = [each.flow_id for each in records]
    graph.store.write_trace(app, records, [(ids[0], ids[2]), (ids[1], ids[2]), (ids[0], ids[2])])
    content = graph.content(app)
    assert content["flow_links"] == [[ids[0], ids[2]], [ids[1], ids[2]]]
    assert content["flows"][0] == {
        "flowId": ids[0],
        "nodeId": f"{app}#1",
        "applicationId": app,
        "hashIn": "read#0#0",
        "hashOut": ids[0],
        "val": "a",
        "name": "map",
        "description": "map at job.py:1",
    }
    assert [flow["name"] for flow in content["flows"]] == ["map", "map", "reduceByKey"]


def end_of(app: str, number: int, kind: str, name: str, **more: Any) -> Event:
    dataset = {"namespace": "file", "name": name, "format": "text"}
    return node(app, number, kind, kind=kind, dataset=dataset, **more)


def test_what_reads_and_writes_a_data_set_is_linked_with_it(graph: GraphUnderTest, app: str) -> None:
    place = f"/{app}"
    told = [end_of(app, 1, "source", f"{place}/a"), node(app, 2), end_of(app, 3, "sink", f"{place}/b")]
    graph.store.write_events([*told, end_of(app, 4, "source", f"{place}/b"), node(app, 5, kind="sink")])
    graph.store.write_events(told)
    assert graph.content(app)["datasets"] == [
        [f"{app}#1", "reads", "file", f"{place}/a"],
        [f"{app}#3", "writes", "file", f"{place}/b"],
        [f"{app}#4", "reads", "file", f"{place}/b"],
    ]
    assert graph.datasets(place) == [f"{place}/a", f"{place}/b"]


def test_a_data_set_is_that_of_the_latest_account(graph: GraphUnderTest, app: str) -> None:
    place = f"/{app}"
    early, late = (end_of(app, 1, "source", f"{place}/{time}", time=time) for time in (1, 2))
    for order in ((early, late), (late, early)):
        for event in order:
            graph.store.write_events([event])
        assert graph.content(app)["datasets"] == [[f"{app}#1", "reads", "file", f"{place}/2"]]
        assert graph.datasets(place) == [f"{place}/2"]
    graph.store.write_events([node(app, 1, time=3)])
    assert (graph.content(app)["datasets"], graph.datasets(place)) == ([], [])


def test_a_data_set_goes_with_the_last_application(graph: GraphUnderTest, app: str) -> None:
    place, other = f"/{app}", f"other-{app}"
    graph.store.write_events([end_of(app, 1, "sink", place), end_of(other, 1, "source", place)])
    graph.store.write_events([end_of(other, 2, "source", f"{place}/own")])
    graph.store.delete_application(app)
    assert graph.content(other)["datasets"][0] == [f"{other}#1", "reads", "file", place]
    assert graph.datasets(place) == [place, f"{place}/own"]
    graph.store.delete_application(other)
    assert graph.datasets(place) == []


def test_writers_of_one_data_set_neither_deadlock_nor_double(graph: GraphUnderTest, app: str) -> None:
    """Applications that share datasets come and go at the same time."""
    place, apps = f"/{app}", [f"{app}-{at}" for at in range(6)]

    def write(name: str) -> None:
        order = [*range(8)]
        random.Random(name).shuffle(order)
        for _ in range(3):
            graph.store.write_events([end_of(name, at, "source", f"{place}/{at}") for at in order])
            if name != apps[0]:
                graph.store.delete_application(name)

    try:
        with ThreadPoolExecutor(len(apps)) as pool:
            list(pool.map(write, apps))
        assert graph.datasets(place) == [f"{place}/{at}" for at in range(8)]
        assert len(graph.content(apps[0])["datasets"]) == 8
    finally:
        graph.store.delete_application(apps[0])
    assert graph.datasets(place) == []


def test_a_record_that_is_a_row_has_its_file_and_line(graph: GraphUnderTest, app: str) -> None:
    row = {"val": "Graz,2033.90", "file": "/takings/part-00000", "line": 1}
    graph.store.write_trace(app, [record(app, 1, 0, **row)], [])
    graph.store.write_trace(app, [record(app, 1, 0)], [])
    (flow,) = graph.content(app)["flows"]
    assert {name: flow[name] for name in row} == row


def test_a_record_traced_before_its_node_gets_the_name_later(graph: GraphUnderTest, app: str) -> None:
    graph.store.write_trace(app, [record(app, 1, 0)], [])
    assert "name" not in graph.content(app)["flows"][0]
    graph.store.write_events([node(app, 1, "map")])
    assert graph.content(app)["flows"][0]["name"] == "map"
    graph.store.write_events([node(app, 1, "mapValues", time=9_999)])
    assert graph.content(app)["flows"][0]["description"] == "mapValues at job.py:1"


def test_a_trace_without_values_keeps_the_values_of_an_earlier_one(graph: GraphUnderTest, app: str) -> None:
    graph.store.write_trace(app, [record(app, 1, 0, val="a", hash_in="read#0#0")], [])
    graph.store.write_trace(app, [record(app, 1, 0)], [])
    (flow,) = graph.content(app)["flows"]
    assert (flow["val"], flow["hashIn"]) == ("a", "read#0#0")


def test_a_link_to_a_record_of_no_trace_is_refused_and_nothing_is_written(
    graph: GraphUnderTest, app: str
) -> None:
    with pytest.raises(GraphDataError, match=r"must be records of the same trace"):
        graph.store.write_trace(app, [record(app, 1, 0)], [(f"{app}#1#0#0", f"{app}#2#0#0")])
    assert not any(graph.content(app).values())


def test_the_longest_ids_that_are_accepted_can_be_stored(graph: GraphUnderTest, app: str) -> None:
    flow_id = f"{app}#1#".ljust(row_values.MAX_ID_BYTES, "k")
    graph.store.write_trace(app, [record(app, 1, 0, flow_id=flow_id, hash_in=flow_id, hash_out=flow_id)], [])
    assert len(graph.content(app)["flows"]) == 1
    long_app = f"{app}-".ljust(row_values.MAX_ID_BYTES - 40, "k")
    flow_id = f"{long_app}#1#0#0".ljust(row_values.MAX_ID_BYTES, "k")
    try:
        graph.store.write_trace(long_app, [record(long_app, 1, 0, flow_id=flow_id, hash_out=flow_id)], [])
        assert len(graph.content(long_app)["flows"]) == 1
    finally:
        graph.store.delete_application(long_app)


def test_an_application_is_deleted_alone(graph: GraphUnderTest, app: str) -> None:
    other = f"{app}-other"
    for each in (app, other):
        graph.store.write_events([started(each), node(each, 1), node(each, 2), link(each, 1, 2)])
        records = [record(each, 1, 0), record(each, 2, 0)]
        graph.store.write_trace(each, records, [(records[0].flow_id, records[1].flow_id)])
    before = graph.content(other)
    graph.store.delete_application(app)
    assert not any(graph.content(app).values())
    assert graph.content(other) == before
    graph.store.delete_application(other)
    graph.store.delete_application(other)
    assert not any(graph.content(other).values())


def calls_about(app: str) -> list[Callable[[GraphStore], None]]:
    """Everything that can be told, with accounts that contradict each other."""
    records = [record(app, number, offset) for number in (1, 2) for offset in (0, 1)]
    with_values = [record(app, 2, offset, val=str(offset), hash_in="in") for offset in (0, 1, 2)]
    first, second, third, fourth = (each.flow_id for each in records)
    events = [
        started(app),
        started(app, name="another name"),
        started(app, time=1_001),
        ended(app),
        ended(app, time=2_001),
        node(app, 1, "map"),
        node(app, 1, "flatMap"),
        node(app, 2, "filter"),
        node(app, 2, "filter", time=1_101, reason="a reason"),
        link(app, 1, 2),
        link(app, 1, 2, port=1),
        link(app, 0, 1),
    ]
    return [
        *(lambda graph, event=event: graph.write_events([event]) for event in events),
        lambda graph: graph.write_counts(app, {1: 7}, {(1, 2): 3}),
        lambda graph: graph.write_trace(app, records, [(first, third), (first, fourth), (second, fourth)]),
        lambda graph: graph.write_trace(app, with_values, [(third, with_values[2].flow_id)]),
    ]


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.thorough) for n in range(1, 6))])
def test_calls_again_and_in_another_order_end_in_the_same_graph(
    graph: GraphUnderTest, app: str, seed: int
) -> None:
    expected = MemoryUnderTest()
    for call in calls_about(app):
        call(expected.store)
    calls = calls_about(app) * 2
    random.Random(seed).shuffle(calls)
    for call in calls:
        call(graph.store)
    assert graph.content(app) == expected.content(app)


# -- Neo4j alone --------------------------------------------------------------------------------------


def test_more_records_than_one_batch_holds_are_all_there(
    neo4j_graph: Neo4jUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_values, "BATCH_ROWS", 100)
    app = f"app-{uuid.uuid4().hex}"
    records = [record(app, offset % 2, offset) for offset in range(250)]
    links = [(records[at].flow_id, records[at + 1].flow_id) for at in range(249)]
    try:
        neo4j_graph.store.write_trace(app, records, links)
        content = neo4j_graph.content(app)
        assert content["flow_links"] == _ordered(map(list, links))
        assert {flow["flowId"] for flow in content["flows"]} == {each.flow_id for each in records}
    finally:
        neo4j_graph.store.delete_application(app)


@pytest.mark.thorough
def test_writers_of_one_trace_neither_deadlock_nor_double(
    neo4j_graph: Neo4jUnderTest, caplog: pytest.LogCaptureFixture
) -> None:
    app = f"app-{uuid.uuid4().hex}"
    records = [record(app, at % 7, at) for at in range(2_000)]
    ids = [each.flow_id for each in records]
    links = [(ids[at], ids[at * step % len(ids)]) for at in range(len(ids)) for step in (3, 7, 11)]

    def write(seed: int) -> None:
        some = random.Random(seed).sample(links, 4_000)
        neo4j_graph.store.write_events([link(app, at, at + 1) for at in range(7)])
        neo4j_graph.store.write_trace(app, records, some)
        neo4j_graph.store.write_events([node(app, at) for at in range(7)])
        neo4j_graph.store.write_trace(app, records, links)

    try:
        with caplog.at_level(logging.WARNING, logger="neo4j"), ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(4)))
        content = neo4j_graph.content(app)
        assert not [message for message in caplog.messages if "Deadlock" in message]
        assert content["flow_links"] == _ordered(map(list, set(links)))
        assert len(content["flows"]) == len(records)
        assert all(flow["name"] == "map" for flow in content["flows"])
    finally:
        neo4j_graph.store.delete_application(app)


def test_processes_that_start_at_once_make_one_schema(neo4j_graph: Neo4jUnderTest, neo4j: Any) -> None:
    for kind, kinds in (("CONSTRAINT", "CONSTRAINTS"), ("INDEX", "INDEXES")):
        rows, _, _ = neo4j_graph.driver.execute_query(f"SHOW {kinds} YIELD name RETURN name")
        for row in rows:
            if row["name"].startswith("lineage_"):
                neo4j_graph.driver.execute_query(f"DROP {kind} {row['name']} IF EXISTS")
    neo4j_graph.driver.execute_query("MATCH (m:LineageMigration) DELETE m")

    app = f"app-{uuid.uuid4().hex}"

    def begin(at: int) -> None:
        store = Neo4jGraph(neo4j.uri, user=neo4j.user, password=neo4j.password)
        if at % 2:
            store.migrate()
        store.write_events([node(app, 1)])
        store.close()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(begin, range(6)))
    assert len(neo4j_graph.content(app)["nodes"]) == 1
    neo4j_graph.store.delete_application(app)
    assert neo4j_graph.store.migrate() == ()
    rows, _, _ = neo4j_graph.driver.execute_query(
        "SHOW INDEXES YIELD name, labelsOrTypes, properties, state WHERE name STARTS WITH 'lineage_' "
        "RETURN labelsOrTypes[0] + '(' + reduce(s = '', p IN properties | s + ', ' + p) + ')' AS made, state"
    )
    told = [header_of(name, "Index") for name in lineage_cypher.migrations()]
    dropped = {each.removeprefix("drops ") for each in told if each.startswith("drops ")}
    promised = {each.removeprefix("makes ") for each in told if each.startswith("makes ")} - dropped
    assert sorted(row["made"].replace("(, ", "(") for row in rows) == sorted(promised)
    assert {row["state"] for row in rows} == {"ONLINE"}
    rows, _, _ = neo4j_graph.driver.execute_query("MATCH (m:LineageMigration) RETURN m.name AS name")
    assert sorted(row["name"] for row in rows) == list(lineage_cypher.migrations())


def header_of(name: str, line: str) -> str:
    found = re.search(rf"^// {line}: (.*)$", lineage_cypher.statement(name), re.MULTILINE)
    assert found
    return found[1]


def operators(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for child in plan.get("children", ()):
        yield from operators(child)


def faults_of(
    graph: Neo4jUnderTest,
    statement: str,
    named: set[str],
    *,
    may_be_eager: bool,
    read_whole: Sequence[str] = (),
) -> list[str]:
    """Where the plan of a statement is not what its header promises.

    `named` are its indexes, `read_whole` the labels that it may scan beside them.
    """
    parameters = dict.fromkeys(re.findall(r"\$(\w+)", statement))
    with graph.driver.session() as session:
        plan = session.run(f"EXPLAIN {statement}", parameters).consume().plan
    assert plan
    steps = [
        (operator["operatorType"].partition("@")[0], operator["args"].get("Details", ""))
        for operator in operators(plan)
    ]
    used = {found[1] for kind, details in steps if "Seek" in kind and (found := INDEX_USED.match(details))}
    faults = [f"does not use {index}" for index in sorted(named - used)]
    faults += [f"uses {index} and does not name it" for index in sorted(used - named)]
    kinds = {kind for kind, _ in steps}
    is_eager = any("Eager" in kind and kind != "EagerAggregation" for kind in kinds)
    if is_eager != may_be_eager:
        faults.append("is eager" if is_eager else "is not eager and says so")
    bad = {
        "CartesianProduct",
        "AllNodesScan",
        "UndirectedAllRelationshipsScan",
        "DirectedAllRelationshipsScan",
    }
    faults += sorted(kinds & bad)
    if named:
        scanned = {(kind, details.rpartition(":")[2]) for kind, details in steps if "Scan" in kind}
        faults += sorted(kind for kind, label in scanned if kind not in bad and label not in read_whole)
    return faults


@pytest.mark.parametrize(
    "name", [name for name in lineage_cypher.names() if name not in lineage_cypher.migrations()]
)
def test_a_statement_uses_the_indexes_that_it_names(neo4j_graph: Neo4jUnderTest, name: str) -> None:
    named = set(re.findall(r"\w+\([^)]*\)", header_of(name, "Index")))
    may_be_eager = header_of(name, "Eager") != "none"
    read_whole = re.findall(r"reads every (\w+)", header_of(name, "Index"))
    faults = faults_of(
        neo4j_graph, lineage_cypher.statement(name), named, may_be_eager=may_be_eager, read_whole=read_whole
    )
    assert faults == []


def test_statements_that_scan_or_wait_for_all_rows_are_few_and_say_why() -> None:
    """What the headers may excuse. A statement that is added here needs a reason, in its header."""
    assert {name for name in lineage_cypher.names() if header_of(name, "Eager") != "none"} == {
        "application/claim",
        "dataset/release",
        "flow/describe",
        "flow/upsert",
        "node/delete",
    }
    whole = {name for name in lineage_cypher.names() if "reads every" in header_of(name, "Index")}
    assert whole == {
        "show/applications",
        "show/datasets",
        "show/flows",
        "show/newest",
    }
    without = {name for name in lineage_cypher.names() if header_of(name, "Index").startswith("none, ")}
    assert without == {
        "flow/create_links",
        "flow/link_elements",
        "migration/await_indexes",
        "migration/drop_index",
        "ping",
        "show/applications",
        "show/datasets",
        "show/flows",
    }


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("MATCH (f:LineageFlow {val: $val}) RETURN f", "does not use LineageFlow(flowId)"),
        ("MATCH (f:LineageFlow {val: $val}) RETURN f", "NodeByLabelScan"),
        ("MATCH (f {flowId: $id}) RETURN f", "AllNodesScan"),
        (
            "MATCH (f:LineageFlow {flowId: $id}) MATCH (n:LineageNode {nodeId: $id}) RETURN f, n",
            "uses LineageNode(nodeId) and does not name it",
        ),
        (
            "MATCH (f:LineageFlow {flowId: $id}) MATCH (g:LineageFlow) CREATE (f)-[:flow]->(g)",
            "NodeByLabelScan",
        ),
        (
            "MATCH (f:LineageFlow {flowId: $id}), (n:LineageFlow) RETURN f, n",
            "CartesianProduct",
        ),
        (
            "UNWIND $ids AS id MATCH (f:LineageFlow {flowId: id}) CREATE (:LineageFlow {flowId: id + '+'})",
            "is eager",
        ),
    ],
)
def test_a_statement_with_a_bad_plan_is_found(
    neo4j_graph: Neo4jUnderTest, statement: str, fault: str
) -> None:
    assert fault in faults_of(neo4j_graph, statement, {"LineageFlow(flowId)"}, may_be_eager=False)


INDEX_USED = re.compile(r"(?:UNIQUE|RANGE INDEX) \w+:(\w+\([^)]*\))")


def test_a_traced_output_row_is_shown_with_what_it_came_from(neo4j_graph: Neo4jUnderTest) -> None:
    app = f"app-{uuid.uuid4().hex}"
    records = [record(app, number, offset) for number in (1, 2, 3) for offset in (0, 1)]
    one, two, three, four, five, six = (each.flow_id for each in records)
    links = [(one, three), (two, three), (two, four), (three, five), (four, six)]
    try:
        neo4j_graph.store.write_trace(app, records, links)
        assert shown(neo4j_graph, "show/backward", five) == {(one, three), (two, three), (three, five)}
        assert shown(neo4j_graph, "show/forward", one) == {(one, three), (three, five)}
    finally:
        neo4j_graph.store.delete_application(app)


def shown(graph: Neo4jUnderTest, name: str, flow_id: str) -> set[tuple[str, str]]:
    records, _, _ = graph.driver.execute_query(lineage_cypher.pasted(name, flowId=flow_id))
    return {(each["record"]["flowId"], each["next"]["flowId"]) for each in records if each["next"]}


def test_what_was_read_and_written_has_a_label_of_its_own(neo4j_graph: Neo4jUnderTest) -> None:
    app = f"app-{uuid.uuid4().hex}"
    kinds = {1: "source", 2: "operator", 3: "sink"}
    ids = [f"{app}#1#read#0#7", f"{app}#2#0#0", f"{app}#3#write#0#1"]
    records = [record(app, number, 0, flow_id=flow_id) for number, flow_id in zip(kinds, ids, strict=True)]

    def labels() -> list[tuple[str, set[str]]]:
        found, _, _ = neo4j_graph.driver.execute_query(
            "MATCH (n) WHERE n.applicationId = $app AND NOT n:LineageApplication "
            "RETURN coalesce(n.flowId, n.nodeId) AS id, labels(n) AS labels ORDER BY id",
            app=app,
        )
        return [(each["id"], {*each["labels"]}) for each in found]

    try:
        neo4j_graph.store.write_trace(app, records, [(ids[0], ids[1]), (ids[1], ids[2])])
        neo4j_graph.store.write_events([node(app, number, kind=kind) for number, kind in kinds.items()])
        expected = [
            (f"{app}#1", {"LineageNode", "LineageSource"}),
            (ids[0], {"LineageFlow", "LineageSource"}),
            (f"{app}#2", {"LineageNode"}),
            (ids[1], {"LineageFlow"}),
            (f"{app}#3", {"LineageNode", "LineageSink"}),
            (ids[2], {"LineageFlow", "LineageSink"}),
        ]
        assert labels() == expected
        neo4j_graph.store.write_trace(app, records, [])
        neo4j_graph.store.write_events([node(app, 2, kind="sink", time=9_000)])  # a later account
        neo4j_graph.store.write_events([node(app, 2, kind="source", time=8_000)])
        expected[2] = (f"{app}#2", {"LineageNode", "LineageSink"})
        assert labels() == expected
    finally:
        neo4j_graph.store.delete_application(app)


def test_one_operation_is_shown_with_what_went_in_and_came_out(neo4j_graph: Neo4jUnderTest) -> None:
    app = f"app-{uuid.uuid4().hex}"
    records = [
        record(app, number, offset, val=f"{number}.{offset}") for number in (1, 2, 3) for offset in (0, 1)
    ]
    one, two, three, four, five, six = (each.flow_id for each in records)
    try:
        neo4j_graph.store.write_events([started(app, time=2**52), *(node(app, each) for each in (1, 2, 3))])
        links = [(one, three), (two, three), (two, four), (three, five), (four, six)]
        neo4j_graph.store.write_trace(app, records, links)
        step = neo4j_graph.driver.execute_query(
            lineage_cypher.pasted("show/step", flowId=five, nodeId=f"{app}#2")
        ).records
        assert [(each["wentIn"], each["cameOut"]) for each in step] == [("1.0", "2.0"), ("1.1", "2.0")]
        found = neo4j_graph.driver.execute_query(
            lineage_cypher.pasted("show/search", applicationId=app, text=".1")
        )
        assert sorted(each["val"] for each in found.records) == ["1.1", "2.1", "3.1"]
        newest = neo4j_graph.driver.execute_query(lineage_cypher.pasted("show/newest"))
        assert {each["node"]["nodeId"] for each in newest.records} == {f"{app}#{each}" for each in (1, 2, 3)}
    finally:
        neo4j_graph.store.delete_application(app)


def test_the_applications_are_shown_newest_first(neo4j_graph: Neo4jUnderTest) -> None:
    apps = [f"app-{uuid.uuid4().hex}" for _ in range(3)]
    try:
        neo4j_graph.store.write_events([started(apps[0], time=5_000), started(apps[1], time=7_000)])
        neo4j_graph.store.write_events([ended(apps[2])])
        records, _, _ = neo4j_graph.driver.execute_query(lineage_cypher.pasted("show/applications"))
        listed = [each["applicationId"] for each in records if each["applicationId"] in apps]
        assert listed in ([apps[1], apps[0]], [])  # of a server with a hundred newer ones, none
    finally:
        for app in apps:
            neo4j_graph.store.delete_application(app)


def test_a_neo4j_that_is_not_there_is_unavailable() -> None:
    store = Neo4jGraph("bolt://127.0.0.1:1", password="secret", retry_seconds=0.1, connect_seconds=1)
    try:
        with pytest.raises(GraphUnavailableError, match=r"bolt://127\.0\.0\.1:1.*LINEAGE_NEO4J_URI") as told:
            store.ping()
        assert "secret" not in str(told.value)
        with pytest.raises(GraphUnavailableError):
            store.write_events([started("app-1")])
    finally:
        store.close()


@pytest.mark.parametrize(
    "uri",
    [
        "127.0.0.1:7687",
        "http://127.0.0.1:7474",
        "bolt://127.0.0.1:port",
        "bolt://ada:secret@127.0.0.1:7687",
        "bolt://ada:secret@127.0.0.1:port",
    ],
)
def test_an_address_that_is_none_is_refused_without_telling_a_password(uri: str) -> None:
    with pytest.raises(GraphRefusedError, match="LINEAGE_NEO4J_URI") as told:
        Neo4jGraph(uri, password="another")
    assert "secret" not in f"{told.value}{told.value.__cause__}"


def test_a_database_that_is_not_there_is_refused(neo4j: Any) -> None:
    store = Neo4jGraph(neo4j.uri, user=neo4j.user, password=neo4j.password, database="nowhere")
    try:
        with pytest.raises(GraphRefusedError, match="'nowhere'"):
            store.ping()
    finally:
        store.close()


def test_a_neo4j_that_answers_is_pinged(graph: GraphUnderTest) -> None:
    graph.store.ping()


def test_what_is_written_holds_for_sequences_of_any_kind(graph: GraphUnderTest, app: str) -> None:
    events: Sequence[Event] = (started(app), node(app, 1))
    graph.store.write_events(events)
    graph.store.write_trace(app, (record(app, 1, 0),), ())
    assert len(graph.content(app)["flows"]) == 1

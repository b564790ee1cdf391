"""Whole applications in the graph: who writes them, once, within a budget; in Neo4j and in its twin."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from threading import Barrier
from typing import Any

import neo4j as neo4j_driver
import pytest
from neo4j.exceptions import ServiceUnavailable

import lineage_cypher
from lineage_service.graph import application_writer, connection, row_values
from lineage_service.graph.application_rows import ApplicationGraph, NodeRecords, application_record_batches
from lineage_service.graph.application_writer import ApplicationWriter, ClaimLostError
from lineage_service.graph.neo4j_store import Neo4jGraph
from lineage_service.graph.row_values import GraphDataError
from lineage_service.graph.statements import Step, run_steps
from tests.support.graphs import (
    GraphUnderTest,
    Neo4jUnderTest,
    ended,
    link,
    links_of,
    node,
    opened,
    record,
    run_of,
    started,
)

MAX_FLOWS = 1_000


@pytest.fixture
def neo4j_graph(neo4j: Any) -> Iterator[Neo4jUnderTest]:
    yield from opened(neo4j)


def end(graph: GraphUnderTest, app: str) -> None:
    graph.store.write_events([started(app), node(app, 1), node(app, 2, "reduceByKey"), ended(app)])


def stored(graph: GraphUnderTest, app: str) -> dict[str, Any]:
    (application,) = graph.content(app)["applications"]
    names = ("flows", "flowRecords", "flowLinks", "flowsExact", "flowsBudget", "claimedBy")
    return {name: application[name] for name in names if name in application}


def claimed(graph: GraphUnderTest, app: str) -> str:
    claim = graph.store.claim(app, MAX_FLOWS)
    assert claim
    return claim


@pytest.mark.thorough
def test_an_application_is_pending_from_its_end_until_its_flows_are_there(
    graph: GraphUnderTest, app: str
) -> None:
    graph.store.write_events([started(app)])
    assert app not in graph.store.pending(MAX_FLOWS)
    assert graph.store.claim(app, MAX_FLOWS) is None
    end(graph, app)
    assert app in graph.store.pending(MAX_FLOWS)
    assert stored(graph, app) == {"flows": "not yet", "flowsBudget": -1}
    run = run_of(app)
    assert graph.store.write_application(app, claimed(graph, app), run)
    assert app not in graph.store.pending(10**9)
    assert stored(graph, app) == {"flows": "all", "flowRecords": 3, "flowLinks": 2, "flowsExact": True}
    end(graph, app)  # its events come again
    assert app not in graph.store.pending(10**9)
    content = graph.content(app)
    assert content["flow_links"] == links_of(run)
    assert [flow["name"] for flow in content["flows"]] == ["map", "map", "reduceByKey"]
    assert [flow.get("val") for flow in content["flows"]] == ["0", "1", None]


def test_an_application_beyond_the_budget_says_so_until_the_budget_is_larger(
    graph: GraphUnderTest, app: str
) -> None:
    end(graph, app)
    assert graph.store.leave_application(app, claimed(graph, app), 5_000, MAX_FLOWS)
    assert stored(graph, app) == {"flows": "on request", "flowRecords": 5_000, "flowsBudget": MAX_FLOWS}
    assert app not in graph.store.pending(MAX_FLOWS)
    assert graph.store.claim(app, MAX_FLOWS) is None
    assert app in graph.store.pending(MAX_FLOWS + 1)
    assert graph.store.claim(app, MAX_FLOWS + 1)


def test_the_counts_of_an_application_stand_at_its_nodes_and_links_however_often_they_are_written(
    graph: GraphUnderTest, app: str
) -> None:
    graph.store.write_events([started(app), node(app, 1), node(app, 2), node(app, 3), link(app, 1, 2)])
    graph.store.write_events([link(app, 2, 3), ended(app)])
    claim = claimed(graph, app)
    for _ in range(2):
        assert graph.store.count_application(app, claim, {1: 7, 2: 4, 9: 1}, {(1, 2): 7, (9, 3): 1})
    assert graph.store.leave_application(app, claim, 5_000, MAX_FLOWS)
    assert not graph.store.count_application(app, claim, {1: 8}, {(1, 2): 8})
    content = graph.content(app)
    assert {operation["node"]: operation.get("records") for operation in content["nodes"]} == {
        1: 7,
        2: 4,
        3: None,
    }
    assert content["sends_to"] == [
        [f"{app}#1", f"{app}#2", {"flows": 7, "ports": [0]}],
        [f"{app}#2", f"{app}#3", {"ports": [0]}],
    ]


def test_one_of_many_claims_an_application(graph: GraphUnderTest, app: str) -> None:
    end(graph, app)
    with ThreadPoolExecutor(8) as pool:
        claims = list(pool.map(lambda _: graph.store.claim(app, MAX_FLOWS), range(8)))
    assert len([claim for claim in claims if claim]) == 1


def test_who_has_no_claim_writes_nothing(graph: GraphUnderTest, app: str) -> None:
    end(graph, app)
    assert not graph.store.write_application(app, "nobody", run_of(app))
    assert not graph.store.count_application(app, "nobody", {1: 1}, {(1, 2): 1})
    claim = claimed(graph, app)
    assert not graph.store.leave_application(app, "nobody", 1, MAX_FLOWS)
    graph.store.delete_application(app)
    end(graph, app)  # it begins anew, and the claim was one of its earlier life
    assert not graph.store.write_application(app, claim, run_of(app))
    assert graph.content(app)["flows"] == []
    assert stored(graph, app) == {"flows": "not yet", "flowsBudget": -1}


def test_records_of_another_application_are_refused_and_nothing_is_written(
    graph: GraphUnderTest, app: str
) -> None:
    end(graph, app)
    with pytest.raises(GraphDataError, match="is not of node 1"):
        graph.store.write_application(app, claimed(graph, app), run_of(f"{app}-other"))
    assert graph.content(app)["flows"] == []


def test_traces_before_and_after_change_nothing_but_what_they_know_more(
    graph: GraphUnderTest, app: str
) -> None:
    end(graph, app)
    run = run_of(app)
    records = [record(app, 1, 0, val="the row of the file"), record(app, 2, 0)]
    links = [(records[0].flow_id, records[1].flow_id)]
    graph.store.write_trace(app, records, links)
    assert graph.store.write_application(app, claimed(graph, app), run)
    before = graph.content(app)
    assert before["flow_links"] == links_of(run)
    graph.store.write_trace(app, records, links)
    after = graph.content(app)
    assert after["flow_links"] == before["flow_links"]
    assert [flow.get("val") for flow in after["flows"]] == ["the row of the file", "1", None]


# -- Neo4j alone ---------------------------------------------------------------------------------------


def writer(graph: Neo4jUnderTest, app: str, claim: str) -> ApplicationWriter:
    return ApplicationWriter(graph.store._connection.transact, app, claim)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_values, "BATCH_ROWS", 7)
    monkeypatch.setattr(connection, "_RETRY_FIRST_S", 0.01)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements with which whole applications were written, one after the other."""
    names: list[str] = []

    def listening(transaction: Any, steps: Sequence[Step]) -> list[Any]:
        names.extend(name for name, _ in steps)
        return run_steps(transaction, steps)

    monkeypatch.setattr(application_writer, "run_steps", listening)
    return names


@pytest.fixture
def new_app(neo4j_graph: Neo4jUnderTest) -> Iterator[str]:
    application_id = f"app-{uuid.uuid4().hex}"
    end(neo4j_graph, application_id)
    yield application_id
    neo4j_graph.store.delete_application(application_id)


@contextmanager
def every_other_commit_unanswered() -> Iterator[None]:
    """The first one, the third one, ...: they are done, and who asked for them hears of a lost connection."""
    commit, commits = neo4j_driver.Transaction.commit, 0

    def unanswered(transaction: neo4j_driver.Transaction) -> None:
        nonlocal commits
        commit(transaction)
        commits += 1
        if commits % 2:
            raise ServiceUnavailable("the server went away after it committed")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(neo4j_driver.Transaction, "commit", unanswered)
        yield


def trace(graph: Neo4jUnderTest, app: str, *offsets: int) -> None:
    """A trace of some records of `run_of(app, 20, 1)`."""
    records = [record(app, 1, offset) for offset in offsets] + [record(app, 2, 0)]
    graph.store.write_trace(app, records, [(each.flow_id, records[-1].flow_id) for each in records[:-1]])


def assert_whole(graph: Neo4jUnderTest, app: str, run: ApplicationGraph) -> None:
    """Every record and every link, each once, and nothing that belongs to a claim."""
    content = graph.content(app)
    assert content["flow_links"] == links_of(run)
    assert len(content["flows"]) == run.records
    assert not {"claimedBy", "claimedUntil", "linksWritten"} & content["applications"][0].keys()


@pytest.mark.usefixtures("small_batches")
def test_links_that_nobody_else_made_are_created_and_others_are_merged(
    neo4j_graph: Neo4jUnderTest, new_app: str, asked: list[str]
) -> None:
    run = run_of(new_app, 20)
    assert neo4j_graph.store.write_application(new_app, claimed(neo4j_graph, new_app), run)
    assert (asked.count("flow/create"), asked.count("flow/create_links")) == (3, 3)
    assert "flow/link_elements" not in asked
    assert_whole(neo4j_graph, new_app, run)
    export_again = lineage_cypher.body("application/export_again")
    neo4j_graph.driver.execute_query(export_again, applicationId=new_app)
    assert new_app in neo4j_graph.store.pending(MAX_FLOWS)
    asked.clear()
    texts = [f"Graz,{at}" for at in range(20)]  # which could not be read before
    run = replace(run, columns=[replace(run.columns[0], vals=texts), *run.columns[1:]])
    assert neo4j_graph.store.write_application(new_app, claimed(neo4j_graph, new_app), run)
    assert (asked.count("flow/upsert"), asked.count("flow/link_elements")) == (3, 3)
    assert "flow/create_links" not in asked
    assert_whole(neo4j_graph, new_app, run)
    vals, _, _ = neo4j_graph.driver.execute_query(
        "MATCH (flow:LineageFlow {nodeId: $node}) RETURN flow.val AS val", node=f"{new_app}#1"
    )
    assert sorted(row["val"] for row in vals) == sorted(texts)


@pytest.mark.usefixtures("small_batches")
def test_the_links_of_a_trace_before_stay_single(
    neo4j_graph: Neo4jUnderTest, new_app: str, asked: list[str]
) -> None:
    run = run_of(new_app, 20)
    trace(neo4j_graph, new_app, 0, 19)  # the first and the last batch of records are there in part
    assert neo4j_graph.store.write_application(new_app, claimed(neo4j_graph, new_app), run)
    assert [name for name in asked if name in ("flow/create", "flow/upsert")] == [
        "flow/create",
        "flow/upsert",
        "flow/create",
        "flow/create",
        "flow/upsert",
    ]
    assert "flow/create_links" not in asked
    assert_whole(neo4j_graph, new_app, run)


@pytest.mark.thorough
@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("transactions", range(8))
def test_the_links_of_a_trace_meanwhile_stay_single(
    neo4j_graph: Neo4jUnderTest, new_app: str, transactions: int
) -> None:
    """After so many transactions of a run: among its records, before its links, among them, at its end."""
    run, done = run_of(new_app, 20), 0

    def between(work: Any) -> Any:
        nonlocal done
        if done == transactions:
            done += 1
            trace(neo4j_graph, new_app, *range(0, 20, 3))
        done += 1
        return transact(work)

    claim, transact = claimed(neo4j_graph, new_app), neo4j_graph.store._connection.transact
    ApplicationWriter(between, new_app, claim).write(run)
    assert_whole(neo4j_graph, new_app, run)


@pytest.mark.usefixtures("small_batches")
def test_a_batch_whose_commit_was_not_answered_is_known_again(
    neo4j_graph: Neo4jUnderTest, new_app: str, asked: list[str]
) -> None:
    run = run_of(new_app, 20)
    claim = claimed(neo4j_graph, new_app)
    slow = writer(neo4j_graph, new_app, claim)
    element_ids = slow.write_records(run)
    asked.clear()
    with every_other_commit_unanswered():
        slow.write_links(run, element_ids)
    assert (asked.count("application/hold"), asked.count("flow/create_links")) == (6, 3)
    assert "flow/link_elements" not in asked
    assert neo4j_graph.content(new_app)["flow_links"] == links_of(run)


@pytest.mark.usefixtures("small_batches")
def test_no_answer_to_any_commit_doubles_anything(neo4j_graph: Neo4jUnderTest, new_app: str) -> None:
    run, claim = run_of(new_app, 20, 3), claimed(neo4j_graph, new_app)
    with every_other_commit_unanswered():
        # The end of the claim is among them: what comes again finds no claim, and all is there.
        assert not neo4j_graph.store.write_application(new_app, claim, run)
    assert_whole(neo4j_graph, new_app, run)
    assert stored(neo4j_graph, new_app)["flows"] == "all"


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("transactions", range(7))
def test_a_holder_that_died_between_two_batches_is_followed_by_one_that_completes(
    neo4j_graph: Neo4jUnderTest, new_app: str, transactions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application_writer, "CLAIM_S", 0.0)
    run, left = run_of(new_app, 20), iter(range(transactions))

    def dying(work: Any) -> Any:
        if next(left, None) is None:
            raise InterruptedError
        return neo4j_graph.store._connection.transact(work)

    with pytest.raises(InterruptedError):
        ApplicationWriter(dying, new_app, claimed(neo4j_graph, new_app)).write(run)
    assert neo4j_graph.store.write_application(new_app, claimed(neo4j_graph, new_app), run)
    assert_whole(neo4j_graph, new_app, run)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("transactions", range(7))
def test_an_application_that_is_deleted_between_two_batches_is_gone(
    neo4j_graph: Neo4jUnderTest, new_app: str, transactions: int
) -> None:
    left = iter(range(transactions))

    def deleting(work: Any) -> Any:
        if next(left, None) is None:
            neo4j_graph.store.delete_application(new_app)
        return neo4j_graph.store._connection.transact(work)

    with pytest.raises(ClaimLostError):
        ApplicationWriter(deleting, new_app, claimed(neo4j_graph, new_app)).write(run_of(new_app, 20))
    assert [kind for kind, found in neo4j_graph.content(new_app).items() if found] == []


def test_a_claim_that_nobody_holds_ends_and_another_one_writes_the_rest(
    neo4j_graph: Neo4jUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = f"app-{uuid.uuid4().hex}"
    monkeypatch.setattr(row_values, "BATCH_ROWS", 7)
    monkeypatch.setattr(application_writer, "CLAIM_S", 0.0)
    run = run_of(app, 20, 3)
    try:
        end(neo4j_graph, app)
        first = claimed(neo4j_graph, app)
        slow = writer(neo4j_graph, app, first)
        element_ids = slow.write_records(run)
        second = claimed(neo4j_graph, app)
        # The first one is only slow: it finds out, and nothing of its batch stays.
        with pytest.raises(ClaimLostError):
            slow.write_links(run, element_ids)
        assert neo4j_graph.content(app)["flow_links"] == []
        assert not neo4j_graph.store.write_application(app, first, run)
        assert neo4j_graph.store.write_application(app, second, run)
        content = neo4j_graph.content(app)
        assert content["flow_links"] == links_of(run)
        assert len(content["flows"]) == 23
    finally:
        neo4j_graph.store.delete_application(app)


def test_a_batch_holds_so_much_text_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_values, "BATCH_CHARACTERS", 3)
    batches = list(application_record_batches("app", run_of("app", 8, 2)))
    assert [[len(group["flowIds"]) for group in batch] for batch in batches] == [[3], [3], [2, 2]]
    monkeypatch.setattr(row_values, "BATCH_ROWS", 2)
    batches = list(application_record_batches("app", run_of("app", 5, 2)))
    assert [[len(group["flowIds"]) for group in batch] for batch in batches] == [[2], [2], [1, 1], [1]]


@pytest.mark.thorough
def test_four_writers_meet_on_applications_and_never_deadlock(
    neo4j: Any, neo4j_graph: Neo4jUnderTest
) -> None:
    """As four consumers: each with connections of its own; events, traces and graphs of the same ones."""
    apps = [f"app-{uuid.uuid4().hex}" for _ in range(6)]
    runs = {app: run_of(app, 1_500, 40) for app in apps}
    graphs = [Neo4jGraph(neo4j.uri, user=neo4j.user, password=neo4j.password) for _ in range(4)]

    def consume(number: int) -> int:
        graph, written = graphs[number], 0
        order = random.Random(number).sample(apps, len(apps))
        for app in order:
            graph.write_events([node(app, 1), node(app, 2), link(app, 1, 2), ended(app)])
            claim = graph.claim(app, 10_000)
            written += claim is not None and graph.write_application(app, claim, runs[app])
            records = [record(app, 1, offset) for offset in range(40)] + [record(app, 2, 0)]
            graph.write_trace(app, records, [(records[0].flow_id, records[-1].flow_id)])
            graph.write_counts(app, {1: 1_500, 2: 40}, {(1, 2): 1_500})
        return written

    try:
        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(consume, range(4))) == len(apps)
        assert [graph.counters.deadlocks for graph in graphs] == [0, 0, 0, 0]
        assert [graph.counters.retries for graph in graphs] == [0, 0, 0, 0]
        assert all(graph.counters.transactions > 20 for graph in graphs)
        for app in apps:
            content = neo4j_graph.content(app)
            assert content["flow_links"] == links_of(runs[app])
            assert len(content["flows"]) == runs[app].records
    finally:
        for graph in graphs:
            graph.close()
        for app in apps:
            neo4j_graph.store.delete_application(app)


def test_a_deadlock_is_counted_and_tried_again(neo4j: Any, neo4j_graph: Neo4jUnderTest) -> None:
    """Two transactions that lock two nodes in opposite orders: the counters would have told of it."""
    apps = [f"app-{uuid.uuid4().hex}" for _ in range(2)]
    for app in apps:
        neo4j_graph.store.write_events([started(app)])
    graphs = [Neo4jGraph(neo4j.uri, user=neo4j.user, password=neo4j.password) for _ in range(2)]
    both_hold_one = Barrier(2, timeout=60)
    attempts = [0, 0]

    def lock(number: int) -> None:
        def work(transaction: Any) -> list[Any]:
            attempts[number] += 1
            for at, app in enumerate(apps if number else apps[::-1]):
                if at and attempts[number] == 1:
                    both_hold_one.wait()
                run_steps(transaction, [("application/lock", {"applicationIds": [app]})])
            return []

        graphs[number]._connection.transact(work)

    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lock, range(2)))
    finally:
        for app in apps:
            neo4j_graph.store.delete_application(app)
        for graph in graphs:
            graph.close()
    assert sum(attempts) == 3
    assert sum(graph.counters.deadlocks for graph in graphs) == 1
    assert sum(graph.counters.retries for graph in graphs) == 1


def test_what_a_whole_application_read_and_wrote_has_its_label(neo4j_graph: Neo4jUnderTest) -> None:
    app = f"app-{uuid.uuid4().hex}"
    ids = [f"{app}#1#read#0#0", f"{app}#2#0#0", f"{app}#3#write#0#0"]
    columns = [
        NodeRecords(node=number, flow_ids=[each], hash_ins=[None], vals=[None])
        for number, each in enumerate(ids, start=1)
    ]
    run = ApplicationGraph(columns=columns, sources=[0, 1], targets=[1, 2], is_exact=True)

    def labels() -> list[set[str]]:
        found = neo4j_graph.driver.execute_query(
            "MATCH (f:LineageFlow {applicationId: $app}) RETURN labels(f) ORDER BY f.flowId", app=app
        )
        return [{*each[0]} for each in found.records]

    try:
        end(neo4j_graph, app)
        assert neo4j_graph.store.write_application(app, claimed(neo4j_graph, app), run)
        assert labels() == [{"LineageFlow", "LineageSource"}, {"LineageFlow"}, {"LineageFlow", "LineageSink"}]
    finally:
        neo4j_graph.store.delete_application(app)

"""What can be asked of one application, and how wrong questions are answered."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

import pytest

from lineage_service.errors import InvalidQueryError, NotFoundError
from lineage_service.queries import RecordQuery, TraceQuery
from tests.support.spark.application import Application, run_application

LINES = ["the quick fox", "the lazy dog", "a quick dog", ""]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("questions")


@pytest.fixture(scope="module")
def application(kafka: Any, folder: Path) -> Application:
    (folder / "in.txt").write_text("".join(f"{line}\n" for line in LINES))

    def job(context: Any) -> None:
        words = context.textFile(str(folder / "in.txt"), 2).flatMap(str.split).map(lambda word: (word, 1))
        counts = words.reduceByKey(operator.add).sortBy(operator.itemgetter(0), numPartitions=1)
        counts.map(lambda kv: f"{kv[0]} {kv[1]}").saveAsTextFile(str(folder / "out"))
        counts.collect()

    _, found = run_application(kafka.bootstrap_servers, folder / "store", job, spark_lineage_detailed="true")
    assert found is not None
    return found


def node_id(application: Application, name: str) -> str:
    (found,) = [
        node.node_id
        for node in application.questions.graph(application.application_id).nodes
        if node.name == name and node.kind != "source"
    ]
    return found


def test_the_application_is_complete_and_counted(application: Application) -> None:
    (listed,) = application.questions.applications()
    assert listed == application.questions.application(application.application_id)
    assert (listed.state, listed.complete, listed.missing_blocks) == ("ended", True, 0)
    assert listed.counters["flows"] > 0
    assert listed.counters["dropped"] == 0


def test_the_graph_has_public_operations_with_their_counts(application: Application) -> None:
    graph = application.questions.graph(application.application_id)
    assert [(node.name, node.kind, node.records) for node in graph.nodes] == [
        ("textFile", "source", 4),
        ("flatMap", "operator", 9),
        ("map", "operator", 9),
        ("reduceByKey", "operator", 6),
        ("sortBy", "operator", 6),
        ("map", "operator", 6),
        ("saveAsTextFile", "sink", 6),
        ("collect", "sink", 6),
    ]
    assert [edge.flows for edge in graph.edges] == [9, 9, 9, 6, 6, 6, 6]
    into = {edge.target: edge.shuffle for edge in graph.edges}
    # A sort into one partition is a coalesce, not a shuffle.
    assert [node.name for node in graph.nodes if into.get(node.node_id)] == ["reduceByKey"]
    assert all(node.exact for node in graph.nodes)
    assert all(__file__ in node.call_site for node in graph.nodes)
    source = graph.nodes[0].dataset
    assert source is not None
    assert (source.namespace, Path(source.name).name) == ("file", "in.txt")


def test_a_key_is_traced_to_its_rows(application: Application) -> None:
    trace = application.trace(direction="backward", node=node_id(application, "reduceByKey"), key="quick")
    rows = [record.source for record in trace.nodes[-1].records]
    assert [(row.row, row.line, row.text) for row in rows if row is not None] == [
        (0, 1, "the quick fox"),
        (2, 3, "a quick dog"),
    ]


def test_forward_reaches_every_action_over_a_shared_rdd(application: Application, folder: Path) -> None:
    trace = application.trace(direction="forward", path=str(folder / "in.txt"), row=0)
    assert {node.name: node.total for node in trace.nodes if node.kind == "sink"} == {
        "saveAsTextFile": 3,
        "collect": 3,
    }


def test_a_row_that_made_nothing_reaches_no_sink(application: Application, folder: Path) -> None:
    trace = application.trace(direction="forward", path=str(folder / "in.txt"), row=3)
    assert [node.name for node in trace.nodes] == ["textFile"]
    assert trace.exact


def test_pages_of_a_trace_are_disjoint_and_together_the_whole(application: Application, folder: Path) -> None:
    query: dict[str, Any] = {"direction": "forward", "path": str(folder / "in.txt"), "row": 0}
    whole = application.trace(**query)
    pages, cursor = [], None
    while True:
        page = application.trace(**{**query, "limit": 2, "cursor": cursor})
        assert [node.total for node in page.nodes] == [node.total for node in whole.nodes]
        pages.append(page)
        cursor = page.next
        if cursor is None:
            break
    assert pages[0].truncated
    for index, node in enumerate(whole.nodes):
        listed = [record for page in pages for record in page.nodes[index].records]
        assert listed == list(node.records)


def test_depth_counts_public_operations_and_to_ends_the_way(application: Application, folder: Path) -> None:
    start: dict[str, Any] = {"direction": "backward", "path": str(folder / "out" / "part-00000"), "row": 0}
    assert [node.name for node in application.trace(**start, depth=2).nodes] == [
        "saveAsTextFile",
        "map",
        "sortBy",
    ]
    ended = application.trace(**start, to=node_id(application, "reduceByKey"))
    assert ended.nodes[-1].name == "reduceByKey"


def test_flows_join_the_listed_records(application: Application, folder: Path) -> None:
    trace = application.trace(direction="backward", path=str(folder / "out" / "part-00000"), row=0)
    listed = {f"{node.node_id}#{record.record_id}" for node in trace.nodes for record in node.records}
    targets = {flow.hash_out for flow in trace.flows}
    assert {end for flow in trace.flows for end in (flow.hash_in, flow.hash_out)} <= listed
    sources = {f"{n.node_id}#{r.record_id}" for n in trace.nodes if n.kind == "source" for r in n.records}
    assert targets == listed - sources


def test_records_are_paged_searched_and_found_by_key(application: Application) -> None:
    ask = application.questions.records
    sink = node_id(application, "saveAsTextFile")
    first = ask(application.application_id, RecordQuery(node=sink, limit=4))
    second = ask(application.application_id, RecordQuery(node=sink, limit=4, cursor=first.next))
    assert (first.total, len(first.records), len(second.records), second.next) == (6, 4, 2, None)
    found = ask(application.application_id, RecordQuery(node=sink, text="QUICK"))
    assert [record.source.text for record in found.records if record.source is not None] == ["quick 2"]
    keyed = ask(application.application_id, RecordQuery(node=node_id(application, "reduceByKey"), key="dog"))
    assert [(record.key, record.value) for record in keyed.records] == [("dog", '["dog", 2]')]


def test_values_show_the_record_along_its_way(application: Application) -> None:
    values = application.questions.values(
        application.application_id, "write#0#0", node_id(application, "saveAsTextFile")
    )
    assert values.captured
    assert [(step.name, step.value) for step in values.steps] == [
        ("textFile", "a quick dog"),
        ("flatMap", "a"),
        ("map", '["a", 1]'),
        ("reduceByKey", '["a", 1]'),
        ("sortBy", '["a", 1]'),
        ("map", "a 1"),
        ("saveAsTextFile", "a 1"),
    ]


@pytest.mark.parametrize(
    ("query", "error", "text"),
    [
        ({"record": "write#0#0"}, InvalidQueryError, "several sinks"),
        ({"record": "0#0"}, InvalidQueryError, "give node too"),
        ({"record": "nonsense"}, InvalidQueryError, "PARTITION#OFFSET"),
        ({"record": "write#0#99", "node": "SINK"}, NotFoundError, "has 6 records in partition 0"),
        ({"record": "write#7#0", "node": "SINK"}, NotFoundError, "has 0 records in partition 7"),
        ({"node": "999", "partition": 0, "offset": 0}, NotFoundError, "has no node 999"),
        ({"node": "SINK", "key": "nobody"}, NotFoundError, "no record with the key"),
        ({"path": "/no/such/file", "row": 0}, NotFoundError, "no source or sink"),
        ({"path": "INPUT", "row": 4}, NotFoundError, "has 4 rows"),
        ({}, InvalidQueryError, "say where the trace begins"),
    ],
)
def test_wrong_questions_are_answered_clearly(
    query: dict[str, Any], error: type[Exception], text: str, application: Application, folder: Path
) -> None:
    places = {"SINK": node_id(application, "saveAsTextFile"), "INPUT": str(folder / "in.txt")}
    asked = {name: places.get(value, value) for name, value in query.items()}
    with pytest.raises(error, match=text):
        application.questions.trace(application.application_id, TraceQuery(direction="backward", **asked))


def test_an_unknown_application_is_not_found(application: Application) -> None:
    with pytest.raises(NotFoundError, match="no application local-0"):
        application.questions.graph("local-0")


def test_a_file_that_changed_or_went_is_said(application: Application, folder: Path) -> None:
    path = folder / "in.txt"
    original = path.read_text()
    start = TraceQuery(direction="backward", node=node_id(application, "reduceByKey"), key="fox")
    try:
        path.write_text("another\n" + original)
        (changed,) = application.questions.trace(application.application_id, start).nodes[-1].records
        assert changed.source is not None
        assert "has changed since the run" in (changed.source.warning or "")
        path.unlink()
        (gone,) = application.questions.trace(application.application_id, start).nodes[-1].records
        assert gone.source is not None
        assert gone.source.text is None
        assert "cannot be read any more" in (gone.source.warning or "")
    finally:
        path.write_text(original)

"""The trace on Spark answers what the trace on one machine answers, whatever was done to the records."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lineage_service.errors import InvalidQueryError, LineageError, NotFoundError
from lineage_service.queries import TraceQuery
from lineage_service.tracing.spark.api import SparkTracing, local_session, trace
from lineage_service.tracing.spark.store import in_hadoop
from tests.support.spark import more_rdd_pipelines, rdd_pipelines
from tests.support.spark.application import (
    Application,
    ParquetStore,
    fill_and_fail,
    part_rows,
    run_application,
    without_kept,
)
from tests.support.spark.pipelines import Traced, trace_pipelines, write

# The first test of the module runs the jobs of all of them.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(2700)]

#: Every relation, and every way of saying flows, is in one of these.
CHOSEN = (
    "flatMap of generators",
    "shuffle behind shuffle behind join",
    "cache, read by two branches",
    "coalesce",
    "cartesian of itself, twice",
    "zip of shuffles",
    "mapPartitions, row by row",
)
EVERY = {**rdd_pipelines.PIPELINES, **more_rdd_pipelines.PIPELINES}
PIPELINES = {name: EVERY[name] for name in CHOSEN}

#: How sets are kept and moved: as ever, and with none held by the driver or sent to the flows.
WAYS = {"small": {}, "large": {"held_records": 0, "broadcast_records": 0}}
#: A trace of large sets is dozens of Spark's jobs: these pipelines have every join that they need.
LARGE = ("flatMap of generators", "zip of shuffles", "cartesian of itself, twice")
CASES = [(name, "small") for name in CHOSEN] + [(name, "large") for name in LARGE]


@pytest.fixture(scope="module")
def traced(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Traced:
    return trace_pipelines(kafka, tmp_path_factory.mktemp("pipelines"), PIPELINES)


@pytest.fixture(scope="module")
def actions(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Application, Path]:
    """An application of actions that aggregate, take and collect, with bounds and with values."""
    folder = tmp_path_factory.mktemp("actions")
    source = write(folder / "in.txt", [str(i) for i in range(12)])
    table = write(folder / "in.csv", ["k,v,n", *(f"0,{'xyz'[i % 3]},{i * 7 % 20}" for i in range(20))])

    def job(context: Any) -> None:
        numbers = context.textFile(str(source), 3).map(int)
        numbers.filter(lambda i: i % 2 == 0).sum()
        numbers.take(5)
        numbers.top(3)
        bound = numbers.mapPartitions(lambda records: [sum(records)])
        bound.pipe("cat").map(str).saveAsTextFile(str(folder / "bound"))
        counts = numbers.map(lambda i: (i % 3, i)).reduceByKey(operator.add, 2)
        counts.map(str).saveAsTextFile(str(folder / "counts"))
        kept = context.textFile(str(write(folder / "kept.txt", list("012345"))), 2).filter(bool).cache()
        fill_and_fail(context, kept, [0])
        kept.map(str).saveAsTextFile(str(folder / "kept"))
        rows = SparkSession(context).read.csv(str(table), header=True, schema="k int, v string, n int")
        rows.groupBy("k").agg(F.sum("n")).coalesce(1).write.csv(str(folder / "sums"))

    _, application = run_application(
        kafka.bootstrap_servers, folder / "store", job, spark_lineage_detailed="true"
    )
    assert application is not None
    return application, folder


@pytest.fixture(scope="module")
def spark(traced: Traced, actions: object) -> Iterator[SparkSession]:
    """After the jobs: there is one SparkContext at a time."""
    conf = ["spark.sql.shuffle.partitions=2", "spark.sql.adaptive.enabled=false"]
    with local_session("local[2]", conf) as session:
        yield session


def store_of(application: Application) -> ParquetStore:
    assert application.store is not None
    return application.store


def agree(application: Application, tracing: SparkTracing, **query: Any) -> Any:
    """The answer, which both give."""
    asked = TraceQuery(**{"limit": 100, **query})
    answer = tracing.trace(application.application_id, asked)
    assert answer == application.questions.trace(application.application_id, asked)
    return answer


@pytest.mark.parametrize(("name", "way"), CASES)
def test_both_engines_give_the_same_answers(name: str, way: str, traced: Traced, spark: SparkSession) -> None:
    application = traced.application
    tracing = SparkTracing(spark, store_of(application), **WAYS[way])
    output = traced.folder / f"out-{list(PIPELINES).index(name)}"
    part, row, _ = part_rows(output)[-1]
    backward = agree(application, tracing, direction="backward", path=str(part), row=row)
    (source, *_) = [record.source for record in backward.nodes[-1].records]
    (sink,) = [sink.node_id for sink in application.sinks() if sink.description == str(output)]
    forward = agree(application, tracing, direction="forward", path=source.path, row=source.row, to=sink)
    assert (part.name, row) in {(Path(r.source.path).name, r.source.row) for r in forward.nodes[-1].records}


@pytest.mark.parametrize("way", WAYS)
def test_actions_and_bounds_are_the_same(
    way: str, actions: tuple[Application, Path], spark: SparkSession
) -> None:
    application, folder = actions
    tracing = SparkTracing(spark, store_of(application), **WAYS[way])
    for sink in application.sinks():
        if "failed" not in sink.reason:
            agree(application, tracing, direction="backward", node=sink.node_id, partition=0, offset=0)
    start: dict[str, Any] = {"direction": "forward", "path": str(folder / "in.txt"), "row": 6}
    whole = agree(application, tracing, **start, values=True)
    assert not whole.exact
    assert {node.kind for node in whole.nodes} == {"source", "operator", "sink"}
    assert any(record.value is not None for node in whole.nodes for record in node.records)


@pytest.mark.parametrize("way", WAYS)
def test_rows_are_sorted_and_filtered_in_the_same_way(
    way: str, actions: tuple[Application, Path], spark: SparkSession
) -> None:
    application, folder = actions
    tracing = SparkTracing(spark, store_of(application), **WAYS[way])
    (part,) = (folder / "sums").glob("part-*")
    nodes = application.questions.graph(application.application_id).nodes
    (source,) = (node.node_id for node in nodes if node.description == str(folder / "in.csv"))
    start = {"direction": "backward", "path": str(part), "row": 0, "only": source, "columns": ("*",)}
    for chosen in ({"sort": "n", "desc": True, "filter": "v <> 'x'"}, {"sort": "v"}, {"filter": "n > 5"}):
        rows, cursor = [], None
        while cursor is not None or not rows:
            answer = agree(application, tracing, **start, **chosen, limit=3, cursor=cursor)
            (listed,) = (node for node in answer.nodes if node.node_id == source)
            rows += [tuple(record.source.columns.values()) for record in listed.records]
            cursor = answer.next
        every = [(0, "xyz"[i % 3], i * 7 % 20) for i in range(20)]
        expected = [row for row in every if row[1] != "x"] if "<>" in str(chosen) else every
        if chosen.get("sort") == "n":
            expected.sort(key=lambda row: -row[2])
        elif chosen.get("sort") == "v":
            expected.sort(key=lambda row: row[1])
        else:
            expected = [row for row in every if row[2] > 5]
        assert rows == expected
    with pytest.raises(InvalidQueryError, match="sort needs only"):
        tracing.trace(application.application_id, TraceQuery(direction="backward", node="0", sort="n"))


@pytest.mark.parametrize("way", WAYS)
def test_what_a_failed_task_kept_is_bounded_in_the_same_way(
    way: str, actions: tuple[Application, Path], spark: SparkSession
) -> None:
    application, folder = actions
    part = str(folder / "kept" / "part-00000")
    start: dict[str, Any] = {"direction": "backward", "path": part, "row": 0}
    tracing = SparkTracing(spark, store_of(application), **WAYS[way])
    assert agree(application, tracing, **start).exact
    untold = without_kept(application)
    tracing = SparkTracing(spark, store_of(untold), **WAYS[way])
    backward = agree(untold, tracing, **start)
    assert not backward.exact
    for record in backward.nodes[-1].records:
        path, row = record.source.path, record.source.row
        forward = agree(untold, tracing, direction="forward", path=path, row=row)
        assert not forward.exact
        assert (part, 0) in {(record.source.path, record.source.row) for record in forward.nodes[-1].records}


@pytest.mark.parametrize("held", [0, 2, 1_000])
def test_pages_are_the_same_however_many_records_the_driver_holds(
    held: int, actions: tuple[Application, Path], spark: SparkSession
) -> None:
    application, folder = actions
    tracing = SparkTracing(spark, store_of(application), held_records=held)
    counts: dict[str, Any] = {
        "direction": "backward",
        "path": str(folder / "counts" / "part-00000"),
        "row": 0,
    }
    page = agree(application, tracing, **counts, limit=2)
    assert page.truncated
    pages = [page]
    while pages[-1].next is not None:
        pages.append(agree(application, tracing, **counts, limit=2, cursor=pages[-1].next))
    whole = agree(application, tracing, **counts)
    for at, node in enumerate(whole.nodes):
        assert [record for page in pages for record in page.nodes[at].records] == list(node.records)


def test_depth_and_keys_are_the_same(actions: tuple[Application, Path], spark: SparkSession) -> None:
    application, folder = actions
    tracing = SparkTracing(spark, store_of(application), held_records=2)
    counts: dict[str, Any] = {
        "direction": "backward",
        "path": str(folder / "counts" / "part-00000"),
        "row": 0,
    }
    page = agree(application, tracing, **counts, depth=2)
    grouped = [node.node_id for node in page.nodes if node.name == "reduceByKey"]
    of_one = agree(application, tracing, **counts, only=grouped[0], limit=1)
    assert [len(node.records) for node in of_one.nodes if node.node_id != grouped[0]].count(0) > 0
    agree(application, tracing, direction="backward", node=grouped[0], key="1")
    agree(application, tracing, direction="forward", node=grouped[0], key="1")


def test_a_bound_that_is_off_the_way_asked_for_leaves_the_answer_exact(
    actions: tuple[Application, Path], spark: SparkSession
) -> None:
    application, folder = actions
    tracing = SparkTracing(spark, store_of(application))
    start: dict[str, Any] = {"direction": "forward", "path": str(folder / "in.txt"), "row": 6}
    sinks = {sink.description: sink.node_id for sink in application.sinks()}
    assert agree(application, tracing, **start, to=sinks[str(folder / "counts")]).exact
    assert not agree(application, tracing, **start, to=sinks[str(folder / "bound")]).exact


def test_wrong_questions_are_answered_in_the_same_words(
    actions: tuple[Application, Path], spark: SparkSession
) -> None:
    application, folder = actions
    tracing = SparkTracing(spark, store_of(application))
    wrong: list[dict[str, Any]] = [
        {},
        {"record": "0#0"},
        {"record": "nonsense"},
        {"record": "write#0#0"},
        {"record": "write#77#0"},
        {"node": "999", "partition": 0, "offset": 0},
        {"node": "0", "partition": 0, "offset": 99},
        {"node": "0", "key": "nobody"},
        {"path": str(folder / "in.txt"), "row": 12},
        {"path": "/no/such/file", "row": 0},
        {"node": "0", "partition": 0, "offset": 0, "cursor": "x"},
        {"node": "0", "partition": 0, "offset": 0, "to": "77"},
    ]
    for query in wrong:
        asked = TraceQuery(direction="backward", **query)
        with pytest.raises(LineageError) as expected:
            application.questions.trace(application.application_id, asked)
        with pytest.raises(type(expected.value)) as found:
            tracing.trace(application.application_id, asked)
        assert str(found.value) == str(expected.value)
    with pytest.raises(NotFoundError, match="no application local-0"):
        trace(spark, store_of(application), "local-0", TraceQuery(direction="backward", record="write#0#0"))


def test_a_setting_without_a_value_is_refused() -> None:
    with pytest.raises(InvalidQueryError, match="is not NAME=VALUE"):
        local_session("local[1]", ["spark.ui.enabled"]).__enter__()


def test_files_are_named_as_hadoop_names_them() -> None:
    assert in_hadoop("/a b/flows/application_id=x/1.parquet", "flows", None) == (
        "file:/a b/flows/application_id=x/1.parquet"
    )
    assert in_hadoop("s3://bucket/flows/application_id=x/1.parquet", "flows", None) == (
        "s3a://bucket/flows/application_id=x/1.parquet"
    )
    assert in_hadoop("s3://bucket/a/flows/application_id=x/1.parquet", "flows", "hdfs://name/b/") == (
        "hdfs://name/b/flows/application_id=x/1.parquet"
    )

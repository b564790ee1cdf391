"""Where RDDs become DataFrames and DataFrames RDDs: rows are traced across, both ways, as the data say."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import RDD, SparkContext, cloudpickle
from pyspark.sql import SparkSession

from lineage_service.lineage import Trace
from lineage_service.queries import TraceQuery
from lineage_service.tracing.spark.api import SparkTracing, local_session
from tests.support.lanes import sampled
from tests.support.spark import clusters
from tests.support.spark import relational as r
from tests.support.spark.application import Application
from tests.support.spark.cases import boundary
from tests.support.spark.cases.boundary import (
    CASES,
    as_text,
    counted_words,
)
from tests.support.spark.clusters import CLUSTER, fails_at
from tests.support.spark.dataframe_oracle import (
    Ran,
    check_forward,
    check_sources,
    graph_of,
    records_of,
    rows_of_sources,
    without_lineage,
    written,
)
from tests.support.spark.shop import make_shop

# The first test of the module runs the queries of all of them.
pytestmark = pytest.mark.timeout(2700)

# The executors of a cluster cannot import the tests.
for module in (sys.modules[__name__], clusters, boundary):
    cloudpickle.register_pickle_by_value(module)


# -- several borders, and what is kept of a plan -------------------------------------------------------


PLAIN = without_lineage(CASES)


@pytest.mark.thorough
@pytest.mark.parametrize("name", PLAIN)
def test_spark_writes_what_the_oracle_says(name: str, plain: Ran) -> None:
    plain.check_rows(name)


@pytest.mark.thorough
@pytest.mark.parametrize("name", sampled(CASES, 6))
def test_traces_equal_the_oracle(name: str, plain: Ran, traced: Ran) -> None:
    traced.check(name, plain)


# -- the trace on Spark --------------------------------------------------------------------------------


@pytest.mark.thorough
def test_the_trace_on_spark_gives_the_same_answers(traced: Ran) -> None:
    application = traced.application
    assert application is not None
    assert application.store is not None
    with local_session("local[2]", ["spark.sql.shuffle.partitions=2"]) as session:
        tracing = SparkTracing(session, application.store)

        def agreed(**query: Any) -> Trace:
            asked = TraceQuery(**query)
            answer = tracing.trace(traced_id, asked)
            assert answer == application.questions.trace(traced_id, asked)
            return answer

        traced_id = application.application_id
        for name in (
            "to a DataFrame, to an RDD, to a DataFrame, to an RDD",
            "coalesce of the RDD",
            "joined with itself",
        ):
            (part, row), _ = traced.written(name)[0]
            trace = agreed(direction="backward", path=str(traced.output(name) / part), row=row)
            source = next(node for node in trace.nodes if node.kind == "source")
            record = source.records[0]
            back = agreed(
                direction="forward",
                node=source.node_id,
                partition=record.partition,
                offset=record.offset,
                to=trace.start_node,
            )
            assert back.nodes[-1].records


# -- actions -------------------------------------------------------------------------------------------

Run = Callable[..., tuple[Any, Application]]


def sinks_of(application: Application) -> list[tuple[str, list[frozenset[Any]]]]:
    """Each sink with the rows of the files that each of its records comes from."""
    sinks = []
    for sink in application.sinks():
        records = sorted(
            records_of(application, sink.node_id), key=lambda record: (record.partition, record.offset)
        )
        traces = [
            application.trace(
                direction="backward", node=sink.node_id, partition=record.partition, offset=record.offset
            )
            for record in records
        ]
        assert all(trace.exact for trace in traces)
        sinks.append((sink.name, [frozenset(row for _, row in rows_of_sources(trace)) for trace in traces]))
    return sinks


def numbers(folder: Path) -> Path:
    path = folder / "numbers.txt"
    path.write_text("".join(f"{n}\n" for n in (3, -1, 4, 1, -5, 9, 2, 6)), encoding="utf-8")
    return path


def test_actions_on_what_a_dataframe_is_read_as_are_traced(run: Run, tmp_path: Path) -> None:
    path = numbers(tmp_path)

    def job(context: SparkContext) -> list[Any]:
        spark = SparkSession.builder.getOrCreate()
        frame = spark.read.text(str(path)).where("int(value) > 1")
        few = frame.rdd.map(lambda row: row.value).take(3)
        frame.foreach(lambda row: None)
        return [few, frame.rdd.count(), [row.value for row in frame.collect()]]

    results, application = run(job)
    assert results == [["3", "4", "9"], 5, ["3", "4", "9", "2", "6"]]
    every = [frozenset({row}) for row in (0, 2, 5, 6, 7)]
    assert sinks_of(application) == [
        ("take", every[:3]),
        ("foreach", every),
        ("count", [frozenset({0, 2, 5, 6, 7})]),
        ("collect", every),
    ]


def test_a_schema_that_is_inferred_leaves_no_sink_behind(run: Run, tmp_path: Path) -> None:
    path = numbers(tmp_path)

    def job(context: SparkContext) -> list[Any]:
        spark = SparkSession.builder.getOrCreate()
        pairs = context.textFile(str(path), 2).map(lambda text: (int(text), None if int(text) < 9 else text))
        return [tuple(row) for row in spark.createDataFrame(pairs, ["n", "text"]).where("n > 4").collect()]

    results, application = run(job)
    assert results == [(9, "9"), (6, None)]
    assert sinks_of(application) == [("collect", [frozenset({5}), frozenset({7})])]


def test_the_records_of_a_border_are_those_of_its_whole_partitions(run: Run, tmp_path: Path) -> None:
    """Even where the first job read a few."""
    path = numbers(tmp_path)

    def job(context: SparkContext) -> int:
        rows = SparkSession.builder.getOrCreate().read.text(str(path)).rdd
        rows.first()
        return rows.count()

    count, application = run(job)
    assert count == 8
    [rows] = [node for node in graph_of(application).nodes if node.name == "rdd"]
    assert rows.records == 8


@pytest.mark.thorough
def test_a_job_of_both_gives_the_same_without_lineage(run: Run, run_plain: Any, tmp_path: Path) -> None:
    path = numbers(tmp_path)

    def job(context: SparkContext) -> list[Any]:
        spark = SparkSession.builder.getOrCreate()
        frame = spark.read.text(str(path)).selectExpr("int(value) as n").repartition(3, "n")
        back = frame.rdd.map(lambda row: (row.n, -row.n)).toDF(["n", "m"])
        return [
            frame.rdd.getNumPartitions(),
            frame.rdd.glom().collect(),
            back.schema.simpleString(),
            back.rdd.glom().collect(),
            isinstance(frame.rdd, RDD),
            frame.rdd is frame.rdd,
            frame.localCheckpoint().collect(),
            spark.createDataFrame([], "n int").rdd.collect(),
            spark.createDataFrame([(1,)], "n int").rdd.collect(),
        ]

    assert run(job)[0] == run_plain(job)


# -- a cluster -----------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_borders_hold_on_a_cluster_where_a_task_is_tried_again(run: Run, tmp_path: Path) -> None:
    shop = make_shop(tmp_path / "shop")
    output = tmp_path / "out"
    fails = fails_at("be")

    def job(context: SparkContext) -> None:
        SparkSession.builder.getOrCreate()  # which gives RDDs their toDF
        text = context.textFile(shop.path("lines"), 4)
        pairs = text.flatMap(str.split).map(lambda word: (fails(word), len(word)))
        counted = pairs.toDF("word string, n int").groupBy("word").count()
        as_text(counted.rdd.map(lambda row: (fails(row.word), row["count"])), str(output))

    _, application = run(job, **CLUSTER)
    rows = Counter[Any]()
    backward = {}
    for (part, at), (text,) in written(output):
        trace = application.trace(direction="backward", path=str(output / part), row=at)
        assert trace.exact
        backward[part, at] = rows_of_sources(trace)
        rows[repr((text,)), backward[part, at]] += 1
    check_sources(rows.elements(), r.select(counted_words(shop), lambda row: (" ".join(map(str, row)),)))
    sinks = [sink.node_id for sink in application.sinks()]
    check_forward(application, sinks, output, backward)

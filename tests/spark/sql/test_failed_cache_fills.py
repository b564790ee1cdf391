"""Cached DataFrames whose partitions were filled by tasks that failed: rows lead to what was cached."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext, TaskContext, cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_agent import contract
from tests.support.spark import clusters
from tests.support.spark.application import Application, part_rows, rows_at, run_application, without_kept
from tests.support.spark.clusters import CLUSTER

pytestmark = [pytest.mark.timeout(2700), pytest.mark.thorough]

# The executors of a cluster cannot import the tests.
for module in (sys.modules[__name__], clusters):
    cloudpickle.register_pickle_by_value(module)

#: What is cached, of `frame`, whose column `a` is the row of each record: `rows` are those that it is of.
Kept = Callable[[DataFrame], DataFrame]


def chosen(frame: DataFrame) -> DataFrame:
    return frame.where("a % 5 > 0").selectExpr("array(a) as rows")


def window(frame: DataFrame) -> DataFrame:
    """Groups in the very task that fills the cache."""
    several = frame.coalesce(1).selectExpr("a", "a % 7 as k")
    return several.selectExpr("collect_list(a) over (partition by k) as rows")


def two_groups(frame: DataFrame) -> DataFrame:
    once = frame.groupBy(F.expr("a % 12 as k")).agg(F.collect_list("a").alias("some")).coalesce(1)
    twice = once.groupBy(F.expr("k % 3 as k")).agg(F.flatten(F.collect_list("some")).alias("rows"))
    return twice.select("rows")


def joined(frame: DataFrame) -> DataFrame:
    few = frame.where("a < 20").selectExpr("a as b")
    return frame.join(F.broadcast(few), F.expr("b = a % 20")).selectExpr("array(a, b) as rows")


def cache_of_a_cache(frame: DataFrame) -> DataFrame:
    return chosen(frame).cache().union(chosen(frame.where("a > 30")).cache()).where("rows[0] % 3 > 0")


CASES: Mapping[str, Kept] = {
    **{case.__name__: case for case in (chosen, window, two_groups, joined, cache_of_a_cache)}
}
#: And those in which an RDD is cached that a DataFrame was made of, or is below the cache of one.
NAMES = (*CASES, "checkpointed", "rdd", "given", "below", "grouped below")


def fails(kept: DataFrame) -> None:
    with pytest.raises(Exception, match="on purpose"):
        kept.select(F.expr("assert_true(rows[0] < 0, 'on purpose')")).collect()


def write(kept: DataFrame, path: Path) -> None:
    kept.select(F.to_json(F.struct("rows"))).write.text(str(path))


def fails_once(rows: list[int]) -> list[int]:
    context = TaskContext.get()
    assert context is not None
    if context.attemptNumber() == 0:
        raise ValueError("on purpose")
    return rows


@pytest.fixture(scope="module")
def ran(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Application, Path]:
    folder = tmp_path_factory.mktemp("kept")

    def job(context: SparkContext) -> None:
        spark = SparkSession.builder.getOrCreate()
        frame = spark.read.schema("a int").csv(numbers(folder))
        for name, make in CASES.items():
            kept = make(frame).cache()
            fails(kept)
            write(kept, folder / name)
            kept.unpersist()
        below = spark.createDataFrame(records(context, folder), "rows array<int>").cache()
        kept = records(context, folder).cache()
        of_list = spark.createDataFrame(kept, "rows array<int>")
        numbered = spark.createDataFrame(records(context, folder), "rows array<int>")
        grouped = two_groups(numbered.selectExpr("rows[0] as a")).cache()
        for name, cached in (("below", below), ("given", of_list), ("grouped below", grouped)):
            fails(cached)
            write(cached, folder / name)
        again = chosen(frame).localCheckpoint(eager=False)
        fails(again)
        write(again, folder / "checkpointed")
        rdd = chosen(frame).rdd.cache()
        with pytest.raises(Exception, match="on purpose"):
            rdd.foreach(lambda _: fails_once([]))
        rdd.map(lambda row: json.dumps({"rows": row[0]})).saveAsTextFile(str(folder / "rdd"))

    _, application = run_application(kafka.bootstrap_servers, tmp_path_factory.mktemp("store"), job)
    assert application is not None
    return application, folder


def numbers(folder: Path) -> str:
    for part in range(3):
        lines = "".join(f"{i}\n" for i in range(part * 40, part * 40 + 40))
        (folder / f"in-{part}.csv").write_text(lines)
    return str(folder / "in-*.csv")


def records(context: SparkContext, folder: Path) -> Any:
    lines = context.union([context.textFile(str(folder / f"in-{part}.csv"), 2) for part in range(3)])
    return lines.map(lambda line: ([int(line)],))


def source(row: int) -> tuple[str, int]:
    return f"in-{row // 40}.csv", row % 40


def check(application: Application, folder: Path, name: str) -> None:
    written = part_rows(folder / name)
    assert written
    for part, row, line in written:
        trace = application.trace(direction="backward", path=str(part), row=row)
        rows = json.loads(line)["rows"]
        assert trace.exact, (name, line)
        assert rows_at(trace, "source") == {source(row) for row in rows}, (name, line)
        node, record = next((node, node.records[0]) for node in trace.nodes if node.kind == "source")
        start = {"node": node.node_id, "partition": record.partition, "offset": record.offset}
        forward = application.trace(direction="forward", **start)
        assert (part.name, row) in rows_at(forward, "sink"), (name, line)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_task_cached_that_failed_is_known(name: str, ran: tuple[Application, Path]) -> None:
    check(*ran, name)


@pytest.mark.parametrize("conf", [{"master": "local[2,3]"}, CLUSTER], ids=["here", "cluster"])
def test_what_an_attempt_cached_that_was_made_again_is_known(
    conf: dict[str, str], run: Callable[..., tuple[Any, Application]], tmp_path: Path
) -> None:
    """A task fails once; the next attempt reads what the first one left."""

    def job(context: SparkContext) -> None:
        spark = SparkSession.builder.getOrCreate()
        frame = spark.read.schema("a int").csv(numbers(tmp_path))
        again = F.udf(lambda rows: fails_once(rows), "array<int>")  # without types, which it would look at
        for name, make in CASES.items():
            kept = make(frame).cache()
            write(kept.select(again("rows").alias("rows")), tmp_path / name)

    _, application = run(job, **conf)
    for name in CASES:
        check(application, tmp_path, name)
    assert application.questions.application(application.application_id).complete


def test_where_no_task_could_tell_nothing_is_said_to_be_exact(ran: tuple[Application, Path]) -> None:
    application, folder = ran
    untold = without_kept(application)
    exactness = []
    for part, row, line in (part_row for name in NAMES for part_row in part_rows(folder / name)):
        trace = untold.trace(direction="backward", path=str(part), row=row)
        exactness.append(trace.exact)
        if trace.exact:
            assert rows_at(trace, "source") == {source(row) for row in json.loads(line)["rows"]}
    assert not all(exactness)


def test_a_failed_task_that_fills_no_cache_says_nothing(
    run: Callable[..., tuple[Any, Application]], tmp_path: Path
) -> None:
    def job(context: SparkContext) -> None:
        spark = SparkSession.builder.getOrCreate()
        frame = spark.read.schema("a int").csv(numbers(tmp_path))
        kept = chosen(frame).cache()
        assert kept.count() == 96
        fails(kept)
        fails(two_groups(frame))
        broken = chosen(frame).select(F.expr("assert_true(rows[0] < 39, 'on purpose') as x"), "rows").cache()
        with pytest.raises(Exception, match="on purpose"):
            broken.collect()
        with pytest.raises(Exception, match="on purpose"):
            write(broken, tmp_path / "never")
        write(kept, tmp_path / "kept")

    _, application = run(job)
    check(application, tmp_path, "kept")
    described = application.questions.application(application.application_id)
    assert described.complete
    assert application.store is not None
    events = [row.event for row in application.store.event_rows]
    committed = {event["run"] for event in events if event["type"] == contract.RUN_COMMITTED}
    assert described.counters["runs"] == len(committed)
    reported = {event["run"] for event in events if event["type"] == contract.RUN_KEPT}
    assert reported
    assert reported <= committed

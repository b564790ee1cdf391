"""A fault of the agent in a rewriting: the query runs as it is, the graph says why, and it is counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from spark_agent.sql.rewrite import rewriter
from spark_agent.sql.rewrite.plan_walk import Handler, Rewritten, Walk
from spark_agent.sql.types import Plan
from tests.support.spark.application import Application
from tests.support.spark.dataframe_oracle import upstream


def raises(walk: Walk, plan: Plan) -> Rewritten:
    raise ZeroDivisionError("on purpose")


def loses_the_ids(walk: Walk, plan: Plan) -> Rewritten:
    """Spark would find out in the code that it generates, and the query would fail."""
    below = walk.child(plan)
    rewritten = walk.catalyst.with_children(plan, [walk.catalyst.project(plan.child().output(), below.plan)])
    return Rewritten(rewritten, below.ids, below.node)


def loses_a_column(walk: Walk, plan: Plan) -> Rewritten:
    below = walk.child(plan)
    columns = walk.catalyst.items(plan.child().output())[1:]
    return Rewritten(walk.catalyst.project(columns, below.plan), [], below.node)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (raises, "ZeroDivisionError: on purpose"),
        (loses_the_ids, "reads columns that it does not get"),
        (loses_a_column, "BrokenPlanError"),
    ],
)
def test_a_query_that_cannot_be_rewritten_runs_as_it_is(
    fault: Handler,
    said: str,
    tmp_path: Path,
    run: Callable[..., tuple[Any, Application]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(rewriter._HANDLERS, "Sort", fault)

    def job(context: SparkContext) -> list[list[Any]]:
        spark = SparkSession.builder.getOrCreate()
        numbers = spark.range(9, numPartitions=2).selectExpr("id", "id % 3 as rest")
        numbers.sortWithinPartitions("rest").write.parquet(str(tmp_path / "sorted"))
        numbers.where("id > 4").write.parquet(str(tmp_path / "chosen"))
        return [
            sorted(tuple(row) for row in spark.read.parquet(str(tmp_path / name)).collect())
            for name in ("sorted", "chosen")
        ]

    rows, application = run(job)
    assert rows == [[(i, i % 3) for i in range(9)], [(i, i % 3) for i in range(5, 9)]]
    counters = application.questions.application(application.application_id).counters
    assert counters["queries_failed"] == 1
    described = application.questions.application(application.application_id)
    assert not described.complete
    assert said in described.missing
    by_path = {sink.description: sink for sink in application.sinks()}
    failed, followed = by_path[str(tmp_path / "sorted")], by_path[str(tmp_path / "chosen")]
    assert not failed.exact
    assert said in failed.reason
    graph = application.questions.graph(application.application_id)
    assert all(node.exact for node in upstream(graph, followed.node_id))
    assert followed.records == 4


def test_records_of_a_query_that_failed_are_no_result(
    run: Callable[..., tuple[Any, Application]], tmp_path: Path
) -> None:
    def job(context: SparkContext) -> None:
        spark = SparkSession.builder.getOrCreate()
        frame = spark.range(40, numPartitions=4).selectExpr("id", "1 div (39 - id) as n")
        for action in (lambda: frame.write.parquet(str(tmp_path / "out")), frame.collect):
            with pytest.raises(Exception, match=r"(?i)zero"):
                action()
        frame.where("id < 5").collect()

    _, application = run(job, spark_sql_ansi_enabled="true")
    sinks = [(sink.name, sink.exact, "failed" in sink.reason) for sink in application.sinks()]
    assert sorted(sinks) == [("collect", False, True), ("collect", True, False), ("parquet", False, True)]

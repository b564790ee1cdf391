"""What rewriting asks of the JVM, for which the query waits: the same of a table with many columns."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from py4j.clientserver import ClientServerConnection
from pyspark import SparkContext
from pyspark.sql import SparkSession

from spark_agent.sql.runtime.queries import Queries
from tests.support.spark.application import Application

#: A round trip takes up to 0.3 ms, and a query should not wait for longer than 100.
MOST_CALLS = 150


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often the JVM was asked for each plan that was rewritten."""
    counts: list[int] = []
    asked: list[int] = []
    send, rewrite = ClientServerConnection.send_command, Queries.rewrite

    def sent(self: Any, *args: Any, **kwargs: Any) -> Any:
        asked.append(threading.get_ident())
        return send(self, *args, **kwargs)

    def rewritten(self: Queries, plan: Any, entry: str) -> Any:
        asked.clear()
        result = rewrite(self, plan, entry)
        if result is not None:
            counts.append(asked.count(threading.get_ident()))
        return result

    monkeypatch.setattr(ClientServerConnection, "send_command", sent)
    monkeypatch.setattr(Queries, "rewrite", rewritten)
    return counts


def test_rewriting_asks_the_jvm_no_more_for_more_columns(
    tmp_path: Path, calls: list[int], run: Callable[..., tuple[Any, Application]]
) -> None:
    def job(context: SparkContext) -> list[list[int]]:
        spark = SparkSession.builder.getOrCreate()
        counted = []
        for run, columns in enumerate((3, 3, 60)):
            calls.clear()
            path = str(tmp_path / f"rows-{run}")
            texts = [f"CAST(id AS STRING) AS c{number}" for number in range(1, columns)]
            spark.range(9).selectExpr("id AS c0", *texts).write.parquet(path)
            spark.read.parquet(path).where("c0 > 3").write.csv(f"{path}-filter")
            rows = spark.read.csv(f"{path}-filter")
            rows.join(rows.withColumnRenamed("_c1", "key").select("key"), rows._c1 == "key").collect()
            rows.union(rows).distinct().groupBy("_c1").count().orderBy("_c1").collect()
            counted.append(list(calls))
        return counted

    (_, few, many), application = run(job)
    assert many == few
    assert len(few) == 4
    assert max(few) < MOST_CALLS
    assert all(sink.exact for sink in application.sinks())

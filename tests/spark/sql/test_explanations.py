"""Explanations of what queries group: the rows give the record again, and are no more than needed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from lineage_service.lineage import Explanation
from lineage_service.queries import ExplanationQuery, StartQuery
from tests.support.lanes import sampled, selected
from tests.support.spark.application import Application, run_application
from tests.support.spark.dataframe_oracle import Place, rows_of_sources, written
from tests.support.spark.grouped_queries import (
    NAMES,
    NAMES_SCHEMA,
    QUERIES,
    SCHEMA,
    Name,
    Query,
    Reading,
    by_chance,
    is_among,
    row_at,
    write,
)

pytestmark = pytest.mark.timeout(1800)

FIRST = int(os.environ.get("LINEAGE_TEST_SEED", "1"))
COUNT = int(os.environ.get("LINEAGE_TEST_QUERIES", "40"))
RANDOM = {f"query {seed}": by_chance(seed) for seed in range(FIRST, FIRST + COUNT)}
CASES: dict[str, Query] = {**QUERIES, **RANDOM}


@dataclass(frozen=True)
class Written:
    folder: Path
    application: Application

    def rows(self, name: str) -> list[tuple[Place, tuple[Any, ...]]]:
        return written(self.folder / name)

    def explanation(self, name: str, place: Place) -> Explanation:
        path = str(self.folder / name / place[0])
        query = ExplanationQuery(starts=(StartQuery(path=path, row=place[1]),), limit=1000)
        return self.application.questions.explanation(self.application.application_id, query)


def begin(spark: SparkSession, folder: Path) -> None:
    """Make views of the tables in a folder."""
    read = spark.read
    read.schema(SCHEMA).csv(str(folder / "readings")).createOrReplaceTempView("readings")
    read.schema(NAMES_SCHEMA).csv(str(folder / "names")).createOrReplaceTempView("names")


def frame_of(spark: SparkSession, query: Query) -> DataFrame:
    if not query.is_of_rdd:
        return spark.sql(query.text)
    readings = spark.table("readings")
    through_rdd(spark, readings).createOrReplaceTempView("readings")
    frame = through_rdd(spark, spark.sql(query.text))
    readings.createOrReplaceTempView("readings")
    return frame


def through_rdd(spark: SparkSession, frame: DataFrame) -> DataFrame:
    return spark.createDataFrame(frame.rdd.map(tuple), frame.schema)


def write_rows(spark: SparkSession, query: Query, output: Path) -> None:
    try:
        frame = frame_of(spark, query)
        names = [f"c{at}" for at, _ in enumerate(frame.columns)]
        frame.toDF(*names).write.parquet(str(output))
    except Exception as error:
        error.add_note(query.text)
        raise


def run(servers: str, folder: Path, queries: dict[str, Query], **conf: str) -> Written:
    write(folder)

    def job(context: Any) -> None:
        spark = SparkSession.builder.getOrCreate()
        begin(spark, folder)
        for name, query in queries.items():
            write_rows(spark, query, folder / name)

    _, application = run_application(servers, folder / "store", job, **conf)
    assert application is not None
    return Written(folder, application)


@pytest.fixture(scope="module")
def ran(
    request: pytest.FixtureRequest, kafka: Any, jar: Path, tmp_path_factory: pytest.TempPathFactory
) -> Written:
    return run(kafka.bootstrap_servers, tmp_path_factory.mktemp("explained"), selected(request, CASES))


def rows_of(explanation: Explanation) -> tuple[list[Reading], list[Name]]:
    """The rows of both tables, in their order."""
    rows = [row_at(str(explaining.path), int(explaining.row or 0)) for explaining in explanation.rows]
    readings = [row for row in rows if isinstance(row, Reading)]
    return sorted(readings), [row for row in NAMES if row in rows]


def check(ran: Written, name: str) -> None:
    query, rows = CASES[name], ran.rows(name)
    assert rows
    for place, values in rows:
        explanation = ran.explanation(name, place)
        path = str(ran.folder / name / place[0])
        trace = ran.application.trace(direction="backward", path=path, row=place[1])
        assert (explanation.kind, explanation.exact) == ("concise", True), explanation.reasons
        explained = {(Path(row.path or "").name, row.row) for row in explanation.rows}
        assert explained <= rows_of_sources(trace)
        readings, names = rows_of(explanation)
        assert is_among(values, query.of(readings, names)), f"{values}: {readings}, {names}"
        in_trace = sum(not file.startswith("names") for file, _ in rows_of_sources(trace))
        assert explanation.reasons == ()
        if query.count is None:
            assert len(readings) == in_trace
        else:
            assert len(readings) <= min(query.count, in_trace)


@pytest.mark.parametrize("name", sampled(QUERIES, 2))
def test_the_rows_that_explain_a_row_give_it_again(name: str, ran: Written) -> None:
    check(ran, name)


@pytest.mark.parametrize("name", sampled(RANDOM, 20))
def test_the_rows_that_explain_a_row_of_a_random_query_give_it_again(name: str, ran: Written) -> None:
    try:
        check(ran, name)
    except Exception as error:
        error.add_note(CASES[name].text)
        raise


@pytest.mark.thorough
def test_stock_spark_gives_a_row_again_on_the_rows_that_explain_it(
    ran: Written, kafka: Any, tmp_path: Path
) -> None:
    """Of each query the first rows. Where Spark may choose, it chooses the same one or has no other."""
    asked = [(name, *row) for name in CASES if (ran.folder / name).exists() for row in ran.rows(name)[:2]]

    def job(context: Any) -> None:
        spark = SparkSession.builder.getOrCreate()
        for at, (name, place, _) in enumerate(asked):
            folder = tmp_path / str(at)
            write(folder, *rows_of(ran.explanation(name, place)))
            begin(spark, folder)
            write_rows(spark, CASES[name], folder / "out")

    run_application(kafka.bootstrap_servers, tmp_path / "store", job, lineage=False)
    for at, (name, _, values) in enumerate(asked):
        again = [row for _, row in written(tmp_path / str(at) / "out")]
        has_choice = any(word in CASES[name].text for word in ("first(", "last(", "any_value("))
        assert repr(values) in map(repr, again) or has_choice, CASES[name].text

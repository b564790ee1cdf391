"""What operators do with a row, computed again, and what Spark does with all rows, an operator at a time."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import ArithmeticException, NumberFormatException, PythonException
from pyspark.sql import SparkSession

from lineage_service.evaluation.scanned_row import of_columnar, of_line
from lineage_service.evaluation.steps import Step, scan_columns, verdict_of
from lineage_service.evaluation.values import Result, Value
from lineage_service.lineage import Column
from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.jvm_gateway import load
from tests.support.lanes import sampled
from tests.support.spark import random_filters as made

ROWS, CHAINS = 40, 8
Values = Mapping[int, dict[str, Result]]


class Tables:
    """The same hostile rows in several formats, and what the service reads of each."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, chance = spark, random.Random(28)
        java = load(spark.sparkContext)
        self.catalyst = Catalyst(spark.sparkContext._jvm, java)
        table = made.rows(chance, ROWS)
        made.write_parquet(folder / "rows.parquet", table)
        lines = {"csv": made.csv_lines(chance, table), "json": made.json_lines(chance, table)}
        for format, texts in lines.items():
            (folder / f"rows.{format}").write_text("".join(f"{line}\n" for line in texts))
        read = spark.read.schema(made.TEXT_SCHEMA)
        self.frames = {
            "parquet": spark.read.parquet(str(folder / "rows.parquet")),
            "csv": read.csv(str(folder / "rows.csv")),
            "json": read.json(str(folder / "rows.json")),
        }
        self.columns = {
            format: [Column(name=name, type=type) for name, type in frame.dtypes]
            for format, frame in self.frames.items()
        }
        types = dict(self.frames["parquet"].dtypes)
        small = {row.rid: row.small for row in self.frames["parquet"].collect()}
        self.values: dict[str, Values] = {
            "parquet": {
                row["rid"]: of_columnar(row | {"small": small[row["rid"]]}, types, self.columns["parquet"])
                for row in table
            },
            **{
                format: {
                    rid: of_line(format, line, self.columns[format], {"sep": ","})
                    for rid, line in enumerate(texts)
                }
                for format, texts in lines.items()
            },
        }

    def operators(self, frame: Any) -> list[Any]:
        """The optimised plan, from the scan up."""
        plan = frame._jdf.queryExecution().optimizedPlan()
        operators = [plan]
        while not plan.children().isEmpty():
            plan = plan.children().apply(0)
            operators.insert(0, plan)
        return operators

    def rids(self, plan: Any) -> set[int]:
        """Of the rows that Spark has after an operator."""
        from pyspark.sql import DataFrame

        session = self.spark._jsparkSession
        package = self.spark._jvm.org.apache.spark.sql
        if str(session.getClass().getName()).endswith(".classic.SparkSession"):
            package = package.classic
        plan.setAnalyzed()
        frame = DataFrame(getattr(getattr(package, "Dataset$"), "MODULE$").ofRows(session, plan), self.spark)
        return {row.rid for row in frame.select("rid").collect()}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("true", id="ansi"),
        pytest.param("false", id="legacy", marks=pytest.mark.thorough),
    ],
)
def tables(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tables]:
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.ansi.enabled", request.param)
        .getOrCreate()
    )
    yield Tables(spark, tmp_path_factory.mktemp("rows"))
    spark.stop()


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_the_values_of_a_row_are_those_that_spark_reads(tables: Tables, format: str) -> None:
    sure = 0
    by_rid = {row.rid: row.asDict() for row in tables.frames[format].collect() if row.rid is not None}
    for rid, values in tables.values[format].items():
        for name, value in values.items():
            if isinstance(value, Value):
                sure += 1
                assert repr(value.data) == repr(by_rid[rid][name]), (format, rid, name)
    assert sure > ROWS


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
@pytest.mark.parametrize("seed", sampled(range(20), 20))
def test_the_operator_that_is_named_is_the_one(tables: Tables, format: str, seed: int) -> None:
    chance, named = random.Random(seed), Counter[bool]()
    for _ in range(CHAINS):
        frame = made.chain(chance, tables.frames[format], has_floats=format == "parquet")
        try:
            operators = tables.operators(frame)
            after = [tables.rids(plan) for plan in operators]
        except (ArithmeticException, NumberFormatException, PythonException):
            continue  # the job itself fails, so that no row is asked for
        named += _check(tables, format, operators, after)
    assert named[True] > named[False]


def _check(tables: Tables, format: str, operators: Sequence[Any], after: Sequence[set[int]]) -> Counter[bool]:
    """How many rows had one operator named, and how many several."""
    looks = [tables.catalyst.look(plan) for plan in operators]
    steps = [Step(look.name, look.expressions) for look in looks[1:]]
    names, named = [column.name for column in tables.columns[format]], Counter[bool]()
    for rid in after[0] - after[-1] - {None}:
        (columns,) = scan_columns(looks[0].expressions, names, tables.values[format][rid])
        verdict = verdict_of(steps, columns)
        at = next(at for at, rids in enumerate(after[1:]) if rid not in rids)
        assert at in verdict.candidates, (format, rid, [look.text for look in looks], verdict)
        named[verdict.is_exact] += 1
    return named

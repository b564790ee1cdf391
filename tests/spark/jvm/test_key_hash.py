"""The numbers of keys: one for each key that Spark takes for one, told apart by Spark's own grouping."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.lanes import sampled
from tests.support.spark.taps import Taps, attributes

NAN = float("nan")
TEXTS = [None, *(letter * size for letter in ("a", "\0", "ß") for size in range(20)), "ab", "ba", "aab"]
#: Values of each type that are easily taken for each other.
VALUES: dict[str, list[Any]] = {
    "string": [*TEXTS, *(f"{'x' * size}{end}" for size in (6, 7, 8, 15, 16) for end in ("a", "b", "aa"))],
    "binary": [None, b"", b"\0", b"\0\0", b"\xff", b"\xff" * 8, b"\xff" * 9, b"abcdefgh", b"abcdefghi"],
    "boolean": [None, True, False],
    "tinyint": [None, 0, 1, -1, 127, -128],
    "int": [None, 0, 1, -1, 2**31 - 1, -(2**31), 8],
    "bigint": [None, 0, 1, -1, 2**63 - 1, -(2**63), 2**32],
    "float": [None, 0.0, -0.0, NAN, 1.5, float("inf"), -float("inf")],
    "double": [None, 0.0, -0.0, NAN, 1.5, float("inf"), -float("inf"), 5e-324],
    "decimal(9,2)": [None, Decimal("0.00"), Decimal("-0.01"), Decimal("1.50"), Decimal("9999999.99")],
    "decimal(38,2)": [None, Decimal("0.00"), Decimal("-0.01"), Decimal(10) ** 30, -(Decimal(10) ** 30)],
    "date": [None, datetime.date(1969, 12, 31), datetime.date(1970, 1, 1), datetime.date(2000, 1, 1)],
    "interval day to second": [None, datetime.timedelta(0), datetime.timedelta(microseconds=-1)],
    "array<string>": [None, [], [None], [""], ["a"], ["a", None], [None, "a"], ["a", ""]],
    "struct<a:int,b:string>": [None, (None, None), (1, None), (None, "1"), (1, "1")],
    "array<double>": [None, [0.0], [-0.0], [NAN], [None]],
}


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    builder = SparkSession.builder.master("local[2]").appName("keys")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.fallback": "false",  # generated code that does not compile fails the test
        "spark.sql.warehouse.dir": "/nowhere",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def taps(jar: Path, spark: SparkSession) -> Taps:
    return Taps(spark, "127.0.0.1:9")


@pytest.fixture(params=["generated", "interpreted"])
def way(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    if request.param == "interpreted":
        spark.conf.set("spark.sql.codegen.wholeStage", "false")
        spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    yield request.param
    spark.conf.unset("spark.sql.codegen.wholeStage")
    spark.conf.unset("spark.sql.codegen.factoryMode")


def keyed(taps: Taps, frame: DataFrame, name: str = "number") -> DataFrame:
    """`frame` with one column more: the number of each row."""
    plan = frame._jdf.queryExecution().analyzed()
    columns = [*attributes(plan).values()]
    number = taps.java.plan_builder.alias(taps.java.plan_builder.key(taps.java.seq(columns)), name)
    return taps.frame(
        taps.java.plan_builder.project(taps.java.seq(columns), taps.java.java_list([number]), plan)
    )


def check(frame: DataFrame) -> None:
    """Rows have one number if Spark groups them together, and only then."""
    columns = [name for name in frame.columns if name != "number"]
    groups = frame.groupBy(*columns).agg(F.collect_set("number").alias("numbers")).collect()
    numbers = [number for group in groups for number in group["numbers"]]
    assert [group for group in groups if len(group["numbers"]) != 1] == []
    assert len(set(numbers)) == len(groups)
    assert all(0 <= number < 2**63 for number in numbers)


@pytest.mark.parametrize("type_name", VALUES)
def test_values_have_numbers_as_spark_groups_them(
    spark: SparkSession, taps: Taps, way: str, type_name: str
) -> None:
    frame = spark.createDataFrame([(value,) for value in VALUES[type_name]], f"k {type_name}")
    check(keyed(taps, frame.union(frame)))


@pytest.mark.parametrize("types", [("string", "string"), ("int", "string"), ("double", "binary")])
def test_pairs_have_numbers_as_spark_groups_them(
    spark: SparkSession, taps: Taps, way: str, types: tuple[str, str]
) -> None:
    one, other = types
    pairs = [(a, b) for a in VALUES[one] for b in VALUES[other]]
    check(keyed(taps, spark.createDataFrame(pairs, f"a {one}, b {other}")))


def test_generated_and_interpreted_numbers_are_the_same(spark: SparkSession, taps: Taps) -> None:
    rows = [tuple(values[at % len(values)] for values in VALUES.values()) for at in range(40)]
    frame = spark.createDataFrame(rows, ", ".join(f"c{at} {name}" for at, name in enumerate(VALUES)))
    generated = keyed(taps, frame.coalesce(1)).select("number").collect()
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    interpreted = keyed(taps, frame.coalesce(1)).select("number").collect()
    spark.conf.unset("spark.sql.codegen.wholeStage")
    spark.conf.unset("spark.sql.codegen.factoryMode")
    assert generated == interpreted


def test_a_column_that_has_no_nulls_has_the_numbers_of_one_that_may(spark: SparkSession, taps: Taps) -> None:
    frame = spark.range(100).select(F.col("id"), F.col("id").cast("string").alias("text"))
    nullable = spark.createDataFrame([tuple(row) for row in frame.collect()], "id long, text string")
    assert [field.nullable for field in frame.schema] == [False, False]
    assert [field.nullable for field in nullable.schema] == [True, True]
    ours = {row["id"]: row["number"] for row in keyed(taps, frame).collect()}
    assert {row["id"]: row["number"] for row in keyed(taps, nullable).collect()} == ours


def test_keys_of_very_many_columns(spark: SparkSession, taps: Taps, way: str) -> None:
    frame = spark.range(7).select(*((F.col("id") % at).alias(f"c{at}") for at in range(1, 121)))
    check(keyed(taps, frame.union(frame)))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "key", sampled(["concat('word', id)", "id", "concat('a longer word, number ', id)"], 3)
)
def test_many_keys_that_are_alike_have_numbers_that_are_not(
    spark: SparkSession, taps: Taps, key: str
) -> None:
    count = 200_000
    numbers = keyed(taps, spark.range(count).selectExpr(f"{key} as k")).select("number")
    bits = [F.sum(F.shiftright("number", bit).bitwiseAND(1)).alias(f"b{bit}") for bit in range(63)]
    different, *ones = numbers.agg(F.countDistinct("number"), *bits).collect()[0]
    assert different == count
    # Of coins thrown so often, half are heads within 1 % but once in 10**18 times.
    assert [bit for bit, ones_of_bit in enumerate(ones) if not 0.49 < ones_of_bit / count < 0.51] == []

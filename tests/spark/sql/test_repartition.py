"""With lineage on, `repartition(n)` takes each row to the partition and the place where it goes without."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.spark.application import run_application
from tests.support.spark.dataframe_oracle import Tables, conf_of
from tests.support.spark.shop import make_shop

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(2700)]


def typed(t: Tables) -> DataFrame:
    return t.orders.selectExpr(
        "*", "cast(price as decimal(30, 4)) d", "if(id % 3 = 0, null, cast(amount as decimal(9, 2))) e",
        "array(tag, 'a')", "struct(id, tag)", "map(id, tag)", "cast(tag as binary)",
        "date_add(date'2026-01-01', id)", "cast(null as int)",
    )  # fmt: skip


def alike(t: Tables) -> DataFrame:
    return t.orders.selectExpr("explode(sequence(0, 40)) as n", "tag").selectExpr("n % 3", "tag")


FRAMES: dict[str, Callable[[Tables], DataFrame]] = {
    "a table": lambda t: t.orders.repartition(3),
    "columns of all types": lambda t: typed(t).repartition(3),
    "an aggregate": lambda t: t.orders.groupBy("tag").agg(F.max("price"), F.count("*")).repartition(3),
    "coalesced": lambda t: t.orders.coalesce(1).repartition(4),
    "a union": lambda t: t.orders.union(t.orders.where("amount > 3")).repartition(5),
    "twice": lambda t: t.orders.repartition(7).where("amount > 3").repartition(2),
    "more partitions than rows": lambda t: t.orders.repartition(250),
    "one partition": lambda t: t.orders.repartition(1),
    "a join": lambda t: t.orders.join(t.customers, F.expr("customer = key")).repartition(3),
    "no columns": lambda t: t.orders.select().repartition(3),
    "rows that are alike": lambda t: alike(t).repartition(6),
    "a hint": lambda t: t.spark.sql("select /*+ repartition(3) */ * from orders"),
    "a query with a name that is read twice": lambda t: t.spark.sql(
        "with named as (select id, tag, rand(7) r from orders) "
        "select * from named where r < 0.7 union all select * from named"
    ),
    "a repartition with a name that is read twice": lambda t: t.spark.sql(
        "with named as (select /*+ repartition(3) */ id, tag, rand(7) r from orders) "
        "select * from named where r < 0.7 union all select * from named"
    ),
    "a hint without a number": lambda t: t.spark.sql("select /*+ repartition */ id, tag from orders"),
}

CONFS: dict[str, dict[str, str]] = {
    "as it is": {},
    "without AQE": {"spark.sql.adaptive.enabled": "false"},
    "without compiled code": {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    },
    "unsorted": {"spark.sql.execution.sortBeforeRepartition": "false"},
}


def placed(frame: DataFrame) -> DataFrame:
    """Each row, its partition and its place there."""
    numbered = frame.select("*", F.spark_partition_id(), F.monotonically_increasing_id())
    return numbered.toDF(*(f"c{at}" for at in range(len(numbered.columns))))


def of_a_million(t: Tables) -> DataFrame:
    """Some hundred pairs of these rows have the same hash of 32 bits."""
    rows = t.spark.range(0, 1_000_000, 1, 1).selectExpr("id", "string(id * 7) as s").repartition(3)
    return placed(rows).agg(F.expr("count(*)"), F.expr("bit_xor(xxhash64(c0, c1, c2, c3))"))


Outcomes = Mapping[tuple[str, str], list[str]]


def outcomes(kafka: Any, folder: Path, *, lineage: bool) -> Outcomes:
    shop = make_shop(folder / "shop")

    def job(context: SparkContext) -> Outcomes:
        tables = Tables(SparkSession.builder.getOrCreate(), shop)
        tables.orders.createOrReplaceTempView("orders")
        rows = {}
        for name, conf in ALL:
            with conf_of(tables.spark, CONFS[conf]):
                frame = of_a_million(tables) if name == MILLION else placed(FRAMES[name](tables))
                rows[name, conf] = [repr(tuple(row)) for row in frame.collect()]
        return rows

    result, seen = run_application(kafka.bootstrap_servers, folder / "store", job, lineage=lineage)
    if seen is not None:  # what is not rewritten is the same for no reason
        assert seen.questions.application(seen.application_id).counters["queries_failed"] == 0
    return result  # type: ignore[no-any-return]


MILLION = "a million rows"
ALL = [*((name, conf) for conf in CONFS for name in FRAMES), (MILLION, "as it is")]


@pytest.fixture(scope="module")
def plain(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return outcomes(kafka, tmp_path_factory.mktemp("plain"), lineage=False)


@pytest.fixture(scope="module")
def captured(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return outcomes(kafka, tmp_path_factory.mktemp("captured"), lineage=True)


@pytest.mark.parametrize(("name", "conf"), ALL)
def test_rows_go_where_they_go_without_lineage(
    name: str, conf: str, plain: Outcomes, captured: Outcomes
) -> None:
    assert captured[name, conf] == plain[name, conf]

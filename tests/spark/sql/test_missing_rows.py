"""Where rows of inputs ended, by asking queries again for one row, and what plain Python says of each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.jvm_gateway import load
from spark_agent.sql.rerun.asked_queries import AskedQueries, AskedQuery
from spark_agent.sql.rewrite.plan_nodes import PlanNode

pytestmark = pytest.mark.timeout(1800)

SCHEMA = "id int, customer int, amount int, tag string"
#: (id, customer, amount, tag); None: a blank line.
ORDERS: list[tuple[int, int | None, int, str] | None] = [
    (1, 1, 10, "a"),
    None,
    (2, 9, 10, "b"),
    (3, 1, 1, "a"),
    (4, 2, 7, "a"),
    (5, None, 10, "b"),
    (6, 2, 8, "b"),
    (7, 1, 9, "x y"),
]
CUSTOMERS = [(1, "ann"), (2, "bob"), (3, "cyd")]
KEYS = {key for key, _ in CUSTOMERS}
Row = Any


@dataclass(frozen=True)
class Case:
    """`ends` says of an order at which operator it ends in each scan; None: in none."""

    query: Callable[[DataFrame, DataFrame], DataFrame]
    ends: Callable[[Row], list[str | None]]
    of_customers: Callable[[int], str | None] | None = None
    doubt: str = ""


def rows() -> list[tuple[int, int | None, int, str]]:
    return [row for row in ORDERS if row is not None]


def total(customer: int | None) -> int:
    return sum(row[2] for row in rows() if row[1] == customer)


def least(customer: int | None) -> int:
    return min(row[2] for row in rows() if row[1] == customer)


def met(row: Row, is_more: bool) -> bool:
    """Is there an order of the same customer with a larger (or smaller) amount?"""
    others = [other[2] for other in rows() if other[1] == row[1] and row[1] is not None]
    return any(other > row[2] if is_more else other < row[2] for other in others)


def joined(row: Row) -> str | None:
    return "Filter" if row[1] is None else None if row[1] in KEYS else "Join"


def by_key() -> Any:
    return F.col("customer") == F.col("key")


CASES = {
    "filter": Case(
        lambda o, c: o.where("amount > 5 and tag = 'a'"),
        lambda row: [None if row[2] > 5 and row[3] == "a" else "Filter"],
    ),
    "filter and join": Case(
        lambda o, c: o.where("amount > 5").join(c, by_key()),
        lambda row: ["Filter" if row[2] <= 5 else joined(row)],
        lambda key: None if any(row[1] == key and row[2] > 5 for row in rows()) else "Join",
    ),
    "left join": Case(
        lambda o, c: o.join(c, by_key(), "left"),
        lambda row: [None],
        lambda key: None if any(row[1] == key for row in rows()) else "Join",
    ),
    "full join": Case(lambda o, c: o.join(c, by_key(), "full"), lambda row: [None], lambda key: None),
    "semi join": Case(lambda o, c: o.join(c, by_key(), "semi"), lambda row: [joined(row)]),
    "anti join": Case(
        lambda o, c: o.join(c, by_key(), "anti"),
        lambda row: ["Join" if row[1] in KEYS else None],
        lambda key: "Join",
    ),
    "self-join": Case(
        lambda o, c: o.alias("a").join(
            o.alias("b"), F.expr("a.customer = b.customer and a.amount < b.amount")
        ),
        lambda row: [
            "Filter" if row[1] is None else None if met(row, is_more) else "Join" for is_more in (True, False)
        ],
    ),
    "having": Case(
        lambda o, c: o.groupBy("customer").agg(F.sum("amount").alias("total")).where("total > 15"),
        lambda row: [None if total(row[1]) > 15 else "Filter"],
    ),
    "join of groups": Case(
        lambda o, c: o.groupBy("customer").count().join(c, by_key()),
        lambda row: [joined(row)],
        lambda key: None if any(row[1] == key for row in rows()) else "Join",
    ),
    "rank": Case(
        lambda o, c: o.withColumn(
            "place", F.rank().over(Window.partitionBy("customer").orderBy("amount"))
        ).where("place = 1"),
        lambda row: [None if row[2] == least(row[1]) else "Filter"],
    ),
    "explode": Case(
        lambda o, c: o.withColumn("word", F.explode(F.split("tag", " "))).where("word = 'y'"),
        lambda row: [None if "y" in row[3].split(" ") else "Filter"],
    ),
    "union": Case(
        lambda o, c: o.where("amount > 8").union(o.where("tag = 'b'")),
        lambda row: [None if row[2] > 8 else "Filter", None if row[3] == "b" else "Filter"],
    ),
    "distinct": Case(lambda o, c: o.select("tag").distinct(), lambda row: [None]),
    "global aggregate": Case(lambda o, c: o.agg(F.count("*")), lambda row: [None]),
    "limit": Case(
        lambda o, c: o.orderBy("id").limit(2),
        lambda row: [None],
        doubt="GlobalLimit may have left it out",
    ),
    "limit behind a filter": Case(
        lambda o, c: o.orderBy("id").limit(2).where("amount > 5"),
        lambda row: [None if row[2] > 5 else "Filter"],
        doubt="GlobalLimit may have left it out",
    ),
    "function of Python": Case(
        lambda o, c: o.mapInPandas(lambda frames: frames, SCHEMA), lambda row: [], doubt="cannot be followed"
    ),
    "chance": Case(
        lambda o, c: o.where("uuid() = 'x' or amount > 5"),
        lambda row: [None if row[2] > 5 else "Filter"],
        doubt="not all of Filter gives the same again",
    ),
}
#: In `make test`: one row of each of these.
QUICK = ("filter and join", "having")


class Asked:
    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        lines = ["id,customer,amount,tag", *("" if row is None else _line(row) for row in ORDERS)]
        (folder / "orders.csv").write_text("".join(f"{line}\n" for line in lines))
        spark.createDataFrame(CUSTOMERS, "key int, name string").coalesce(1).write.parquet(
            str(folder / "customers")
        )
        self.customers_file = next((folder / "customers").glob("*.parquet"))
        self.orders = spark.read.option("header", True).schema(SCHEMA).csv(str(folder / "orders.csv"))
        self.customers = spark.read.parquet(str(folder / "customers"))
        self.catalyst = Catalyst(spark.sparkContext._jvm, load(spark.sparkContext))

    def queries(self, frame: DataFrame) -> AskedQueries:
        """That remember one query."""
        queries = AskedQueries(self.catalyst, self.spark.sparkContext._jvm, lambda frame: None)
        queries.remember(frame._jdf.queryExecution().optimizedPlan(), [PlanNode(0, "collect", kind="sink")])
        return queries


def _line(row: Row) -> str:
    return ",".join("" if value is None else str(value) for value in row)


def names(asked: list[AskedQuery]) -> list[str | None]:
    return [one.end.name or None for one in asked if one.end is not None]


@pytest.fixture(scope="module")
def asked(jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.codegen.wholeStage", "false")  # else most of the time goes into compiling
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    yield Asked(spark, tmp_path_factory.mktemp("asked"))
    spark.stop()


@pytest.mark.thorough
@pytest.mark.parametrize("name", CASES)
def test_each_row_ends_where_plain_python_says(asked: Asked, name: str) -> None:
    case = CASES[name]
    queries = asked.queries(case.query(asked.orders, asked.customers))
    for line, row in enumerate(ORDERS, start=1):
        if row is not None:
            _check(queries.missing(str(asked.folder / "orders.csv"), line), case.ends(row), case.doubt)
    for at, (key, _) in enumerate(CUSTOMERS if case.of_customers else ()):
        assert case.of_customers is not None
        _check(queries.missing(str(asked.customers_file), at), [case.of_customers(key)], case.doubt)


@pytest.mark.parametrize("name", QUICK)
def test_a_row_ends_where_plain_python_says(asked: Asked, name: str) -> None:
    case, queries = CASES[name], asked.queries(CASES[name].query(asked.orders, asked.customers))
    _check(queries.missing(str(asked.folder / "orders.csv"), 3), case.ends(ORDERS[2]), case.doubt)


def _check(answers: list[AskedQuery], ends: list[str | None], doubt: str) -> None:
    assert names(answers) == ends
    assert all(doubt in one.reason and bool(one.reason) == bool(doubt) for one in answers), answers


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("row", "why"),
    [(3, "no row of the other side has key = 9"), (4, "not amount > 5"), (6, "customer is null")],
)
def test_the_reason_names_the_condition_or_the_key(asked: Asked, row: int, why: str) -> None:
    queries = asked.queries(CASES["filter and join"].query(asked.orders, asked.customers))
    (one,) = queries.missing(str(asked.folder / "orders.csv"), row)
    assert one.end is not None
    assert one.end.why == why


@pytest.mark.thorough
def test_a_row_that_was_one_of_several_equal_ones_says_so(asked: Asked) -> None:
    """By customer: line 1 has two more, line 3 has none."""
    queries = asked.queries(asked.orders.select("customer").distinct())
    ends = [one.end for line in (1, 3) for one in queries.missing(str(asked.folder / "orders.csv"), line)]
    duplicates = [[one.why for one in end.duplicates] for end in ends if end is not None]
    assert duplicates == [
        ["distinct: 3 rows were equal here, and one row stands for all of them"],
        [],
    ]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("row", "reason"), [(0, "is the header"), (2, "is a blank line"), (99, "has no row 99")]
)
def test_a_row_that_is_no_record_is_refused(asked: Asked, row: int, reason: str) -> None:
    (one,) = asked.queries(asked.orders.where("id > 1")).missing(str(asked.folder / "orders.csv"), row)
    assert one.end is None
    assert reason in one.reason


@pytest.mark.thorough
def test_a_file_that_has_changed_is_refused(asked: Asked, tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_text("one\ntwo\n")
    queries = asked.queries(asked.spark.read.text(str(file)).where("value = 'one'"))
    assert names(queries.missing(str(file), 1)) == ["Filter"]
    file.write_text("one\ntwo\nthree\n")
    (one,) = queries.missing(str(file), 1)
    assert "has changed" in one.reason


@pytest.mark.thorough
def test_a_malformed_line_is_what_the_scan_made_of_it(asked: Asked, tmp_path: Path) -> None:
    file = tmp_path / "bad.csv"
    file.write_text("1,2,x,a\n1,2\n1,2,3,a,b\n,,6,\n")
    frame = asked.spark.read.schema(SCHEMA).csv(str(file))
    for condition in ("amount > 2", "customer = 2", "tag is not null"):
        queries = asked.queries(frame.where(condition).select("id"))
        marked = ("monotonically_increasing_id() as at", f"({condition}) <=> true as is_kept")
        for row in frame.selectExpr(*marked).collect():
            assert names(queries.missing(str(file), row.at)) == [None if row.is_kept else "Filter"], row

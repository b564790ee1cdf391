"""Small jobs as people write them: for every row of their inputs, plain Python says what became of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lineage_service.lineage import Missing
from lineage_service.queries import MissingQuery
from tests.support.spark.application import Application, run_application

Order = tuple[int, int | None, str, int]
"""(id, customer, city, amount)."""
CITIES = ["Graz", "Linz", "Wien, Mitte", "Zürich", "Oslo"]
ORDERS: list[Order] = [
    (at, None if at % 7 == 3 else at % 5, CITIES[at * 3 % 5], at * 7 % 13) for at in range(40)
]
CUSTOMERS = {0: "ann", 1: "bo", 2: "cy", 7: "dee"}
COUNTRIES = {"Graz": "AT", "Linz": "AT", "Wien, Mitte": "AT", "Oslo": "NO"}
MOMENTS = (
    "id",
    "timestamp_seconds(1361968200 + id * 86400) as time",  # from 2013-02-27 12:30 UTC on, day by day
    "cast(id as decimal(10,2)) / 4 as price",
    "date_add(date'2013-02-27', cast(id as int)) as day",
)
LETTERS = [" abcde"[at % 5 + 1] for at in range(12)]


def is_vip(customer: int | None) -> bool:
    return customer != 1


@dataclass
class Ran:
    folder: Path
    application: Application

    def missing(self, file: str, row: int, output: str, **query: Any) -> Missing:
        asked = MissingQuery(path=str(self.folder / file), row=row, output=str(self.folder / output), **query)
        return self.application.questions.missing(self.application.application_id, asked)

    def end(self, row: int, output: str) -> tuple[str, str, bool] | None:
        """(operation, why, exact) of an order; None of one that is in the output."""
        missing = self.missing("orders.csv", row, output)
        if missing.reached:
            assert not missing.rows
            return None
        (entry,) = missing.rows
        assert entry.ended is not None, entry
        return entry.ended.name, entry.ended.why, entry.exact


def write_inputs(spark: Any, folder: Path) -> None:
    lines = [
        ",".join(("" if customer is None else str(customer), f'"{city}"', str(amount)))
        for _, customer, city, amount in ORDERS
    ]
    (folder / "orders.csv").write_text(
        "".join(f"{at},{line}\n" for at, line in enumerate(lines)), encoding="utf-8"
    )
    (folder / "letters.txt").write_text("".join(f"{letter}\n" for letter in LETTERS))
    (folder / "more.txt").write_text("a\nb\na\nz\n")
    (folder / "customers.csv").write_text("".join(f"{key},{name}\n" for key, name in CUSTOMERS.items()))
    countries = spark.createDataFrame(list(COUNTRIES.items()), "town string, country string")
    countries.coalesce(1).write.parquet(str(folder / "countries"))


def write_broken(path: Path) -> None:
    """Three row groups of ten rows, of which Spark cannot read the second."""
    table = pa.table({"amount": pa.array(range(30), pa.int64())})
    pq.write_table(table, path, row_group_size=10, use_dictionary=False)
    place = pq.read_metadata(path).row_group(1).column(0).data_page_offset
    data = bytearray(path.read_bytes())
    data[place : place + 30] = b"\xff" * 30
    path.write_bytes(data)


def job(context: Any, folder: Path) -> None:
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    spark = SparkSession(context)
    write_inputs(spark, folder)
    write_broken(folder / "broken.parquet")
    orders = spark.read.csv(f"{folder}/orders.csv", schema="id int, customer int, city string, amount int")
    customers = spark.read.csv(f"{folder}/customers.csv", schema="key int, name string")
    countries = spark.read.parquet(f"{folder}/countries")
    met = orders.join(customers, orders.customer == customers.key)
    named = met.join(countries, met.city == countries.town)
    named.where("amount > 2").select("id", "name", "country").write.json(f"{folder}/two-joins")
    known = countries.where("country = 'AT'")
    orders.where("amount < 11").join(known, orders.city == known.town, "left_anti").write.json(
        f"{folder}/abroad"
    )
    vip = F.udf(is_vip, "boolean", useArrow=False)
    orders.where(vip("customer")).join(customers, orders.customer == customers.key).write.json(
        f"{folder}/vips"
    )
    orders.select("customer", "city").distinct().write.json(f"{folder}/pairs")
    orders.dropDuplicates(["city"]).write.json(f"{folder}/first-of-city")
    orders.where("amount > 3").select("city").union(countries.select("town")).distinct().write.json(
        f"{folder}/towns"
    )
    orders.select("city").exceptAll(countries.select("town")).write.json(f"{folder}/excepted")
    orders.write.parquet(f"{folder}/copied")
    spark.read.parquet(f"{folder}/copied").where("amount > 6").write.json(f"{folder}/large")
    spark.range(20).selectExpr(*MOMENTS).coalesce(1).write.parquet(f"{folder}/moments")
    moments = spark.read.parquet(f"{folder}/moments").where(
        "time >= timestamp'2013-03-01 00:00:00Z' and price < 4.5 and day <> date'2013-03-04'"
    )
    moments.join(customers, moments.id == customers.key).write.json(f"{folder}/late")
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    spark.read.parquet(f"{folder}/broken.parquet").where("amount > 3").write.json(f"{folder}/of-broken")
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "false")
    letters, more = (context.textFile(f"{folder}/{name}.txt", 2) for name in ("letters", "more"))
    letters.map(str.upper).distinct().saveAsTextFile(f"{folder}/upper")
    letters.union(more).distinct().filter(lambda text: text != "c").saveAsTextFile(f"{folder}/union")
    letters.intersection(more).saveAsTextFile(f"{folder}/both")
    letters.subtract(more).saveAsTextFile(f"{folder}/only")
    context.parallelize(letters.take(5)).saveAsTextFile(f"{folder}/taken")


@pytest.fixture(scope="module")
def ran(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("jobs")
    _, application = run_application(
        kafka.bootstrap_servers,
        folder / "store",
        lambda context: job(context, folder),
        spark_sql_shuffle_partitions="2",
        spark_sql_adaptive_enabled="false",
    )
    assert application is not None
    return Ran(folder, application)


# -- one of several operators ------------------------------------------------------------------------


def test_of_two_joins_and_a_filter_the_one_is_named(ran: Ran) -> None:
    for at, customer, city, amount in ORDERS:
        end = ran.end(at, "two-joins")
        if customer in CUSTOMERS and city in COUNTRIES and amount > 2:
            assert end is None
            continue
        assert end is not None
        operation, why, is_exact = end
        assert is_exact, ORDERS[at]
        possible = {
            "amount": amount <= 2,
            "customer": customer is None,
            "key": customer not in CUSTOMERS,
            "town": city not in COUNTRIES,
        }
        assert any(name in why for name, holds in possible.items() if holds), (ORDERS[at], end)
        if operation == "Join" and customer is not None:
            assert ("town = " in why) is (customer in CUSTOMERS and city not in COUNTRIES) or (
                "key = " in why and customer not in CUSTOMERS
            ), (ORDERS[at], end)


def test_of_an_anti_join_and_a_filter_the_one_is_named(ran: Ran) -> None:
    for at, _, city, amount in ORDERS:
        end = ran.end(at, "abroad")
        is_at_home = COUNTRIES.get(city) == "AT"
        if amount < 11 and not is_at_home:
            assert end is None
        else:
            assert end is not None
            assert (end[0], end[2]) == ("Filter" if amount >= 11 else "Join", True), (ORDERS[at], end)


def test_times_and_decimals_of_parquet_decide(ran: Ran) -> None:
    (file,) = (ran.folder / "moments").glob("*.parquet")
    for row in range(20):
        missing = ran.missing(f"moments/{file.name}", row, "late")
        is_late = row >= 2 and row / 4 < 4.5 and row != 5
        assert bool(missing.reached) is (is_late and row in CUSTOMERS)
        for entry in missing.rows:
            assert (entry.exact, entry.ended and entry.ended.name) == (True, "Join" if is_late else "Filter")


def test_what_is_not_computed_again_is_named(ran: Ran) -> None:
    for at, customer, *_ in ORDERS:
        missing = ran.missing("orders.csv", at, "vips")
        is_in = customer in CUSTOMERS and is_vip(customer)
        assert bool(missing.reached) is is_in
        for entry in missing.rows:
            if entry.exact:
                assert customer is None
                continue
            assert "the Python function `is_vip`, which is not computed again here" in entry.reason
            assert f".missing({at})" in entry.reason


def test_a_row_that_spark_may_have_skipped_is_not_said_to_have_been_left_out_by_the_filter(ran: Ran) -> None:
    for row in (22, 25, 29):
        missing = ran.missing("broken.parquet", row, "of-broken")
        assert not missing.reached
        assert [entry.exact for entry in missing.rows] == [False]
        assert "Spark was told to skip what it cannot read" in missing.rows[0].reason
    assert ran.missing("broken.parquet", 7, "of-broken").reached


# -- duplicates ------------------------------------------------------------------------------------


def check_duplicates(ran: Ran, file: str, values: list[Any], output: str, name: str) -> None:
    """Each row says how many equal ones there are, and names the first of the others."""
    for at, value in enumerate(values):
        missing = ran.missing(file, at, output)
        (reached,) = missing.reached
        equal = [other for other, same in enumerate(values) if same == value]
        duplicates = [one for one in reached.duplicates if one.name == name]
        if len(equal) == 1:
            assert not reached.duplicates
            continue
        (duplicate,) = duplicates
        assert (duplicate.total, duplicate.exact) == (len(equal), True)
        rows = [record.source and record.source.row for record in duplicate.equal]
        assert rows == [other for other in equal if other != at][:5]
        assert duplicate.why.startswith(f"distinct: {len(equal)} rows of this input")


def test_a_row_that_was_one_of_several_equal_ones_says_so(ran: Ran) -> None:
    pairs = [(customer, city) for _, customer, city, _ in ORDERS]
    check_duplicates(ran, "orders.csv", pairs, "pairs", "Aggregate")
    check_duplicates(ran, "orders.csv", [city for _, _, city, _ in ORDERS], "first-of-city", "Aggregate")
    check_duplicates(ran, "letters.txt", LETTERS, "upper", "distinct")


def test_rows_that_drop_duplicates_left_out_have_the_same_key(ran: Ran) -> None:
    (reached,) = ran.missing("orders.csv", 5, "first-of-city").reached
    assert "had the same city here, and one row stands for all of them" in reached.duplicates[0].why
    (reached,) = ran.missing("orders.csv", 5, "pairs").reached
    assert "were equal here" in reached.duplicates[0].why


def test_sets_of_rows(ran: Ran) -> None:
    for at, (*_, amount) in enumerate(ORDERS):
        end = ran.end(at, "towns")
        assert (end is None) is (amount > 3)
        left = ran.missing("orders.csv", at, "excepted")
        assert left.rows or left.reached
    for at, letter in enumerate(LETTERS):
        union, both, only = (ran.missing("letters.txt", at, name) for name in ("union", "both", "only"))
        assert bool(union.reached) is (letter != "c")
        assert bool(both.reached) is (letter in "abz")
        assert bool(only.reached) is (letter not in "abz")
        for missing in (union, both, only):
            assert all(entry.exact for entry in missing.rows)
        named = Counter(entry.ended.name for m in (both, only) for entry in m.rows if entry.ended)
        assert named == {"intersection": 1} if letter not in "abz" else {"subtract": 1}


# -- on into what reads the output ----------------------------------------------------------------------


def test_a_row_is_followed_into_queries_that_read_the_output(ran: Ran) -> None:
    for at, (_, _, _, amount) in enumerate(ORDERS):
        missing = ran.missing("orders.csv", at, "large")
        reached = [output.description for row in missing.reached for output in row.outputs]
        assert any(text.endswith("/copied") for text in reached)
        assert any(text.endswith("/large") for text in reached) is (amount > 6), (at, missing)
        ended = [entry for entry in missing.rows if entry.path and "/copied/" in entry.path]
        assert bool(ended) is (amount <= 6)
        assert all(entry.exact and entry.ended and entry.ended.name == "Filter" for entry in ended)
        alone = ran.application.questions.missing(
            ran.application.application_id,
            MissingQuery(path=str(ran.folder / "orders.csv"), row=at, across=False),
        )
        assert not any(entry.path and "/copied/" in entry.path for entry in alone.rows)

"""Where a task writes several files: folders of values, buckets, files of so many rows, in each format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from lineage_service.errors import NotFoundError
from tests.support.lanes import sampled
from tests.support.spark import relational as r
from tests.support.spark.dataframe_oracle import (
    Case,
    Ran,
    conf_of,
    records_of,
    rows_of_sources,
    without_lineage,
)
from tests.support.spark.shop import Order, Shop

# The first test of the module runs the queries of all of them.
pytestmark = [pytest.mark.timeout(1800), pytest.mark.thorough]

Write = Callable[[DataFrame, str], Any]


def two(row: Order) -> tuple[int, int]:
    return row.id, row.amount


def line(row: Order) -> tuple[str]:
    return (f"{row.id},{row.amount}",)


def document(row: Order) -> tuple[str]:
    return (f'{{"id":{row.id},"amount":{row.amount}}}',)


def kept(s: Shop) -> r.Data:
    return r.where(s.orders, lambda o: o.amount > 4)


def late(s: Shop) -> r.Data:
    return r.where(kept(s), lambda o: o.id > 9)


def by(columns: list[str], write: Write, shown: Callable[[Order], Any] = two, **more: Any) -> Case:
    """The way to write id, amount and these columns, of which only the first two are in the files."""
    return Case(
        lambda t: t.orders.where("amount > 4").selectExpr("id", "amount", *columns),
        more.pop("oracle", lambda s: r.select(kept(s), shown)),
        write=write,
        **more,
    )


def partitioned(*names: str, **options: Any) -> Write:
    """By columns of these names, as Parquet, of one task."""
    return lambda frame, path: frame.coalesce(1).write.options(**options).partitionBy(*names).parquet(path)


def run_sql(frame: DataFrame, *statements: str) -> None:
    frame.createOrReplaceTempView("new")
    for statement in statements:
        frame.sparkSession.sql(statement)


ODD = (
    "element_at(array('a/b', 'a%2Fb', 'ü = \\'x\\'', ' ', '{[*]}?#', 'a:b\\\\c', '', null, 'A', 'a', '..'), "
    "id % 11 + 1) as odd"
)
WHEN = "timestamp'2024-03-31 01:30:00.123456 UTC' + make_interval(0, 0, 0, 0, id % 3) as at"

VALUES: dict[str, Case] = {
    "odd texts": by([ODD], partitioned("odd")),
    "several columns": by(
        [ODD, "customer", "tag", "id % 2 = 0 as even"], partitioned("tag", "odd", "customer", "even")
    ),
    "numbers": by(
        [
            "customer",
            "amount * 1000000000000 as big",
            "cast(id % 3 as tinyint) as tiny",
            "cast(id % 4 / 8 as decimal(9, 4)) as exact",
        ],
        partitioned("customer", "big", "tiny", "exact"),
    ),
    "floats": by(["price", "cast(price as float) as single"], partitioned("price", "single")),
    "dates and times": by(
        ["date'2024-02-28' + id % 3 as day", WHEN, "cast(null as date) as never"],
        partitioned("day", "at", "never"),
        conf={"spark.sql.session.timeZone": "Europe/Berlin"},
    ),
    "times in a time zone of the writer": by([WHEN], partitioned("at", timeZone="Asia/Kathmandu")),
    "one value": by(["'x' as tag"], partitioned("tag")),
    "a name that is odd": by(["tag as `t =/ü`"], partitioned("t =/ü")),
    "without generated code": by(
        [ODD, "customer"],
        partitioned("odd", "customer"),
        conf={"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"},
    ),
    "generated code of projections only": by(
        [ODD, "customer"], partitioned("odd", "customer"), conf={"spark.sql.codegen.wholeStage": "false"}
    ),
}

FORMATS: dict[str, Case] = {
    "text": by(
        ["tag"],
        lambda frame, path: (
            frame.selectExpr("concat(id, ',', amount)", "tag").coalesce(2).write.partitionBy("tag").text(path)
        ),
        line,
    ),
    "CSV of texts": by(
        ["tag"],
        lambda f, path: (
            f.selectExpr("id", "amount", "concat('a \"', tag, '\"') as text", "tag")
            .coalesce(1)
            .write.partitionBy("tag")
            .csv(path, quote="'")
        ),
        lambda o: (f"{o.id},{o.amount}," + ("" if o.tag is None else f'a "{o.tag}"'),),
    ),
    "CSV": by(["tag"], lambda f, path: f.coalesce(2).write.partitionBy("tag").csv(path), line),
    "CSV with headers": by(
        ["tag"],
        lambda f, path: f.coalesce(1).write.partitionBy("tag").csv(path, header=True),
        line,
        header=True,
    ),
    "JSON": by(["tag"], lambda f, path: f.coalesce(1).write.partitionBy("tag").json(path), document),
    "ORC": by(["tag"], lambda f, path: f.coalesce(1).write.partitionBy("tag").orc(path)),
    "packed JSON": by([], lambda f, path: f.write.option("maxRecordsPerFile", 3).json(path), document),
    "files of so many lines": by(
        [],
        lambda f, path: (
            f.selectExpr("concat(id, ',', amount)")
            .coalesce(1)
            .write.option("maxRecordsPerFile", 4)
            .text(path)
        ),
        line,
    ),
    "files of so many lines with headers": by(
        [],
        lambda f, path: f.coalesce(1).write.option("MAXRECORDSPERFILE", 4).csv(path, header=True),
        line,
        header=True,
    ),
    "files of so many rows, by the session": by(
        ["tag"],
        lambda f, path: f.coalesce(1).write.partitionBy("tag").orc(path),
        conf={"spark.sql.files.maxRecordsPerFile": "2"},
    ),
    "one row in a file": by(["tag"], partitioned("tag", maxRecordsPerFile=1)),
    "no most of rows": by(
        ["tag"], partitioned("tag", maxRecordsPerFile=0), conf={"spark.sql.files.maxRecordsPerFile": "2"}
    ),
}

WRITERS: dict[str, Case] = {
    "several writers of a task": by(
        ["tag"], partitioned("tag"), conf={"spark.sql.maxConcurrentOutputFileWriters": "6"}
    ),
    "several writers of a task, of files of so many rows": by(
        ["tag", "customer"],
        partitioned("tag", "customer", maxRecordsPerFile=2),
        conf={"spark.sql.maxConcurrentOutputFileWriters": "60"},
    ),
    "several writers of buckets": by(
        [],
        lambda f, path: (
            f.coalesce(1).write.bucketBy(3, "id").option("path", path).saveAsTable("open_buckets")
        ),
        conf={"spark.sql.maxConcurrentOutputFileWriters": "9"},
    ),
    "several writers, but rows are sorted in buckets": by(
        ["tag"],
        lambda f, path: (
            f.coalesce(1)
            .write.partitionBy("tag")
            .bucketBy(3, "id")
            .sortBy("amount")
            .option("path", path)
            .saveAsTable("sorted_buckets")
        ),
        conf={"spark.sql.maxConcurrentOutputFileWriters": "2"},
    ),
    "a write that is not planned": by(
        [], partitioned(), conf={"spark.sql.optimizer.plannedWrite.enabled": "false"}
    ),
    "a write that is not planned, several writers": by(
        [ODD],
        partitioned("odd"),
        conf={
            "spark.sql.optimizer.plannedWrite.enabled": "false",
            "spark.sql.maxConcurrentOutputFileWriters": "40",
        },
    ),
}


def overwritten_by_partition(frame: DataFrame, path: str) -> None:
    frame.write.partitionBy("tag").parquet(path)
    for _ in range(2):
        frame.where("id > 9").coalesce(1).write.mode("overwrite").partitionBy("tag").option(
            "partitionOverwriteMode", "dynamic"
        ).parquet(path)


def appended(frame: DataFrame, path: str) -> None:
    for _ in range(2):
        frame.coalesce(1).write.mode("append").partitionBy("tag").parquet(path)


PARTS = "(id int, amount bigint, tag string) using parquet partitioned by (tag)"

TABLES: dict[str, Case] = {
    "appended twice": by(["tag"], appended, oracle=lambda s: 2 * r.select(kept(s), two)),
    "overwritten by partition, twice": by(
        ["tag"],
        overwritten_by_partition,
        oracle=lambda s: r.select(
            [
                pair
                for pair in kept(s)
                if pair[0].id > 9 or pair[0].tag not in {row.tag for row, _ in late(s)}
            ],
            two,
        ),
    ),
    "INSERT OVERWRITE of partitions": by(
        ["tag"],
        lambda f, path: run_sql(
            f,
            f"create table over_parts {PARTS} location '{path}'",
            "insert into over_parts select id, amount, tag from new",
            "insert overwrite over_parts partition (tag = 'x') "
            "select id, amount from new where tag = 'x' and id > 9",
        ),
        oracle=lambda s: r.select(r.where(kept(s), lambda o: o.tag != "x" or o.id > 9), two),
    ),
    "a partition elsewhere": by(
        ["tag"],
        lambda f, path: run_sql(
            f,
            f"create table elsewhere {PARTS} location '{path}/table'",
            f"alter table elsewhere add partition (tag = 'x') location '{path}/else'",
            "insert into elsewhere select id, amount, tag from new",
            "insert into elsewhere select id, amount, tag from new",
        ),
        oracle=lambda s: 2 * r.select(kept(s), two),
    ),
    "saveAsTable of partitions": by(
        ["tag"],
        lambda f, path: f.write.partitionBy("tag").saveAsTable("by_tag_of"),
        place="warehouse/by_tag_of",
    ),
    "saveAsTable of buckets": by(
        [],
        lambda f, path: f.write.bucketBy(2, "amount").saveAsTable("in_buckets"),
        place="warehouse/in_buckets",
    ),
    "CREATE TABLE AS SELECT of partitions": by(
        ["tag"],
        lambda f, path: run_sql(
            f, "create table made_of using orc partitioned by (tag) as select id, amount, tag from new"
        ),
        place="warehouse/made_of",
    ),
    "buckets by a text and a null": by(
        ["tag", "customer"],
        lambda f, path: (
            f.coalesce(1)
            .write.bucketBy(5, "tag", "customer")
            .option("path", path)
            .option("maxRecordsPerFile", 2)
            .saveAsTable("odd_buckets")
        ),
        shown=lambda o: (o.id, o.amount, o.tag, o.customer),
    ),
}

CASES = {**VALUES, **FORMATS, **WRITERS, **TABLES}
PLAIN = without_lineage(CASES)


@pytest.mark.thorough
@pytest.mark.parametrize("name", PLAIN)
def test_spark_writes_what_the_oracle_says(name: str, plain: Ran) -> None:
    plain.check_rows(name)


@pytest.mark.parametrize("name", sampled(CASES, 5))
def test_traces_equal_the_oracle(name: str, plain: Ran, traced: Ran) -> None:
    traced.check(name, plain)


def test_rows_whose_place_in_files_is_not_known_are_known_in_the_query(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    numbers = pa.table({"n": range(12), "p": [n * 5 % 3 for n in range(12)], "t": ["a b", "c\nd", ""] * 4})
    pq.write_table(numbers, tmp_path / "n.parquet")

    def job(context: SparkContext) -> None:
        spark = SparkSession.builder.getOrCreate()
        frame = spark.read.parquet(str(tmp_path / "n.parquet")).coalesce(1)
        with conf_of(spark, {"spark.sql.maxConcurrentOutputFileWriters": "2"}):
            frame.write.partitionBy("p").parquet(str(tmp_path / "more places than writers"))
        with conf_of(spark, {"spark.sql.optimizer.plannedWrite.enabled": "false"}):
            frame.write.partitionBy("p").parquet(str(tmp_path / "not planned"))
        frame.select("t").write.text(str(tmp_path / "texts of several lines"))
        frame.write.csv(str(tmp_path / "CSV of several lines"))
        frame.select("n").write.json(str(tmp_path / "lines that end in another way"), lineSep="|")

    _, application = run(job)
    assert len(application.sinks()) == 5
    for sink in application.sinks():
        records = list(records_of(application, sink.node_id))
        assert [record.source for record in records] == [None] * 12
        traces = [
            application.trace(direction="backward", node=sink.node_id, partition=0, offset=record.offset)
            for record in records
        ]
        assert [rows_of_sources(trace) for trace in traces] == [{("n.parquet", row)} for row in range(12)]
    for part in tmp_path.rglob("part-*"):
        with pytest.raises(NotFoundError):
            application.trace(direction="backward", path=str(part), row=0)

"""Cases of where DataFrames end: files and tables: queries with their oracles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame

from tests.support.spark import relational as r
from tests.support.spark.dataframe_oracle import (
    Case,
)
from tests.support.spark.shop import Order, Shop


def two(row: Order) -> tuple[int, int]:
    return row.id, row.amount


def kept(s: Shop) -> r.Data:
    return r.where(s.orders, lambda o: o.amount > 4)


def kept_twice(s: Shop) -> r.Data:
    return r.select(kept(s), two) + r.select(kept(s), two)


def by_tag(s: Shop) -> r.Data:
    return r.aggregate(kept(s), lambda o: (o.tag,), lambda rows: (len(rows),))


def output(write: Callable[[DataFrame, str], Any], oracle: Any = None, **more: Any) -> Case:
    """The way to write (id, amount), and tag where that is asked for."""
    columns = more.pop("columns", ["id", "amount"])
    return Case(
        lambda t: t.orders.where("amount > 4").select(*columns),
        oracle or (lambda s: r.select(kept(s), two)),
        write=write,
        **more,
    )


def run_sql(frame: DataFrame, *statements: str) -> None:
    frame.createOrReplaceTempView("new")
    for statement in statements:
        frame.sparkSession.sql(statement)


def write_twice(frame: DataFrame, path: str) -> None:
    frame.write.parquet(f"{path}/one")
    frame.write.parquet(f"{path}/other")


def overwrite(frame: DataFrame, path: str) -> None:
    frame.write.parquet(path)
    frame.where("id > 9").write.mode("overwrite").parquet(path)


def append(frame: DataFrame, path: str) -> None:
    frame.write.parquet(path)
    frame.write.mode("append").parquet(path)


def of_nothing(*rows: tuple[Any, ...]) -> Callable[[Shop], r.Data]:
    """Rows that come from no file."""
    return lambda s: [(row, frozenset()) for row in rows]


TABLE = "(id int, amount bigint) using parquet"


FILES: dict[str, Case] = {
    "text": output(
        lambda frame, path: frame.selectExpr("concat(id, ' ', amount)").write.text(path),
        lambda s: r.select(kept(s), lambda o: (f"{o.id} {o.amount}",)),
    ),
    "CSV": output(
        lambda frame, path: frame.write.csv(path),
        lambda s: r.select(kept(s), lambda o: (f"{o.id},{o.amount}",)),
    ),
    "CSV with headers": output(
        lambda frame, path: frame.write.csv(path, header=True),
        lambda s: r.select(kept(s), lambda o: (f"{o.id},{o.amount}",)),
        header=True,
    ),
    "JSON": output(
        lambda frame, path: frame.write.json(path),
        lambda s: r.select(kept(s), lambda o: (f'{{"id":{o.id},"amount":{o.amount}}}',)),
    ),
    "ORC": output(lambda frame, path: frame.write.orc(path)),
    "nothing": Case(lambda t: t.orders.where("amount > 1000").select("id"), lambda s: []),
    "one file of several partitions": output(lambda frame, path: frame.coalesce(1).write.parquet(path)),
    "several files of a task": output(
        lambda frame, path: frame.coalesce(1).write.option("maxRecordsPerFile", 4).parquet(path)
    ),
    "partitionBy": output(
        lambda frame, path: frame.write.partitionBy("tag").parquet(path), columns=["id", "amount", "tag"]
    ),
    "partitionBy of one task, several files of each": output(
        lambda frame, path: (
            frame.coalesce(1).write.partitionBy("tag").option("maxRecordsPerFile", 3).parquet(path)
        ),
        columns=["id", "amount", "tag"],
    ),
    "partitionBy of sorted rows": output(
        lambda frame, path: frame.orderBy("tag", "amount").write.partitionBy("tag").parquet(path),
        columns=["id", "amount", "tag"],
    ),
    "partitionBy over groupBy": output(
        lambda frame, path: frame.groupBy("tag").count().write.partitionBy("tag").parquet(path),
        lambda s: r.select(by_tag(s), lambda row: row[1:]),
        columns=["tag"],
    ),
    "the same rows to two outputs": output(write_twice, kept_twice),
    "overwrite": output(overwrite, lambda s: r.select(r.where(kept(s), lambda o: o.id > 9), two)),
    "append": output(append, kept_twice),
    "VALUES": Case(
        lambda t: t.spark.sql("select * from values (1, 'a'), (2, null), (2, null) as v(n, tag)"),
        of_nothing((1, "a"), (2, None), (2, None)),
    ),
    "a literal": Case(lambda t: t.spark.sql("select 7 as n"), of_nothing((7,))),
}


TABLES: dict[str, Case] = {
    "saveAsTable": output(lambda frame, path: frame.write.saveAsTable("sold"), place="warehouse/sold"),
    "saveAsTable with a path": output(
        lambda frame, path: frame.write.option("path", path).saveAsTable("sold_at")
    ),
    "buckets": output(
        lambda frame, path: (
            frame.write.bucketBy(3, "id").sortBy("amount").option("path", path).saveAsTable("b")
        )
    ),
    "buckets within partitions": output(
        lambda frame, path: (
            frame.write.partitionBy("tag").bucketBy(2, "id").option("path", path).saveAsTable("pb")
        ),
        columns=["id", "amount", "tag"],
    ),
    "CREATE TABLE AS SELECT": output(
        lambda frame, path: run_sql(
            frame, f"create table ctas using parquet location '{path}' as select * from new"
        )
    ),
    "INSERT INTO, twice": output(
        lambda frame, path: run_sql(
            frame,
            f"create table filled {TABLE} location '{path}'",
            "insert into filled select * from new",
            "insert into filled select id, amount from new where id > 6",
        ),
        lambda s: r.select(kept(s), two) + r.select(r.where(kept(s), lambda o: o.id > 6), two),
    ),
    "INSERT INTO, VALUES": output(
        lambda frame, path: run_sql(
            frame,
            f"create table listed {TABLE} location '{path}'",
            "insert into listed values (1, 2), (3, 4)",
            "insert into listed select id, amount from new where id > 6",
        ),
        lambda s: of_nothing((1, 2), (3, 4))(s) + r.select(r.where(kept(s), lambda o: o.id > 6), two),
    ),
    "several tables by one statement": output(
        lambda frame, path: run_sql(
            frame,
            f"create table several_one {TABLE} location '{path}/one'",
            f"create table several_other {TABLE} location '{path}/other'",
            "from new insert into several_one select id, amount where id > 6 "
            "insert into several_other select id, sum(amount) where amount > 9 group by id",
        ),
        lambda s: (
            r.select(r.where(kept(s), lambda o: o.id > 6), two)
            + r.select(r.where(kept(s), lambda o: o.amount > 9), two)
        ),
    ),
    "INSERT OVERWRITE": output(
        lambda frame, path: run_sql(
            frame,
            f"create table replaced {TABLE} location '{path}'",
            "insert into replaced select * from new",
            "insert overwrite replaced select id, amount from new where id > 6",
        ),
        lambda s: r.select(r.where(kept(s), lambda o: o.id > 6), two),
    ),
    "INSERT OVERWRITE DIRECTORY": output(
        lambda frame, path: run_sql(
            frame, f"insert overwrite directory '{path}' using parquet select id, amount from new"
        )
    ),
    "INSERT INTO a partition": output(
        lambda frame, path: run_sql(
            frame,
            "create table parts (id int, amount bigint, tag string) using parquet partitioned by (tag) "
            f"location '{path}'",
            "insert into parts partition (tag = 'x') select id, amount from new where tag = 'x'",
            "insert into parts partition (tag) select id, amount, tag from new where tag <> 'x'",
        ),
        lambda s: r.select(r.where(kept(s), lambda o: o.tag is not None), two),
        columns=["id", "amount", "tag"],
    ),
    "insertInto": output(
        lambda frame, path: (
            run_sql(frame, f"create table filled_too {TABLE} location '{path}'"),
            frame.write.insertInto("filled_too"),
        )
    ),
    "writeTo": output(
        lambda frame, path: frame.writeTo("created").using("parquet").create(), place="warehouse/created"
    ),
}


CASES = {**FILES, **TABLES}

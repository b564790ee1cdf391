"""Tables of Hive: which rows of their files the records of queries have become."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from tests.support.spark.dataframe_oracle import rows_in, rows_of_sources

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(900)]

ROWS = [(n, f"p {n * 5 % 3}") for n in range(9)]

#: name -> (statements, folder of the table, n of the rows that are in it then)
TABLES: dict[str, tuple[list[str], str, list[int]]] = {
    "text": (
        ["create table {t} (n int, p string) stored as textfile", "insert into {t} select * from new"],
        "",
        list(range(9)),
    ),
    "partitions, text": (
        [
            "create table {t} (n int) partitioned by (p string) stored as textfile",
            "insert into {t} partition (p) select * from new",
            "insert into {t} partition (p = 'a/b') select n from new where n > 5",
            "insert into {t} partition (p = 'a/b') select n from new where n > 5",
        ],
        "",
        [*range(9), 6, 7, 8, 6, 7, 8],
    ),
    "partitions below another, text": (
        [
            "create table {t} (n int) partitioned by (day string, p string) stored as textfile",
            "insert into {t} partition (day = 'mo', p) select * from new",
            "insert overwrite table {t} partition (day = 'tu', p) select * from new where n < 4",
        ],
        "",
        [*range(9), *range(4)],
    ),
    "a partition elsewhere, text": (
        [
            "create table {t} (n int) partitioned by (p string) stored as textfile",
            "alter table {t} add partition (p = 'p 1') location '{at}/else where'",
            "insert into {t} partition (p = 'p 1') select n from new where n > 5",
        ],
        "else where",
        [6, 7, 8],
    ),
    "buckets, text": (
        [
            "create table {t} (n int, p string) clustered by (n) into 3 buckets stored as textfile",
            "insert into {t} select * from new",
        ],
        "",
        list(range(9)),
    ),
    "Parquet, which Spark writes itself": (
        [
            "create table {t} (n int) partitioned by (p string) stored as parquet",
            "insert into {t} partition (p) select * from new",
        ],
        "",
        list(range(9)),
    ),
    "CREATE TABLE AS SELECT": (
        ["create table {t} stored as textfile as select * from new"],
        "",
        list(range(9)),
    ),
    "INSERT OVERWRITE DIRECTORY": (
        ["insert overwrite directory '{at}/dir' stored as textfile select * from new where n > 2"],
        "dir",
        list(range(3, 9)),
    ),
}


@pytest.fixture(scope="module")
def hive(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    from tests.support.spark.application import run_application

    folder = tmp_path_factory.mktemp("hive")
    pq.write_table(
        pa.table({"n": pa.array([n for n, _ in ROWS], pa.int32()), "p": [p for _, p in ROWS]}),
        folder / "new.parquet",
    )

    derby = f"jdbc:derby:;databaseName={folder}/metastore;create=true"

    def job(context: SparkContext) -> None:
        spark = SparkSession.builder.getOrCreate()
        spark.read.parquet(str(folder / "new.parquet")).coalesce(1).createOrReplaceTempView("new")
        for at, (statements, _, _) in enumerate(TABLES.values()):
            for statement in statements:
                spark.sql(statement.format(t=f"t{at}", at=folder / f"at-{at}"))

    _, application = run_application(
        kafka.bootstrap_servers,
        folder / "store",
        job,
        **{
            "spark_sql_catalogImplementation": "hive",
            "spark_sql_warehouse_dir": str(folder / "warehouse"),
            "spark_hadoop_hive_exec_dynamic_partition_mode": "nonstrict",
            "spark_hadoop_javax_jdo_option_ConnectionURL": derby,
        },
    )
    return folder, application


@pytest.mark.parametrize("name", TABLES)
def test_rows_of_files_of_hive_are_traced(name: str, hive: tuple[Path, Any]) -> None:
    folder, application = hive
    at, (_, place, expected) = list(TABLES).index(name), TABLES[name]
    numbers = []
    for part in sorted(
        (folder / f"at-{at}" / place if place else folder / "warehouse" / f"t{at}").rglob("*part-*")
    ):
        if part.name.startswith("."):
            continue
        for row, values in enumerate(rows_in(part)):
            trace = application.trace(direction="backward", path=str(part), row=row)
            assert trace.exact
            ((file, source),) = rows_of_sources(trace)
            n = int(str(values[0]).split("\x01")[0])
            assert (file, source) == ("new.parquet", n)
            numbers.append(n)
    assert sorted(numbers) == sorted(expected)

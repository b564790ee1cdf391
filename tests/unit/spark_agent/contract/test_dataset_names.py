from __future__ import annotations

import pytest

from spark_agent.contract.dataset_names import (
    dataset_at,
    location_of,
    normal_name,
    one_path,
    partition_columns,
    place_named,
)

AZURE = "c@account.dfs.core.windows.net"


@pytest.mark.parametrize(
    ("path", "namespace", "name"),
    [
        ("/data/in", "file", "/data/in"),
        ("/data/in/", "file", "/data/in"),
        ("/", "file", "/"),
        ("s3://bucket/a/b", "s3://bucket", "a/b"),
        ("s3a://bucket/a/b/", "s3://bucket", "a/b"),
        ("S3N://bucket/a", "s3://bucket", "a"),
        ("s3a://bucket", "s3://bucket", "/"),
        ("s3a://bucket/", "s3://bucket", "/"),
        ("gs://bucket/a", "gs://bucket", "a"),
        ("gcs://bucket/a", "gs://bucket", "a"),
        (f"abfs://{AZURE}/a", f"abfss://{AZURE}", "a"),
        (f"abfss://{AZURE}/a/", f"abfss://{AZURE}", "a"),
        ("wasb://c@a.blob.core.windows.net/a", "wasbs://c@a.blob.core.windows.net", "a"),
        ("hdfs://name:8020/in", "hdfs://name:8020", "/in"),
        ("hdfs://name:8020", "hdfs://name:8020", "/"),
        ("hdfs:///in", "hdfs", "/in"),
        ("hdfs:/in", "hdfs", "/in"),
        ("dbfs:/mnt/in", "dbfs", "/mnt/in"),
        ("viewfs://cluster/in", "viewfs://cluster", "/in"),
    ],
)
def test_a_place_has_the_name_that_openlineage_gives_it(path: str, namespace: str, name: str) -> None:
    assert place_named(path) == (namespace, name)


@pytest.mark.parametrize(
    ("path", "name", "columns"),
    [
        ("/sales/day=1", "/sales", ("day",)),
        ("/sales/day=1/hour=2/", "/sales", ("day", "hour")),
        ("/sales/day=1/part-00000-5c.c000.snappy.parquet", "/sales", ("day",)),
        ("s3a://b/sales/day=1", "sales", ("day",)),
        ("hdfs://n/sales/day=__HIVE_DEFAULT_PARTITION__", "/sales", ("day",)),
        ("/env=prod/sales", "/env=prod/sales", ()),
        ("/sales/day=1/notes.txt", "/sales/day=1/notes.txt", ()),
        ("/sales/part-00000", "/sales/part-00000", ()),
        ("/day=1", "/day=1", ()),
        ("s3://b/day=1/hour=2", "day=1", ("hour",)),
        ("/sales/a=b=c", "/sales/a=b=c", ()),
    ],
)
def test_a_folder_of_a_partition_belongs_to_its_table(path: str, name: str, columns: tuple[str, ...]) -> None:
    assert place_named(path).name == name
    assert partition_columns(path) == columns


@pytest.mark.parametrize(
    ("said", "name"),
    [
        (("s3a://b", "/key", "csv"), ("s3://b", "key")),
        (("s3://b", "key", "csv"), ("s3://b", "key")),
        (("s3a://b", "/", "csv"), ("s3://b", "/")),
        (("hdfs://", "/in", "text"), ("hdfs", "/in")),
        (("hdfs", "/in", "text"), ("hdfs", "/in")),
        (("gs://b", "/key/day=1", "parquet"), ("gs://b", "key")),
        (("file", "/data", "text"), ("file", "/data")),
        (("file://host", "/data", "text"), ("file://host", "/data")),
        (("file", "a text", "table"), ("file", "a text")),
        (("postgres://db:5432", "shop.sales.orders", "jdbc"), ("postgres://db:5432", "shop.sales.orders")),
        (("jdbc:derby:memory:shop", "a query", "jdbc"), ("jdbc:derby:memory:shop", "a query")),
        (("kafka://broker:9092", "orders", "kafka"), ("kafka://broker:9092", "orders")),
        (("", "orders", ""), ("", "orders")),
    ],
)
def test_what_an_event_of_any_age_says_has_the_name_of_today(
    said: tuple[str, str, str], name: tuple[str, str]
) -> None:
    assert normal_name(*said) == name


@pytest.mark.parametrize(
    ("dataset", "location"),
    [
        ({"namespace": "s3a://b", "name": "/key", "format": "csv"}, "s3://b/key"),
        ({"namespace": "s3://b", "name": "key", "format": "csv"}, "s3://b/key"),
        ({"namespace": "hdfs://", "name": "/in", "format": "csv"}, "hdfs:///in"),
        ({"namespace": "file", "name": "/in/day=1", "format": "csv"}, "/in/day=1"),
        ({"namespace": "file", "name": "/in", "format": "csv", "location": "/in/day=1"}, "/in/day=1"),
        (
            {"namespace": "kafka://broker:9092", "name": "orders", "format": "kafka"},
            "kafka://broker:9092/orders",
        ),
        ({"name": "orders"}, "orders"),
    ],
)
def test_what_was_read_is_found_again(dataset: dict[str, str], location: str) -> None:
    assert location_of(dataset) == location


def test_an_event_says_which_part_of_a_dataset_is_meant() -> None:
    whole = {"namespace": "s3://b", "name": "sales", "format": "csv"}
    assert dataset_at("s3a://b/sales/", "csv") == whole
    assert dataset_at("s3a://b/sales/day=1", "csv") == {**whole, "location": "s3://b/sales/day=1"}


def test_the_paths_of_one_file_are_one() -> None:
    paths = ("s3://b/a//[b", "s3a://b/a//[b", "s3n://b/a//[b", "S3A://b/a//[b")
    assert {one_path(path) for path in paths} == {"s3://b/a//[b"}
    assert one_path("/a/b") == "/a/b"
    assert one_path("hdfs:/a") == one_path("hdfs:///a") == "hdfs:///a"

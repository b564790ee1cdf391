from __future__ import annotations

import json
from typing import Any

import pytest

from spark_agent.sql.catalog_names import catalog_namespace, symlinks_in
from spark_agent.sql.plan_schemas import schema_of_plan
from spark_agent.sql.schemas import MOST_BYTES, Schema, read_schema, simple_type


def column(name: str, data_type: Any, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": data_type, "nullable": True, "metadata": metadata}


def struct(*columns: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(columns)}


def read(*columns: dict[str, Any], most_bytes: int = MOST_BYTES) -> Schema:
    return read_schema(json.dumps(struct(*columns)), most_bytes)


def test_a_struct_has_its_fields() -> None:
    schema = read(column("id", "long"), column("at", struct(column("zone", "string"))))
    assert schema.event_fields() == {
        "schema": [
            {"name": "id", "type": "bigint", "nullable": True},
            {
                "name": "at",
                "type": "struct",
                "nullable": True,
                "fields": [{"name": "zone", "type": "string", "nullable": True}],
            },
        ]
    }


def test_the_place_of_a_row_is_no_column_of_its_file() -> None:
    schema = read(column("id", "long"), column("_metadata", struct(), __file_source_metadata_col="x"))
    assert [one["name"] for one in schema.columns] == ["id"]


def test_what_has_no_columns_says_nothing() -> None:
    assert read().event_fields() == {}


def test_structs_far_below_are_texts() -> None:
    data_type: Any = "long"
    for level in range(20):
        data_type = struct(column(f"c{level}", data_type))
    schema = read(column("deep", data_type))
    levels, at = 0, schema.columns[0]
    while "fields" in at:
        levels, at = levels + 1, at["fields"][0]
    assert levels == 10
    assert at["type"].startswith("struct<c9:struct<c8:")


def test_what_users_define_is_what_it_is_stored_as() -> None:
    udt = {"type": "udt", "class": "a.B", "sqlType": struct(column("x", "double"))}
    assert read(column("p", udt)).columns[0]["fields"] == [{"name": "x", "type": "double", "nullable": True}]
    assert simple_type({"type": "array", "elementType": udt}) == "array<struct<x:double>>"


def test_columns_that_do_not_fit_are_left_out_with_a_word() -> None:
    schema = read(*(column(f"c{n}", "long") for n in range(9)), most_bytes=200)
    assert len(json.dumps(schema.columns, separators=(",", ":"))) <= 200
    count = len(schema.columns)
    assert 0 < count < 9
    assert schema.note == f"only the first {count} of 9 columns: the others do not fit into an event"
    assert read(column("c" * 300, "long"), most_bytes=200).event_fields() == {
        "schema_note": "only the first 0 of 1 columns: the others do not fit into an event"
    }


def test_a_description_that_is_too_long_is_not_read() -> None:
    schema = read_schema(" " * 17_000_000)
    assert schema == Schema(note="left out: Spark describes the columns in 17,000,000 characters")


def test_a_plan_that_does_not_say_its_columns_has_a_word_for_it() -> None:
    schema = schema_of_plan(None)
    assert schema.columns == ()
    assert schema.note.startswith("left out: Spark did not say what the columns are (AttributeError")


@pytest.mark.parametrize(
    ("metastores", "warehouse", "namespace"),
    [
        ("thrift://meta:9083,thrift://other:9083", "file:/wh", "hive://meta:9083"),
        ("", "file:/tmp/wh/", "file:/tmp/wh"),
        ("", "file:///tmp/wh", "file:/tmp/wh"),
        ("", "/tmp/wh", "file:/tmp/wh"),
        ("", "s3a://bucket/wh", "s3://bucket/wh"),
        ("", "hdfs://name:8020/wh/", "hdfs://name:8020/wh"),
    ],
)
def test_a_catalog_is_named_by_its_metastore_or_its_warehouse(
    metastores: str, warehouse: str, namespace: str
) -> None:
    assert catalog_namespace(metastores, warehouse) == namespace


class PlanOfCatalog:
    """A plan whose session has one catalog of Iceberg, which is asked at `uri`."""

    def __init__(self, uri: str) -> None:
        self._settings = {"spark.sql.catalog.ice": "a class", "spark.sql.catalog.ice.uri": uri}

    def conf(self) -> PlanOfCatalog:
        return self

    def getConfString(self, name: str, default: str | None) -> str | None:
        return self._settings.get(name, default)


@pytest.mark.parametrize(
    ("uri", "namespace"),
    [
        ("jdbc:postgresql://me:secret@db:5432/lake?password=secret", "jdbc:postgresql://db:5432/lake"),
        ("https://me:secret@catalog:8181/api", "https://catalog:8181/api"),
        ("thrift://metastore:9083", "hive://metastore:9083"),
    ],
)
def test_the_name_of_a_catalog_has_no_password(uri: str, namespace: str) -> None:
    [link] = symlinks_in(PlanOfCatalog(uri), "ice.db.t")
    assert link == {"namespace": namespace, "name": "db.t", "type": "TABLE"}

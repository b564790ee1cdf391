"""The columns of sources and sinks, their partitions and their names in catalogs, of real queries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from lineage_service.lineage import Column, Node
from spark_agent.contract.limits import MAX_BLOCK_BYTES
from tests.support.spark.application import run_application

# The first test of the module runs the job of all of them.
pytestmark = pytest.mark.timeout(1800)

WIDE, TOO_WIDE = 2_000, 2_500
DERBY = {"url": "jdbc:derby:memory:schemas;create=true", "driver": "org.apache.derby.jdbc.EmbeddedDriver"}
NESTED = "id bigint, at struct<zone:string,days:array<struct<n:int>>>, tags map<string,decimal(10,2)>"
FORMATS = ("parquet", "orc", "json", "csv")


def job(folder: Path, context: SparkContext) -> Mapping[str, StructType]:
    """What PySpark says of the columns itself, by the name of a folder."""
    spark = SparkSession.builder.getOrCreate()
    made = spark.createDataFrame([(1, ("x", [(3,)]), {"a": None})], NESTED)
    made.write.parquet(f"{folder}/nested")
    made.coalesce(1).collect()
    flat = made.selectExpr("id", "at.zone as zone", "cast(id as tinyint) as day")
    for format in FORMATS:
        flat.write.partitionBy("day").format(format).save(f"{folder}/{format}")
        spark.read.schema("id bigint, zone string, day int").format(format).load(f"{folder}/{format}").select(
            "id"
        ).write.json(f"{folder}/of_{format}")
    flat.select("zone").write.text(f"{folder}/text")
    spark.read.text(f"{folder}/text").write.json(f"{folder}/of_text")
    spark.read.parquet(f"{folder}/parquet/day=1").write.json(f"{folder}/of_one_day")
    flat.write.jdbc(DERBY["url"], "sales", properties=DERBY)
    spark.read.jdbc(DERBY["url"], "sales", properties=DERBY).select("zone").write.json(f"{folder}/of_jdbc")
    flat.write.partitionBy("day").saveAsTable("sold")
    spark.sql("select 2L, 'y', cast(2 as tinyint)").write.insertInto("sold")
    spark.table("sold").where("day = 1").select("zone").toPandas()
    spark.range(3).selectExpr("id * 2 as double").count()
    context.parallelize([[0] * WIDE]).toDF([f"c{number}" for number in range(WIDE)]).write.orc(
        f"{folder}/wide"
    )
    # Of an RDD: no expression for each column.
    too_wide = [f"{'a_long_name_' * 20}{number}" for number in range(TOO_WIDE)]
    context.parallelize([[0] * TOO_WIDE]).toDF(too_wide).write.json(f"{folder}/too_wide")
    context.parallelize(["a"]).saveAsTextFile(f"{folder}/of_an_rdd")
    return {"nested": made.schema, "flat": flat.schema}


@dataclass
class Said:
    nodes: tuple[Node, ...]
    events: list[dict[str, Any]]
    schemas: Mapping[str, StructType]
    folder: Path

    def sink(self, name: str) -> Node:
        """The node that wrote a folder."""
        return self._of("sink", f"{self.folder}/{name}")

    def source(self, name: str, *, behind: str = "") -> Node:
        return self._of("source", f"{self.folder}/{name}")

    def _of(self, kind: str, path: str) -> Node:
        return next(
            node
            for node in self.nodes
            if node.kind == kind and node.dataset is not None and node.dataset.name == path
        )

    def named(self, name: str) -> Node:
        return next(node for node in self.nodes if node.name == name)


@pytest.fixture(scope="module")
def said(kafka: Any, jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Said:
    folder = tmp_path_factory.mktemp("schemas")
    schemas, application = run_application(
        kafka.bootstrap_servers,
        folder / "store",
        lambda context: job(folder, context),
        spark_sql_warehouse_dir=str(folder / "warehouse"),
        spark_driver_extraJavaOptions=f"-Dderby.system.home={folder}",
    )
    assert application is not None
    graph = application.questions.graph(application.application_id)
    return Said(graph.nodes, application.events, schemas, folder)


def columns(*pairs: tuple[str, str]) -> tuple[Column, ...]:
    return tuple(Column(name=name, type=type_, nullable=True) for name, type_ in pairs)


def without_nullable(node: Node) -> list[tuple[str, str]]:
    return [(column.name, column.type) for column in node.schema]


def test_a_sink_has_the_columns_of_its_rows_with_their_fields(said: Said) -> None:
    expected = (
        Column(name="id", type="bigint", nullable=True),
        Column(
            name="at",
            type="struct",
            nullable=True,
            fields=columns(("zone", "string"), ("days", "array<struct<n:int>>")),
        ),
        Column(name="tags", type="map<string,decimal(10,2)>", nullable=True),
    )
    assert said.sink("nested").schema == expected
    assert said.named("collect").schema == expected
    assert said.named("LogicalRDD").schema == expected
    assert said.named("parallelize").schema == ()


@pytest.mark.parametrize("format", FORMATS)
def test_files_have_all_their_columns_and_those_of_their_partitions(format: str, said: Said) -> None:
    sink, source = said.sink(format), said.source(format)
    assert without_nullable(sink) == [
        (field.name, field.dataType.simpleString()) for field in said.schemas["flat"]
    ]
    assert source.schema == columns(("id", "bigint"), ("zone", "string"), ("day", "int"))
    for node in (sink, source):
        assert node.dataset is not None
        assert node.dataset.partitions == ("day",)
        assert node.dataset.symlinks == ()


def test_text_has_one_column_and_an_rdd_none(said: Said) -> None:
    assert without_nullable(said.sink("text")) == [("zone", "string")]
    assert said.source("text").schema == columns(("value", "string"))
    assert said.sink("of_an_rdd").schema == ()


def test_a_folder_of_a_partition_is_read_as_its_table(said: Said) -> None:
    one_day = [
        event["dataset"]
        for event in said.events
        if event.get("dataset") and event["dataset"].get("location", "").endswith("/parquet/day=1")
    ]
    assert [dataset["name"] for dataset in one_day] == [f"{said.folder}/parquet"]


def test_tables_of_databases_have_their_columns(said: Said) -> None:
    tables = [node for node in said.nodes if node.dataset is not None and node.dataset.format == "jdbc"]
    assert {node.kind for node in tables} == {"source", "sink"}
    assert [without_nullable(node) for node in tables if node.kind == "sink"] == [
        [("id", "bigint"), ("zone", "string"), ("day", "tinyint")]
    ]
    assert [
        [name.lower() for name, _ in without_nullable(node)] for node in tables if node.kind == "source"
    ] == [["id", "zone", "day"]]


def test_a_table_of_the_catalog_has_its_name_there(said: Said) -> None:
    nodes = [node for node in said.nodes if node.dataset is not None and node.dataset.name.endswith("/sold")]
    assert [node.kind for node in nodes] == ["sink", "sink", "source"]
    for node in nodes:
        assert node.dataset is not None
        assert node.dataset.partitions == ("day",)
        assert [(link.namespace, link.name, link.type) for link in node.dataset.symlinks] == [
            (f"file:{said.folder}/warehouse", "default.sold", "TABLE")
        ]
        assert without_nullable(node) == [("id", "bigint"), ("zone", "string"), ("day", "tinyint")]


def test_what_an_action_gives_has_columns(said: Said) -> None:
    assert without_nullable(said.named("toPandas")) == [("zone", "string")]
    assert without_nullable(said.named("count")) == [("count", "bigint")]


def test_what_does_not_fit_into_an_event_is_left_out_with_a_word(said: Said) -> None:
    wide, cut = said.sink("wide"), said.sink("too_wide")
    assert (len(wide.schema), wide.schema_note) == (WIDE, "")
    assert 0 < len(cut.schema) < TOO_WIDE
    assert cut.schema_note == (
        f"only the first {len(cut.schema):,} of {TOO_WIDE:,} columns: the others do not fit into an event"
    )
    assert max(len(json.dumps(event)) for event in said.events) < MAX_BLOCK_BYTES

"""What the rows of changed classes give, put in the place of the old output rows, is what a full run writes.

Each job runs once with lineage, to see its plans. Then inputs change at random, and two runs of the plain job
are compared: one on all rows, and one on the rows that a probe would choose. Rows are compared as they are.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lineage_service.tracing.files.file_systems import FileSystems
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.model.event_log import read_events
from lineage_service.triggering.certain.file_looks import FileLook, FileLooks
from lineage_service.triggering.probing.class_rows import ClassRows, classes_of, rows_of
from lineage_service.triggering.probing.predicted_output import predicted, written
from lineage_service.triggering.probing.separation import NotSeparableError, Separation, separation_of
from tests.support.spark.application import Application

CHANGES = 3
CONF = {"spark.sql.shuffle.partitions": "2"}
COLUMNS = "id INT, shop STRING, kind STRING, amount INT"
Make = Callable[[DataFrame, DataFrame], DataFrame]


@dataclass(frozen=True)
class Shape:
    """A job of two inputs, of which one changes. `refused`: a part of why it is not probed."""

    make: Make
    changes: str = "sales"
    format: str = "csv"
    refused: str = ""


SHAPES = {
    "an aggregate": Shape(
        lambda sales, _: sales.groupBy("shop").agg(F.sum("amount").alias("total"), F.avg("amount"))
    ),
    "a threshold on groups": Shape(
        lambda sales, _: sales.groupBy("shop", "kind").agg(F.count("*").alias("n")).where("n >= 3"),
        format="parquet",
    ),
    "a filter and a map": Shape(
        lambda sales, _: sales.where("amount > 10").select("id", (sales.amount * 2).alias("twice")),
        format="json",
    ),
    "a join with a reference": Shape(
        lambda sales, shops: (
            sales.join(shops, "shop").groupBy("shop", "town").agg(F.max("amount").alias("most"))
        )
    ),
    "a join whose missing rows are kept": Shape(
        lambda sales, shops: sales.join(shops, "shop", "left").groupBy("shop", "town").agg(F.min("id"))
    ),
    "groups of groups": Shape(
        lambda sales, _: (
            sales.groupBy("shop", "kind")
            .agg(F.sum("amount").alias("total"))
            .where("total > 60")
            .groupBy("shop")
            .agg(F.max("total").alias("best"), F.count("*").alias("kinds"))
        )
    ),
    "an anti join of the changed rows": Shape(lambda sales, shops: sales.join(shops, "shop", "left_anti")),
    "another name": Shape(
        lambda sales, _: (
            sales.select(sales.shop.alias("place"), "amount").groupBy("place").agg(F.sum("amount"))
        ),
        format="parquet",
    ),
    "an anti join with the changed rows": Shape(
        lambda sales, shops: sales.join(shops, "shop", "left_anti"),
        changes="shops",
        refused="also where they are not",
    ),
    "the side of an outer join that is looked up": Shape(
        lambda sales, shops: sales.join(shops, "shop", "left"),
        changes="shops",
        refused="also where they are not",
    ),
    "a group of all rows": Shape(
        lambda sales, _: sales.agg(F.sum("amount")), refused="may need other rows|one group"
    ),
    "groups by what the input has not": Shape(
        lambda sales, shops: sales.join(shops, "shop").groupBy("town").agg(F.sum("amount")),
        refused="no column",
    ),
    "a first row": Shape(lambda sales, _: sales.dropDuplicates(["shop"]), refused="first"),
    "a rank": Shape(
        lambda sales, _: sales.selectExpr("*", "row_number() OVER (PARTITION BY shop ORDER BY amount) AS r"),
        refused="may need other rows",
    ),
    "a limit": Shape(lambda sales, _: sales.orderBy("amount").limit(9), refused="may need other rows"),
    "a sample": Shape(lambda sales, _: sales.sample(0.5, 1), refused="may need other rows"),
    "a join with itself": Shape(
        lambda sales, _: sales.join(sales.groupBy("shop").agg(F.max("amount").alias("m")), "shop"),
        refused="with itself|several times",
    ),
    "a number of each row": Shape(
        lambda sales, _: sales.withColumn("n", F.monotonically_increasing_id()),
        refused="MonotonicallyIncreasingID",
    ),
    "a function of Python": Shape(
        lambda sales, _: sales.withColumn("n", F.udf(lambda amount: str(amount))("amount")),
        refused="may need other rows|calls",
    ),
}


@dataclass
class Market:
    """Two inputs in a folder."""

    folder: Path
    draw: random.Random
    format: str

    def __post_init__(self) -> None:
        self.rows = [self.row(at) for at in range(240)]
        self.shops = [(f"s{at}", f"t{at % 5}") for at in range(0, 60, 2)]
        self.next = len(self.rows)

    def row(self, id: int) -> tuple[int, str, str, int]:
        return id, f"s{self.draw.randrange(60)}", self.draw.choice("abc"), self.draw.randrange(40)

    def change(self) -> None:
        """A few rows come, go, change, or move to another group."""
        for _ in range(self.draw.randrange(1, 3)):
            at = self.draw.randrange(len(self.rows))
            id, shop, kind, amount = self.rows[at]
            match self.draw.randrange(5):
                case 0:
                    self.rows[at] = id, shop, kind, amount + 5
                case 1:
                    self.rows[at] = id, f"s{self.draw.randrange(70)}", kind, amount
                case 2:
                    del self.rows[at]
                case 3:
                    self.rows.append(self.row(self.next))
                    self.next += 1
                case 4:
                    self.rows += [(self.next + more, shop, kind, 39) for more in range(3)]
                    self.next += 3

    def write(self) -> None:
        """In several files, and in another order each time."""
        self.draw.shuffle(self.rows)
        names = [column.split()[0] for column in COLUMNS.split(", ")]
        for number in range(3):
            part, path = self.rows[number::3], self.folder / "sales" / f"{number}.{self.format}"
            path.parent.mkdir(exist_ok=True, parents=True)
            if self.format == "csv":
                path.write_text("".join(",".join(map(str, row)) + "\n" for row in part))
            elif self.format == "json":
                lines = [
                    f'{{"id":{row[0]},"shop":"{row[1]}","kind":"{row[2]}","amount":{row[3]}}}\n'
                    for row in part
                ]
                path.write_text("".join(lines))
            else:
                columns = dict(zip(names, zip(*part, strict=True), strict=True))
                kinds = [pa.int32(), pa.string(), pa.string(), pa.int32()]
                schema = pa.schema(list(zip(names, kinds, strict=True)))
                pq.write_table(pa.table({name: list(of) for name, of in columns.items()}, schema), path)
        path = self.folder / "shops" / "all.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(",".join(row) + "\n" for row in self.shops))


def run_job(spark: SparkSession, shape: Shape, sales: str, shops: str, out: str) -> None:
    reader = spark.read.schema(COLUMNS)
    frame = {"csv": reader.csv, "json": reader.json, "parquet": reader.parquet}[shape.format](sales)
    shape.make(frame, spark.read.schema("shop STRING, town STRING").csv(shops)).write.mode(
        "overwrite"
    ).parquet(out)


def look(path: Path) -> FileLook:
    return FileLooks(FileSystems(), 10).at(str(path))


def rows(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in table.to_pylist())


@pytest.mark.thorough
def test_a_run_on_changed_classes_gives_what_a_full_run_does(
    run: Callable[..., tuple[Any, Application]], run_plain: Callable[..., Any], jar: Path, tmp_path: Path
) -> None:
    checked: list[str] = []

    def job(context: SparkContext) -> None:
        spark = SparkSession(context)
        for name, shape in SHAPES.items():
            folder = tmp_path / name
            market = Market(folder, random.Random(name), shape.format)
            market.write()
            run_job(spark, shape, f"{folder}/sales", f"{folder}/shops", f"{folder}/out")

    _, application = run(job, **CONF)
    nodes = read_events(application.events).nodes()

    def compare(context: SparkContext) -> None:
        spark = SparkSession(context)
        for name, shape in SHAPES.items():
            folder = tmp_path / name
            of_job = plan_of(nodes, folder)
            path = folder / shape.changes
            if shape.refused:
                with pytest.raises(NotSeparableError, match=shape.refused):
                    separated(of_job, path, folder / "out")
                continue
            separation = separated(of_job, path, folder / "out")
            follow(spark, shape, Market(folder, random.Random(name), shape.format), of_job, separation)
            checked.append(name)

    run_plain(compare, **CONF)
    assert len(checked) == sum(not shape.refused for shape in SHAPES.values())


def plan_of(nodes: dict[int, TopologyNode], folder: Path) -> dict[int, TopologyNode]:
    """The nodes of the query that wrote below a folder."""
    [sink] = [node for node in nodes.values() if node.kind == "sink" and node.location == f"{folder}/out"]
    chosen, pending = {sink.number: sink}, [*sink.parents]
    while pending:
        node = nodes[pending.pop()]
        chosen[node.number] = node
        pending += node.parents
    return chosen


def separated(nodes: dict[int, TopologyNode], path: Path, out: Path) -> Separation:
    sources = [node.number for node in nodes.values() if node.kind == "source" and node.location == str(path)]
    sinks = {node.number: str(out) for node in nodes.values() if node.kind == "sink"}
    return separation_of(nodes, str(path), sources, sinks)


def follow(
    spark: SparkSession, shape: Shape, market: Market, nodes: dict[int, TopologyNode], separation: Separation
) -> None:
    folder, out = market.folder, market.folder / "out"
    source = next(node for node in nodes.values() if node.location == f"{folder}/sales")
    sink = next(node for node in nodes.values() if node.kind == "sink")
    names = separation.outputs[str(out)]

    def read(at: Path, node: TopologyNode, columns: tuple[str, ...]) -> ClassRows:
        return rows_of(look(at), node, columns)

    market.write()
    then = classes_of(read(folder / "sales", source, separation.columns))
    for change in range(CHANGES):
        market.change()
        market.write()
        now = read(folder / "sales", source, separation.columns)
        changed = then.changed(classes_of(now))
        then = classes_of(now)
        subset = folder / f"subset-{change}"
        now.write(np.isin(now.classes, changed), subset)
        probe = folder / f"probe-{change}"
        run_job(spark, shape, str(subset), f"{folder}/shops", str(probe))
        old = read(out, sink, names)
        output = predicted(sink, old, read(probe, sink, names) if look(probe).count else None, changed)
        run_job(spark, shape, f"{folder}/sales", f"{folder}/shops", str(out))
        full = written(sink, read(out, sink, names))
        assert rows(output.new) == rows(full), (folder.name, change)
        assert len(changed) < len(then.keys)

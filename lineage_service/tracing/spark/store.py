"""One application's lineage as Spark reads it from the flow store: what a walk needs to know, and DataFrames.

What is known once for each run (who read what whom wrote, how many records it has) is on the driver; flows
and texts stay where they are. Knows nothing of the walk.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lineage_service.completeness import Receipt
from lineage_service.errors import UnknownApplicationError
from lineage_service.tracing.columns.application import OpenedApplication, StoreReader, opened_as
from lineage_service.tracing.model.lineage_graph import LineageGraph, grouped
from lineage_service.tracing.model.topology import Topology
from lineage_service.tracing.model.topology_builder import read_topology

#: Hadoop's names of the object stores that Delta's library names otherwise.
_HADOOP_SCHEMES = {"s3": "s3a"}
#: Columns of the tables' files, which do not hold the one that the tables are partitioned by.
_SCHEMAS = {
    "flows": "node INT, run BIGINT, out_pos BIGINT, out_count BIGINT, in_pos BIGINT, in_step TINYINT, "
    "in_run BIGINT",
    "records": "node INT, run BIGINT, pos BIGINT, kind STRING, type STRING, text STRING",
    "blocks": "node INT, run BIGINT, split INT, seq INT, relation STRING, rows BIGINT, bytes BIGINT",
}
#: So many values stand in a condition, where Parquet's readers see them; more are a table to join.
_LISTED = 200
#: So many rows are read as SQL; more would take its parser long.
_LITERAL = 1_000


class StoreInSpark(StoreReader, Protocol):
    """What is read of a flow store."""

    def uris(self, table: str, application_id: str) -> Sequence[str]: ...


class FlowsInSpark:
    """What only the flows of an application say, computed by Spark."""

    def __init__(self, frame: DataFrame) -> None:
        self.frame = frame
        #: (node, run) -> runs that it read; None: itself.
        self.writers_of: Mapping[tuple[int, int], frozenset[int | None]] = {}
        self._largest: dict[tuple[int, int], int] = {}

    def writers(self, nodes: Collection[int]) -> list[tuple[int, int]]:
        """(run that read, run that wrote) of the flows of these nodes."""
        if not nodes:
            return []
        read = self.frame.where(F.col("node").isin(sorted(nodes)))
        rows = [tuple(row) for row in read.select("node", "run", "in_run").distinct().collect()]
        writers = grouped(((node, run), writer) for node, run, writer in rows)
        self.writers_of = {key: frozenset(runs) for key, runs in writers.items()}
        return [(run, writer) for _, run, writer in rows if writer is not None and writer >= 0]

    def outputs(self, node: int, run: int) -> int:
        """Outputs that the flows of a node speak of; those of all runs are counted at once."""
        if (node, -1) not in self._largest:
            rows = (
                self.frame.where(F.col("node") == node)
                .groupBy("run")
                .agg(F.max(F.col("out_pos") + F.col("out_count")).alias("outputs"))
                .collect()
            )
            self._largest.update({(node, row["run"]): int(row["outputs"]) for row in rows})
            self._largest[node, -1] = 0
        return self._largest.get((node, run), 0)


class SparkSnapshot:
    """What is needed to walk: the graph, the flows, and the texts."""

    def __init__(
        self,
        spark: SparkSession,
        topology: Topology,
        receipts: Iterable[Receipt],
        flows: DataFrame,
        records: DataFrame,
    ) -> None:
        self.spark, self.records = spark, records
        self.flows = FlowsInSpark(flows)
        self.graph = LineageGraph(topology, receipts, self.flows)

    def table(self, columns: str, rows: Iterable[Sequence[int]]) -> DataFrame:
        """A table of the driver's, of whole numbers. A literal: no job, and no RDD that lineage would see."""
        named = [column.split() for column in columns.split(", ")]
        listed = list(rows)
        if 0 < len(listed) <= _LITERAL:
            ends = ["L" if kind == "bigint" else "" for _, kind in named]
            values = ", ".join(
                "(" + ", ".join(f"{value}{end}" for value, end in zip(row, ends, strict=True)) + ")"
                for row in listed
            )
            return self.spark.sql(
                f"SELECT * FROM VALUES {values} AS t({', '.join(name for name, _ in named)})"
            )
        names = [name for name, _ in named]
        text = json.dumps([dict(zip(names, row, strict=True)) for row in listed])
        fields = ",".join(f"{name}:{kind}" for name, kind in named)
        array = F.from_json(F.lit(text), f"array<struct<{fields}>>")
        return self.spark.range(0, 1, 1, 1).select(F.explode(array).alias("row")).select("row.*")

    def among(self, frame: DataFrame, column: str, numbers: Collection[int]) -> DataFrame:
        """The rows whose `column` is one of `numbers`."""
        if len(numbers) <= _LISTED:
            return frame.where(F.col(column).isin(sorted(numbers)))
        listed = self.table(f"{column} bigint", [(number,) for number in sorted(numbers)])
        return frame.join(F.broadcast(listed), column, "left_semi")


def open_in_spark(
    spark: SparkSession, store: StoreInSpark, application_id: str, location: str | None = None
) -> OpenedApplication[SparkSnapshot]:
    """The application at the store's newest version. Raises UnknownApplicationError.

    `location` is the store's folder or URL as the executors know it; None: as the store itself names it.
    """
    events = store.events(application_id)
    if not events:
        raise UnknownApplicationError(application_id)
    # Receipts first: they are written last, so that all that they speak of is in what is read after them.
    blocks, flows, records = (
        _read(spark, table, store.uris(table, application_id), location)
        for table in ("blocks", "flows", "records")
    )
    rows = blocks.select("run", "seq", "node", "relation", "rows").distinct().collect()
    receipts = [Receipt(*row) for row in rows]
    snapshot = SparkSnapshot(spark, read_topology(application_id, events, receipts), receipts, flows, records)
    return opened_as(snapshot, events, receipts, store.rows(application_id))


def _read(spark: SparkSession, table: str, uris: Sequence[str], location: str | None) -> DataFrame:
    if not uris:
        empty = spark.range(0)
        columns = [column.split() for column in _SCHEMAS[table].split(", ")]
        return empty.select(*(F.lit(None).cast(kind).alias(name) for name, kind in columns))
    paths = [_escaped(in_hadoop(uri, table, location)) for uri in uris]
    return spark.read.schema(_SCHEMAS[table]).parquet(*paths)


def in_hadoop(uri: str, table: str, location: str | None) -> str:
    """A file of the store as Hadoop's file systems name it."""
    if location is not None:
        return "/".join([location.rstrip("/"), table, *uri.split("/")[-2:]])
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return f"file:{uri}"  # a cluster's default file system is another
    return f"{_HADOOP_SCHEMES.get(scheme, scheme)}://{rest}"


def _escaped(path: str) -> str:
    """Spark takes a path for a pattern."""
    return "".join(f"\\{character}" if character in "\\*?[]{}" else character for character in path)

"""Partitions of the tables of Spark's catalog: which folders they are, and where the catalog has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spark_agent.sql.catalyst import Catalyst
from spark_agent.sql.types import Plan


def folder_of(catalyst: Catalyst, table: Plan, values: Any) -> str:
    """The folder of some partition columns' values, a Scala Map, below that of a table."""
    escaped = catalyst.jvm.org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils
    names = [name for name in catalyst.items(table.partitionColumnNames()) if values.contains(name)]
    return "/".join(str(escaped.getPartitionPathString(name, values.apply(name))) for name in names)


def locations_of(catalyst: Catalyst, table: Plan) -> Callable[[str], str | None]:
    """Where the catalog has the partitions of a table, each known by the folder of its values."""
    name, sql = table.identifier(), catalyst.jvm.org.apache.spark.sql
    catalog = sql.SparkSession.active().sharedState().externalCatalog()

    def location(folder: str) -> str | None:
        values = sql.execution.datasources.PartitioningUtils.parsePathFragment(folder)
        partition = catalog.getPartitionOption(name.database().get(), name.table(), values)
        if not partition.isDefined():
            return None
        return str(catalyst.jvm.org.apache.hadoop.fs.Path(partition.get().location()).toString())

    return location

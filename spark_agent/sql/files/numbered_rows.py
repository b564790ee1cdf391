"""The rows of a file by their numbers, read by Spark: for what is asked in a running session.

Knows nothing of lineage. Rows of a split follow each other, and splits are counted once, before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def literally(path: str) -> str:
    """A path that Spark takes for no pattern."""
    return "".join(f"\\{letter}" if letter in "\\*?[]{}" else letter for letter in path)


def numbered(
    spark: Any,
    path: str,
    format: str,
    *,
    schema: Any = "value string",
    options: Mapping[str, str] | None = None,
    leave_out: Callable[[Any], None] = lambda frame: None,
) -> Any:
    """The rows of a file, each with its number (`row`, from 0) beside its columns.

    `leave_out` is called with a DataFrame before the splits of it are counted.
    """
    from pyspark.sql import functions as F

    reader = spark.read.format(format).schema(schema).options(**(options or {}))
    rows = reader.load(literally(path)).select(
        "*",
        F.col("_metadata.file_block_start").alias("lineage_split"),
        F.monotonically_increasing_id().alias("lineage_id"),
    )
    leave_out(rows)
    counted = rows.groupBy("lineage_split").agg(F.min("lineage_id"), F.count("*"))
    splits, before = [], 0
    for split, first, count in sorted(map(tuple, counted.collect())):
        splits.append((split, before - first))
        before += count
    # Not a join: no DataFrame of the driver's then, and mostly one split.
    number = F.col("lineage_id")
    for split, more in splits:
        number = F.when(F.col("lineage_split") == split, F.col("lineage_id") + more).otherwise(number)
    return rows.withColumn("row", number).drop("lineage_split", "lineage_id")

"""The flows of a node as DataFrames, cut down to those that may meet a set of records."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lineage_service.tracing.spark.frontiers import Frontier, SparkFrontiers

__all__ = ["FlowQueries"]

#: Spans are found by the stretch of so many positions that they lie in: records of a stretch are compared
#: with its spans one by one.
_STRETCH = 64
#: Spans that may be of any length are found by the shortest of these stretches, in bits, that is no shorter.
_LEVELS = (6, 12, 18, 24, 30, 62)


class FlowQueries:
    """Flows have their run in the column `f_run`, so that they can be joined with records."""

    def __init__(self, frontiers: SparkFrontiers) -> None:
        self._snapshot, self._frontiers = frontiers.snapshot, frontiers

    def of(self, node: int) -> DataFrame:
        flows = self._snapshot.flows.frame.where(F.col("node") == node)
        return flows.withColumnRenamed("run", "f_run").drop("node")

    def near(
        self, flows: DataFrame, run: str, position: str, frontier: Frontier, *, is_span: bool = False
    ) -> DataFrame:
        """Flows that may meet the set: what Parquet's statistics pass over is not read."""
        first, last = frontier.bounds
        near = self._snapshot.among(flows, run, frontier.spread.keys()).where(F.col(position) <= last)
        return near if is_span else near.where(F.col(position) >= first)

    def joined(self, frontier: Frontier, flows: DataFrame, run: str, position: str) -> DataFrame:
        """Each record with the flows that name its run and its position in these columns."""
        on = (F.col("run") == F.col(run)) & (F.col("pos") == F.col(position))
        return self._frontiers.small(frontier).join(flows, on)

    def inside(self, frontier: Frontier, spans: DataFrame, run: str, begin: str) -> DataFrame:
        """Each record with the spans of its run that it lies in; `begin` is a span's first position there."""
        last = f"{begin} + out_count - 1"
        stretches = F.expr(f"explode(sequence({begin} div {_STRETCH}, ({last}) div {_STRETCH}))")
        spans = spans.where("out_count > 0").select("*", stretches.alias("stretch"))
        on = (
            (F.col("run") == F.col(run))
            & (F.expr(f"pos div {_STRETCH}") == F.col("stretch"))
            & F.expr(f"pos >= {begin} AND pos <= {last}")
        )
        return self._frontiers.small(frontier).join(spans, on)

    def inside_ranges(self, frontier: Frontier, ranges: DataFrame) -> DataFrame:
        """As `inside`, by outputs, of spans that overlap and may be as long as a run."""
        longest = " ".join(f"WHEN out_count <= {1 << bits} THEN {bits}" for bits in _LEVELS)
        first, last = "shiftright(out_pos, bits)", "shiftright(out_pos + out_count - 1, bits)"
        ranges = ranges.withColumn("bits", F.expr(f"CASE {longest} END"))
        ranges = ranges.withColumn("stretch", F.expr(f"explode(sequence({first}, {last}))"))
        levels = F.explode(F.array(*map(F.lit, _LEVELS)))
        records = self._frontiers.small(frontier).withColumn("level", levels)
        on = (
            (F.col("run") == F.col("f_run"))
            & (F.col("level") == F.col("bits"))
            & F.expr("shiftright(pos, level) = stretch AND pos >= out_pos AND pos < out_pos + out_count")
        )
        return records.join(ranges, on)

    def runs_by_partition(self, node: int) -> DataFrame:
        """(partition_id, run) of a node with ids."""
        run_of_partition = self._snapshot.graph.topology.run_of_partition.items()
        rows = [(partition, run) for (of, partition), run in run_of_partition if of == node]
        return self._snapshot.table("partition_id bigint, run bigint", rows)

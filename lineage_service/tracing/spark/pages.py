"""Pages of sets of records on Spark: how many records there are, and those that are listed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lineage_service.tracing.spark.frontiers import Frontier, SparkFrontiers
from lineage_service.tracing.walk.result import Position, Reached

__all__ = ["by_partition_of", "reached_at", "totals_of"]


def reached_at(
    frontiers: SparkFrontiers,
    node: int,
    frontier: Frontier,
    limit: int,
    after: Mapping[int, tuple[int, int]] | None = None,
) -> Reached:
    """How many records of a node are in a set, and a page of them in (partition, offset) order.

    One record may be held by several runs (two actions over one RDD): it counts once.
    """
    begin = (-1, -1) if after is None else after.get(node)
    runs = frontiers.snapshot.graph.topology.runs
    if frontier.is_held:
        run_of_place: dict[tuple[int, int], int] = {}
        for run, offset in sorted(frontier.rows):
            run_of_place.setdefault((runs[run].partition, offset), run)
        total = len(run_of_place)
        page = [
            (*place, run)
            for place, run in sorted(run_of_place.items())
            if begin is not None and place > begin
        ]
    else:
        by_partition = by_partition_of(frontiers, frontier)
        totals = totals_of(frontiers, frontier, by_partition)
        total, page = sum(totals.values()), []
        if begin is not None:
            chosen: dict[int, list[int]] = {}  # the partitions of the page, and of one record more
            behind = 0
            for partition in sorted(totals):
                if partition >= begin[0] and behind <= limit:
                    chosen[partition] = by_partition[partition]
                    behind += totals[partition] if partition > begin[0] else 0
            page = _page(frontiers, frontier, chosen, begin, limit + 1)
    listed = tuple(Position(node, partition, offset, run) for partition, offset, run in page[:limit])
    return Reached(node, total, listed, has_more=len(page) > limit)


def by_partition_of(frontiers: SparkFrontiers, frontier: Frontier) -> dict[int, list[int]]:
    """The runs of a set by partition."""
    by_partition: dict[int, list[int]] = defaultdict(list)
    for run in frontier.spread:
        by_partition[frontiers.snapshot.graph.topology.runs[run].partition].append(run)
    return by_partition


def totals_of(
    frontiers: SparkFrontiers, frontier: Frontier, by_partition: Mapping[int, list[int]]
) -> dict[int, int]:
    """Distinct records by partition."""
    totals = {
        partition: frontier.spread[runs[0]].records
        for partition, runs in by_partition.items()
        if len(runs) == 1
    }
    shared = [(run, partition) for partition, runs in by_partition.items() if len(runs) > 1 for run in runs]
    if shared:
        placed = _placed(frontiers, frontiers.only(frontier, [run for run, _ in shared]), shared)
        rows = placed.select("partition_id", "pos").distinct().groupBy("partition_id").count().collect()
        totals.update({row["partition_id"]: row["count"] for row in rows})
    return totals


def _page(
    frontiers: SparkFrontiers,
    frontier: Frontier,
    by_partition: Mapping[int, list[int]],
    begin: tuple[int, int],
    limit: int,
) -> list[tuple[int, int, int]]:
    """(partition, offset, run) of at most `limit` records in order, behind `begin`."""
    page: list[tuple[int, int, int]] = []
    if not by_partition or limit < 1:
        return page
    if all(len(runs) == 1 and _is_dense(frontier, runs[0]) for runs in by_partition.values()):
        for partition, (run, *_) in sorted(by_partition.items()):  # then there is nothing to ask Spark
            first = max(frontier.spread[run].first, begin[1] + 1 if partition == begin[0] else 0)
            offsets = range(first, frontier.spread[run].last + 1)[: limit - len(page)]
            page += [(partition, offset, run) for offset in offsets]
        return page
    partitions = [(run, partition) for partition, runs in by_partition.items() for run in runs]
    placed = _placed(frontiers, frontiers.only(frontier, [run for run, _ in partitions]), partitions)
    placed = placed.where(F.expr(f"partition_id > {begin[0]} OR pos > {begin[1]}"))
    if any(len(runs) > 1 for runs in by_partition.values()):
        placed = placed.groupBy("partition_id", "pos").agg(F.min("run").alias("run"))
    rows = placed.orderBy("partition_id", "pos").limit(limit).select("partition_id", "pos", "run")
    return [(row["partition_id"], row["pos"], row["run"]) for row in rows.collect()]


def _is_dense(frontier: Frontier, run: int) -> bool:
    spread = frontier.spread[run]
    return spread.last + 1 - spread.first == spread.records


def _placed(frontiers: SparkFrontiers, frontier: Frontier, partitions: list[tuple[int, int]]) -> DataFrame:
    table = frontiers.snapshot.table("run bigint, partition_id bigint", partitions)
    return frontiers.frame(frontier).join(F.broadcast(table), "run")

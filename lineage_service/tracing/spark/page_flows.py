"""The flows between the records that a page lists, found by a second walk on Spark: forward from these."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lineage_service.tracing.spark.forward import SparkForwardSteps
from lineage_service.tracing.spark.frontiers import SparkFrontiers
from lineage_service.tracing.walk.result import Position, Reached

__all__ = ["flows_between"]


def flows_between(side: SparkFrontiers, reached: list[Reached]) -> list[tuple[Position, Position]]:
    """The flows between listed records: forward from each to the next public nodes.

    All starts are walked at once, each its own origin: at a public node those that arrive are looked up among
    the listed ones and go no further, while its own listed records set out.
    """
    snapshot, nodes = side.snapshot, side.snapshot.graph.topology.nodes
    positions = [position for page in reached for position in page.positions]
    starts: dict[int, list[tuple[int, int, int]]] = defaultdict(list)  # node -> (origin, run, position)
    listed: dict[int, list[tuple[int, int, int]]] = defaultdict(list)  # node -> (record, run, position)
    for index, position in enumerate(positions):
        for run in snapshot.graph.topology.runs_at(position.node, position.partition):
            listed[position.node].append((index, run.number, position.offset))
            if run.number in snapshot.graph.live:
                starts[position.node].append((index, run.number, position.offset))
    steps = SparkForwardSteps(side)
    side.towards = _internal_before(side, listed) | listed.keys()
    pairs: list[DataFrame] = []
    done: set[int] = set()
    while pending := (starts.keys() | side.parts.keys()) - done:
        at = min(pending)
        done.add(at)
        arrived = side.parts.pop(at, [])
        if arrived and at in listed:
            came = [side.frame(part).select(*side.columns) for part in arrived]
            table = snapshot.table("target bigint, run bigint, pos bigint", listed[at])
            frame = reduce(DataFrame.union, came).join(F.broadcast(table), ["run", "pos"])
            pairs.append(frame.select("origin", "target"))
        side.parts[at] = [] if nodes[at].is_public else arrived
        if at in starts:
            side.add(at, side.of_rows(starts[at]))
        if side.parts[at]:
            frontier = side.at(at)
            steps.step(at, side.with_copies(at, frontier, "forward"), 0)
        side.parts.pop(at, None)
    if not pairs:
        return []
    index_pairs = {
        (row["origin"], row["target"]) for row in reduce(DataFrame.union, pairs).distinct().collect()
    }
    return [
        (positions[source], positions[target]) for source, target in sorted(index_pairs) if source != target
    ]


def _internal_before(side: SparkFrontiers, listed: Iterable[int]) -> set[int]:
    """The internal nodes on the way to one of these nodes, with no public operation after them."""
    topology = side.snapshot.graph.topology
    nodes = topology.nodes
    internal: set[int] = set()
    stack = list(listed)
    while stack:
        at = stack.pop()
        for parent in (*nodes[at].parents, *topology.id_sources.get(at, ())):
            if parent in nodes and parent not in internal and not nodes[parent].is_public:
                internal.add(parent)
                stack.append(parent)
    return internal

"""The flows between the records that a page lists, found by a second walk on Spark: forward from these."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from pyspark.sql import functions as F

from lineage_service.tracing.spark.forward import SparkForwardSteps
from lineage_service.tracing.spark.frontiers import Frontier, SparkFrontiers
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
    pairs: set[tuple[int, int]] = set()
    done: set[int] = set()
    while pending := (starts.keys() | side.parts.keys()) - done:
        at = min(pending)
        done.add(at)
        if at in listed and side.parts.get(at):
            arrived = side.at(at)
            side.put(at, arrived)
            pairs |= _pairs(side, arrived, listed[at])
        if nodes[at].is_public:
            side.parts.pop(at, None)
        if at in starts:
            side.add(at, side.of_rows(starts[at]))
        if side.parts.get(at):
            frontier = side.at(at)
            steps.step(at, side.with_copies(at, frontier, "forward"), 0)
        side.parts.pop(at, None)
    return [(positions[source], positions[target]) for source, target in sorted(pairs) if source != target]


def _pairs(
    side: SparkFrontiers, arrived: Frontier, listed: Sequence[tuple[int, int, int]]
) -> set[tuple[int, int]]:
    """(origin, listed record) of those that arrived and are listed: (record, run, position)."""
    if arrived.is_held:
        targets = defaultdict(list)
        for target, run, position in listed:
            targets[run, position].append(target)
        return {
            (origin, target)
            for origin, run, position in arrived.rows
            for target in targets.get((run, position), ())
        }
    table = side.snapshot.table("target bigint, run bigint, pos bigint", listed)
    frame = side.frame(arrived).join(F.broadcast(table), ["run", "pos"])
    rows = frame.select("origin", "target").distinct().collect()
    return {(row["origin"], row["target"]) for row in rows}


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

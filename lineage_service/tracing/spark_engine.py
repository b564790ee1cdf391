"""Walks a trace on Spark: the same question and the same answer as `engine`, over sets that Spark holds.

Nodes are visited once each, in the order of their numbers. To the driver come how many records each run has
in a set, sets that are no larger than a page, the page that is listed, and the flows between listed records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lineage_service.answers import Direction
from lineage_service.tracing.engine import Position, on_the_way
from lineage_service.tracing.spark_sets import Frontier
from lineage_service.tracing.spark_steps import SparkWalk


@dataclass(frozen=True, slots=True)
class Reached:
    """What a trace found at one public node; `positions` are one page in (split, offset) order."""

    node: int
    total: int
    positions: tuple[Position, ...]


@dataclass(frozen=True, slots=True)
class Walked:
    reached: tuple[Reached, ...]
    flows: tuple[tuple[Position, Position], ...]  # (input, output)
    is_exact: bool


def walk_in_spark(
    main: SparkWalk,
    side: SparkWalk,
    direction: Direction,
    node: int,
    start: Frontier,
    *,
    limit: int,
    skip: int = 0,
    depth: int | None,
    to: int | None,
) -> Walked:
    """Everything that the records of `start`, which stand at `node`, reach in `direction`.

    `main` and `side` are walks at which nothing stands yet; `side`, with origins, finds the flows.
    """
    nodes = main.snapshot.topology.nodes
    main.add(node, start)
    main.towards = allowed = on_the_way(main.snapshot.topology, direction, node, to)
    done = set[int]()
    reached: list[Reached] = []
    while pending := (main.parts.keys() & allowed) - done:
        at = max(pending) if direction == "backward" else min(pending)
        done.add(at)
        here = main.at(at)
        if not here.spread:
            continue
        hops = main.hops_to(at) if depth is not None else 0
        if at != to and (depth is None or hops < depth or not nodes[at].is_public):
            here = main.beside_cached(at, here, direction)
            step = main.backward if direction == "backward" else main.forward
            step(at, here, hops + (1 if nodes[at].is_public else 0))
        if nodes[at].is_public or at == node:
            reached.append(reached_at(main, at, here, skip, limit))
    return Walked(tuple(reached), tuple(_flows(side, reached)), main.is_exact)


def reached_at(walk: SparkWalk, node: int, here: Frontier, skip: int, limit: int) -> Reached:
    """How many records of a node are in a set, and a page of them in (split, offset) order.

    One record may be held by several runs (two actions over one RDD): it counts once.
    """
    runs = walk.snapshot.topology.runs
    if here.is_held:
        held: dict[tuple[int, int], int] = {}
        for run, offset in sorted(here.rows):
            held.setdefault((runs[run].split, offset), run)
        listed = sorted(held.items())[skip : skip + limit]
        return Reached(node, len(held), tuple(Position(node, *place, run) for place, run in listed))
    by_split: dict[int, list[int]] = defaultdict(list)
    for run in here.spread:
        by_split[runs[run].split].append(run)
    totals = _totals(walk, here, by_split)
    chosen: list[int] = []  # the splits of the page
    before, skipped = 0, 0
    for split in sorted(totals):
        if before + totals[split] <= skip:
            skipped += totals[split]
        elif before < skip + limit:
            chosen.append(split)
        before += totals[split]
    page = _page(walk, here, {split: by_split[split] for split in chosen}, skip - skipped, limit)
    return Reached(node, before, tuple(Position(node, split, offset, run) for split, offset, run in page))


def _totals(walk: SparkWalk, here: Frontier, by_split: Mapping[int, list[int]]) -> dict[int, int]:
    """Distinct records by split."""
    totals = {split: here.spread[runs[0]].records for split, runs in by_split.items() if len(runs) == 1}
    shared = [(run, split) for split, runs in by_split.items() if len(runs) > 1 for run in runs]
    if shared:
        placed = _placed(walk, walk.only(here, [run for run, _ in shared]), shared)
        found = placed.select("split", "pos").distinct().groupBy("split").count().collect()
        totals.update({row["split"]: row["count"] for row in found})
    return totals


def _page(
    walk: SparkWalk, here: Frontier, by_split: Mapping[int, list[int]], skip: int, limit: int
) -> list[tuple[int, int, int]]:
    """(split, offset, run) of at most `limit` records in order, without the first `skip`."""
    page: list[tuple[int, int, int]] = []
    if not by_split or limit < 1:
        return page
    if all(len(runs) == 1 and _is_dense(here, runs[0]) for runs in by_split.values()):
        for split, (run, *_) in sorted(by_split.items()):  # then there is nothing to ask Spark
            first, last = here.spread[run].first, here.spread[run].last
            offsets = range(first, last + 1)[skip : skip + limit - len(page)]
            page += [(split, offset, run) for offset in offsets]
            skip = max(skip - (last + 1 - first), 0)
        return page
    splits = [(run, split) for split, runs in by_split.items() for run in runs]
    placed = _placed(walk, walk.only(here, [run for run, _ in splits]), splits)
    if any(len(runs) > 1 for runs in by_split.values()):
        placed = placed.groupBy("split", "pos").agg(F.min("run").alias("run"))
    found = placed.orderBy("split", "pos").offset(skip).limit(limit).select("split", "pos", "run")
    return [(row["split"], row["pos"], row["run"]) for row in found.collect()]


def _is_dense(here: Frontier, run: int) -> bool:
    spread = here.spread[run]
    return spread.last + 1 - spread.first == spread.records


def _placed(walk: SparkWalk, here: Frontier, splits: list[tuple[int, int]]) -> DataFrame:
    table = walk.snapshot.table("run bigint, split bigint", splits)
    return walk.frame(here).join(F.broadcast(table), "run")


def _flows(side: SparkWalk, reached: list[Reached]) -> list[tuple[Position, Position]]:
    """The flows between listed records: forward from each to the next public nodes.

    All starts are walked at once, each its own origin: at a public node those that arrive are looked up among
    the listed ones and go no further, while its own listed records set out.
    """
    snapshot, nodes = side.snapshot, side.snapshot.topology.nodes
    positions = [position for each in reached for position in each.positions]
    starts: dict[int, list[tuple[int, int, int]]] = defaultdict(list)  # node -> (origin, run, position)
    listed: dict[int, list[tuple[int, int, int]]] = defaultdict(list)  # node -> (record, run, position)
    for index, each in enumerate(positions):
        for run in snapshot.topology.runs_at(each.node, each.split):
            listed[each.node].append((index, run.number, each.offset))
            if run.number in snapshot.effective:
                starts[each.node].append((index, run.number, each.offset))
    side.towards = _steps_before(side, listed) | listed.keys()
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
            side.add(at, side.held(starts[at]))
        if side.parts[at]:
            here = side.at(at)
            side.forward(at, side.beside_cached(at, here, "forward"), 0)
        side.parts.pop(at, None)
    if not pairs:
        return []
    found = {(row["origin"], row["target"]) for row in reduce(DataFrame.union, pairs).distinct().collect()}
    return [(positions[source], positions[target]) for source, target in sorted(found) if source != target]


def _steps_before(side: SparkWalk, listed: Iterable[int]) -> set[int]:
    """The steps that a way to one of these nodes passes, and no public operation after them."""
    nodes = side.snapshot.topology.nodes
    found: set[int] = set()
    stack = list(listed)
    while stack:
        for parent in nodes[stack.pop()].parents:
            if parent in nodes and parent not in found and not nodes[parent].is_public:
                found.add(parent)
                stack.append(parent)
    return found

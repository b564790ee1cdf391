"""Walks a trace on Spark: the same query and the same result as `local_engine`, over sets that Spark holds.

Nodes are visited in the order of their numbers. To the driver come how many records each run has in a set,
sets that are no larger than a page, the page that is listed, and the flows between listed records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property, reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lineage_service.lineage import Direction
from lineage_service.tracing.spark.sets import Frontier
from lineage_service.tracing.spark.steps import SparkWalk
from lineage_service.tracing.walk.result import Position, Reached, Walked, on_the_way


@dataclass(frozen=True)
class Arrived:
    """The records of one split that a walk has reached."""

    walk: SparkWalk
    frontier: Frontier  # of this split and others
    partition: int
    runs: tuple[int, ...]

    @cached_property
    def size(self) -> int:
        if self.frontier.is_held:
            return len({position for run, position in self.frontier.rows if run in self.runs})
        return _totals(self.walk, self.frontier, {self.partition: list(self.runs)})[self.partition]

    @cached_property
    def offsets(self) -> frozenset[int]:
        """All of them, on the driver: for splits of few records."""
        frontier = self.walk.only(self.frontier, self.runs)
        if frontier.is_held:
            return frozenset(position for _, position in frontier.rows)
        return frozenset(row["pos"] for row in self.walk.frame(frontier).select("pos").distinct().collect())


class SparkTraceWalk:
    """Everything that records reach in one direction. The steps of a node that more records came to are made
    again: they add the same records.
    """

    bytes = 0  # of this process
    is_whole = True  # an `advance` comes to the end, or fails

    def __init__(
        self,
        new_walk: Callable[[bool], SparkWalk],
        direction: Direction,
        *,
        depth: int | None = None,
        to: int | None = None,
    ) -> None:
        """`new_walk` gives a walk at which nothing stands yet, with origins or without."""
        self._walk, self._new_walk = new_walk(False), new_walk
        self._direction, self._depth, self._to = direction, depth, to
        self._allowed = set(self._walk.snapshot.graph.topology.nodes)
        self._starts: dict[int, None] = {}
        self._sets: dict[int, Frontier] = {}
        self._done: dict[int, int] = {}  # node -> what had come to it when its step was made

    @property
    def has_found(self) -> bool:
        return bool(self._done)

    def start(self, node: int, frontier: Frontier) -> None:
        """Begin at these records."""
        self._begin_at(node)
        self._walk.add(node, frontier)

    def start_range(self, node: int, run: int, first: int, count: int) -> None:
        """Begin at so many records from `first` on, too."""
        self._begin_at(node)
        self._walk.add(node, self._walk.ranged(run, first, count))

    def start_moved(self, node: int, run: int, arrived: Arrived, low: int, high: int, more: int) -> bool:
        """Begin at records of another walk, too; see journey.Walk."""
        self._begin_at(node)
        frontier = arrived.walk.only(arrived.frontier, arrived.runs)
        self._walk.add_moved(
            node, frontier, [(arrived_run, low, high, run, more) for arrived_run in arrived.runs]
        )
        return True

    def _begin_at(self, node: int) -> None:
        if self._to is not None:
            on_way = on_the_way(self._walk.snapshot.graph.topology, self._direction, node, self._to)
            self._allowed = self._allowed | on_way if self._starts else on_way
            self._walk.towards = self._allowed
        self._starts[node] = None

    def advance(self, check: Callable[[], None]) -> None:
        """Walk to the end."""
        walk, nodes = self._walk, self._walk.snapshot.graph.topology.nodes
        while pending := [node for node in walk.came if walk.came[node] != self._done.get(node)]:
            at = max(pending) if self._direction == "backward" else min(pending)
            check()
            came = walk.came[at]
            if at not in self._allowed:
                self._done[at] = came
                continue
            frontier = walk.at(at)
            if frontier.spread:
                hops = walk.hops_to(at) if self._depth is not None else 0
                if at != self._to and (self._depth is None or hops < self._depth or not nodes[at].is_public):
                    frontier = walk.beside_cached(at, frontier, self._direction)
                    step = walk.backward if self._direction == "backward" else walk.forward
                    step(at, frontier, hops + (1 if nodes[at].is_public else 0))
                walk.put(at, frontier)
                self._sets[at] = frontier
            self._done[at] = came

    def done_nodes(self) -> list[int]:
        return list(self._sets)

    def by_partition(self, node: int) -> dict[int, Arrived]:
        """The records reached at a node."""
        frontier = self._sets[node]
        partitions = _by_partition(self._walk, frontier)
        return {
            partition: Arrived(self._walk, frontier, partition, tuple(runs))
            for partition, runs in partitions.items()
        }

    def size(self, arrived: Arrived) -> int:
        return arrived.size

    def has(self, arrived: Arrived, offset: int) -> bool:
        return offset in arrived.offsets

    def page(
        self,
        limit: int,
        after: Mapping[int, tuple[int, int]] | None,
        check: Callable[[], None],
        among: Set[int] | None = None,
    ) -> Walked:
        """Up to `limit` records of each node: the first, or those after a (split, offset).

        With `among`, records of these nodes only; the others have their totals.
        """
        check()
        nodes = self._walk.snapshot.graph.topology.nodes
        reached = [
            reached_at(self._walk, node, self._sets[node], limit, after)
            if among is None or node in among
            else replace(reached_at(self._walk, node, self._sets[node], 0), has_more=False)
            for node in self.done_nodes()
            if nodes[node].is_public or node in self._starts
        ]
        is_one = among is not None and len(among) < 2  # no record flows within its node
        flows = [] if is_one else _flows(self._new_walk(True), reached)
        return Walked(tuple(reached), tuple(flows), self._walk.is_exact, self.is_whole)


def reached_at(
    walk: SparkWalk,
    node: int,
    frontier: Frontier,
    limit: int,
    after: Mapping[int, tuple[int, int]] | None = None,
) -> Reached:
    """How many records of a node are in a set, and a page of them in (split, offset) order.

    One record may be held by several runs (two actions over one RDD): it counts once.
    """
    begin = (-1, -1) if after is None else after.get(node)
    runs = walk.snapshot.graph.topology.runs
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
        by_partition = _by_partition(walk, frontier)
        totals = _totals(walk, frontier, by_partition)
        total, page = sum(totals.values()), []
        if begin is not None:
            chosen: dict[int, list[int]] = {}  # the splits of the page, and of one record more
            behind = 0
            for partition in sorted(totals):
                if partition >= begin[0] and behind <= limit:
                    chosen[partition] = by_partition[partition]
                    behind += totals[partition] if partition > begin[0] else 0
            page = _page(walk, frontier, chosen, begin, limit + 1)
    listed = tuple(Position(node, partition, offset, run) for partition, offset, run in page[:limit])
    return Reached(node, total, listed, has_more=len(page) > limit)


def _by_partition(walk: SparkWalk, frontier: Frontier) -> dict[int, list[int]]:
    """The runs of a set by split."""
    by_partition: dict[int, list[int]] = defaultdict(list)
    for run in frontier.spread:
        by_partition[walk.snapshot.graph.topology.runs[run].partition].append(run)
    return by_partition


def _totals(walk: SparkWalk, frontier: Frontier, by_partition: Mapping[int, list[int]]) -> dict[int, int]:
    """Distinct records by split."""
    totals = {
        partition: frontier.spread[runs[0]].records
        for partition, runs in by_partition.items()
        if len(runs) == 1
    }
    shared = [(run, partition) for partition, runs in by_partition.items() if len(runs) > 1 for run in runs]
    if shared:
        placed = _placed(walk, walk.only(frontier, [run for run, _ in shared]), shared)
        rows = placed.select("split", "pos").distinct().groupBy("split").count().collect()
        totals.update({row["split"]: row["count"] for row in rows})
    return totals


def _page(
    walk: SparkWalk,
    frontier: Frontier,
    by_partition: Mapping[int, list[int]],
    begin: tuple[int, int],
    limit: int,
) -> list[tuple[int, int, int]]:
    """(split, offset, run) of at most `limit` records in order, behind `begin`."""
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
    placed = _placed(walk, walk.only(frontier, [run for run, _ in partitions]), partitions)
    placed = placed.where(F.expr(f"split > {begin[0]} OR pos > {begin[1]}"))
    if any(len(runs) > 1 for runs in by_partition.values()):
        placed = placed.groupBy("split", "pos").agg(F.min("run").alias("run"))
    rows = placed.orderBy("split", "pos").limit(limit).select("split", "pos", "run")
    return [(row["split"], row["pos"], row["run"]) for row in rows.collect()]


def _is_dense(frontier: Frontier, run: int) -> bool:
    spread = frontier.spread[run]
    return spread.last + 1 - spread.first == spread.records


def _placed(walk: SparkWalk, frontier: Frontier, partitions: list[tuple[int, int]]) -> DataFrame:
    table = walk.snapshot.table("run bigint, split bigint", partitions)
    return walk.frame(frontier).join(F.broadcast(table), "run")


def _flows(side: SparkWalk, reached: list[Reached]) -> list[tuple[Position, Position]]:
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
            side.add(at, side.of_rows(starts[at]))
        if side.parts[at]:
            frontier = side.at(at)
            side.forward(at, side.beside_cached(at, frontier, "forward"), 0)
        side.parts.pop(at, None)
    if not pairs:
        return []
    index_pairs = {
        (row["origin"], row["target"]) for row in reduce(DataFrame.union, pairs).distinct().collect()
    }
    return [
        (positions[source], positions[target]) for source, target in sorted(index_pairs) if source != target
    ]


def _steps_before(side: SparkWalk, listed: Iterable[int]) -> set[int]:
    """The steps that a way to one of these nodes passes, and no public operation after them."""
    topology = side.snapshot.graph.topology
    nodes = topology.nodes
    steps: set[int] = set()
    stack = list(listed)
    while stack:
        at = stack.pop()
        for parent in (*nodes[at].parents, *topology.id_sources.get(at, ())):
            if parent in nodes and parent not in steps and not nodes[parent].is_public:
                steps.add(parent)
                stack.append(parent)
    return steps

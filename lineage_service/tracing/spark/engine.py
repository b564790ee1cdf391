"""Walks a trace on Spark: the same query and the same result as `local_engine`, over sets that Spark holds.

Nodes are visited in the order of their numbers. To the driver come how many records each run has in a set,
sets that are no larger than a page, the page that is listed, and the flows between listed records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property

from lineage_service.lineage import Direction
from lineage_service.tracing.spark.backward import SparkBackwardSteps
from lineage_service.tracing.spark.forward import SparkForwardSteps
from lineage_service.tracing.spark.frontiers import Frontier, Move, SparkFrontiers
from lineage_service.tracing.spark.page_flows import flows_between
from lineage_service.tracing.spark.pages import by_partition_of, reached_at, totals_of
from lineage_service.tracing.walk.result import Walked, on_the_way


@dataclass(frozen=True)
class Arrived:
    """The records of one partition that a walk has reached."""

    frontiers: SparkFrontiers
    frontier: Frontier  # of this partition and others
    partition: int
    runs: tuple[int, ...]

    @cached_property
    def size(self) -> int:
        if self.frontier.is_held:
            return len({position for run, position in self.frontier.rows if run in self.runs})
        return totals_of(self.frontiers, self.frontier, {self.partition: list(self.runs)})[self.partition]

    @cached_property
    def offsets(self) -> frozenset[int]:
        """All of them, on the driver: for partitions of few records."""
        frontier = self.frontiers.only(self.frontier, self.runs)
        if frontier.is_held:
            return frozenset(position for _, position in frontier.rows)
        rows = self.frontiers.frame(frontier).select("pos").distinct().collect()
        return frozenset(row["pos"] for row in rows)


class SparkTraceWalk:
    """Everything that records reach in one direction. The steps of a node that more records came to are made
    again: they add the same records.
    """

    bytes = 0  # of this process
    is_whole = True  # an `advance` comes to the end, or fails

    def __init__(
        self,
        new_frontiers: Callable[[bool], SparkFrontiers],
        direction: Direction,
        *,
        depth: int | None = None,
        to: int | None = None,
    ) -> None:
        """`new_frontiers` gives some at which nothing stands yet, with origins or without."""
        self._frontiers, self._new_frontiers = new_frontiers(False), new_frontiers
        steps = SparkBackwardSteps if direction == "backward" else SparkForwardSteps
        self._steps: SparkBackwardSteps | SparkForwardSteps = steps(self._frontiers)
        self._direction, self._depth, self._to = direction, depth, to
        self._allowed = set(self._frontiers.snapshot.graph.topology.nodes)
        self._starts: dict[int, None] = {}
        self._sets: dict[int, Frontier] = {}
        self._done: dict[int, int] = {}  # node -> what had come to it when its step was made

    @property
    def has_results(self) -> bool:
        return bool(self._done)

    def start(self, node: int, frontier: Frontier) -> None:
        """Begin at these records."""
        self._begin_at(node)
        self._frontiers.add(node, frontier)

    def start_range(self, node: int, run: int, first: int, count: int) -> None:
        """Begin at so many records from `first` on, too."""
        self._begin_at(node)
        self._frontiers.add(node, self._frontiers.ranged(run, first, count))

    def start_moved(self, node: int, run: int, arrived: Arrived, low: int, high: int, more: int) -> bool:
        """Begin at records of another walk, too; see `cross_application.Walk`."""
        self._begin_at(node)
        frontier = arrived.frontiers.only(arrived.frontier, arrived.runs)
        self._frontiers.add_moved(node, frontier, [Move(of, low, high, run, more) for of in arrived.runs])
        return True

    def _begin_at(self, node: int) -> None:
        if self._to is not None:
            on_way = on_the_way(self._frontiers.snapshot.graph.topology, self._direction, node, self._to)
            self._allowed = self._allowed | on_way if self._starts else on_way
            self._frontiers.towards = self._allowed
        self._starts[node] = None

    def advance(self, check: Callable[[], None]) -> None:
        """Walk to the end."""
        frontiers, nodes = self._frontiers, self._frontiers.snapshot.graph.topology.nodes
        while pending := [node for node in frontiers.came if frontiers.came[node] != self._done.get(node)]:
            at = max(pending) if self._direction == "backward" else min(pending)
            check()
            came = frontiers.came[at]
            if at not in self._allowed:
                self._done[at] = came
                continue
            frontier = frontiers.at(at)
            if frontier.spread:
                hops = frontiers.hops_to(at) if self._depth is not None else 0
                if at != self._to and (self._depth is None or hops < self._depth or not nodes[at].is_public):
                    frontier = frontiers.with_copies(at, frontier, self._direction)
                    self._steps.step(at, frontier, hops + nodes[at].is_public)
                frontiers.put(at, frontier)
                self._sets[at] = frontier
            self._done[at] = came

    def done_nodes(self) -> list[int]:
        return list(self._sets)

    def by_partition(self, node: int) -> dict[int, Arrived]:
        """The records reached at a node."""
        frontier = self._sets[node]
        partitions = by_partition_of(self._frontiers, frontier)
        return {
            partition: Arrived(self._frontiers, frontier, partition, tuple(runs))
            for partition, runs in partitions.items()
        }

    def runs_of_places(self, node: int) -> dict[tuple[int, int], int]:
        """(partition, offset) -> a run that holds it, of all records reached at a node: on the driver."""
        frontier, runs = self._sets[node], self._frontiers.snapshot.graph.topology.runs
        rows = frontier.rows
        if not frontier.is_held:
            rows = self._frontiers.frame(frontier).select("run", "pos").collect()
        places: dict[tuple[int, int], int] = {}
        for run, offset in sorted((row[0], row[1]) for row in rows):
            places.setdefault((runs[run].partition, offset), run)
        return places

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
        """Up to `limit` records of each node: the first, or those after a (partition, offset).

        With `among`, records of these nodes only; the others have their totals.
        """
        check()
        nodes = self._frontiers.snapshot.graph.topology.nodes
        reached = [
            reached_at(self._frontiers, node, self._sets[node], limit, after)
            if among is None or node in among
            else replace(reached_at(self._frontiers, node, self._sets[node], 0), has_more=False)
            for node in self.done_nodes()
            if nodes[node].is_public or node in self._starts
        ]
        is_one = among is not None and len(among) < 2  # no record flows within its node
        flows = [] if is_one else flows_between(self._new_frontiers(True), reached)
        return Walked(tuple(reached), tuple(flows), self._frontiers.is_exact, self.is_whole)

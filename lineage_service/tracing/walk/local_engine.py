"""Walks a trace over a snapshot: all records that a start reaches, node by node, and the flows between them.

Nodes are numbered so that an operation has a larger number than what it reads; walking in that order visits
each node once, with its whole set. Steps of an operation are passed through and not listed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Set
from dataclasses import replace

import numpy as np

from lineage_service.lineage import Direction
from lineage_service.tracing.columns.interval_join import distinct, within
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.walk.origin_flows import MOST, OriginFlows
from lineage_service.tracing.walk.page_flows import flows_between
from lineage_service.tracing.walk.result import Position, Reached, Walked, on_the_way
from lineage_service.tracing.walk.steps import Integers, TooManyError, Walk


class TraceWalk:
    """Everything that records reach in one direction, as far as the walk has come. For one thread.

    A step that was ended in the middle is made again by the next `advance`: it adds the same records. So is
    the step of a node that more records came to after it.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        direction: Direction,
        *,
        depth: int | None = None,
        to: int | None = None,
    ) -> None:
        """With `to`, the walk is what lies between its start nodes and that one."""
        self.snapshot = snapshot
        self._direction, self._depth, self._to = direction, depth, to
        # Where a walk ends before its time, records may be listed that it made no step from.
        is_whole = depth is None and to is None
        self._origin_flows = OriginFlows(snapshot.graph, direction) if is_whole else None
        self._walk = Walk(snapshot, MOST if is_whole else None)
        self._hops: dict[int, int] = {}
        self._starts: dict[int, None] = {}
        self._allowed = set(snapshot.graph.topology.nodes)
        self._done: dict[int, int] = {}  # node -> what had come to it when its step was made

    def start(self, node: int, run: int, positions: Integers) -> None:
        """Begin at these records, too. Positions ascend."""
        is_late = self._done or self._starts.keys() - {node} or not _is_public(self.snapshot, node)
        if is_late or self._walk.added(node) + len(positions) > MOST:
            self._drop_origins()
        self._walk.add(node, run, None, positions)
        self._hops[node] = 0
        on_way = on_the_way(self.snapshot.graph.topology, self._direction, node, self._to)
        self._allowed = self._allowed | on_way if self._starts else on_way
        self._starts[node] = None
        if self._to is not None:  # a bound off that way says nothing about the answer
            self._walk.towards = self._allowed

    @property
    def bytes(self) -> int:
        """Memory of the positions that it holds."""
        return self._walk.bytes + (self._origin_flows.bytes if self._origin_flows is not None else 0)

    @property
    def has_found(self) -> bool:
        """At least one node is done."""
        return bool(self._done)

    @property
    def is_whole(self) -> bool:
        """There is nothing left to step from."""
        return not self._pending()

    def _pending(self) -> list[int]:
        nodes = self._walk.nodes() & self._allowed
        return [node for node in nodes if self._walk.added(node) != self._done.get(node)]

    def advance(self, check: Callable[[], None]) -> None:
        """Walk to the end. `check` is called now and then, and ends it by what it raises."""
        walk, hops = self._walk, self._hops
        walk.check = check
        try:
            while pending := self._pending():
                node = max(pending) if self._direction == "backward" else min(pending)
                is_public = _is_public(self.snapshot, node)
                if node != self._to and (self._depth is None or hops[node] < self._depth or not is_public):
                    self._step(node, is_public=is_public)
                for reached in walk.nodes():
                    hops.setdefault(reached, hops[node] + is_public)
                self._done[node] = walk.added(node)
        except BaseException:
            self._drop_origins()
            raise

    def _step(self, node: int, *, is_public: bool) -> None:
        step = self._walk.backward if self._direction == "backward" else self._walk.forward
        if node in self._done or node in self.snapshot.graph.read_in_vain:
            self._drop_origins()
        if self._origin_flows is not None:
            try:
                if is_public:
                    self._origin_flows.arrive(self._walk, node)
                return step(node)
            except TooManyError:
                self._drop_origins()
        step(node)

    def _drop_origins(self) -> None:
        if self._origin_flows is not None:
            self._origin_flows = self._walk.most = None
            self._walk.without_origins()

    def done_nodes(self) -> list[int]:
        """The nodes whose records are known, in the order of the way."""
        return list(self._done)

    def by_partition(self, node: int) -> dict[int, Integers]:
        """The records reached at a node, ascending."""
        by_partition: dict[int, list[Integers]] = defaultdict(list)
        for run, (_, positions) in self._walk.at(node).items():
            by_partition[self.snapshot.graph.topology.runs[run].partition].append(positions)
        return {
            partition: distinct(np.concatenate(parts)) if len(parts) > 1 else parts[0]
            for partition, parts in by_partition.items()
        }

    def size(self, arrived: Integers) -> int:
        return len(arrived)

    def has(self, arrived: Integers, offset: int) -> bool:
        return _holds(arrived, offset)

    def start_range(self, node: int, run: int, first: int, count: int) -> None:
        """Begin at so many records from `first` on, too."""
        self.start(node, run, np.arange(first, first + count, dtype=np.int64))

    def start_moved(self, node: int, run: int, arrived: Integers, low: int, high: int, more: int) -> bool:
        """Begin at those from `low` to before `high`, too, with `more` added."""
        inside = arrived[within(arrived, low, high - 1)]
        if len(inside):
            self.start(node, run, inside + np.int64(more))
        return len(inside) > 0

    def page(
        self,
        limit: int,
        after: Mapping[int, tuple[int, int]] | None,
        check: Callable[[], None],
        among: Set[int] | None = None,
    ) -> Walked:
        """Up to `limit` records of each node that is done: the first, or those after a (split, offset).

        With `among`, records of these nodes only; the others have their totals.
        """
        self._walk.check = check
        reached = [
            _reached(self.snapshot, self._walk, node, limit, after)
            if among is None or node in among
            else _counted(self.snapshot, self._walk, node)
            for node in self.done_nodes()
            if _is_public(self.snapshot, node) or node in self._starts
        ]
        listed = [page for page in reached if page.total]
        return Walked(tuple(listed), tuple(self._flows(listed, check)), self._walk.is_exact, self.is_whole)

    def _flows(self, listed: list[Reached], check: Callable[[], None]) -> list[tuple[Position, Position]]:
        if sum(1 for page in listed if page.positions) < 2:  # no record flows within its node
            return []
        # A bound is not the same in both directions.
        is_known = self._origin_flows is not None and self._walk.is_exact and self.is_whole
        carried = self._origin_flows.between(listed) if self._origin_flows is not None and is_known else None
        return carried if carried is not None else flows_between(self.snapshot, self._walk, listed, check)


def _is_public(snapshot: Snapshot, node: int) -> bool:
    return snapshot.graph.topology.nodes[node].is_public


def _reached(
    snapshot: Snapshot, main: Walk, node: int, limit: int, after: Mapping[int, tuple[int, int]] | None
) -> Reached:
    """One record may be held by several runs (two actions over one RDD): it counts once."""
    by_partition: dict[int, dict[int, Integers]] = defaultdict(dict)
    for run, (_, positions) in main.at(node).items():
        by_partition[snapshot.graph.topology.runs[run].partition][run] = positions
    begin = (-1, -1) if after is None else after.get(node, _BEYOND)
    total = left = 0
    page: list[Position] = []
    for partition in sorted(by_partition):
        positions_of = by_partition[partition]
        every = (
            distinct(np.concatenate(list(positions_of.values())))
            if len(positions_of) > 1
            else next(iter(positions_of.values()))
        )
        total += len(every)
        first = 0
        if partition <= begin[0]:
            first = len(every) if partition < begin[0] else int(np.searchsorted(every, begin[1], "right"))
        chosen = every[first : first + limit - len(page)].tolist()
        left += len(every) - first - len(chosen)
        if len(positions_of) == 1:
            run = next(iter(positions_of))
            page += [Position(node, partition, offset, run) for offset in chosen]
            continue
        for offset in chosen:
            run = next(run for run, positions in sorted(positions_of.items()) if _holds(positions, offset))
            page.append(Position(node, partition, offset, run))
    return Reached(node, total, tuple(page), has_more=left > 0)


def _counted(snapshot: Snapshot, main: Walk, node: int) -> Reached:
    return replace(_reached(snapshot, main, node, 0, None), has_more=False)


_BEYOND = (1 << 63, 0)


def _holds(ascending: Integers, offset: int) -> bool:
    at = int(np.searchsorted(ascending, offset))
    return at < len(ascending) and int(ascending[at]) == offset

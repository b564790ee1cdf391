"""Walks a trace over a snapshot: all records that a start reaches, node by node, and the flows between them.

Nodes are numbered so that an operation has a larger number than what it reads; walking in that order visits
each node once, with its whole set. Internal nodes are passed through and not listed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import replace

import numpy as np

from lineage_service.lineage import Direction
from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.interval_join import distinct, within
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.model.topology import Topology
from lineage_service.tracing.walk.backward import BackwardSteps
from lineage_service.tracing.walk.forward import ForwardSteps
from lineage_service.tracing.walk.frontiers import Frontier, Frontiers, TooManyError
from lineage_service.tracing.walk.origin_flows import MOST, OriginFlows
from lineage_service.tracing.walk.page_flows import flows_between
from lineage_service.tracing.walk.result import Position, Reached, Walked, on_the_way

#: Places before and behind all records of a node, as (partition, offset).
_BEFORE_ALL, _BEHIND_ALL = (-1, -1), (1 << 63, 0)


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
        self._frontiers = Frontiers(snapshot.graph, MOST if is_whole else None)
        steps = BackwardSteps if direction == "backward" else ForwardSteps
        self._steps: BackwardSteps | ForwardSteps = steps(snapshot, self._frontiers)
        self._hops: dict[int, int] = {}
        self._starts: dict[int, None] = {}
        self._allowed = set(snapshot.graph.topology.nodes)
        self._done: dict[int, int] = {}  # node -> what had come to it when its step was made

    def start(self, node: int, run: int, positions: Integers) -> None:
        """Begin at these records, too. Positions ascend."""
        is_late = self._done or self._starts.keys() - {node} or not _is_public(self.snapshot, node)
        if is_late or self._frontiers.added(node) + len(positions) > MOST:
            self._drop_origins()
        self._frontiers.add(node, run, None, positions)
        self._hops[node] = 0
        on_way = on_the_way(self.snapshot.graph.topology, self._direction, node, self._to)
        self._allowed = self._allowed | on_way if self._starts else on_way
        self._starts[node] = None
        if self._to is not None:  # an upper bound off that way says nothing about the result
            self._frontiers.towards = self._allowed

    @property
    def bytes(self) -> int:
        """Memory of the positions that it holds."""
        return self._frontiers.bytes + (self._origin_flows.bytes if self._origin_flows is not None else 0)

    @property
    def has_results(self) -> bool:
        """At least one node is done."""
        return bool(self._done)

    @property
    def is_whole(self) -> bool:
        """There is nothing left to step from."""
        return not self._pending()

    def _pending(self) -> list[int]:
        nodes = self._frontiers.nodes() & self._allowed
        return [node for node in nodes if self._frontiers.added(node) != self._done.get(node)]

    @property
    def is_exact(self) -> bool:
        """As far as it has come, the path of each record is known."""
        return self._frontiers.is_exact

    def at(self, node: int) -> Frontier:
        """The records that it has reached at a node, internal nodes too."""
        return self._frontiers.at(node)

    def advance(self, check: Callable[[], None]) -> None:
        """Walk to the end. `check` is called now and then, and ends it by what it raises."""
        frontiers, hops = self._frontiers, self._hops
        frontiers.check = check
        try:
            while pending := self._pending():
                node = max(pending) if self._direction == "backward" else min(pending)
                is_public = _is_public(self.snapshot, node)
                if node != self._to and (self._depth is None or hops[node] < self._depth or not is_public):
                    self._step(node, is_public=is_public)
                for reached in frontiers.nodes():
                    hops.setdefault(reached, hops[node] + is_public)
                self._done[node] = frontiers.added(node)
        except BaseException:
            self._drop_origins()
            raise

    def _step(self, node: int, *, is_public: bool) -> None:
        if node in self._done or node in self.snapshot.graph.read_in_vain:
            self._drop_origins()
        if self._origin_flows is not None:
            try:
                if is_public:
                    self._origin_flows.arrive(self._frontiers, node)
                return self._steps.step(node)
            except TooManyError:
                self._drop_origins()
        self._steps.step(node)

    def _drop_origins(self) -> None:
        if self._origin_flows is not None:
            self._origin_flows = self._frontiers.most = None
            self._frontiers.without_origins()

    def done_nodes(self) -> list[int]:
        """The nodes whose records are known, in the order of the way."""
        return list(self._done)

    def by_partition(self, node: int) -> dict[int, Integers]:
        """The records reached at a node, ascending."""
        by_partition: dict[int, list[Integers]] = defaultdict(list)
        for run, (_, positions) in self._frontiers.at(node).items():
            by_partition[self.snapshot.graph.topology.runs[run].partition].append(positions)
        return {partition: _merged(parts) for partition, parts in by_partition.items()}

    def positions(self, node: int, places: Iterable[tuple[int, int]]) -> tuple[Position, ...]:
        """Records that it has reached at a node, by (partition, offset), each with a run that holds it."""
        runs_of: dict[int, list[tuple[int, Integers]]] = defaultdict(list)
        for run, (_, positions) in sorted(self._frontiers.at(node).items()):
            runs_of[self.snapshot.graph.topology.runs[run].partition].append((run, positions))
        return tuple(
            Position(
                node,
                partition,
                offset,
                next(run for run, offsets in runs_of[partition] if _holds(offsets, offset)),
            )
            for partition, offset in places
        )

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
        """Up to `limit` records of each node that is done: the first, or those after a (partition, offset).

        With `among`, records of these nodes only; the others have their totals.
        """
        self._frontiers.check = check
        reached = [
            self._reached(node, limit, after, is_listed=among is None or node in among)
            for node in self.done_nodes()
            if _is_public(self.snapshot, node) or node in self._starts
        ]
        listed = [page for page in reached if page.total]
        flows = self._flows(listed, check)
        return Walked(tuple(listed), tuple(flows), self._frontiers.is_exact, self.is_whole)

    def _reached(
        self, node: int, limit: int, after: Mapping[int, tuple[int, int]] | None, *, is_listed: bool
    ) -> Reached:
        """A page of a node; of one that is not listed, its total alone."""
        topology, frontier = self.snapshot.graph.topology, self._frontiers.at(node)
        if not is_listed:
            return replace(_reached(topology, node, frontier, 0, _BEFORE_ALL), has_more=False)
        begin = _BEFORE_ALL if after is None else after.get(node, _BEHIND_ALL)
        return _reached(topology, node, frontier, limit, begin)

    def _flows(self, listed: list[Reached], check: Callable[[], None]) -> list[tuple[Position, Position]]:
        if sum(1 for page in listed if page.positions) < 2:  # no record flows within its node
            return []
        # An upper bound is not the same in both directions.
        if self._origin_flows is not None and self._frontiers.is_exact and self.is_whole:
            flows = self._origin_flows.between(listed)
            if flows is not None:
                return flows
        return flows_between(self.snapshot, self._frontiers, listed, check)


def _is_public(snapshot: Snapshot, node: int) -> bool:
    return snapshot.graph.topology.nodes[node].is_public


def _reached(
    topology: Topology, node: int, frontier: Frontier, limit: int, begin: tuple[int, int]
) -> Reached:
    """Up to `limit` records behind a (partition, offset).

    One record may stand in several runs (two actions over one RDD): it counts once.
    """
    by_partition: dict[int, dict[int, Integers]] = defaultdict(dict)
    for run, (_, positions) in frontier.items():
        by_partition[topology.runs[run].partition][run] = positions
    total = left = 0
    page: list[Position] = []
    for partition in sorted(by_partition):
        positions_of = by_partition[partition]
        every = _merged(list(positions_of.values()))
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


def _merged(parts: list[Integers]) -> Integers:
    return distinct(np.concatenate(parts)) if len(parts) > 1 else parts[0]


def _holds(ascending: Integers, offset: int) -> bool:
    at = int(np.searchsorted(ascending, offset))
    return at < len(ascending) and int(ascending[at]) == offset

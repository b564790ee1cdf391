"""Where the records that a row became end on their way to a sink: the last ones, and at which operation.

Walks forward and looks at each record for what came of it one step on. Where nothing did, it ended. Between
records with ids there may be several operators of a plan: then each of them is a candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from lineage_service.lineage import SourceRow
from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.missing.droppers import Candidate, of_unread
from lineage_service.tracing.missing.numbered_records import MOST_RECORDS, NumberedRecords
from lineage_service.tracing.missing.operation_inputs import inputs_of, side_of
from lineage_service.tracing.missing.plan_paths import PlanPaths
from lineage_service.tracing.model.elements import TaskRun, TopologyNode
from lineage_service.tracing.model.topology import shuffled_nodes
from lineage_service.tracing.walk.forward import ForwardSteps
from lineage_service.tracing.walk.frontiers import Frontier, Frontiers, TooManyError
from lineage_service.tracing.walk.local_engine import TraceWalk
from lineage_service.tracing.walk.result import Position, on_the_way
from spark_agent import contract

__all__ = ["Ending", "Endings", "Passed", "RowStart", "sinks_behind"]

Cause = Literal["dropped", "unread", "deleted", "cut", "unfollowed", "many"]
"""Of an ending.

`unread`: no task took it. `deleted`: the version of its table that was read is without it. `cut`: rows that
come that way are in no output. `many`: too many to look at.
"""

#: Of the last records, those that are followed back to what people know.
_SHOWN = 20
_NO_OFFSETS = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class RowStart:
    """A record of an input, and the runs that hold it; none where no task has read it.

    `place` is (partition, offset); None of a row that is no record, with what it says.
    """

    node: TopologyNode
    place: tuple[int, int] | None
    runs: Sequence[TaskRun] = ()
    row: SourceRow | None = None


@dataclass(frozen=True, slots=True)
class Passed:
    """A sink that a record went into. Not exact: an operation on the way is an upper bound."""

    sink: int
    is_exact: bool


@dataclass(frozen=True, slots=True)
class Ending:
    """Records at which the way to a sink ended, and why: one candidate is the one."""

    sink: int
    cause: Cause
    candidates: tuple[Candidate, ...]
    last_node: TopologyNode
    last: tuple[Position, ...]  # one at least where a task read the row
    is_exact: bool  # so far: of all operations before it the paths of records are known
    because: str = ""  # what of the row decided it, where that was computed again
    doubt: str = ""  # why that was not possible


class Endings:
    """Of one application."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot, self._graph = snapshot, snapshot.graph
        self._topology = snapshot.graph.topology
        self._paths = PlanPaths(snapshot.graph)
        self._shuffled = shuffled_nodes(snapshot.graph.topology)

    def of(
        self, start: RowStart, sinks: Sequence[int], check: Callable[[], None]
    ) -> tuple[list[Passed], list[Ending]]:
        """Of one record: the sinks that it went into, and its ends on the way to each of the others."""
        passed: list[Passed] = []
        ends: list[Ending] = []
        whole = self._walked(start, None, check)
        for sink in sinks:
            walk = whole if whole.is_exact else self._walked(start, sink, check)
            if walk.at(sink):
                passed.append(Passed(sink, walk.is_exact))
            else:
                ends += self._ends(start, sink, walk, check)
        return passed, ends

    def _walked(self, start: RowStart, to: int | None, check: Callable[[], None]) -> TraceWalk:
        walk = TraceWalk(self._snapshot, "forward", to=to)
        if start.place is not None:
            for run in start.runs:
                walk.start(start.node.number, run.number, np.array([start.place[1]], np.int64))
        walk.advance(check)
        return walk

    def _ends(
        self, start: RowStart, sink: int, walk: TraceWalk, check: Callable[[], None]
    ) -> Iterator[Ending]:
        begin = start.node.number
        allowed = on_the_way(self._topology, "forward", begin, sink)
        if self._topology.nodes[sink].relation == contract.CARRIED:
            yield Ending(sink, "unfollowed", (), start.node, (), is_exact=False)
            return
        if not start.runs:
            yield from self._unread_at_start(start, sink, allowed)
            return
        nodes = {node for node in walk.done_nodes() if node in allowed and walk.at(node)}
        way = _Way(sink, allowed, nodes, walk, check)
        for node in sorted(nodes):
            for ending in self._ends_at(node, walk.at(node), way):
                yield self._before_operation(ending, way)

    def _unread_at_start(self, start: RowStart, sink: int, allowed: set[int]) -> Iterator[Ending]:
        """No task has a record of the row: of a plan, a limit or a scan may have seen to that."""
        node = start.node
        if not node.by_id:
            yield Ending(sink, "unread", (), node, (), is_exact=True)
            return
        for path in self._paths.dead(node.number, (), allowed):
            candidates = of_unread(node, path.candidates)
            yield Ending(sink, "unread", candidates, node, (), is_exact=True)

    def _ends_at(self, number: int, frontier: Frontier, way: _Way) -> Iterator[Ending]:
        """Of the records at one node, those that led nowhere."""
        node, topology = self._topology.nodes[number], self._topology
        records = NumberedRecords(frontier, topology.runs)
        targets = [target for target in topology.id_targets.get(number, ()) if target in way.nodes]
        nexts = [
            child
            for child in topology.children.get(number, ())
            if child in way.nodes and child not in targets and self._has_records(child)
        ]
        if not targets and not nexts:
            if self._is_plan(number):
                for path in self._paths.dead(number, (), way.nodes):
                    yield _ending(way, "cut", path.candidates, node, records, records.every)
            return
        try:
            arrived = self._arrived(number, records, [*targets, *nexts], way.check)
        except TooManyError:
            yield _ending(way, "many", (), node, records, records.every[:1])
            return
        for child in nexts:
            yield from self._ended_before(child, node, records, arrived[child], way)
        if targets:
            yield from self._ended_in_plan(node, records, targets, arrived, way)

    def _has_records(self, number: int) -> bool:
        return self._topology.nodes[number].relation != contract.CARRIED

    def _is_plan(self, number: int) -> bool:
        node = self._topology.nodes[number]
        return node.by_id or node.relation == contract.KEYED

    def _arrived(
        self, number: int, records: NumberedRecords, nexts: Sequence[int], check: Callable[[], None]
    ) -> dict[int, Integers]:
        """Next node -> which of the records led to something there. Raises TooManyError."""
        if records.total > MOST_RECORDS:
            raise TooManyError
        frontiers = Frontiers(self._graph, MOST_RECORDS)
        frontiers.check, frontiers.towards = check, nexts
        for run, (indices, positions) in records.by_run.items():
            frontiers.add(number, run, indices, positions)
        ForwardSteps(self._snapshot, frontiers).step(number)
        arrived: dict[int, Integers] = {}
        for child in nexts:
            parts = [origins for origins, _ in frontiers.at(child).values() if origins is not None]
            arrived[child] = np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.int64)
        return arrived

    def _before_operation(self, ending: Ending, way: _Way) -> Ending:
        """With the records that went into an operation of RDDs, in place of those of its internal nodes."""
        node = ending.last_node
        if node.is_public or node.operation is None or node.by_id or not ending.last:
            return ending
        for number in dict.fromkeys(inputs_of(self._topology, node.operation)):
            if number not in way.walked or not self._topology.nodes[number].is_public:
                continue
            back = TraceWalk(self._snapshot, "backward", to=number)
            for record in ending.last[:_SHOWN]:
                back.start(record.node, record.run, np.array([record.offset], np.int64))
            back.advance(way.check)
            mine = way.walk.by_partition(number) if back.at(number) else {}
            places = [
                (partition, offset)
                for partition, offsets in back.by_partition(number).items()
                for offset in np.intersect1d(offsets, mine.get(partition, _NO_OFFSETS)).tolist()
            ]
            if places:
                last = back.positions(number, sorted(places))
                return replace(ending, last_node=self._topology.nodes[number], last=last)
        return ending

    # -- from record to record ---------------------------------------------------------------------

    def _ended_before(
        self, child: int, node: TopologyNode, records: NumberedRecords, arrived: Integers, way: _Way
    ) -> Iterator[Ending]:
        """At an operation that has records of its own."""
        ended = np.setdiff1d(records.every, arrived)
        if not len(ended):
            return
        read = self._read_by(child, node.number)
        is_read = np.array([read is None or _is_in(read, records.place(at)) for at in ended], bool)
        operation = self._operation(child)
        candidate = Candidate(operation, side_of(self._topology, operation.number, way.walked))
        if is_read.any():
            yield _ending(way, "dropped", (candidate,), node, records, ended[is_read])
        if not is_read.all():
            yield _ending(way, "unread", (), node, records, ended[~is_read])

    def _read_by(self, child: int, number: int) -> dict[int, int] | None:
        """Partition -> how many records tasks that made records of `child` have taken; None: all of them."""
        node = self._topology.nodes[child]
        is_chosen = node.kind == "sink" and node.relation == contract.FLOWS  # the driver chose some
        is_told = child in self._graph.blocks.pairing  # a program without Spark named each that it took
        if is_chosen or is_told or node.relation == contract.PRODUCT:
            return None
        read: dict[int, int] = {}
        for run in self._graph.runs_of(child) if child not in self._shuffled else ():
            if self._graph.parent_in_run.get((run, child)) == number:
                partition = self._topology.runs[run].partition
                read[partition] = max(read.get(partition, 0), self._graph.count(number, run))
        return read

    def _operation(self, number: int) -> TopologyNode:
        """The public operation that a node is or is a part of."""
        node = self._topology.nodes[number]
        return node if node.operation is None else self._topology.nodes[node.operation]

    # -- between the operators of a plan -----------------------------------------------------------

    def _ended_in_plan(
        self,
        node: TopologyNode,
        records: NumberedRecords,
        targets: Sequence[int],
        arrived: Mapping[int, Integers],
        way: _Way,
    ) -> Iterator[Ending]:
        """Records that arrived at the same taps ended on the same paths."""
        groups: dict[frozenset[int], list[int]] = {}
        sets = {target: set(arrived[target].tolist()) for target in targets}
        for at in records.every.tolist():
            signature = frozenset(target for target in targets if at in sets[target])
            groups.setdefault(signature, []).append(at)
        for signature, ended in groups.items():
            for path in self._paths.dead(node.number, signature, way.nodes):
                cause: Cause = "cut" if path.is_cut else "dropped"
                yield _ending(way, cause, path.candidates, node, records, np.array(ended, np.int64))


@dataclass(frozen=True, slots=True)
class _Way:
    """To one sink: the nodes between, those of them that a walk has reached, and that walk."""

    sink: int
    nodes: Set[int]
    walked: Set[int]
    walk: TraceWalk
    check: Callable[[], None]


def _ending(
    way: _Way,
    cause: Cause,
    candidates: tuple[Candidate, ...],
    node: TopologyNode,
    records: NumberedRecords,
    some: Integers,
) -> Ending:
    last = tuple(records.position(node.number, at) for at in some.tolist())
    return Ending(way.sink, cause, candidates, node, last, way.walk.is_exact and cause != "many")


def _is_in(read: Mapping[int, int], place: tuple[int, int]) -> bool:
    partition, offset = place
    return offset < read.get(partition, 0)


def sinks_behind(snapshot: Snapshot, number: int) -> list[int]:
    """The sinks that records of a node may go into."""
    topology = snapshot.graph.topology
    seen, stack = {number}, [number]
    while stack:
        at = stack.pop()
        for child in (*topology.children.get(at, ()), *topology.id_targets.get(at, ())):
            if child not in seen and child in topology.nodes:
                seen.add(child)
                stack.append(child)
    return sorted(node for node in seen if topology.nodes[node].kind == "sink" and node != number)

"""How a row leads to records that were made of it: the shortest way, and what was joined with it there.

The plain trace has all ways. On one of them each record was made of the one before it and of others: of all
inputs of its operation. Only where one input decided a record, the others are no part of the way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.explain.winners import CapturedWinners
from lineage_service.tracing.walk.backward import BackwardSteps
from lineage_service.tracing.walk.forward import ForwardSteps
from lineage_service.tracing.walk.frontiers import Frontiers, TooManyError
from lineage_service.tracing.walk.result import Position, nodes_before

__all__ = ["Way", "way_between"]

#: Records that are looked at; beyond, no way is looked for.
MOST_LOOKED_AT = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """`leads`: the row is in the plain trace. Not `is_exact`: the ways pass an upper bound, so it may not be.

    `records` go from the row to one of the records that are explained. `joined` are the other inputs of
    these, as far as they were needed. `records` are empty if there were too many to find a way among.
    """

    leads: bool
    is_exact: bool = True
    records: tuple[Position, ...] = ()
    joined: tuple[Position, ...] = ()


def way_between(
    snapshot: Snapshot, row: Sequence[Position], starts: Sequence[Position], check: Callable[[], None]
) -> Way:
    """From a row, in all runs that hold it, to records. `check` ends it by what it raises."""
    allowed = nodes_before(snapshot.graph.topology, (start.node for start in starts))
    reached = _reached_from(snapshot, row, allowed, check)
    ends = [start for start in starts if _has(reached, start)]
    if not ends:
        return Way(leads=False, is_exact=reached.is_exact)
    search = _Search(snapshot, reached, {(at.node, at.run): at.offset for at in row}, check)
    try:
        records = search.shortest(ends)
        joined = tuple(search.joined(records))
    except TooManyError:
        records, joined = [], ()
    return Way(
        leads=True, is_exact=reached.is_exact, records=tuple(map(search.shown, records)), joined=joined
    )


def _reached_from(
    snapshot: Snapshot, row: Iterable[Position], allowed: Collection[int], check: Callable[[], None]
) -> Frontiers:
    """All that was made of a row, as far as some nodes."""
    frontiers = Frontiers(snapshot.graph)
    frontiers.check, frontiers.towards = check, allowed
    steps, done = ForwardSteps(snapshot, frontiers), dict[int, int]()
    for at in row:
        frontiers.add(at.node, at.run, None, np.array([at.offset], np.int64))
    while pending := [
        node for node in frontiers.nodes() & set(allowed) if frontiers.added(node) != done.get(node)
    ]:
        node = min(pending)
        steps.step(node)
        done[node] = frontiers.added(node)
    return frontiers


def _has(frontiers: Frontiers, at: Position) -> bool:
    _, positions = frontiers.at(at.node).get(at.run, (None, _NONE))
    return bool(_are_in(np.array([at.offset], np.int64), positions)[0])


def _are_in(positions: Integers, ascending: Integers) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    if not len(ascending):
        return np.zeros(len(positions), bool)
    at = np.minimum(ascending.searchsorted(positions), len(ascending) - 1)
    return np.asarray(ascending[at] == positions)


_NONE = np.zeros(0, np.int64)
_Record = tuple[int, int, int]
"""(node, run, position)."""
_Layer = dict[tuple[int, int], tuple[Integers, Integers]]
"""(node, run) -> (numbers of records, their positions, ascending)."""


class _Search:
    """Breadth first, backward from the ends, among what was made of the row."""

    def __init__(
        self,
        snapshot: Snapshot,
        reached: Frontiers,
        row: Mapping[tuple[int, int], int],
        check: Callable[[], None],
    ) -> None:
        self._snapshot, self._reached, self._row, self._check = snapshot, reached, row, check
        self._winners = CapturedWinners(snapshot)
        self._seen: dict[tuple[int, int], Integers] = {}
        self._records: list[_Record] = []
        self._made: list[int] = []  # number of a record -> that of the record that was made of it; -1: an end

    def shortest(self, ends: Sequence[Position]) -> list[_Record]:
        """From the row to an end, both included. Raises TooManyError."""
        layer: _Layer = {}
        for place in sorted({(end.node, end.run) for end in ends}):
            offsets = np.array(sorted({end.offset for end in ends if (end.node, end.run) == place}), np.int64)
            layer |= self._new(place, offsets, np.full(len(offsets), -1, np.int64))
        while layer:
            for place, (numbers, positions) in sorted(layer.items()):
                if place in self._row and len(hits := numbers[positions == self._row[place]]):
                    return list(self._back_from(int(hits[0])))
            layer = self._before(layer)
        return []  # an upper bound is not the same in both directions

    def joined(self, records: Sequence[_Record]) -> Iterator[Position]:
        """What the records of a way were made of beside the one before them. Raises TooManyError."""
        way = {(node, self._partition(run), position) for node, run, position in records}
        for node, run, position in records[1:]:
            positions = np.array([position], np.int64)
            chosen = self._winners.of(node, run, positions)
            if chosen is not None and chosen[0].any():
                continue
            for (before, of_run), (_, inputs) in self._inputs(node, {run: (positions * 0, positions)}):
                partition = self._partition(of_run)
                for offset in inputs.tolist():
                    if (before, partition, offset) not in way:
                        yield Position(before, partition, offset, of_run)

    def shown(self, record: _Record) -> Position:
        node, run, position = record
        return Position(node, self._partition(run), position, run)

    def _partition(self, run: int) -> int:
        return self._snapshot.graph.topology.runs[run].partition

    def _back_from(self, number: int) -> Iterator[_Record]:
        while number >= 0:
            yield self._records[number]
            number = self._made[number]

    def _before(self, layer: _Layer) -> _Layer:
        """What the records of a layer were made of, and no record before."""
        by_node: dict[int, dict[int, tuple[Integers, Integers]]] = {}
        for (node, run), records in layer.items():
            by_node.setdefault(node, {})[run] = records
        before: _Layer = {}
        for node, by_run in sorted(by_node.items()):
            for place, (numbers, positions) in self._inputs(node, by_run):
                _, among = self._reached.at(place[0]).get(place[1], (None, _NONE))
                is_on_way = _are_in(positions, among) & ~_are_in(positions, self._seen.get(place, _NONE))
                positions, first = np.unique(positions[is_on_way], return_index=True)
                for key, (new, at) in self._new(place, positions, numbers[is_on_way][first]).items():
                    earlier, places = before.get(key, (_NONE, _NONE))
                    before[key] = np.concatenate([earlier, new]), np.concatenate([places, at])
        return {
            place: (numbers[order], positions[order])
            for place, (numbers, positions) in before.items()
            for order in [np.argsort(positions, kind="stable")]
        }

    def _new(self, place: tuple[int, int], positions: Integers, outputs: Integers) -> _Layer:
        """Number some records, of which those numbered `outputs` were made."""
        if not len(positions):
            return {}
        first = len(self._records)
        if first + len(positions) > MOST_LOOKED_AT:
            raise TooManyError
        self._records += ((*place, position) for position in positions.tolist())
        self._made += outputs.tolist()
        self._seen[place] = np.union1d(self._seen.get(place, _NONE), positions)
        return {place: (np.arange(first, first + len(positions)), positions)}

    def _inputs(
        self, node: int, by_run: Mapping[int, tuple[Integers, Integers]]
    ) -> Iterator[tuple[tuple[int, int], tuple[Integers, Integers]]]:
        """((node, run), (numbers of records of `node`, an input of each)). Raises TooManyError."""
        self._check()
        side = Frontiers(self._snapshot.graph, MOST_LOOKED_AT)
        side.check = self._check
        for run, (numbers, positions) in by_run.items():
            side.add(node, run, numbers, positions)
        BackwardSteps(self._snapshot, side).step(node)
        for before in sorted(side.nodes() - {node}):
            for run, (numbers_of, inputs) in sorted(side.at(before).items()):
                assert numbers_of is not None
                yield (before, run), (numbers_of, inputs)

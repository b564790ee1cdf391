"""The turns of loops in an explanation: what each has changed, and which records of sources it brought in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from lineage_service.tracing.columns.column_cache import Integers
from lineage_service.tracing.explain.explanation import Turn
from lineage_service.tracing.explain.walk import Changed, ExplanationWalk
from lineage_service.tracing.walk.result import Position

__all__ = ["turns_of"]

#: Records that a turn lists: of a loop in which all changes, nobody reads more.
MOST_LISTED = 1_000
_Listed = tuple[int, tuple[Position, ...]]
"""How many there are, and the first ones."""


def turns_of(walk: ExplanationWalk, sources: Iterable[int]) -> dict[int, list[Turn]]:
    """Group -> the turns that changed something, in order of loop, turn and node."""
    turns: dict[int, list[Turn]] = defaultdict(list)
    brought = _sources_by_version(walk, sources)
    for number, family in enumerate(walk.families.families):
        for turn, version in enumerate(family.versions):
            if walk.families.place_of[version] != (number, turn):
                continue  # it counts as a version of a longer family
            for group, (total, positions), until in _changed(walk, version):
                sources_total, listed = brought.get((group, version), (0, ()))
                turns[group].append(
                    Turn(
                        loop=family.loop,
                        turn=family.first + turn,
                        node=version,
                        total=total,
                        positions=positions,
                        until=until,
                        sources_total=sources_total,
                        sources=listed,
                    )
                )
    for of_group in turns.values():
        of_group.sort(key=lambda turn: (turn.loop, turn.turn, turn.node))
    return turns


def _changed(walk: ExplanationWalk, version: int) -> Iterator[tuple[int, _Listed, tuple[int, ...]]]:
    """(group, records of a version, the last turn of each that is listed)."""
    runs_here = walk.snapshot.graph.topology.runs

    def partition_of(entry: tuple[int, Changed]) -> tuple[int, int]:
        return runs_here[entry[0]].partition, entry[0]

    parts = [
        (
            changed.groups,
            np.full(len(changed.positions), runs_here[run].partition),
            changed.positions,
            np.full(len(changed.positions), run),
            changed.until,
        )
        for run, changed in sorted(walk.changed.get(version, {}).items(), key=partition_of)
    ]
    if not parts:
        return
    groups, partitions, positions, runs, until = _joined(parts)
    order = _order(groups, partitions, positions, runs)
    groups, partitions, positions, runs, until = (
        column[order] for column in (groups, partitions, positions, runs, until)
    )
    first = _starts(groups, partitions, positions)
    latest = np.maximum.reduceat(until, first)  # of the runs that hold a record
    groups, partitions, positions, runs = (column[first] for column in (groups, partitions, positions, runs))
    for start, stop in _stretches(groups):
        listed = slice(start, min(stop, start + MOST_LISTED))
        records = zip(*(column[listed].tolist() for column in (partitions, positions, runs)), strict=True)
        yield (
            int(groups[start]),
            (stop - start, tuple(Position(version, *record) for record in records)),
            tuple(latest[listed].tolist()),
        )


def _sources_by_version(walk: ExplanationWalk, sources: Iterable[int]) -> Mapping[tuple[int, int], _Listed]:
    """(group, version) -> the records of sources that it brings in, and no version of its family before."""
    families = np.array([-1, *(walk.families.place_of[node][0] for node in walk.labels.versions)])
    parts = []
    for node in sources:
        for run, (origins, positions) in walk.frontiers.at(node).items():
            if origins is None:
                return {}
            groups, labels = np.divmod(origins, walk.labels.count)
            partition = walk.snapshot.graph.topology.runs[run].partition
            same = (np.full(len(positions), value) for value in (node, partition, run))
            parts.append((groups, families[labels], *same, positions, labels))
    if not parts:
        return {}
    columns = _joined(parts)
    columns = tuple(column[columns[-1] > 0] for column in columns)
    if not len(columns[0]):
        return {}
    groups, of_family, nodes, partitions, runs, positions, labels = columns
    order = np.lexsort((runs, labels, positions, partitions, nodes, of_family, groups))
    first = order[_starts(*(column[order] for column in (groups, of_family, nodes, partitions, positions)))]
    groups, labels, nodes, partitions, positions, runs = (
        column[first] for column in (groups, labels, nodes, partitions, positions, runs)
    )
    order = np.lexsort((positions, partitions, nodes, labels, groups))
    groups, labels, nodes, partitions, positions, runs = (
        column[order] for column in (groups, labels, nodes, partitions, positions, runs)
    )
    listed: dict[tuple[int, int], _Listed] = {}
    for start, stop in _stretches(groups, labels):
        shown = slice(start, min(stop, start + MOST_LISTED))
        records = zip(
            *(column[shown].tolist() for column in (nodes, partitions, positions, runs)), strict=True
        )
        version = walk.labels.versions[int(labels[start]) - 1]
        listed[int(groups[start]), version] = stop - start, tuple(Position(*record) for record in records)
    return listed


def _joined(parts: Sequence[tuple[Integers, ...]]) -> tuple[Integers, ...]:
    return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


def _order(*columns: Integers) -> slice | Integers:
    """What sorts rows by these columns, the first one first. Most rows are in order."""
    is_later, is_same = np.zeros(len(columns[0]) - 1, bool), np.ones(len(columns[0]) - 1, bool)
    for column in columns:
        is_later |= is_same & (column[1:] > column[:-1])
        is_same &= column[1:] == column[:-1]
    return slice(None) if bool(np.all(is_later | is_same)) else np.lexsort(columns[::-1])


def _starts(*columns: Integers) -> Integers:
    """Where rows begin that differ from the row before."""
    is_new = np.ones(len(columns[0]), bool)
    is_new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return np.flatnonzero(is_new)


def _stretches(*columns: Integers) -> Iterator[tuple[int, int]]:
    """(start, stop) of the rows that are the same in these columns."""
    starts = _starts(*columns).tolist()
    yield from zip(starts, [*starts[1:], len(columns[0])], strict=True)

"""Which rows of an application's sources a backward trace came to: as positions, and as rows of files.

A source that no record can have come from on the way of the graph is meant as a whole: the program may have
taken values of it. So is one whose rows cannot be named. Promises that a row which took part is never left
out where `complete` is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import (
    AskedRecord,
    RowSet,
    RowSetFile,
    RowSetSource,
    RowSetSplit,
    SourceRow,
)
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import paths_of
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.files.row_numbers import Numbers
from lineage_service.tracing.model.edges import record_count
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.query.open_applications import Opened
from lineage_service.tracing.query.shown_records import Show
from lineage_service.tracing.walk.result import Position, nodes_before
from lineage_service.tracing.walk.starts import has_records

__all__ = ["LINEAGE_IS_OPEN", "Doubts", "Reached", "RowSets", "ranges_of", "sources_of"]

#: A row set of more ranges is no answer to anybody.
MOST_RANGES = 1_000_000

_NO_WAY = (
    "no record of it can have become one that was asked for by the operations of the graph; the program may "
    "have taken values of it, so all of its rows are meant"
)
_NO_ROWS = "its records are no rows of files, and another run may read others in their place"
_UNKNOWN = "which of its rows took part is not known"
_UPPER_BOUND = "An operation on the way has only an upper bound: rows may be among these that took no part."
LINEAGE_IS_OPEN = "The lineage of the application is not complete: rows may be missing."
#: Sources that the program or the query itself gives: the same in every run.
_OF_PROGRAM = frozenset(
    ("parallelize", "range", "emptyRDD", "LocalRelation", "LocalTableScan", "Range", "OneRowRelation")
)
#: Formats of files that RDDs read record by record, in one order.
_IN_ORDER = frozenset(("hadoop", "pickle", "binary", "file"))


@dataclass(frozen=True, slots=True)
class Reached:
    """What a walk came to. `by_partition`: of a source, partition -> ascending offsets."""

    by_partition: Callable[[int], Mapping[int, Numbers]]
    exact: bool
    #: Why it is not smaller, where that is known.
    reasons: tuple[str, ...] = ()


@dataclass(slots=True)
class Doubts:
    """What is known to be uncertain before the walk. `are_unknown`: rows may be missing."""

    reasons: list[str] = field(default_factory=list)
    are_unknown: bool = False


def ranges_of(ascending: Numbers) -> tuple[tuple[int, int], ...]:
    """`(first, count)` of distinct numbers."""
    if not len(ascending):
        return ()
    breaks = np.flatnonzero(np.diff(ascending) != 1) + 1
    firsts = np.concatenate(([0], breaks))
    counts = np.diff(np.concatenate((firsts, [len(ascending)])))
    return tuple(zip(ascending[firsts].tolist(), counts.tolist(), strict=True))


class RowSets:
    """Made of walks that came to their end. What takes a check raises what it raises."""

    def __init__(self, locations: RecordLocations, show: Show) -> None:
        self._locations, self._show = locations, show

    def of(
        self,
        opened: Opened,
        reached: Reached,
        starts: Sequence[Position],
        doubts: Doubts,
        limit: int,
        check: Check,
    ) -> RowSet:
        """Raises InvalidQueryError where the rows are in too many pieces."""
        behind = nodes_before(opened.graph.topology, (start.node for start in starts))
        left = MOST_RANGES
        sources = []
        for node in sources_of(opened):
            why = None if node.number in behind else _NO_WAY
            if why is None and doubts.are_unknown:
                why = _UNKNOWN
            source = self.source(opened, node, reached.by_partition(node.number), limit, check, why)
            left -= sum(len(file.rows) for file in source.files)
            left -= sum(len(split.positions) for split in source.splits)
            if left < 0:
                raise InvalidQueryError(
                    f"the rows are in more than {MOST_RANGES:,} pieces: ask for fewer records at once"
                )
            sources.append(source)
        complete = opened.application.complete
        how = [f"{reason[:1].upper()}{reason[1:]}." for reason in dict.fromkeys(doubts.reasons)]
        how += [] if reached.exact else [_UPPER_BOUND]
        how += reached.reasons
        how += [] if complete else [LINEAGE_IS_OPEN]
        return RowSet(
            application=opened.application.application_id,
            sources=tuple(sources),
            asked=tuple(self._asked(opened, starts, check)),
            exact=reached.exact and not doubts.reasons,
            complete=complete,
            how=" ".join(how) or None,
        )

    def source(
        self,
        opened: Opened,
        node: TopologyNode,
        arrived: Mapping[int, Numbers],
        limit: int,
        check: Check,
        why: str | None = None,
    ) -> RowSetSource:
        """One source with the records that were reached of it; the whole of it with `why`."""
        why = why or _why_unnamed(node)
        if why is not None:
            return _source(opened, node, why=why)
        splits = tuple(
            RowSetSplit(split=split, positions=ranges_of(offsets))
            for split, offsets in sorted(arrived.items())
            if len(offsets)
        )
        files, note = self._files(node, arrived, check)
        listed = self._listed(opened, node, arrived, limit, check) if limit else ()
        return _source(opened, node, splits=splits, files=files, listed=listed, note=note)

    def _files(
        self, node: TopologyNode, arrived: Mapping[int, Numbers], check: Check
    ) -> tuple[tuple[RowSetFile, ...], str | None]:
        """The rows by file, and of which records they are not known."""
        rows_of: dict[str, list[Numbers]] = {}
        states: dict[str, tuple[int | None, int | None]] = {}
        unknown: dict[str, str] = {}
        for split, offsets in sorted(arrived.items()):
            info = node.partitions.get(split)
            if info is None or not len(offsets):
                continue
            for numbered in self._locations.numbers.of_partition(node, info, offsets, check):
                states.setdefault(numbered.path, (numbered.size, numbered.modified))
                if numbered.rows is None:
                    unknown.setdefault(numbered.path, numbered.why)
                else:
                    rows_of.setdefault(numbered.path, []).append(numbered.rows)
        files = [
            RowSetFile(
                path=path,
                size=states[path][0],
                modified=states[path][1],
                rows=ranges_of(np.unique(np.concatenate(parts))),
            )
            for path, parts in rows_of.items()
            if path not in unknown
        ]
        note = "; ".join(f"{path}: {why}" for path, why in list(unknown.items())[:_MOST_NOTES])
        return tuple(files), note or None

    def _listed(
        self, opened: Opened, node: TopologyNode, arrived: Mapping[int, Numbers], limit: int, check: Check
    ) -> tuple[SourceRow, ...]:
        places: list[tuple[int, int]] = []
        for split, offsets in sorted(arrived.items()):
            places += ((split, offset) for offset in offsets[: limit - len(places)].tolist())
        rows = self._locations.rows_of(node, places, check, ended=opened.application.ended)
        return tuple(rows[place] for place in places if place in rows)

    def _asked(self, opened: Opened, starts: Sequence[Position], check: Check) -> Iterator[AskedRecord]:
        by_node: dict[int, dict[tuple[int, int], Position]] = {}
        for start in starts:
            by_node.setdefault(start.node, {})[start.partition, start.offset] = start
        cursor = opened.snapshot.cursor()
        for number, positions in by_node.items():
            node = opened.graph.topology.nodes[number]
            listed = [positions[place] for place in sorted(positions)]
            for record in self._show(opened, cursor, node, listed, values=False, check=check):
                row = record.source
                yield AskedRecord(
                    node=number,
                    record_id=record.record_id,
                    path=None if row is None else row.path,
                    row=None if row is None else row.row,
                    text=None if row is None else row.text,
                    key=record.key,
                )


#: Files that a note names.
_MOST_NOTES = 5


def sources_of(opened: Opened) -> list[TopologyNode]:
    """Those of an application, by their numbers."""
    nodes = opened.graph.topology.nodes
    return [nodes[number] for number in sorted(nodes) if nodes[number].kind == "source"]


def _why_unnamed(node: TopologyNode) -> str | None:
    """Why the records of a source cannot be named for another run; None if they can."""
    if not has_records(node) or not node.exact:
        return f"{_UNKNOWN}: {node.reason}" if node.reason else _UNKNOWN
    if any(map(paths_of, node.partitions.values())) or node.name in _OF_PROGRAM:
        return None
    is_in_order = not node.by_id and node.dataset is not None and node.dataset.format in _IN_ORDER
    return None if is_in_order else _NO_ROWS


def _source(
    opened: Opened,
    node: TopologyNode,
    *,
    why: str | None = None,
    note: str | None = None,
    splits: tuple[RowSetSplit, ...] = (),
    files: tuple[RowSetFile, ...] = (),
    listed: Iterable[SourceRow] = (),
) -> RowSetSource:
    is_counted = has_records(node)
    return RowSetSource(
        node=node.number,
        name=node.name,
        call_site=node.call_site or None,
        path=node.location,
        whole=why is not None,
        why=why or note,
        partitions=None if node.by_id else len(node.partitions) or None,
        total=record_count(opened.graph, node.number) if is_counted else None,
        files=files,
        splits=splits,
        listed=tuple(listed),
    )

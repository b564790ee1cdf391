"""Which rows of the sources of two runs the other run does not have: behind output rows that only one wrote.

The rows of sources that correspond are compared as those of outputs are, and read only when they are needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic

import duckdb

from lineage_service.comparison.correspondence import corresponding
from lineage_service.comparison.differences import differences
from lineage_service.comparison.inputs import file_of
from lineage_service.comparison.row_table import Place
from lineage_service.errors import LineageError
from lineage_service.lineage import ChangedInput
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import row_parts_of
from lineage_service.tracing.files.file_systems import UnreadableError
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.files.row_tables import FileTable
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.query.changed_sources import MOST_CHANGED, NO_TIME, SourceRecord, Sources
from lineage_service.tracing.query.compared_outputs import ComparedOutput

__all__ = ["InputDifferences"]

#: Of one source.
MOST_ROWS = 1_000_000
#: Rows of one source that the other run does not have.
MOST_DIFFERENT = 100_000

Record = tuple[int, int]
"""(partition, offset) of a source."""


class _NotCompared(Exception):
    """Why the rows of a source are not known to be the same or not."""


@dataclass(frozen=True, slots=True)
class _Alone:
    """Rows of one source that the other run does not have, and which one has their place there."""

    records: Mapping[Record, Record | None]
    #: What was not compared of these rows; empty if nothing.
    note: str = ""


class InputDifferences:
    """Of one comparison. `until` is monotonic time: no source is read later."""

    def __init__(
        self,
        locations: RecordLocations,
        database: duckdb.DuckDBPyConnection,
        was: ComparedOutput,
        now: ComparedOutput,
        until: float,
        check: Check,
    ) -> None:
        self._locations, self._database, self._check = locations, database, check
        self._sides, self._until = (was, now), until
        pairs = corresponding(_sources(was), _sources(now), (_by_place, _by_call))
        self._counterparts = (
            {before.number: after for before, after in pairs},
            {after.number: before for before, after in pairs},
        )
        self._pairs: dict[tuple[int, int], tuple[_Alone, _Alone] | _NotCompared] = {}

    def behind(
        self, side: ComparedOutput, sources: Sources | None
    ) -> tuple[tuple[ChangedInput, ...] | None, str]:
        """Input rows of one output row that the other run does not have, and a note.

        None where they were not looked up.
        """
        if sources is None:
            return None, NO_TIME
        at = 0 if side is self._sides[0] else 1
        rows: list[ChangedInput] = []
        notes = dict.fromkeys([sources.note])
        try:
            for record in sources.records:
                alone = self._alone(at, record.node)
                notes[alone.note] = None
                place = record.partition, record.offset
                if place in alone.records:
                    rows.append(self._row(at, record, alone.records[place]))
        except _NotCompared as error:
            return None, "; ".join(filter(None, (*notes, str(error))))
        if len(rows) > MOST_CHANGED:
            notes[f"{len(rows):,} input rows differ, {MOST_CHANGED} are listed"] = None
        return tuple(rows[:MOST_CHANGED]), "; ".join(filter(None, notes))

    def _row(self, at: int, record: SourceRecord, other: Record | None) -> ChangedInput:
        text = None if other is None else self._text(1 - at, self._counterparts[at][record.node], other)
        was, now = (record.input.text, text) if at == 0 else (text, record.input.text)
        return ChangedInput(
            path=record.input.path, row=record.input.row, line=record.input.row + 1, was=was, is_=now
        )

    def _text(self, at: int, node: TopologyNode, record: Record) -> str | None:
        ended = self._sides[at].opened.application.ended
        rows = self._locations.rows_of(node, [record], self._check, ended=ended)
        return rows[record].text if record in rows else None

    # -- sources ------------------------------------------------------------------------------------

    def _alone(self, at: int, number: int) -> _Alone:
        """Raises _NotCompared."""
        node = self._sides[at].opened.graph.topology.nodes[number]
        other = self._counterparts[at].get(number)
        if other is None:
            raise _NotCompared(f"no source of the other run is known to correspond to {node.name}")
        before, after = (node, other) if at == 0 else (other, node)
        key = before.number, after.number
        if key not in self._pairs:
            try:
                self._pairs[key] = self._compared(before, after)
            except _NotCompared as error:
                self._pairs[key] = error
        pair = self._pairs[key]
        if isinstance(pair, _NotCompared):
            raise pair
        return pair[at]

    def _compared(self, before: TopologyNode, after: TopologyNode) -> tuple[_Alone, _Alone]:
        """Raises _NotCompared."""
        files = _files(before)
        if files is not None and files == _files(after):
            return _Alone({}), _Alone({})
        began = monotonic()
        tables = [self._table(at, node) for at, node in enumerate((before, after))]
        if 2 * monotonic() - began >= self._until:  # to compare them takes no longer than to read them did
            raise _NotCompared(NO_TIME)
        columns = [table.table.columns.keys() for table in tables]
        if all(columns) and columns[0] != columns[1]:
            raise _NotCompared(f"{after.name} has other columns than in the earlier run: not compared")
        names = tuple(side.opened.application.application_id for side in self._sides)
        try:
            differing = differences(
                tables[0].table, tables[1].table, (), MOST_DIFFERENT, (names[0], names[1])
            )
        except LineageError as error:
            raise _NotCompared(f"input rows were not compared: {error}") from None
        finally:
            for table in tables:
                self._database.execute(f"DROP TABLE {table.table.name}")
        if max(differing.gone_total, differing.new_total) > MOST_DIFFERENT:
            raise _NotCompared(f"more than {MOST_DIFFERENT:,} rows of {after.name} differ")
        gone = _records(0, tables[0], differing.gone)
        new = _records(1, tables[1], differing.new)
        note = "; ".join(dict.fromkeys(warning for table in tables for warning in table.warnings))
        return (
            _Alone({record: new.get(place) for place, record in gone.items()}, note),
            _Alone({record: gone.get(place) for place, record in new.items()}, note),
        )

    def _table(self, at: int, node: TopologyNode) -> FileTable:
        """Raises _NotCompared."""
        side = self._sides[at]
        counts = side.counts_of(node)
        if sum(counts.values()) > MOST_ROWS:
            raise _NotCompared(f"{node.name} has more than {MOST_ROWS:,} rows: they were not compared")

        def check() -> None:
            self._check()
            if monotonic() >= self._until:
                raise _NotCompared(NO_TIME)

        check()
        name = f"inputs_{at}_{node.number}"
        try:
            return self._locations.tables(self._database).read(
                name, node, counts, side.opened.application.ended, check
            )
        except UnreadableError as error:
            raise _NotCompared(
                f"input rows of {side.opened.application.application_id} cannot be read: {error}"
            ) from None


def _sources(side: ComparedOutput) -> Sequence[TopologyNode]:
    """Those that an output was made of."""
    nodes = side.opened.graph.topology.nodes
    reached, stack = set[int](), [side.node.number]
    while stack:
        number = stack.pop()
        if number not in reached:
            reached.add(number)
            stack += [parent for parent in nodes[number].parents if parent in nodes]
    return [nodes[number] for number in sorted(reached) if nodes[number].kind == "source"]


def _by_place(node: TopologyNode) -> object:
    return node.location or (node.dataset and node.dataset.name)


def _by_call(node: TopologyNode) -> object:
    return node.name, node.call_site.rpartition("/")[2]


def _files(node: TopologyNode) -> object:
    """What its files were when they were read; None where that is not known."""
    parts = [part for info in node.partitions.values() for part in row_parts_of(node, info)]
    if not parts or any(part.size is None or part.modified is None for part in parts):
        return None
    return sorted((part.path, part.size, part.modified) for part in set(parts))


def _records(at: int, table: FileTable, places: Sequence[Place]) -> dict[object, Record]:
    """The records at these places, by the name of the file and the number of the row there, where known."""
    records: dict[object, Record] = {}
    for place in places:
        part = table.pieces[place.part].part
        is_known = part.row is not None or not part.start
        records[(file_of(part.path), place.number) if is_known else (at, place)] = table.record_of(place)
    return records

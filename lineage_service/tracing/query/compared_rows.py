"""The rows of two outputs that differ, as a comparison lists them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lineage_service.comparison.inputs import Input, paired_by_inputs
from lineage_service.comparison.row_table import Place
from lineage_service.lineage import ChangedRow, ComparedRow, Record
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.row_tables import FileTable
from lineage_service.tracing.query.changed_sources import ChangedSources, Sources, because
from lineage_service.tracing.query.compared_outputs import ComparedOutput
from lineage_service.tracing.query.input_differences import InputDifferences
from lineage_service.tracing.query.requested_columns import request_of
from lineage_service.tracing.query.row_choices import columns_of
from lineage_service.tracing.query.shown_records import Show
from lineage_service.tracing.walk.result import Position

__all__ = ["RowListing", "ShownRow"]


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A row, and the record that it is."""

    record: Record
    columns: dict[str, Any]
    partition: int
    offset: int


class RowListing:
    """Makes rows of places."""

    def __init__(
        self,
        show: Show,
        sources: ChangedSources,
        inputs: InputDifferences,
        key: Sequence[str],
        shared: Sequence[str],
        check: Check,
    ) -> None:
        """`shared` are the columns that are compared."""
        self._show, self._sources, self._inputs, self._check = show, sources, inputs, check
        self._key, self._shared = key, shared

    def shown(self, side: ComparedOutput, table: FileTable, places: Sequence[Place]) -> list[ShownRow]:
        records_at = [table.record_of(place) for place in places]
        positions = [
            Position(side.node.number, partition, offset, side.runs[partition])
            for partition, offset in records_at
        ]
        cursor = side.opened.snapshot.cursor()
        records = self._show(
            side.opened,
            cursor,
            side.node,
            positions,
            values=False,
            check=self._check,
            columns=request_of(side.node),
        )
        return [
            ShownRow(record, columns_of(record) or {}, partition, offset)
            for record, (partition, offset) in zip(records, records_at, strict=True)
        ]

    def row(self, side: ComparedOutput, row: ShownRow) -> ComparedRow:
        source = row.record.source
        inputs, note = self._inputs.behind(side, self._of(side, row))
        return ComparedRow(
            key=self._key_of(row),
            record=f"{side.node_id}#{row.record.record_id}",
            path=None if source is None else source.path,
            row=None if source is None else source.row,
            columns=row.columns,
            because=inputs,
            because_note=note,
        )

    def changed(
        self, was: ComparedOutput, now: ComparedOutput, before: ShownRow, after: ShownRow
    ) -> ChangedRow:
        rows, note = because(self._of(was, before), self._of(now, after))
        return ChangedRow(
            key=self._key_of(after),
            was=before.columns,
            is_=after.columns,
            was_record=f"{was.node_id}#{before.record.record_id}",
            is_record=f"{now.node_id}#{after.record.record_id}",
            columns=tuple(
                name for name in self._shared if before.columns.get(name) != after.columns.get(name)
            ),
            because=rows,
            because_note=note,
        )

    def paired(
        self, was: ComparedOutput, now: ComparedOutput, gone: Sequence[ShownRow], new: Sequence[ShownRow]
    ) -> tuple[list[tuple[ShownRow, ShownRow]], list[ShownRow], list[ShownRow], str]:
        """Those of equal input rows, the others, and why not all were looked at."""
        inputs: list[dict[int, Sequence[Input]]] = [{}, {}]
        note = ""
        for side, rows, inputs_of in ((was, gone, inputs[0]), (now, new, inputs[1])):
            for number, row in enumerate(rows):
                source = self._of(side, row)
                if source is None:
                    note = "the time was spent before all rows were paired by their input rows: give a key"
                else:
                    inputs_of[number] = source.inputs
        pairs = paired_by_inputs(*inputs)
        left, right = {before for before, _ in pairs}, {after for _, after in pairs}
        return (
            [(gone[before], new[after]) for before, after in pairs],
            [row for number, row in enumerate(gone) if number not in left],
            [row for number, row in enumerate(new) if number not in right],
            note,
        )

    def _of(self, side: ComparedOutput, row: ShownRow) -> Sources | None:
        application_id = side.opened.application.application_id
        return self._sources.of(application_id, side.node.number, row.partition, row.offset)

    def _key_of(self, row: ShownRow) -> dict[str, Any] | None:
        return {name: row.columns.get(name) for name in self._key} or None

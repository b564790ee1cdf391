"""Rows of files with their columns, as they were requested."""

from __future__ import annotations

import struct
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lineage_service.lineage import SourceRow
from lineage_service.tracing.files.columnar_rows import json_text
from lineage_service.tracing.files.csv_columns import LOOKED_AT, CsvColumns
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_rows import FileRows
from lineage_service.tracing.files.file_systems import FileState, UnreadableError
from lineage_service.tracing.files.json_values import bounded, exact_json, read_json
from lineage_service.tracing.files.partition_folders import partition_values
from lineage_service.tracing.files.row_columns import ColumnRequest, typed, with_partitions
from lineage_service.tracing.files.row_ends import MAX_ROW_BYTES
from lineage_service.tracing.files.row_formats import RowFormat, columns_of_records
from lineage_service.tracing.model.elements import TopologyNode

__all__ = ["TextColumns", "shown_columns"]

Shown = tuple[str | None, dict[str, Any] | None, bool | None]
"""(text, columns, whether they are cut) of a row; None where it is not requested."""
#: Files of CSV of which the form is remembered.
_KEPT = 256
#: A line that is cut has at least so many: of four bytes each.
_SHOWN_CHARACTERS = MAX_ROW_BYTES // 4


def shown_columns(
    path: str, request: ColumnRequest | None, values: dict[str, Any], types: Mapping[str, str]
) -> Shown:
    """What is kept of a row of Parquet or ORC."""
    text = json_text(values) if request is None or request.has_text else None
    if request is None:
        return text, None, None
    for name, type_ in types.items():
        request.types.setdefault(name, type_)
    exact = {
        name: _shortest(value) if types[name] == "float" else exact_json(value)
        for name, value in request.chosen(values).items()
    }
    return text, *_listed(path, exact, request)


def _shortest(value: float | None) -> Any:
    """A number of 32 bits in the fewest digits that name it."""
    if value is None:
        return None
    for digits in range(6, 10):
        short = float(f"{value:.{digits}g}")
        if short == value or _in_32_bits(short) == value:
            return exact_json(short)
    return exact_json(value)


def _in_32_bits(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return value


def _listed(
    path: str, columns: Mapping[str, Any], request: ColumnRequest
) -> tuple[dict[str, Any], bool | None]:
    for name in partition_values(path):
        request.types.setdefault(name, "")
    every = request.chosen(with_partitions(path, columns, request.types))
    listed, is_cut = bounded(every)
    return listed, is_cut or None


class TextColumns:
    """Adds columns to rows of CSV and JSON. Threads may share it."""

    def __init__(self, rows: FileRows) -> None:
        self._rows = rows
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, FileState, RowFormat, tuple[str, ...]], CsvColumns] = OrderedDict()

    def added(
        self,
        format: RowFormat,
        node: TopologyNode,
        rows: Mapping[int, SourceRow],
        request: ColumnRequest,
        check: Check,
    ) -> dict[int, SourceRow]:
        """The rows of one file with their columns; without, where they have no text or another form."""
        path = next((row.path for row in rows.values()), "")
        of_csv = None
        if not format.is_json and any(row.text is not None for row in rows.values()):
            in_folders = {*partition_values(path), *(node.dataset.partitions if node.dataset else ())}
            schema = tuple(
                column.name for column in columns_of_records(node) if column.name not in in_folders
            )
            of_csv = self._csv_columns(path, format, schema, check)
        shown_rows = {}
        for number, row in rows.items():
            columns = None if row.text is None else self._columns_of(row.text, of_csv, request)
            if columns is None:
                shown_rows[number] = row if request.has_text else replace(row, text=None)
                continue
            listed, is_cut = _listed(path, request.chosen(columns), request)
            if not request.types.keys() >= listed.keys():
                request.types.update({name: request.types.get(name, "") for name in listed})
            if row.text is not None and len(row.text) >= _SHOWN_CHARACTERS and row.text.endswith("…"):
                is_cut = True
            text = row.text if request.has_text else None
            shown_rows[number] = replace(row, text=text, columns=listed, columns_cut=is_cut)
        return shown_rows

    @staticmethod
    def _columns_of(text: str, of_csv: CsvColumns | None, request: ColumnRequest) -> dict[str, Any] | None:
        if of_csv is None:
            return read_json(text)
        return {
            name: None if field is None else typed(field, request.types.get(name, ""))
            for name, field in of_csv.of(text).items()
        }

    def _csv_columns(self, path: str, format: RowFormat, schema: tuple[str, ...], check: Check) -> CsvColumns:
        try:
            key = path, self._rows.files.state(path), format, schema
            with self._lock:
                if key in self._kept:
                    self._kept.move_to_end(key)
                    return self._kept[key]
            records = self._rows.first_records(format, path, LOOKED_AT, check)
        except UnreadableError:
            return CsvColumns([], schema, format.dialect, has_header=False)
        columns = CsvColumns(records, schema, format.dialect, has_header=format.has_header)
        with self._lock:
            self._kept[key] = columns
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return columns

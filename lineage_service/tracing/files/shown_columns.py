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
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import CSV_WITH_HEADER, JSON, separator_of
from lineage_service.tracing.files.file_rows import FileRows
from lineage_service.tracing.files.file_systems import FileState, UnreadableError
from lineage_service.tracing.files.json_values import bounded, exact_json, read_json
from lineage_service.tracing.files.partition_folders import partition_values
from lineage_service.tracing.files.row_columns import ColumnRequest, CsvColumns, with_partitions
from lineage_service.tracing.files.row_ends import MAX_ROW_BYTES, shown
from lineage_service.tracing.model.elements import TopologyNode

__all__ = ["TextColumns", "shown_columns"]

Shown = tuple[str | None, dict[str, Any] | None, bool | None]
"""(text, columns, whether they are cut) of a row; None where it is not requested."""
#: Lines from the start of a file in which its header is looked for: blank ones may be before it.
_HEADER_LINES = 20
_KEPT_HEADERS = 256
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
        self._headers: OrderedDict[tuple[str, FileState], str | None] = OrderedDict()

    def added(
        self,
        format: str,
        node: TopologyNode,
        rows: Mapping[int, SourceRow],
        request: ColumnRequest,
        check: Check,
    ) -> dict[int, SourceRow]:
        """The rows of one file with their columns; without, where they have no text or another form."""
        path = next((row.path for row in rows.values()), "")
        of_csv = None
        if format != JSON:
            header = self._header(path, check) if format == CSV_WITH_HEADER else None
            of_csv = CsvColumns(header, request.types, list(partition_values(path)), separator_of(node))
        shown_rows = {}
        for number, row in rows.items():
            if row.text is None:
                shown_rows[number] = row
                continue
            columns = read_json(row.text) if of_csv is None else of_csv.of(row.text)
            if columns is None:
                shown_rows[number] = row if request.has_text else replace(row, text=None)
                continue
            listed, is_cut = _listed(path, request.chosen(columns), request)
            if not request.types.keys() >= listed.keys():
                request.types.update({name: request.types.get(name, "") for name in listed})
            if len(row.text) >= _SHOWN_CHARACTERS and row.text.endswith("…"):
                is_cut = True
            text = row.text if request.has_text else None
            shown_rows[number] = replace(row, text=text, columns=listed, columns_cut=is_cut)
        return shown_rows

    def _header(self, path: str, check: Check) -> str | None:
        """The first line that is not blank."""
        try:
            key = path, self._rows.files.state(path)
            with self._lock:
                if key in self._headers:
                    self._headers.move_to_end(key)
                    return self._headers[key]
            texts = self._rows.indexes.of(*key).read_bytes(range(_HEADER_LINES), check)
        except UnreadableError:
            return None
        lines = (shown(texts[line]) for line in sorted(texts))
        header = next((line for line in lines if line.strip()), None)
        with self._lock:
            self._headers[key] = header
            while len(self._headers) > _KEPT_HEADERS:
                self._headers.popitem(last=False)
        return header

"""The rows of the files of one sink as a table that a comparison reads.

Parquet and ORC come through Arrow, a row group or a stripe at a time; lines are numbered as `record_lines`
counts them. Fields of CSV are compared as texts, values of JSON as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from lineage_service.comparison.row_table import TEXT_TYPE, Place, RowTable
from lineage_service.conditions.column_types import of_schema
from lineage_service.tracing.files.columnar_search import ColumnarSearch
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import FilePart, row_parts_of
from lineage_service.tracing.files.file_rows import FileRows
from lineage_service.tracing.files.file_systems import UnreadableError
from lineage_service.tracing.files.line_search import LineSearch
from lineage_service.tracing.files.partition_folders import partition_values
from lineage_service.tracing.files.row_formats import row_format_of
from lineage_service.tracing.files.source_rows import change_of
from lineage_service.tracing.model.elements import TopologyNode

__all__ = ["FileTable", "RowTables"]

_SOURCE = "read_rows"
_CUT = "of rows of more than 100,000 bytes only the beginning was compared"


@dataclass(frozen=True, slots=True)
class _Piece:
    """Records of one partition that are rows `begin` to before `end` of one file."""

    partition: int
    part: FilePart
    begin: int
    end: int

    @property
    def more(self) -> int:
        """What is added to the number of a row to have the offset of its record."""
        return self.part.first - (self.part.row or 0)


@dataclass(frozen=True, slots=True)
class FileTable:
    """The rows of one sink, and which records they are."""

    table: RowTable
    pieces: Sequence[_Piece]
    warnings: Sequence[str]

    def record_of(self, place: Place) -> tuple[int, int]:
        """(partition, offset)."""
        piece = self.pieces[place.part]
        return piece.partition, place.number + piece.more


class RowTables:
    """Of one comparison; both of its tables are in `database`, a `searched_database`."""

    def __init__(self, rows: FileRows, database: duckdb.DuckDBPyConnection) -> None:
        self._rows, self._database = rows, database
        self._columnar = ColumnarSearch(rows.files, database)

    def read(
        self, name: str, node: TopologyNode, counts: Mapping[int, int], ended: int | None, check: Check
    ) -> FileTable:
        """`counts` says how many records each partition has, `name` what the table is called.

        Raises UnreadableError where a file is not as the run left it.
        """
        pieces = list(_pieces(node, counts))
        for piece in pieces:
            self._check_unchanged(piece.part, ended)
        table = RowTable(self._database, name)
        warnings: dict[str, None] = {}
        format = row_format_of(node)
        if format.is_json:
            warnings.update(dict.fromkeys(self._read_json(table, node, pieces, check)))
        else:
            for number, piece in enumerate(pieces):
                check()
                folders = _folders(piece.part.path, node)
                if format.is_columnar:
                    self._read_columns(table, node, number, piece, folders, check)
                elif format.is_cut:
                    self._read_lines(table, node, number, piece, folders, check, warnings)
                else:
                    raise UnreadableError(f"rows of {format.name} files cannot be compared")
        return FileTable(table, pieces, tuple(warnings))

    def _check_unchanged(self, part: FilePart, ended: int | None) -> None:
        try:
            state = self._rows.files.state(part.path)
        except UnreadableError as error:
            raise UnreadableError(f"{part.path}: {error}") from None
        changed = change_of(state, part.as_partition(ended if part.size is None else None))
        if changed is not None:
            raise UnreadableError(f"{part.path}: {changed.partition(';')[0]}")

    def _read_columns(
        self,
        table: RowTable,
        node: TopologyNode,
        number: int,
        piece: _Piece,
        folders: Mapping[str, str | None],
        check: Check,
    ) -> None:
        if piece.part.row is None:
            raise UnreadableError("which of its rows became which record is not known")
        format = row_format_of(node).name
        names = list(self._columnar.types(format, piece.part.path))
        for first, rows in self._columnar.tables(format, piece.part.path, names, check):
            self._insert(table, number, piece, folders, first, dict(zip(names, rows.columns, strict=True)))

    def _read_lines(
        self,
        table: RowTable,
        node: TopologyNode,
        number: int,
        piece: _Piece,
        folders: Mapping[str, str | None],
        check: Check,
        warnings: dict[str, None],
    ) -> None:
        format, part, search = row_format_of(node), piece.part, LineSearch(self._rows, self._database)
        schema = {name: type for name, type in of_schema(node.schema).items() if name not in folders}
        lines = search.table(format, part.path, schema, check)
        names = ["value"] if format.is_text else list(lines.columns.types())
        start = part.start if part.row is None else 0
        for first, texts in search.records(format, part.path, start, piece.begin, piece.end, check):
            check()
            columns = lines.texts_of(texts, names)
            values = {name: pa.array(columns[f"c{at}"], pa.string()) for at, name in enumerate(names)}
            self._insert(table, number, piece, folders, first, values)
        if search.cut:
            warnings[_CUT] = None

    def _insert(
        self,
        table: RowTable,
        number: int,
        piece: _Piece,
        folders: Mapping[str, str | None],
        first: int,
        values: Mapping[str, Any],
    ) -> None:
        """Rows of one file from its row `first` on, as far as they are records."""
        count = len(next(iter(values.values()), ()))
        numbers = pa.array(np.arange(first, first + count, dtype=np.int64))
        arrow = pa.table(
            [numbers, *values.values()], names=["number", *(f"f{at}" for at in range(len(values)))]
        )
        self._database.register(_SOURCE, arrow)
        try:
            described = self._database.execute(f"DESCRIBE SELECT * FROM {_SOURCE}").fetchall()[1:]
            for name, (_, type, *_others) in zip(values, described, strict=True):
                table.add_column(name, str(type))
            own = {name: f"f{at}" for at, name in enumerate(values)}
            of_folders = {name: value for name, value in folders.items() if name not in own}
            for name in of_folders:
                table.add_column(name, TEXT_TYPE)
            targets = [table.sql_of(name) for name in (*own, *of_folders)]
            casts = [f"CAST({sql} AS {table.columns[name]})" for name, sql in own.items()]
            self._database.execute(
                f"INSERT INTO {table.name} ({', '.join(['part', 'number', *targets])}) "
                f"SELECT {', '.join(['?', 'number', *casts, *(['?'] * len(of_folders))])} FROM {_SOURCE} "
                "WHERE number >= ? AND number < ?",
                [number, *of_folders.values(), piece.begin, piece.end],
            )
        finally:
            self._database.unregister(_SOURCE)

    # -- JSON ---------------------------------------------------------------------------------------

    def _read_json(
        self, table: RowTable, node: TopologyNode, pieces: Sequence[_Piece], check: Check
    ) -> list[str]:
        """Every key of any object is a column. Where a record is no object, all are compared as texts."""
        lines = RowTable(self._database, f"{table.name}_lines")
        search = LineSearch(self._rows, self._database)
        for number, piece in enumerate(pieces):
            start = piece.part.start if piece.part.row is None else 0
            records = search.records(
                row_format_of(node), piece.part.path, start, piece.begin, piece.end, check
            )
            for first, texts in records:
                check()
                values = {"value": pa.array(texts, pa.string())}
                self._insert(lines, number, piece, {}, first, values)
        warnings = [_CUT] if search.cut else []
        database, folders = self._database, [_folders(piece.part.path, node) for piece in pieces]
        keys, is_of_objects = ["value"], False
        if lines.columns:
            row = database.execute(
                f"SELECT bool_and(CASE WHEN json_valid(c0) THEN json_type(c0) = 'OBJECT' ELSE FALSE END) "
                f"FROM {lines.name}"
            ).fetchone()
            is_of_objects = row is not None and row[0] is not False
        if is_of_objects:
            named = database.execute(f"SELECT DISTINCT unnest(json_keys(c0)) FROM {lines.name}").fetchall()
            columns = dict.fromkeys(column.name for column in node.schema)
            keys = [*columns, *sorted({key for (key,) in named} - columns.keys())]
        operand = "NULLIF(CAST(json_extract(c0, ?) AS VARCHAR), 'null')" if is_of_objects else "c0"
        names = dict.fromkeys([*keys, *(name for of_file in folders for name in of_file)])
        for name in names if lines.columns else ():
            table.add_column(name, TEXT_TYPE)
        for number, of_file in enumerate(folders if lines.columns else ()):
            own = [key for key in keys if key not in of_file]
            targets = [table.sql_of(name) for name in (*own, *of_file)]
            selected = ["part", "number", *([operand] * len(own)), *(["?"] * len(of_file))]
            pointers = ["/" + key.replace("~", "~0").replace("/", "~1") for key in own]
            database.execute(
                f"INSERT INTO {table.name} ({', '.join(['part', 'number', *targets])}) "
                f"SELECT {', '.join(selected)} FROM {lines.name} WHERE part = ?",
                [*(pointers if is_of_objects else ()), *of_file.values(), number],
            )
        database.execute(f"DROP TABLE {lines.name}")
        if not is_of_objects and lines.columns:
            warnings.append("some lines are no JSON objects, so all lines were compared as texts")
        return warnings


def _pieces(node: TopologyNode, counts: Mapping[int, int]) -> Sequence[_Piece]:
    pieces = []
    for partition, count in counts.items():
        parts = row_parts_of(node, node.partitions.get(partition, {}))
        if not parts and count:
            raise UnreadableError("its records are no rows of files that can be compared")
        for part in parts:
            more = part.first - (part.row or 0)
            last = count if part.last is None else min(part.last, count)
            pieces.append(_Piece(partition, part, part.first - more, last - more))
    return pieces


def _folders(path: str, node: TopologyNode) -> Mapping[str, str | None]:
    """Partition columns of a file, but for those of the folder that was written: these name the run."""
    values = partition_values(path)
    own = partition_values(f"{(node.location or '').rstrip('/')}/file")
    return {name: value for name, value in values.items() if name not in own}

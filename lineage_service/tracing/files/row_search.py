"""The records of a source's or sink's files that fulfil a condition, or of which a row holds a text.

Partition by partition, in order. `warnings` say which files are gone, changed or not readable, and what was
not looked at: a search must not deny what it never saw.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass

from lineage_service.conditions.column_types import LOOSE_TEXT, ColumnType, of_schema
from lineage_service.conditions.columns import Columns, columnar, constants, quoted
from lineage_service.conditions.filters import Filter, Where
from lineage_service.conditions.tree import And, columns_of, conjuncts_of
from lineage_service.tracing.files.columnar_search import ColumnarSearch, Numbers, holds_text
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import PARQUET, FilePart, paths_of, row_parts_of
from lineage_service.tracing.files.file_rows import FileRows
from lineage_service.tracing.files.file_systems import UnreadableError, is_local
from lineage_service.tracing.files.line_search import LineSearch, LineTable
from lineage_service.tracing.files.partition_folders import partition_values
from lineage_service.tracing.files.record_search import RecordSearch
from lineage_service.tracing.files.row_formats import columns_of_records, row_format_of
from lineage_service.tracing.files.searched_database import searched_database
from lineage_service.tracing.files.source_rows import change_of
from lineage_service.tracing.model.elements import TopologyNode

__all__ = ["RowSearch"]

#: Files whose matches are remembered: a file may be several parts.
_KEPT = 8
_MALFORMED = "lines that are not JSON by its standard were left out: they have no columns to ask for"
_CUT = "of rows of more than 100,000 bytes only the beginning was looked at"

Folders = Mapping[str, tuple[str | None, ColumnType]]
"""Partition column -> (what a folder says of it, its type)."""


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A filter on the columns of one file, and the columns of the file that it reads."""

    filter: Filter
    names: list[str]


class RowSearch(RecordSearch):
    """A search in the files of one node. It is closed with its block. For one thread.

    `where` is a condition, or a text that is searched in Parquet and ORC. What takes a check raises what it
    raises; conditions that do not fit the columns of a file are a ConditionError.
    """

    def __init__(
        self,
        rows: FileRows,
        node: TopologyNode,
        where: Where | str,
        *,
        among: Collection[str] | None = None,
        ended: int | None = None,
    ) -> None:
        """`among`: the files that are looked at, by their paths in partitions; None: all of the node."""
        self._rows, self._node, self._where, self._ended = rows, node, where, ended
        self._format, self._among = row_format_of(node), among
        every = {path for info in node.partitions.values() for path in paths_of(info)}
        super().__init__(searched_database(filter(is_local, every if self._format.name == PARQUET else ())))
        self._columnar = ColumnarSearch(rows.files, self.database)
        self.lines = LineSearch(rows, self.database)
        self._schema = of_schema(columns_of_records(node))
        self._fits_folder: dict[tuple[tuple[str, str | None], ...], bool] = {}
        self._tables: dict[str, LineTable] = {}
        self._numbers: dict[str, Numbers] = {}
        #: The files that were looked at, and how many there are in all.
        self.files: set[str] = set()
        self.types: dict[str, ColumnType] = {}

    def matching(self, partition: int, *, first: int, last: int, check: Check) -> Iterator[tuple[int, bool]]:
        for part in row_parts_of(self._node, self._node.partitions.get(partition, {})):
            end = last if part.last is None else min(part.last, last)
            begin = max(part.first, first)
            if begin >= end or not (self._among is None or part.path in self._among):
                continue
            check()
            try:
                yield from self._in_part(part, begin, end, check)
            except UnreadableError as error:
                self.warnings[f"{part.path} was not searched to its end: {error}"] = None
        if self.lines.malformed:
            self.warnings[_MALFORMED] = None
        if self.lines.cut:
            self.warnings[_CUT] = None

    def _in_part(self, part: FilePart, begin: int, end: int, check: Check) -> Iterator[tuple[int, bool]]:
        folders = self._folders(part.path)
        if not self._may_match(folders):
            if not self.types and (self._format.is_cut or self._format.is_columnar):
                self._columns_of(part, folders, check)  # can it be asked of these files at all?
            yield end, False
            return
        self._note_change(part)
        self.files.add(part.path)
        more = part.first - (part.row or 0)
        if self._format.is_cut:
            with closing(self._in_lines(part, folders, begin - more, end - more, check)) as matches:
                for number, is_match in matches:
                    yield number + more, is_match
            return
        if not self._format.is_columnar or part.row is None:
            raise UnreadableError("which of its rows became which record is not known")
        numbers = self._numbers_in(part, folders, check) + more
        for offset in numbers[(numbers >= begin) & (numbers < end)].tolist():
            yield offset, True
        yield end, False

    def _note_change(self, part: FilePart) -> None:
        ended = self._ended if part.size is None else None
        changed = change_of(self._rows.files.state(part.path), part.as_partition(ended))
        if changed is not None:
            self.warnings[f"{part.path}: {changed}"] = None

    # -- folders ------------------------------------------------------------------------------------

    def _folders(self, path: str) -> Folders:
        values = partition_values(path)
        return {name: (value, self._schema.get(name, LOOSE_TEXT)) for name, value in values.items()}

    def _may_match(self, folders: Folders) -> bool:
        """False where what a folder says of all its rows rules them out."""
        if not folders or isinstance(self._where, str):
            return True
        key = tuple((name, value) for name, (value, _) in folders.items())
        if key not in self._fits_folder:
            self._fits_folder[key] = self._fits(constants(folders))
        return self._fits_folder[key]

    def _fits(self, columns: Columns) -> bool:
        assert isinstance(self._where, Where)
        parts = [
            part
            for part in conjuncts_of(self._where.tree)
            if all(columns.names_of(column) for column in columns_of(part))
        ]
        if not parts:
            return True
        compiled = self._where.on(columns, parts[0] if len(parts) == 1 else And(tuple(parts)))
        row = self.database.execute(f"SELECT {compiled.sql}", list(compiled.parameters)).fetchone()
        return bool(row is not None and row[0])

    # -- rows ---------------------------------------------------------------------------------------

    def _columns_of(
        self, part: FilePart, folders: Folders, check: Check
    ) -> tuple[_Compiled, Mapping[str, ColumnType], LineTable | None]:
        """The condition on the columns of a file; their types, and how its lines become columns.

        Raises ConditionError, UnreadableError.
        """
        if self._format.is_columnar:
            types = self._columnar.types(self._format.name, part.path)
            return self._compiled(types, columnar(types), folders), types, None
        table = self._tables.get(part.path)
        if table is None:
            schema = {name: type for name, type in self._schema.items() if name not in folders}
            table = self.lines.table(self._format, part.path, schema, check)
            self._tables[part.path] = table
        types = table.columns.types()
        return self._compiled(types, table.columns, folders), types, table

    def _numbers_in(self, part: FilePart, folders: Folders, check: Check) -> Numbers:
        """Those of a file that match. A file that is several parts is searched once."""
        numbers = self._numbers.get(part.path)
        if numbers is None:
            compiled, types, _ = self._columns_of(part, folders, check)
            # A folder may say of a column what the file does not.
            is_of_file = isinstance(self._where, Where) and not types.keys() & folders.keys()
            numbers = self._columnar.matching(
                self._format.name,
                part.path,
                types,
                compiled.filter,
                compiled.names,
                check,
                self._where.tree if is_of_file and isinstance(self._where, Where) else None,
            )
            if len(self._numbers) >= _KEPT:
                self._numbers.clear()
            self._numbers[part.path] = numbers
        return numbers

    def _compiled(self, types: Mapping[str, ColumnType], columns: Columns, folders: Folders) -> _Compiled:
        """`types` are those of the columns of one file."""
        if isinstance(self._where, str):
            return _Compiled(holds_text(types, self._where, quoted), list(types))
        folded = {name.casefold() for name in types}
        absent = {
            name: (None, type)
            for name, type in {**self.types, **self._schema}.items()
            if name.casefold() not in folded
        }
        self.types = {**self.types, **types, **{name: type for name, (_, type) in folders.items()}}
        every = constants(absent) | columns | constants(folders)
        compiled = self._where.on(every)
        named = (names[0] for column in columns_of(self._where.tree) if (names := every.names_of(column)))
        return _Compiled(
            compiled, [name for name in dict.fromkeys(named) if name in types.keys() - folders.keys()]
        )

    def _in_lines(
        self,
        part: FilePart,
        folders: Folders,
        begin: int,
        end: int,
        check: Check,
    ) -> Generator[tuple[int, bool], None, None]:
        compiled, _, table = self._columns_of(part, folders, check)
        assert table is not None
        start = part.start if part.row is None else 0
        yield from self.lines.matching(
            self._format, part.path, start, table, compiled.filter, compiled.names, begin, end, check
        )

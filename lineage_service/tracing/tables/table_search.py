"""The rows of a version of a table that fulfil a condition, by the files that they are in.

Files are ruled out by the values of partitions and by the bounds that the log has of their columns. A row
that was deleted in that version, or before, is none of it. `warnings` say which files could not be read: a
search must not deny what it never saw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from lineage_service.conditions.filters import Where
from lineage_service.conditions.tree import And, Condition, columns_of, conjuncts_of
from lineage_service.tracing.files import columnar_rows
from lineage_service.tracing.files.columnar_search import ColumnarSearch, schema_of, types_of
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import PARQUET
from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError, is_local
from lineage_service.tracing.files.row_group_statistics import may_hold
from lineage_service.tracing.files.searched_database import searched_database
from lineage_service.tracing.tables.native_reads import awaited
from lineage_service.tracing.tables.table_columns import (
    columns_in,
    constant_columns,
    located,
    physical_names,
    shown_row,
)
from lineage_service.tracing.tables.table_version import DataFile, TableVersion

__all__ = ["TableSearch", "rows_of_file"]

Numbers = npt.NDArray[np.int64]

#: Files that one database may read. To allow it many takes long: 7 s for 300,000.
_AT_ONCE = 1_000


class TableSearch:
    """A search in one version. It is closed with its block. For one thread.

    `deleted` counts rows that fulfil the condition, and were deleted. Raises ConditionError where the
    condition does not fit the columns of the table, also if no file is looked at.
    """

    def __init__(self, files: FileSystems, version: TableVersion, where: Where) -> None:
        where.on(constant_columns(version))
        self.version, self._where = version, where
        self._files = files
        self._constants = searched_database(())
        self._database = self._constants  # in which a query may run now
        self._parts = self._of_partitions()
        self._may_hold: dict[tuple[object, ...], bool] = {}
        self.deleted = 0
        self.warnings: dict[str, None] = dict.fromkeys(version.warnings)

    def __enter__(self) -> TableSearch:
        return self

    def __exit__(self, *_: object) -> None:
        self._constants.close()

    def interrupt(self) -> None:
        """The query that runs now, from another thread."""
        self._database.interrupt()

    def matches(self, check: Check) -> Iterator[tuple[DataFile, Numbers]]:
        """Of each file that is not ruled out the numbers of its rows, ascending; maybe none."""
        candidates = (file for file in self.version.files if self._may_be_in(file, check))
        while some := list(islice(candidates, _AT_ONCE)):
            paths = [file.path for file in some if is_local(file.path)]
            with closing(searched_database(paths)) as database:
                self._database = database
                columnar = ColumnarSearch(self._files, database)
                try:
                    for file in some:
                        check()
                        numbers = self._alive(columnar, file, check)
                        if numbers is not None:
                            yield file, numbers
                finally:
                    self._database = self._constants

    def _may_be_in(self, file: DataFile, check: Check) -> bool:
        check()
        types = {column.name: column.type for column in self.version.columns}
        return self._is_in_partition(file) and may_hold(self._where.tree, types, file.lows, file.highs)

    def _alive(self, columnar: ColumnarSearch, file: DataFile, check: Check) -> Numbers | None:
        """The rows of a file that fulfil the condition, and are there; None where it cannot be read."""
        try:
            numbers = self._in_file(columnar, file, check)
            if not numbers.size:
                return numbers
            removed = awaited(partial(self.version.removed, file.path, check), check)
        except UnreadableError as error:
            self.warnings[f"{file.path} was not searched: {error}"] = None
            return None
        alive = np.setdiff1d(numbers, removed, assume_unique=True)
        self.deleted += numbers.size - alive.size
        return alive

    def _in_file(self, columnar: ColumnarSearch, file: DataFile, check: Check) -> Numbers:
        schema = columnar.schema(searched_format(file), file.path)
        version, types = located(self.version, schema), types_of(schema)
        names = physical_names(version, list(columns_of(self._where.tree)), types)
        is_named_alike = all(column.name == column.physical for column in version.columns)
        has_constants = len(names) < len(set(columns_of(self._where.tree)))
        return columnar.matching(
            PARQUET,
            file.path,
            types,
            self._where.on(columns_in(version, file, types)),
            names,
            check,
            self._where.tree if is_named_alike and not has_constants else None,
        )

    def _of_partitions(self) -> Condition | None:
        """The part of the condition that only the columns of partitions decide."""
        names = set(self.version.partition_columns)
        every = constant_columns(self.version)
        parts = [
            part
            for part in conjuncts_of(self._where.tree)
            if all((every.names_of(column) or ("",))[0] in names for column in columns_of(part))
        ]
        return None if not parts else parts[0] if len(parts) == 1 else And(tuple(parts))

    def _is_in_partition(self, file: DataFile) -> bool:
        if self._parts is None:
            return True
        values = tuple(file.partitions.get(name) for name in self.version.partition_columns)
        if values not in self._may_hold:
            compiled = self._where.on(constant_columns(self.version, file), self._parts)
            row = self._constants.execute(f"SELECT {compiled.sql}", list(compiled.parameters)).fetchone()
            self._may_hold[values] = bool(row is not None and row[0])
        return self._may_hold[values]


def rows_of_file(
    files: FileSystems, version: TableVersion, file: DataFile, rows: Sequence[int], check: Check
) -> dict[int, dict[str, Any]]:
    """Rows by the columns of the table, as JSON. Raises UnreadableError."""
    format = searched_format(file)
    show = partial(_shown, located(version, schema_of(files, format, file.path)), file)
    return columnar_rows.read_rows(files, format, file.path, rows, check, show)


def searched_format(file: DataFile) -> str:
    """The format of a file that can be searched. Raises UnreadableError of others."""
    if file.format != PARQUET:
        raise UnreadableError(f"files of {file.format} are not searched by version: look at it with Spark")
    return file.format


def _shown(version: TableVersion, file: DataFile, values: dict[str, Any], _: object) -> dict[str, Any]:
    return shown_row(version, file, values)

"""The rows of a version of a table that fulfil a condition, by the files that they are in.

Files are ruled out by the values of partitions and by the bounds that the log has of their columns. A row
that was deleted in that version, or before, is none of it. `warnings` say which files could not be read: a
search must not deny what it never saw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from lineage_service.conditions.filters import Where
from lineage_service.conditions.tree import And, Condition, columns_of, conjuncts_of
from lineage_service.tracing.files import columnar_rows
from lineage_service.tracing.files.columnar_search import ColumnarSearch
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import PARQUET
from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError, is_local
from lineage_service.tracing.files.row_group_statistics import may_hold
from lineage_service.tracing.files.searched_database import searched_database
from lineage_service.tracing.tables.table_columns import (
    columns_in,
    constant_columns,
    physical_names,
    shown_row,
)
from lineage_service.tracing.tables.table_version import DataFile, TableVersion

__all__ = ["TableSearch", "rows_of_file"]

Numbers = npt.NDArray[np.int64]


class TableSearch:
    """A search in one version. It is closed with its block. For one thread.

    `deleted` counts rows that fulfil the condition, and were deleted. Raises ConditionError where the
    condition does not fit the columns of the table, also if no file is looked at.
    """

    def __init__(self, files: FileSystems, version: TableVersion, where: Where) -> None:
        where.on(constant_columns(version))
        self.version, self._where = version, where
        paths = [file.path for file in version.files if is_local(file.path)]
        self.database = searched_database(paths)
        self._columnar = ColumnarSearch(files, self.database)
        self._parts = self._of_partitions()
        self._may_hold: dict[tuple[object, ...], bool] = {}
        self._removed: dict[str, Numbers] | None = None
        self.deleted = 0
        self.warnings: dict[str, None] = {}

    def __enter__(self) -> TableSearch:
        return self

    def __exit__(self, *_: object) -> None:
        self.database.close()

    def matches(self, check: Check) -> Iterator[tuple[DataFile, Numbers]]:
        """Of each file that is not ruled out the numbers of its rows, ascending; maybe none."""
        types = {column.name: column.type for column in self.version.columns}
        for file in self.version.files:
            check()
            if not self._is_in_partition(file) or not may_hold(
                self._where.tree, types, file.lows, file.highs
            ):
                continue
            try:
                numbers = self._in_file(file, check)
            except UnreadableError as error:
                self.warnings[f"{file.path} was not searched: {error}"] = None
                continue
            if numbers.size:
                alive = np.setdiff1d(numbers, self._removed_of(file.path), assume_unique=True)
                self.deleted += numbers.size - alive.size
                numbers = alive
            yield file, numbers

    def _in_file(self, file: DataFile, check: Check) -> Numbers:
        types = self._columnar.types(PARQUET, file.path)
        names = physical_names(self.version, list(columns_of(self._where.tree)), types)
        is_named_alike = all(column.name == column.physical for column in self.version.columns)
        has_constants = len(names) < len(set(columns_of(self._where.tree)))
        return self._columnar.matching(
            PARQUET,
            file.path,
            types,
            self._where.on(columns_in(self.version, file, types)),
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
            row = self.database.execute(f"SELECT {compiled.sql}", list(compiled.parameters)).fetchone()
            self._may_hold[values] = bool(row is not None and row[0])
        return self._may_hold[values]

    def _removed_of(self, path: str) -> Numbers:
        if self._removed is None:
            self._removed = dict(self.version.removed())
        return self._removed.get(path, np.empty(0, np.int64))


def rows_of_file(
    files: FileSystems, version: TableVersion, file: DataFile, rows: Sequence[int], check: Check
) -> dict[int, dict[str, Any]]:
    """Rows by the columns of the table, as JSON. Raises UnreadableError."""
    show = partial(_shown, version, file)
    return columnar_rows.read_rows(files, PARQUET, file.path, rows, check, show)


def _shown(version: TableVersion, file: DataFile, values: dict[str, Any], _: object) -> dict[str, Any]:
    return shown_row(version, file, values)

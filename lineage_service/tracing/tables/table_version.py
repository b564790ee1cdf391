"""A version of a table, whatever its format: its columns, its data files, and which rows of these it has not.

Values only; `delta_version` and `iceberg_version` make one from what a table says of itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lineage_service.conditions.column_types import ColumnType
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import PARQUET

__all__ = ["DataFile", "Removed", "TableColumn", "TableVersion", "VersionAsked", "nothing_removed"]

Removed = Callable[[str, Check], npt.NDArray[np.int64]]
"""Path of a data file -> the numbers of its rows that were deleted, ascending. Raises UnreadableError."""


def nothing_removed(path: str, check: Check) -> npt.NDArray[np.int64]:
    return np.empty(0, np.int64)


class VersionAsked(NamedTuple):
    """The one of a number, branch or tag, or the newest until `at`, in Unix milliseconds, or the newest.

    `page_of` is the number that it had when the first page was asked for.
    """

    number: int | str | None = None
    at: int | None = None
    page_of: int | None = None

    @property
    def is_newest(self) -> bool:
        return self.number is None and self.at is None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """A column, or a field of a struct. `physical` is its name in data files; `type.fields` are by names.

    With an `id`, the name in a data file is that of the column there that has it. `default` is the value of
    rows in files that lack the column.
    """

    name: str
    type: ColumnType
    physical: str
    fields: Sequence[TableColumn] = ()
    id: int | None = None
    default: object = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DataFile:
    """A data file by its path as events name it. Equal to itself alone.

    `partitions` are the values of the table's partition columns; `lows` and `highs` bound the values of
    other columns, as far as the log says so. All by names of columns.
    """

    path: str
    format: str = PARQUET
    rows: int | None = None
    partitions: Mapping[str, object] = field(default_factory=dict)
    lows: Mapping[str, object] = field(default_factory=dict)
    highs: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVersion:
    """`files` are ordered by their paths, and still hold the rows that `removed` gives.

    `name` is what people call the version, such as `version 12`.
    """

    number: int
    name: str
    table: str
    columns: Sequence[TableColumn]
    partition_columns: Sequence[str]
    files: Sequence[DataFile]
    removed: Removed = nothing_removed
    #: What is not known of it.
    warnings: Sequence[str] = ()
    #: Those of the table in this version, as its format names them.
    properties: Mapping[str, str] = field(default_factory=dict)
    #: Of a table that tracks its rows: the column of files that has their ids, if a file has it.
    row_id_column: str | None = None

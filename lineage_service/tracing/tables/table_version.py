"""A version of a table, whatever its format: its columns, its data files, and which rows of these it has not.

Values only; `delta_version` makes one from a table's log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lineage_service.conditions.column_types import ColumnType

__all__ = ["DataFile", "Removed", "TableColumn", "TableVersion", "nothing_removed"]

Removed = Callable[[], Iterator[tuple[str, npt.NDArray[np.int64]]]]
"""Of each file of which rows were deleted: (path, the numbers of these rows, ascending)."""


def nothing_removed() -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
    return iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """A column, or a field of a struct. `physical` is its name in data files; `type.fields` are by names."""

    name: str
    type: ColumnType
    physical: str
    fields: Sequence[TableColumn] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DataFile:
    """A file of Parquet, by its path as events name it. Equal to itself alone.

    `partitions` are the values of the table's partition columns; `lows` and `highs` bound the values of
    other columns, as far as the log says so. All by names of columns.
    """

    path: str
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
    #: Those of the table in this version, as its format names them.
    properties: Mapping[str, str] = field(default_factory=dict)
    #: Of a table that tracks its rows: the column of files that has their ids, if a file has it.
    row_id_column: str | None = None

"""A version of a Delta table by its log, which delta-rs reads: commits, checkpoints and deletion vectors.

Nothing is listed but the log, so files of other versions are never looked at. Columns are known by their
names in that version, and by their physical names in the files (column mapping).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from lineage_service.conditions.column_types import of_schema
from lineage_service.errors import InvalidQueryError, NotFoundError, UnavailableError
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import normal_path
from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError
from lineage_service.tracing.tables.delta_log import data_path
from lineage_service.tracing.tables.delta_times import version_at
from lineage_service.tracing.tables.table_version import (
    DataFile,
    TableColumn,
    TableVersion,
    VersionAsked,
    nothing_removed,
)

__all__ = ["delta_version"]

_NEWEST = VersionAsked()
_PHYSICAL = "delta.columnMapping.physicalName"
_DELETION_VECTORS = "deletionVectors"
#: Characters of a library's message.
_MOST_SAID = 200
_TRACKING, _ROW_IDS = "delta.enableRowTracking", "delta.rowTracking.materializedRowIdColumnName"


class _Column(NamedTuple):
    """A column of a schema as `of_schema` reads it."""

    name: str
    type: str
    fields: tuple[_Column, ...]


def delta_version(files: FileSystems, table: str, asked: VersionAsked = _NEWEST) -> TableVersion:
    """`table` is its folder or URL. Raises NotFoundError, InvalidQueryError, UnavailableError."""
    number = asked.number if asked.page_of is None else asked.page_of
    if isinstance(number, str):
        raise InvalidQueryError(f"a version of a Delta table is a number, and {number!r} is none")
    delta = _opened(table, number)
    if number is None and asked.at is not None:
        delta = _at(files, delta, table, asked.at)
    try:
        columns = tuple(map(_column, json.loads(delta.schema().to_json())["fields"]))
        metadata = delta.metadata()
        is_tracked = (metadata.configuration.get(_TRACKING) or "").lower() == "true"
        features = delta.protocol().reader_features or ()
        data_files = sorted(_files(delta, table, columns), key=lambda file: file.path)
    except (DeltaError, ValueError, OSError) as error:
        raise _unreadable(table, error) from error
    return TableVersion(
        number=delta.version(),
        name=f"version {delta.version()}",
        table=table,
        columns=columns,
        partition_columns=tuple(metadata.partition_columns),
        files=tuple(data_files),
        removed=_Vectors(delta, table) if _DELETION_VECTORS in features else nothing_removed,
        properties={name: value for name, value in metadata.configuration.items() if value is not None},
        row_id_column=metadata.configuration.get(_ROW_IDS) if is_tracked else None,
    )


def _opened(table: str, version: int | None) -> DeltaTable:
    try:
        delta = DeltaTable(table)
    except (DeltaError, ValueError, OSError) as error:
        raise _unreadable(table, error) from error
    newest = delta.version()
    if version is None or version == newest:
        return delta
    # The library itself would look for each version up to one that is not there yet.
    if version > newest:
        raise NotFoundError(f"{table} has no version {version}: the newest is {newest}")
    try:
        delta.load_as_version(version)
    except (DeltaError, ValueError, OSError) as error:
        said = " ".join(str(error).split())[:_MOST_SAID]
        raise NotFoundError(
            f"version {version} of {table} cannot be read ({said}): if its log was cleaned up, ask for a "
            f"later one, up to {newest}"
        ) from error
    return delta


def _at(files: FileSystems, delta: DeltaTable, table: str, at: int) -> DeltaTable:
    try:
        properties = {name: value or "" for name, value in delta.metadata().configuration.items()}
        version = version_at(files, table, properties, at)
    except (DeltaError, UnreadableError, ValueError, OSError) as error:
        raise _unreadable(table, error) from error
    return delta if version == delta.version() else _opened(table, version)


def _unreadable(table: str, error: Exception) -> NotFoundError | UnavailableError:
    said = " ".join(str(error).split())[:_MOST_SAID]
    if isinstance(error, TableNotFoundError):
        return NotFoundError(
            f"there is no log of a Delta table in {table} ({said}): to search the files that one application "
            "wrote, name it"
        )
    return UnavailableError(
        f"the log of {table} cannot be read now ({said}): to search the files that one application wrote, "
        "name it"
    )


# -- columns ----------------------------------------------------------------------------------------


def _column(field: Mapping[str, Any]) -> TableColumn:
    fields = tuple(map(_column, _fields_of(field["type"])))
    [type_] = of_schema([_named(field)]).values()
    physical = (field.get("metadata") or {}).get(_PHYSICAL, field["name"])
    return TableColumn(name=field["name"], type=type_, physical=physical, fields=fields)


def _named(field: Mapping[str, Any]) -> _Column:
    type_ = field["type"]
    fields = tuple(map(_named, _fields_of(type_)))
    return _Column(field["name"], type_ if isinstance(type_, str) else str(type_["type"]), fields)


def _fields_of(type_: Any) -> Iterable[Mapping[str, Any]]:
    return type_["fields"] if isinstance(type_, Mapping) and type_.get("type") == "struct" else ()


# -- files ------------------------------------------------------------------------------------------


def _files(delta: DeltaTable, table: str, columns: Iterable[TableColumn]) -> Iterator[DataFile]:
    # The library gives bounds by physical names, which may be those of other columns after renames.
    names = {column.physical: column.name for column in columns}

    def by_names(values: Mapping[str, object] | None) -> dict[str, object]:
        return {names[name]: value for name, value in (values or {}).items() if name in names}

    for batch in pa.table(delta.get_add_actions()).to_batches(max_chunksize=1_000):
        for action in batch.to_pylist():
            yield DataFile(
                path=data_path(table, action["path"]),
                rows=action.get("num_records"),
                partitions=action.get("partition") or {},
                lows=by_names(action.get("min")),
                highs=by_names(action.get("max")),
            )


class _Vectors:
    """The deletion vectors of a version, all of which are read at once."""

    def __init__(self, delta: DeltaTable, table: str) -> None:
        self._delta, self._table = delta, table
        self._of_files: dict[str, npt.NDArray[np.int64]] | None = None

    def __call__(self, path: str, check: Check) -> npt.NDArray[np.int64]:
        if self._of_files is None:
            self._of_files = dict(self._read())
        return self._of_files.get(path, np.empty(0, np.int64))

    def _read(self) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
        try:
            for batch in pa.RecordBatchReader.from_stream(self._delta.deletion_vectors()):
                for path, keeps in zip(*batch.columns, strict=True):
                    is_kept = keeps.values.to_numpy(zero_copy_only=False)
                    yield _path_of(path.as_py()), np.flatnonzero(~is_kept.astype(bool)).astype(np.int64)
        except (DeltaError, pa.ArrowException, ValueError, OSError) as error:
            raise _unreadable(self._table, error) from error


def _path_of(uri: str) -> str:
    """Of a file as Delta's library names it: what is no plain sign is escaped."""
    return normal_path(uri if uri.startswith("file:") else unquote(uri))

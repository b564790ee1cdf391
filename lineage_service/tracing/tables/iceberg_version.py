"""A snapshot of an Iceberg table by its metadata and manifests.

Deletes by position and deletion vectors are followed, deletes by equal values are not: a warning says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import numpy as np
import numpy.typing as npt

from lineage_service.errors import NotFoundError, UnavailableError
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import normal_path
from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError
from lineage_service.tracing.tables.iceberg_columns import bounds_by_name, columns_of_schema, names_by_id
from lineage_service.tracing.tables.iceberg_deletes import PositionDeletes
from lineage_service.tracing.tables.iceberg_manifests import (
    DATA,
    EQUALITY_DELETES,
    POSITION_DELETES,
    ManifestFile,
    Manifests,
)
from lineage_service.tracing.tables.iceberg_metadata import IcebergMetadata, Snapshot, read_metadata
from lineage_service.tracing.tables.table_version import DataFile, TableVersion, VersionAsked

__all__ = ["iceberg_version", "snapshot_version"]

_NEWEST = VersionAsked()
#: The column of ids of rows in files that have rows of others, and the first format in which rows have ids.
_ROW_ID, _WITH_ROW_IDS = "_row_id", 3
#: Branches and tags that are named where one is not there.
_MOST_NAMED = 10


def iceberg_version(
    files: FileSystems, table: str, check: Check, asked: VersionAsked = _NEWEST
) -> TableVersion:
    """A snapshot by its id has the columns of then, as in Iceberg; the newest, and a branch, those of now.

    `table` is its folder or URL. Raises NotFoundError, UnavailableError, and what `check` raises.
    """
    try:
        metadata = read_metadata(files, table)
        snapshot = _chosen(metadata, table, asked)
        is_current = asked.is_newest or asked.number in metadata.branches
        schema = metadata.current_schema if is_current or snapshot.schema is None else snapshot.schema
        return snapshot_version(
            files, table, metadata, snapshot, metadata.schemas[schema], Manifests(files, check)
        )
    except (UnreadableError, ValueError, KeyError, TypeError) as error:
        raise _unreadable(table, error) from error


def snapshot_version(
    files: FileSystems,
    table: str,
    metadata: IcebergMetadata,
    snapshot: Snapshot,
    schema: Mapping[str, Any],
    manifests: Manifests,
) -> TableVersion:
    """Raises UnreadableError, ValueError, KeyError, TypeError."""
    listed = list(manifests.files_of(snapshot.manifests))
    data = {normal_path(file.path): file for file in listed if file.content == DATA}
    deletes = PositionDeletes(files, (file for file in listed if file.content == POSITION_DELETES))
    equalities = [file for file in listed if file.content == EQUALITY_DELETES]

    def removed(path: str, check: Check) -> npt.NDArray[np.int64]:
        return deletes.of(data[path], check)

    return TableVersion(
        number=snapshot.id,
        name=f"snapshot {snapshot.id}",
        table=table,
        columns=columns_of_schema(schema),
        partition_columns=(),
        files=tuple(_data_file(path, data[path], metadata, schema) for path in sorted(data)),
        removed=removed,
        properties=metadata.properties,
        row_id_column=_ROW_ID if metadata.format >= _WITH_ROW_IDS else None,
        warnings=(*metadata.warnings, *_not_followed(data.values(), equalities)),
    )


def _chosen(metadata: IcebergMetadata, table: str, asked: VersionAsked) -> Snapshot:
    """Raises NotFoundError."""
    newest = metadata.newest
    if newest is None:
        raise NotFoundError(f"{table} has no snapshot yet")
    number = asked.number if asked.page_of is None else asked.page_of
    if number is not None:
        chosen = metadata.refs.get(number) if isinstance(number, str) else number
        snapshot = None if chosen is None else metadata.snapshots.get(chosen)
        if snapshot is None:
            kind = "branch or tag" if isinstance(number, str) else "snapshot"
            refs = ", ".join(sorted(metadata.refs)[:_MOST_NAMED])
            has = f"it has {refs}" if isinstance(number, str) else "snapshots that were expired are gone"
            raise NotFoundError(f"{table} has no {kind} {number}: the newest snapshot is {newest.id}; {has}")
        return snapshot
    if asked.at is None:
        return newest
    snapshot = metadata.until(asked.at)
    if snapshot is None:
        first = metadata.first_time()
        began = "" if first is None else f": the first is of {_in_words(first)}"
        raise NotFoundError(f"{table} has no snapshot until then{began}")
    return snapshot


def _in_words(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, timezone.utc).isoformat(" ", "seconds")


def _data_file(
    path: str, file: ManifestFile, metadata: IcebergMetadata, schema: Mapping[str, Any]
) -> DataFile:
    partitions = dict(_identities(file, metadata, schema))
    constants = {name: value for name, value in partitions.items() if value is not None}
    return DataFile(
        path=path,
        format=file.format,
        rows=file.rows,
        partitions=partitions,
        lows=constants | bounds_by_name(file.lows, schema),
        highs=constants | bounds_by_name(file.highs, schema),
    )


def _identities(
    file: ManifestFile, metadata: IcebergMetadata, schema: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    """The columns that have one value in all of the file, since the table is partitioned by them."""
    names = names_by_id(schema)
    fields: Sequence[Mapping[str, Any]] = metadata.partitionings[file.spec]
    for field, value in zip(fields, file.partition, strict=True):
        name = names.get(int(field["source-id"]))
        if field["transform"] == "identity" and name is not None:
            yield name, value


def _not_followed(data: Any, equalities: Sequence[ManifestFile]) -> Iterator[str]:
    """Whether rows that deletes by equal values remove may be taken for rows of the snapshot."""
    if not equalities:
        return
    first = min((file.sequence for file in data), default=None)
    count = sum(1 for deletes in equalities if first is not None and deletes.sequence > first)
    if count:
        yield (
            f"the snapshot has {count:,} file{'' if count == 1 else 's'} of deletes by equal values, which "
            "are not followed: rows may be listed that are deleted"
        )


def _unreadable(table: str, error: Exception) -> UnavailableError:
    said = " ".join(str(error).split())[:200]
    return UnavailableError(
        f"the metadata of {table} cannot be read now ({said}): to search the files that one application "
        "wrote, name it"
    )

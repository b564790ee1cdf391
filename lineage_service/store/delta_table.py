"""One Delta table at its newest snapshot: how files are written, when commits are on the disk, what it has.

Promises that a commit is on the disk when `append` or `delete` returns, that a source whose offset moved on
meanwhile is refused, and that a table which another version made, or whose log is gone, is not opened. Knows
nothing of blocks and events: `flow_store` says in which order tables are written.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import (
    ColumnProperties,
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    Schema,
    Transaction,
    WriterProperties,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from lineage_service.store.errors import StoreConflictError, StoreUnavailableError, translated_errors
from lineage_service.store.location import StoreLocation
from lineage_service.store.log_check import empty_entries, lost_log
from lineage_service.store.tables import ROW_GROUP, TABLES, Bounds

__all__ = ["ANY_OFFSET", "COMMITS_PER_OPENING", "NOTHING", "WRITER", "Contents", "Table", "only"]

logger = logging.getLogger(__name__)

#: Readers choose row groups, and no pages within them: so a column of one is a page, unless it is large, and
#: nothing is stored of pages. Both together are 5 % of a file of flows.
_WHOLE: dict[str, Any] = {"statistics_enabled": "CHUNK"}
_POSITIONS = ColumnProperties(dictionary_enabled=False, encoding="DELTA_BINARY_PACKED", **_WHOLE)
#: How every Parquet file of the store is written.
WRITER = WriterProperties(
    compression="ZSTD",
    compression_level=1,
    max_row_group_size=ROW_GROUP,
    data_page_row_count_limit=ROW_GROUP,
    default_column_properties=ColumnProperties(**_WHOLE),
    column_properties=dict.fromkeys(("out_pos", "in_pos", "pos", "value"), _POSITIONS),
)

_CHECKPOINT_COMMITS = 100
#: Nobody asks for old versions; log files that a checkpoint covers stay for readers and compactions that
#: are under way. Each commit lists what stays: 3 ms of CPU more for each thousand files (measured).
_CONFIGURATION = {
    "delta.checkpointInterval": str(_CHECKPOINT_COMMITS),
    "delta.logRetentionDuration": "interval 2 hours",
}
#: An open table keeps a piece of its snapshot for each commit that it saw and never joins them, so a commit
#: takes 0.1 ms more with each (delta-io/kafka-delta-ingest, issue 227). Opening it again costs one commit.
COMMITS_PER_OPENING = 50

#: The log is listed at least so often: far more often than logRetentionDuration.
_LISTED_S = 60.0

#: Writing the same rows again after a commit of `maintenance` came between.
_APPEND_TRIES = 5

#: The column that parts the tables of applications.
_APPLICATION = "application_id"
#: No reader needs files of an older snapshot.
_READ_HOURS = 2

#: What Delta's log says of the times in a file.
_LATEST = "max.time"

_Rows = Callable[[int], Iterator[pa.RecordBatch]]
#: Whatever the offset of the source is.
ANY_OFFSET = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a table has of one application. `version` differs from an earlier one if files came or went.

    `uris` are those of the files. `latest` is the greatest `time` of its rows, where statistics say it.
    """

    version: int
    rows: int
    uris: tuple[str, ...] = ()
    latest: int | None = None


NOTHING = Contents(version=0, rows=0)


class Table:
    """One Delta table at its newest snapshot. Checkpoints are the library's business.

    By default it is one of applications. Of another `schema`, `key` is the column that parts it. The columns
    in `later` may lack in a table of an earlier version: what is appended brings them.
    """

    def __init__(
        self,
        location: StoreLocation,
        name: str,
        schema: pa.Schema | None = None,
        key: str = _APPLICATION,
        later: Collection[str] = (),
    ) -> None:
        self._location, self._name, self._key = location, name, key
        self._uri = location.table(name)
        self._log = str(Path(self._uri) / "_delta_log") if location.is_local else None
        self._listed_at = -math.inf
        self._schema = TABLES[name] if schema is None else schema
        self._lock = Lock()
        with translated_errors(self._uri):
            location.make(name)
            self._delta = _opened(location, name, self._schema, key)
            _check_columns(self._uri, self._schema, self._delta, later)
            self._opened_at = self._delta.version()
        self._synced = -1  # it and all commits before it are on the disk
        self._offsets: dict[str, int | None] = {}  # of sources that were asked for, at a version
        self._offsets_at = -1
        self._contents: Mapping[str, Contents] = {}  # at a version
        self._contents_at = -1

    @property
    def table_id(self) -> str:
        """The UUID that Delta gave the table when it was created; it is in its log, and moves with it."""
        return str(self._delta.metadata().id)

    def offset(self, source: str) -> int | None:
        return self.offsets([source]).get(source)

    def offsets(self, sources: Collection[str]) -> dict[str, int]:
        """The offsets of those sources that have one."""
        with self._refreshed() as delta:
            offsets = {source: self._offset(delta, source) for source in sources}
        return {source: offset for source, offset in offsets.items() if offset is not None}

    def _offset(self, delta: DeltaTable, source: str) -> int | None:
        """The log is not searched again while nothing, or only what this object wrote, was added."""
        if self._offsets_at != delta.version():
            self._offsets, self._offsets_at = {}, delta.version()
        if source not in self._offsets:
            self._offsets[source] = delta.transaction_version(source)
        return self._offsets[source]

    def append(self, source: str, next_offset: int, rows: _Rows, at: object = ANY_OFFSET) -> int:
        """Commit `rows(since)` and the source's new offset; the number of rows.

        `since` is the offset from which on the table lacks messages. Record batches may be empty: then only
        the offset moves. None at all: nothing is committed. The lock keeps the snapshot still between the
        comparison of offsets and the commit; else Delta could not see a conflict.

        Delta also refuses an append after anything was removed from the table meanwhile, of whichever
        application. That is `maintenance` at work, and no reason to give way while the source did not move.
        """
        started_at: object = ANY_OFFSET
        for tries_left in reversed(range(_APPEND_TRIES)):
            with self._refreshed() as delta:
                offset = self._offset(delta, source)
                if (at is not ANY_OFFSET and offset != at) or (
                    started_at is not ANY_OFFSET and offset != started_at
                ):
                    raise StoreConflictError(f"{self._uri}: {source} moved to {offset} meanwhile")
                started_at = offset
                if offset is not None and offset >= next_offset:
                    # It is there: by another writer, who may have died of it, or by a try before this one.
                    self._location.sync_recent(self._name, delta.version(), self._synced)
                    self._synced = delta.version()
                    return 0
                try:
                    return self._commit(delta, source, next_offset, rows(offset or 0))
                except CommitFailedError:
                    if not tries_left:
                        raise
        raise AssertionError("the last try returns or raises")

    def _commit(
        self, delta: DeltaTable, source: str, next_offset: int, batches: Iterator[pa.RecordBatch]
    ) -> int:
        first = next(batches, None)
        if first is None:
            return 0
        count, version = _Count(), delta.version()
        is_cleaning = (version + 1) % _CHECKPOINT_COMMITS == 0
        if is_cleaning:  # what the newest checkpoint stands for goes: that must not be lost
            self._location.sync(self._name, [version])
        write_deltalake(
            delta,
            pa.RecordBatchReader.from_batches(self._schema, count.through(chain([first], batches))),
            mode="append",
            schema_mode="merge" if _lacking(self._schema, delta) else None,
            writer_properties=WRITER,
            commit_properties=CommitProperties(app_transactions=[Transaction(source, next_offset)]),
            # Looking for expired log files means listing them all: not after each commit.
            post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=is_cleaning),
        )
        self._location.sync(self._name, range(version + 1, delta.version() + 1))
        if self._synced == version:
            self._synced = delta.version()
        if delta.version() == version + 1 and self._offsets_at == version:
            self._offsets[source], self._offsets_at = next_offset, version + 1
        return count.rows

    def delete(self, application_id: str) -> None:
        """Commit that the application's files are no part of the table. The files themselves stay."""
        with self._refreshed() as delta:
            if delta.file_uris(file_pruning_predicate=[(self._key, "=", application_id)]):
                version = delta.version()
                delta.delete(only(application_id, self._key))
                self._location.sync(self._name, range(version + 1, delta.version() + 1))

    def delete_rows(self, application_id: str, condition: str) -> int:
        """Commit that those of the application's rows that fulfil it are none of the table; how many."""
        with self._refreshed() as delta:
            version = delta.version()
            done = delta.delete(f"{only(application_id, self._key)} AND ({condition})")
            self._location.sync(self._name, range(version + 1, delta.version() + 1))
            return int(done.get("num_deleted_rows") or 0)

    def join_files(self, application_id: str) -> None:
        """Make one file of the small ones of a part, and remove those that no reader can need any more."""
        with self._refreshed() as delta:
            version = delta.version()
            delta.optimize.compact(partition_filters=[(self._key, "=", application_id)])
            self._location.sync(self._name, range(version + 1, delta.version() + 1))
            delta.vacuum(retention_hours=_READ_HOURS, enforce_retention_duration=False, dry_run=False)

    def files(self, application_id: str, node: int | None) -> list[str]:
        """URIs of those that hold something of the application, and with `node` perhaps of that."""
        if node is None:
            return list(self.contents().get(application_id, NOTHING).uris)
        predicate: list[tuple[str, str, Any]] = [(self._key, "=", application_id), ("node", "=", node)]
        with self._refreshed() as delta:
            return delta.file_uris(file_pruning_predicate=predicate)

    def bounds(self, application_id: str) -> dict[str, Bounds]:
        """The bounds of columns of integers, by the URIs of files that hold something of the application."""
        with self._refreshed() as delta:
            added = pa.table(delta.get_add_actions(flatten=True))
        own = added.filter(pc.equal(added[f"partition.{self._key}"], application_id))
        integers = [field.name for field in self._schema if pa.types.is_integer(field.type)]
        names = [name for name in integers if f"min.{name}" in own.column_names]
        columns = [
            zip(own[f"min.{name}"].to_pylist(), own[f"max.{name}"].to_pylist(), strict=True) for name in names
        ]
        return {
            f"{self._uri}/{unquote(path)}": {
                name: bounds for name, bounds in zip(names, of_file, strict=True) if None not in bounds
            }
            for path, *of_file in zip(own["path"].to_pylist(), *columns, strict=True)
        }

    def contents(self) -> Mapping[str, Contents]:
        """What there is of each application. Of all it costs what looking for the files of one does."""
        with self._refreshed() as delta:
            if self._contents_at != delta.version():
                added = pa.table(delta.get_add_actions(flatten=True))
                if _LATEST not in added.column_names:
                    added = added.append_column(_LATEST, pa.nulls(added.num_rows, pa.int64()))
                by_application = added.group_by(f"partition.{self._key}")
                sums = [("path", "list"), ("num_records", "sum"), (_LATEST, "max"), (_LATEST, "count")]
                rows = by_application.aggregate(sums).to_pylist()
                self._contents = {
                    row[f"partition.{self._key}"]: Contents(
                        version=hash(frozenset(row["path_list"])),
                        rows=row["num_records_sum"] or 0,
                        uris=tuple(f"{self._uri}/{unquote(path)}" for path in row["path_list"]),
                        latest=row[f"{_LATEST}_max"]
                        if row[f"{_LATEST}_count"] == len(row["path_list"])
                        else None,
                    )
                    for row in rows
                }
                self._contents_at = delta.version()
            return self._contents

    def version(self) -> int:
        with self._refreshed() as delta:
            return delta.version()

    @contextmanager
    def _refreshed(self) -> Iterator[DeltaTable]:
        with self._lock, translated_errors(self._uri):
            if not self._is_newest():
                self._listed_at = time.monotonic()
                self._delta.update_incremental()
            if self._delta.version() >= self._opened_at + COMMITS_PER_OPENING:
                self._delta = DeltaTable(self._uri)
                self._opened_at = self._delta.version()
            yield self._delta

    def _is_newest(self) -> bool:
        """Nobody has committed since: two looks at files, where listing the log takes 1 ms for each thousand
        commits in it. Not relied on for long, so that nobody can have cleared the log meanwhile.
        """
        if self._log is None or time.monotonic() >= self._listed_at + _LISTED_S:
            return False
        newest, following = (f"{self._log}/{self._delta.version() + more:020}.json" for more in (0, 1))
        # Each query looks eight times and more; to make a Path takes longer than the look.
        return os.path.exists(newest) and not os.path.exists(following)  # noqa: PTH110


def only(application_id: str, key: str = _APPLICATION) -> str:
    """An application's rows, as a predicate."""
    return f"{key} = '" + application_id.replace("'", "''") + "'"


class _Count:
    """Counts the rows of record batches that pass."""

    def __init__(self) -> None:
        self.rows = 0

    def through(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.rows += batch.num_rows
            yield batch


def _lacking(schema: pa.Schema, delta: DeltaTable) -> set[str]:
    return set(schema.names) - {field.name for field in delta.schema().fields}


def _check_columns(uri: str, schema: pa.Schema, delta: DeltaTable, later: Collection[str]) -> None:
    """Another version's rows are not taken for this one's. Raises StoreUnavailableError."""
    stored = {field.name: str(field.type) for field in delta.schema().fields}
    lacking = _lacking(schema, delta) & set(later)
    expected = {
        field.name: str(field.type) for field in Schema.from_arrow(schema).fields if field.name not in lacking
    }
    if stored != expected:
        columns = {*stored, *expected}
        differ = sorted(column for column in columns if stored.get(column) != expected.get(column))
        raise StoreUnavailableError(
            f"the flow store's table in {uri} was made by another version of Lineage Master: it differs in "
            f"{', '.join(differ)}. Use that version, or consume the topics into a new --store, as "
            "another --consumer-group"
        )


def _opened(location: StoreLocation, name: str, schema: pa.Schema, key: str) -> DeltaTable:
    uri = location.table(name)
    if location.is_local:
        if (lost := lost_log(uri)) is not None:
            raise StoreUnavailableError(lost)
        for warning in empty_entries(uri):
            logger.warning("%s", warning)
    try:
        delta = _existing_or_new(location, name, schema, key)
        if delta.version() == 0:
            location.sync(name, [0])
        return delta
    except DeltaError:
        return DeltaTable(uri)  # another process made it between the look and the commit


def _existing_or_new(location: StoreLocation, name: str, schema: pa.Schema, key: str) -> DeltaTable:
    """To create one that is there reads its log twice."""
    uri = location.table(name)
    with suppress(TableNotFoundError):
        return DeltaTable(uri)
    return DeltaTable.create(
        uri,
        schema,
        mode="ignore",
        partition_by=[key],
        name=name,
        configuration=_CONFIGURATION,
    )

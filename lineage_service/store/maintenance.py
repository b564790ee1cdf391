"""Keeps a flow store fast and small while others write to it: compaction, retention, deletion, old files.

Promises that no row is lost or doubled, whenever this process dies and whoever writes beside it, and that
memory stays bounded; of an application's signs of life it leaves the newest. Each table of an application is
rewritten, sorted, in one commit that replaces exactly the files that were read; rows that came meanwhile make
Delta refuse the commit, and it is left for the next pass. Readers of an older snapshot keep their files until
`remove_old_files`. Knows nothing of Neo4j but that it can forget an application.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake
from pyarrow.fs import FileType

from lineage_service.completeness import completeness_of
from lineage_service.store.delta_table import WRITER, only
from lineage_service.store.errors import StoreConflictError, StoreUnavailableError, translated_errors
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.store.tables import BATCH_ROWS, TABLES
from spark_agent import contract

__all__ = ["Compacted", "Maintenance", "Stored", "expired"]

#: Files are written up to this size, and those of half of it are left as they are.
TARGET_BYTES = 256 << 20
#: DuckDB sorts within so much memory, the rest goes to disk: 60 million flows and the writer in 1 GiB.
SORT_MEMORY = "400MB"
SORT_THREADS = 1
#: Tables whose order begins with the node are sorted so many rows at a time, or one node. A sort of hundreds
#: of millions of rows in one piece does not fit into that memory, whatever goes to disk.
SORTED_ROWS = 50_000_000
#: Rows that are in memory at once on the way from the sort to the file. Texts have up to 64 KiB each.
_BATCH_ROWS = {
    "flows": BATCH_ROWS,
    "records": 4096,
    "annotations": BATCH_ROWS,
    "events": 4096,
    "blocks": BATCH_ROWS,
}
#: The order of rows within a table of an application; `tables` gives a batch the same one.
_ORDER = {
    "flows": "node, run, out_pos, in_pos, in_run",
    "records": "node, run, kind, pos",
    "annotations": "node, run, relation, pos",
    "blocks": "node, run, seq",
    "events": "time, type, node, run, body",
}
#: Rows that compaction leaves out. Of the signs of life of an application only the newest says anything:
#: a session of a week sends 10,000.
_WORN = {
    "events": f"type = '{contract.ALIVE}' "
    f"AND time < (SELECT max(time) FROM {{source}} WHERE type = '{contract.ALIVE}')"
}
#: A table that takes longer is not compacted: files that wait for their commit must be younger than those
#: which `remove_old_files` takes, and that is an hour.
COMPACTION_S = 1_800.0
_DELETE_TRIES = 20
_DELETE_PAUSE_S = 0.25


class _Graph(Protocol):
    def delete_application(self, application_id: str) -> None: ...


@dataclass(slots=True)
class Stored:
    """What the newest snapshots hold of one application."""

    application_id: str
    files: dict[str, int] = field(default_factory=dict)  # table -> number of files
    small: dict[str, int] = field(default_factory=dict)  # table -> number of files to join
    bytes: int = 0
    changed: float = 0.0  # Unix time, s, of the newest file

    @property
    def unsorted(self) -> tuple[str, ...]:
        """The tables that compaction would change."""
        return tuple(name for name in TABLES if self.small.get(name, 0) > 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """One table of an application before and after."""

    table: str
    files: tuple[int, int]
    bytes: tuple[int, int]


class Maintenance:
    """The work, application by application. For one thread; processes may work beside each other."""

    def __init__(self, store: DeltaFlowStore, graph: _Graph | None = None) -> None:
        self._store = store
        self._graph = graph

    # -- what there is -------------------------------------------------------------------------------

    def stored(self) -> dict[str, Stored]:
        """What is stored of each application. Raises StoreUnavailableError."""
        applications: dict[str, Stored] = {}
        for name in self._store.table_names():
            with self._opened(name) as delta:
                files = pa.table(delta.get_add_actions(flatten=True)).select(
                    ["partition.application_id", "size_bytes", "modification_time"]
                )
            columns = (column.to_pylist() for column in files)
            for application_id, size, modified in zip(*columns, strict=True):
                entry = applications.setdefault(application_id, Stored(application_id))
                entry.files[name] = entry.files.get(name, 0) + 1
                entry.small[name] = entry.small.get(name, 0) + (size < TARGET_BYTES // 2)
                entry.bytes += size
                entry.changed = max(entry.changed, modified / 1000)
        return applications

    def ended(self, application_id: str) -> float | None:
        """When the application ended, in Unix time, s; None if that has not arrived."""
        events = self._store.table("events", application_id).select(["type", "time"])
        times = events.filter(pc.equal(events["type"], contract.APPLICATION_ENDED))["time"].to_pylist()
        return max(times) / 1000 if times else None

    def replays(self, application_ids: Sequence[str]) -> dict[str, str]:
        """Those of them that are replays, with the applications that they ran again."""
        events = self._store.events_of(application_ids, (contract.APPLICATION_STARTED,))
        return {
            name: str(started["replay"]["of"])
            for name, of_application in events.items()
            for started in of_application
            if started.get("replay")
        }

    def is_complete(self, application_id: str) -> bool:
        return completeness_of(self._store, application_id, self._store.events(application_id)).is_complete

    # -- compaction ----------------------------------------------------------------------------------

    def compact(self, application_id: str, tables: Sequence[str] | None = None) -> list[Compacted]:
        """Rewrite the tables' parts of an application that are in many files; None: of all tables.

        1. Read the snapshot. 2. Sort its rows into new files, which nobody sees yet. 3. Commit them in the
        place of the files of 1; Delta refuses if another one added or removed files of the application since.
        A crash before 3 leaves files that no snapshot names. Raises StoreConflictError,
        StoreUnavailableError.
        """
        names = self._store.table_names() if tables is None else tables
        return [done for name in names for done in self._compact(name, application_id)]

    def _compact(self, name: str, application_id: str) -> Iterator[Compacted]:
        with self._opened(name) as delta:
            before, version = _sizes(delta, application_id), delta.version()
            if len(before) < 2:
                return
            uris = delta.file_uris(file_pruning_predicate=[("application_id", "=", application_id)])
            files = self._store.location.files(name, uris)
            with _sorted(name, application_id, files) as rows:
                write_deltalake(
                    delta,
                    rows,
                    mode="overwrite",
                    predicate=only(application_id),
                    target_file_size=TARGET_BYTES,
                    writer_properties=WRITER,
                )
            # What was read may go soon: not before what it became is on the disk.
            self._store.location.sync(name, range(version + 1, delta.version() + 1))
            after = _sizes(delta, application_id)
        yield Compacted(table=name, files=(len(before), len(after)), bytes=(sum(before), sum(after)))

    # -- deletion ------------------------------------------------------------------------------------

    def delete(self, application_id: str) -> None:
        """Remove an application, for good. After a crash the next pass, or the same call, goes on.

        1. The mark: writers leave out what still comes. 2. The graph, while rows still say that there is
        something to do. 3. The rows (`DeltaFlowStore.delete`). Files stay until `remove_old_files`. Raises
        UnavailableError.
        """
        self._store.mark_deleted(application_id)
        if self._graph is not None:
            self._graph.delete_application(application_id)
        for tries_left in reversed(range(_DELETE_TRIES)):
            try:
                self._store.delete(application_id)
            except StoreConflictError:  # a writer that had not seen the mark; the next one will
                if not tries_left:
                    raise
                time.sleep(_DELETE_PAUSE_S)
            else:
                return

    def deleted(self, application_ids: Sequence[str]) -> set[str]:
        """Those whose deletion did not come to its end."""
        return self._store.deleted(application_ids)

    def remove_old_files(self, hours: int) -> int:
        """Delete the files that no snapshot of the last hours names; how many. Raises StoreUnavailableError.

        With 0 it takes them away from under queries that are under way, and from writers before they commit.
        """
        count = 0
        for name in self._store.table_names():
            try:
                with self._opened(name) as delta:
                    count += self._removed(delta, name, hours)
            except StoreConflictError:
                continue  # another one removes them at this moment; what it leaves is for the next pass
        return count

    def _removed(self, delta: DeltaTable, name: str, hours: int) -> int:
        # The log names removed files for a week, also those that are gone.
        named = delta.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=True)
        files = self._store.location.filesystem(name)
        existing = [info for info in files.get_file_info(named) if info.type is FileType.File]
        if existing:  # each vacuum is two commits
            delta.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True)
        return len(existing)

    @contextmanager
    def _opened(self, name: str) -> Iterator[DeltaTable]:
        uri = self._store.location.table(name)
        with translated_errors(uri):
            yield DeltaTable(uri)


def expired(
    stored: Mapping[str, Stored],
    ended: Mapping[str, float],
    *,
    keep_s: float | None = None,
    keep_bytes: int | None = None,
    now: float,
) -> list[str]:
    """The applications that are to go, the oldest first. Only those in `ended`: when each one did."""
    oldest = sorted((when, name) for name, when in ended.items() if name in stored)
    total = sum(application.bytes for application in stored.values())
    gone: list[str] = []
    for when, name in oldest:
        is_old = keep_s is not None and now - when > keep_s
        if is_old or (keep_bytes is not None and total > keep_bytes):
            gone.append(name)
            total -= stored[name].bytes
    return gone


def _sizes(delta: DeltaTable, application_id: str) -> list[int]:
    files = pa.table(delta.get_add_actions(flatten=True))
    mine = files.filter(pc.equal(files["partition.application_id"], application_id))
    sizes: list[int] = mine["size_bytes"].to_pylist()
    return sizes


@contextmanager
def _sorted(name: str, application_id: str, files: Sequence[str]) -> Iterator[pa.RecordBatchReader]:
    """All rows of the files in the order of the table. What does not fit into memory waits on disk."""
    schema = TABLES[name]
    columns = ", ".join(schema.names[1:])  # the files do not hold the column that tables are partitioned by
    with tempfile.TemporaryDirectory(prefix="lineage-maintain-") as spill:
        database = duckdb.connect(
            config={"memory_limit": SORT_MEMORY, "threads": SORT_THREADS, "temp_directory": spill}
        )
        try:
            source = "read_parquet($files, hive_partitioning = false)"
            worn = _WORN.get(name, "false").format(source=source)
            from_source = f"FROM {source} WHERE NOT ({worn})"
            by_node = _ORDER[name].startswith("node,")
            counts = database.execute(
                f"SELECT {'node' if by_node else '0'} AS node, count(*) {from_source} GROUP BY 1 ORDER BY 1",
                {"files": files},
            ).fetchall()
            select = f"SELECT $application AS application_id, {columns} {from_source}"
            rows = (
                batch
                for first, last in _pieces(counts)
                for batch in database.execute(
                    select
                    + (f" AND node BETWEEN {first} AND {last}" if by_node else "")
                    + f" ORDER BY {_ORDER[name]}",
                    {"application": application_id, "files": files},
                ).to_arrow_reader(_BATCH_ROWS[name])
            )
            count = sum(of_node for _, of_node in counts)
            yield pa.RecordBatchReader.from_batches(schema, _all_of(rows, schema, count))
        except duckdb.Error as error:
            reason = str(error).partition("\n")[0]
            raise StoreUnavailableError(
                f"table {name} of {application_id} cannot be sorted: {reason}; is there space in "
                f"{tempfile.gettempdir()}?"
            ) from error
        finally:
            database.close()


def _pieces(counts: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """(first, last) node of pieces of at most SORTED_ROWS, or of one node. `counts`: (node, rows)."""
    piece: list[int] = []
    rows = 0
    for node, of_node in counts:
        if piece and rows + of_node > SORTED_ROWS:
            yield piece[0], piece[-1]
            piece, rows = [], 0
        piece.append(node)
        rows += of_node
    if piece:
        yield piece[0], piece[-1]


def _all_of(rows: Iterable[pa.RecordBatch], schema: pa.Schema, count: int) -> Iterator[pa.RecordBatch]:
    """The batches in the table's schema. An error keeps what was written from being committed."""
    seen, until = 0, time.time() + COMPACTION_S
    for batch in rows:
        if time.time() > until:
            raise StoreUnavailableError(
                f"{seen} of {count} rows were sorted and written in {COMPACTION_S:g} s"
            )
        seen += batch.num_rows
        yield batch.cast(schema)
    if seen != count:
        raise StoreUnavailableError(f"{seen} of {count} rows came out of the sort")

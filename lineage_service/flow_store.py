"""The flow store: four Delta tables of what came off the topics, exactly once.

Promises that a batch given twice, by whomever, changes nothing, that any number of processes may write at
the same time, and that what a reader sees is whole commits. Errors say whether trying again helps. Knows
nothing of Kafka: a source is a name, an offset is a number that grows.

How exactly once comes about:
 1. Each commit carries an application transaction: the source's name and the offset after the batch.
 2. Before writing, the newest snapshot is read: rows of messages below its offset for the source are left
    out, because they are there. Batches may so be cut differently when they come again.
 3. `blocks` (or `events`) is written last, so its offset is what the whole store has: `offset`.
 4. Each commit is on the disk before the next table's begins (`store_sync`), so of a machine that loses its
    power the receipts never tell of rows that are lost: what was under way comes again from its source.
 5. A writer whose source moved on between 2 and the commit is refused by Delta's conflict check.
 6. A block that a producer sent twice has two offsets; it is known by its receipt, (run, seq), and left out.
    Both copies are in one topic partition, so in one source; all who read it, of whichever group, write in
    its order or are refused by 5. Only copies in two topics at a time could both be stored.

How an application is deleted, for good:
 1. `events` gets a mark, an application transaction too, which outlives the rows: from now on every writer
    leaves out what comes of it, late or read once more.
 2. Its rows go: `events` first, so that nobody asks about a part of it, then `flows`, `records`, `blocks`.
 3. A writer looks for marks before and after it writes, and takes back what it wrote beside the mark. If it
    dies between, the rows stand until `delete` is called again; `maintenance` does so for all with a mark.
"""

from __future__ import annotations

import json
import logging
import math
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.dataset
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
from deltalake.exceptions import CommitFailedError, DeltaError

from lineage_service.batches import EventBatch, FlowBatch
from lineage_service.completeness import Receipt
from lineage_service.known_blocks import KnownBlocks
from lineage_service.store_errors import (
    StoreConflictError,
    StoreUnavailableError,
    errors_told,
    reading_told,
)
from lineage_service.store_log import empty_entries, has_lost_its_log
from lineage_service.store_place import StorePlace
from lineage_service.stored_blocks import read_receipts
from lineage_service.tables import (
    ROW_GROUP,
    TABLES,
    events_batch,
    flow_batches,
    receipts_batch,
    record_batches,
)

if TYPE_CHECKING:
    from lineage_service.settings import Settings

__all__ = [
    "DeltaFlowStore",
    "FlowStore",
    "Written",
    "open_store",
]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a batch added. `repeated` counts blocks or events that were left out: they are stored already, or
    their application was deleted.
    """

    rows: int = 0
    repeated: int = 0


class FlowStore(Protocol):
    """Where flows are kept. `flow_memory.MemoryFlowStore` is the in-memory twin.

    Every method raises StoreUnavailableError.
    """

    def offset(self, source: str) -> int | None:
        """The offset from which on the store lacks messages of `source`; None if it never had any."""

    def write_flows(self, batch: FlowBatch) -> Written:
        """Store the blocks that are not stored yet. May raise StoreConflictError."""

    def write_events(self, batch: EventBatch) -> Written:
        """Store the events that are not stored yet. May raise StoreConflictError."""

    def applications(self) -> list[str]:
        """Ids of the applications of which anything is stored, sorted."""

    def events(self, application_id: str) -> list[dict[str, Any]]:
        """The application's events, decoded, by time; an event that was sent twice comes once."""

    def receipts(self, application_id: str) -> list[tuple[int, int]]:
        """(run, seq) of the application's stored blocks, in no order."""

    def blocks(self, application_id: str) -> Collection[Receipt]:
        """The same with what is said of each block; one that was stored twice is there once."""

    def rows(self, application_id: str) -> Mapping[str, int]:
        """How many rows `flows` and `records` have of the application. They are not read."""

    def table(self, table: str, application_id: str) -> pa.Table:
        """One application's part of a table, in no order. All of it is held in memory."""

    def version(self) -> tuple[int, ...]:
        """Differs from an earlier answer if anything was written since."""

    def version_of(self, application_id: str) -> object:
        """Differs from an earlier answer if an event or a receipt of this application was written since."""

    def versions(self, table: str) -> Mapping[str, object]:
        """Of each application in a table: differs from an earlier answer if rows of it came since."""

    def mark_deleted(self, application_id: str) -> None:
        """From now on nothing more of the application is stored, whoever writes. What is stored stays."""

    def delete(self, application_id: str) -> None:
        """Mark it, and remove its rows. Deleting twice is no error. May raise StoreConflictError."""

    def deleted(self, application_ids: Iterable[str]) -> set[str]:
        """Which of the applications are marked as deleted."""


def open_store(settings: Settings) -> DeltaFlowStore:
    """The flow store that the settings name, its tables made if they are missing."""
    home = settings.home.absolute()
    return DeltaFlowStore(StorePlace(settings.store or home / "flows", copies=home / "copies"))


class DeltaFlowStore:
    """The FlowStore in Delta tables. Threads may share it, and processes the place."""

    def __init__(self, place: str | Path | StorePlace) -> None:
        """Makes the tables that are missing. Raises StoreUnavailableError."""
        self.place = place if isinstance(place, StorePlace) else StorePlace(place)
        self._tables = {name: _Table(self.place, name) for name in TABLES}
        self._known = KnownBlocks(partial(self.files, "blocks"))
        self._told: set[str] = set()  # deleted applications that the log told of
        self._writing = Lock()  # what is known and what is stored move together

    # -- writing -------------------------------------------------------------------------------------

    def offset(self, source: str) -> int | None:
        found = [self._tables[name].offset(source) for name in ("blocks", "events")]
        return max((offset for offset in found if offset is not None), default=None)

    def write_flows(self, batch: FlowBatch) -> Written:
        """1. Leave out what is stored. 2. `flows`, 3. `records`, 4. the receipts; see the module."""
        applications = {block.application_id for _, block in batch.rows}
        with self._writing:
            deleted = self._told_deleted(applications)
            written = self._write_flows(batch, deleted)
        self._take_back(applications - deleted)
        return written

    def _write_flows(self, batch: FlowBatch, deleted: set[str]) -> Written:
        held = self._tables["blocks"].offset(batch.source)
        if held is not None and held >= batch.next_offset:
            return Written(repeated=len(batch.rows))
        wanted = (block for block in batch.since(held or 0) if block.application_id not in deleted)
        new = self._known.new_among(batch.source, held, wanted)
        is_new = set(map(id, new))
        rows = 0
        for name, batches_of in _CONTENTS.items():
            rows += self._tables[name].append(
                batch.source,
                batch.next_offset,
                lambda since, make=batches_of: make(  # type: ignore[misc] # mypy has no types for defaults
                    block for block in batch.since(since) if id(block) in is_new
                ),
            )
        self._tables["blocks"].append(
            batch.source, batch.next_offset, lambda _since: iter([receipts_batch(new)]), at=held
        )
        self._known.add(batch.source, batch.next_offset, new)
        return Written(rows=rows, repeated=len(batch.rows) - len(new))

    def write_events(self, batch: EventBatch) -> Written:
        applications = {event.application_id for _, event in batch.rows}
        deleted = self._told_deleted(applications)
        rows = self._tables["events"].append(
            batch.source,
            batch.next_offset,
            lambda since: iter(
                [events_batch(event for event in batch.since(since) if event.application_id not in deleted)]
            ),
        )
        self._take_back(applications - deleted)
        return Written(rows=rows, repeated=len(batch.rows) - rows)

    # -- deleting ------------------------------------------------------------------------------------

    def mark_deleted(self, application_id: str) -> None:
        self._tables["events"].append(_mark(application_id), 1, lambda _since: iter([events_batch([])]))

    def delete(self, application_id: str) -> None:
        """1. The mark. 2. The rows, the receipts last; see the module."""
        self.mark_deleted(application_id)
        for name in _DELETING:
            self._tables[name].delete(application_id)

    def deleted(self, application_ids: Iterable[str]) -> set[str]:
        marks = {_mark(each): each for each in application_ids}
        return {marks[found] for found in self._tables["events"].offsets(marks)}

    def _told_deleted(self, application_ids: Iterable[str]) -> set[str]:
        deleted = self.deleted(application_ids)
        for each in sorted(deleted - self._told):
            logger.warning("%s was deleted: what still comes of it is left out", each)
        self._told |= deleted
        return deleted

    def _take_back(self, application_ids: Iterable[str]) -> None:
        """Applications that were marked while they were written."""
        for each in self.deleted(application_ids):
            self.delete(each)

    # -- reading -------------------------------------------------------------------------------------

    def files(self, table: str, application_id: str, node: int | None = None) -> list[str]:
        """Parquet files of the newest snapshot that hold one application's part of a table, on this machine.

        With `node`, without those whose statistics say that they hold nothing of that node.
        """
        uris = self._tables[table].files(application_id, node)
        with errors_told(self.place.table(table)):
            return self.place.files(table, uris)

    def uris(self, table: str, application_id: str) -> list[str]:
        """The same files where they are: paths, or URLs in an object store."""
        return self.place.uris(table, self._tables[table].files(application_id, None))

    def applications(self) -> list[str]:
        return sorted({name for table in ("events", "blocks") for name in self.versions(table)})

    def events(self, application_id: str) -> list[dict[str, Any]]:
        stored = self._read("events", application_id, ["time", "body"]).sort_by("time")
        return [json.loads(body) for body in dict.fromkeys(stored["body"].to_pylist())]

    def receipts(self, application_id: str) -> list[tuple[int, int]]:
        stored = self._read("blocks", application_id, ["run", "seq"])
        return list(zip(stored["run"].to_pylist(), stored["seq"].to_pylist(), strict=True))

    def rows(self, application_id: str) -> dict[str, int]:
        return {name: self._tables[name].contents().get(application_id, _NOTHING).rows for name in _CONTENTS}

    def blocks(self, application_id: str) -> Sequence[Receipt]:
        return read_receipts(self.files("blocks", application_id))

    def table(self, table: str, application_id: str) -> pa.Table:
        return self._read(table, application_id, TABLES[table].names)

    def version(self) -> tuple[int, ...]:
        return tuple(table.version() for table in self._tables.values())

    def versions(self, table: str) -> dict[str, int]:
        return {name: each.version for name, each in self._tables[table].contents().items()}

    def version_of(self, application_id: str) -> int:
        return hash(tuple(frozenset(self.files(table, application_id)) for table in ("events", "blocks")))

    def _read(self, table: str, application_id: str, columns: list[str]) -> pa.Table:
        files = self.files(table, application_id)
        with reading_told():
            # The files do not hold the column that the table is partitioned by.
            stored = pyarrow.dataset.dataset(files, schema=TABLES[table], format="parquet")
            found = stored.to_table(columns=columns)
        if columns[0] != "application_id":
            return found
        return found.set_column(0, TABLES[table].field(0), [pa.repeat(application_id, found.num_rows)])


#: The tables that blocks become rows of, in the order of writing.
_CONTENTS = {"flows": flow_batches, "records": record_batches}

#: The tables in the order in which a deletion goes through them.
_DELETING = ("events", "flows", "records", "blocks")

#: Readers choose row groups, and no pages within them: so a column of one is a page, unless it is large, and
#: nothing is kept of pages. Both together are 5 % of a file of flows.
_WHOLE: dict[str, Any] = {"statistics_enabled": "CHUNK"}
_POSITIONS = ColumnProperties(dictionary_enabled=False, encoding="DELTA_BINARY_PACKED", **_WHOLE)
#: How every Parquet file of the store is written.
WRITER = WriterProperties(
    compression="ZSTD",
    compression_level=1,
    max_row_group_size=ROW_GROUP,
    data_page_row_count_limit=ROW_GROUP,
    default_column_properties=ColumnProperties(**_WHOLE),
    column_properties={"out_pos": _POSITIONS, "in_pos": _POSITIONS, "pos": _POSITIONS},
)


_CHECKPOINT_COMMITS = 100
#: Nobody asks for old versions; log files that a checkpoint covers are kept for readers and compactions that
#: are under way. Each commit lists what is kept: 3 ms of CPU more for each thousand files (measured).
_CONFIGURATION = {
    "delta.checkpointInterval": str(_CHECKPOINT_COMMITS),
    "delta.logRetentionDuration": "interval 2 hours",
}
_EMPTY = "what it held is read from Kafka again if nothing came after it; `lineage apps` says who lacks rows"
#: An open table keeps a piece of its snapshot for each commit that it saw and never joins them, so a commit
#: takes 0.1 ms more with each (delta-io/kafka-delta-ingest, issue 227). Opening it anew costs one commit.
COMMITS_PER_OPENING = 50

#: The log is listed at least so often: far more often than logRetentionDuration.
_LISTED_S = 60.0

#: Writing the same rows again after a commit of `maintenance` came between.
_APPEND_TRIES = 5

_Rows = Callable[[int], Iterator[pa.RecordBatch]]
_ANY = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contents:
    """What a table has of one application. `version` differs from an earlier one if files came or went."""

    version: int
    rows: int


_NOTHING = _Contents(version=0, rows=0)


class _Table:
    """One Delta table at its newest snapshot. Checkpoints are the library's business."""

    def __init__(self, place: StorePlace, name: str) -> None:
        self._place, self._name = place, name
        self._uri = place.table(name)
        self._log = str(Path(self._uri) / "_delta_log") if place.is_local else None
        self._listed_at = -math.inf
        self._schema = TABLES[name]
        self._lock = Lock()
        with errors_told(self._uri):
            place.make(name)
            self._delta = _opened(place, name)
            _check_columns(self._uri, name, self._delta)
            self._opened_at = self._delta.version()
        self._synced = -1  # it and all commits before it are known to be on the disk
        self._found: dict[str, int | None] = {}  # offsets of sources that were asked for, at a version
        self._found_at = -1
        self._contents: Mapping[str, _Contents] = {}  # at a version
        self._contents_at = -1

    def offset(self, source: str) -> int | None:
        return self.offsets([source]).get(source)

    def offsets(self, sources: Collection[str]) -> dict[str, int]:
        """The offsets of those sources that have one."""
        with self._refreshed() as delta:
            found = {source: self._offset(delta, source) for source in sources}
        return {source: offset for source, offset in found.items() if offset is not None}

    def _offset(self, delta: DeltaTable, source: str) -> int | None:
        """The log is not searched again while nothing, or only what this object wrote, was added."""
        if self._found_at != delta.version():
            self._found, self._found_at = {}, delta.version()
        if source not in self._found:
            self._found[source] = delta.transaction_version(source)
        return self._found[source]

    def append(self, source: str, next_offset: int, rows: _Rows, at: object = _ANY) -> int:
        """Commit `rows(since)` and the source's new offset; the number of rows.

        `since` is the offset from which on the table lacks messages. Record batches may be empty: then only
        the offset moves. None at all: nothing is committed. The lock keeps the snapshot still between the
        comparison of offsets and the commit; else Delta could not see a conflict.

        Delta also refuses an append after anything was removed from the table meanwhile, of whichever
        application. That is `maintenance` at work, and no reason to give way while the source did not move.
        """
        started_at: object = _ANY
        for tries_left in reversed(range(_APPEND_TRIES)):
            with self._refreshed() as delta:
                held = self._offset(delta, source)
                if (at is not _ANY and held != at) or (started_at is not _ANY and held != started_at):
                    raise StoreConflictError(f"{self._uri}: {source} moved to {held} meanwhile")
                started_at = held
                if held is not None and held >= next_offset:
                    # It is there: by another writer, who may have died of it, or by a try before this one.
                    self._place.sync_recent(self._name, delta.version(), self._synced)
                    self._synced = delta.version()
                    return 0
                try:
                    return self._commit(delta, source, next_offset, rows(held or 0))
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
            self._place.sync(self._name, [version])
        write_deltalake(
            delta,
            pa.RecordBatchReader.from_batches(self._schema, count.through(chain([first], batches))),
            mode="append",
            writer_properties=WRITER,
            commit_properties=CommitProperties(app_transactions=[Transaction(source, next_offset)]),
            # Looking for expired log files means listing them all: not after each commit.
            post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=is_cleaning),
        )
        self._place.sync(self._name, range(version + 1, delta.version() + 1))
        if self._synced == version:
            self._synced = delta.version()
        if delta.version() == version + 1 and self._found_at == version:
            self._found[source], self._found_at = next_offset, version + 1
        return count.rows

    def delete(self, application_id: str) -> None:
        """Commit that the application's files are no part of the table. The files themselves stay."""
        with self._refreshed() as delta:
            if delta.file_uris(file_pruning_predicate=[("application_id", "=", application_id)]):
                version = delta.version()
                delta.delete(only(application_id))
                self._place.sync(self._name, range(version + 1, delta.version() + 1))

    def files(self, application_id: str, node: int | None) -> list[str]:
        wanted: list[tuple[str, str, Any]] = [("application_id", "=", application_id)]
        if node is not None:
            wanted.append(("node", "=", node))
        with self._refreshed() as delta:
            return delta.file_uris(file_pruning_predicate=wanted)

    def contents(self) -> Mapping[str, _Contents]:
        """What there is of each application. Of all it costs what looking for the files of one does."""
        with self._refreshed() as delta:
            if self._contents_at != delta.version():
                added = pa.table(delta.get_add_actions(flatten=True))
                each_application = added.group_by("partition.application_id")
                found = each_application.aggregate([("path", "list"), ("num_records", "sum")]).to_pylist()
                self._contents = {
                    each["partition.application_id"]: _Contents(
                        version=hash(frozenset(each["path_list"])), rows=each["num_records_sum"] or 0
                    )
                    for each in found
                }
                self._contents_at = delta.version()
            return self._contents

    def version(self) -> int:
        with self._refreshed() as delta:
            return delta.version()

    @contextmanager
    def _refreshed(self) -> Iterator[DeltaTable]:
        with self._lock, errors_told(self._uri):
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
        here, following = (f"{self._log}/{self._delta.version() + more:020}.json" for more in (0, 1))
        # Each question looks eight times and more; to make a Path takes longer than the look.
        return os.path.exists(here) and not os.path.exists(following)  # noqa: PTH110


def only(application_id: str) -> str:
    """An application's rows, as a predicate."""
    return "application_id = '" + application_id.replace("'", "''") + "'"


def _mark(application_id: str) -> str:
    """The application transaction that says that it was deleted. No source's name is without a slash."""
    return f"deleted:{application_id}"


class _Count:
    """Counts the rows of record batches that pass."""

    def __init__(self) -> None:
        self.rows = 0

    def through(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.rows += batch.num_rows
            yield batch


def _check_columns(uri: str, name: str, delta: DeltaTable) -> None:
    """Another version's rows are not taken for this one's. Raises StoreUnavailableError."""
    there = {field.name: str(field.type) for field in delta.schema().fields}
    here = {field.name: str(field.type) for field in Schema.from_arrow(TABLES[name]).fields}
    if there != here:
        differ = sorted(each for each in {*there, *here} if there.get(each) != here.get(each))
        raise StoreUnavailableError(
            f"the flow store's table in {uri} was made by another version of Lineage Master: it differs in "
            f"{', '.join(differ)}. Use that version, or consume the topics into a new --store"
        )


def _opened(place: StorePlace, name: str) -> DeltaTable:
    uri = place.table(name)
    if place.is_local:
        if has_lost_its_log(uri):
            raise StoreUnavailableError(
                f"the log of the flow store's table in {uri} is gone, so nobody knows which of its files "
                "count: "
                "restore a copy, or consume the topics into a new --store "
                "(operations.md#a-damaged-flow-store)"
            )
        for entry in empty_entries(uri):
            logger.warning("%s is empty, as a machine that lost its power leaves it: %s", entry, _EMPTY)
    try:
        made = DeltaTable.create(
            uri,
            TABLES[name],
            mode="ignore",
            partition_by=["application_id"],
            name=name,
            configuration=_CONFIGURATION,
        )
        if made.version() == 0:
            place.sync(name, [0])
        return made
    except DeltaError:
        return DeltaTable(uri)  # another process made it between the look and the commit

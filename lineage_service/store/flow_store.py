"""The flow store: five Delta tables of what came off the topics, exactly once.

Promises that a batch given twice, by whomever, changes nothing, that any number of processes may write at
the same time, and that what a reader sees is whole commits. Errors say whether trying again helps. Knows
nothing of Kafka: a source is a name, an offset is a number that grows.

How exactly once comes about:
 1. Each commit carries an application transaction: the source's name and the offset after the batch.
 2. Before writing, the newest snapshot is read: rows of messages below its offset for the source are left
    out, because they are there. Batches may so be cut differently when they come again.
 3. `blocks` (or `events`) is written last, so its offset is what the whole store has: `offset`.
 4. Each commit is on the disk before the next table's begins (`fsync`), so of a machine that loses its
    power the receipts never name rows that are lost: what was under way comes again from its source.
 5. A writer whose source moved on between 2 and the commit is refused by Delta's conflict check.
 6. A block that a producer sent twice has two offsets; it is known by its receipt, (run, seq), and left out.
    Both copies are in one topic partition, so in one source; all who read it, of whichever group, write in
    its order or are refused by 5. Only copies in two topics at a time could both be stored.

How an application is deleted, for good:
 1. `events` gets a mark, an application transaction too, which outlives the rows: from now on every writer
    leaves out what comes of it, late or read once more.
 2. Its rows go: `events` first, so that nobody queries a part of it, then `flows`, `records`,
    `annotations`, `blocks`.
 3. A writer looks for marks before and after it writes, and takes back what it wrote beside the mark. If it
    dies between, the rows stand until `delete` is called again; `maintenance` does so for all with a mark.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.dataset

from lineage_service.completeness import Receipt
from lineage_service.decode.batches import EventBatch, FlowBatch
from lineage_service.errors import NotFoundError
from lineage_service.store.delta_table import NOTHING, Table
from lineage_service.store.errors import translated_errors, translated_read_errors
from lineage_service.store.late_table import LateTable
from lineage_service.store.location import StoreLocation
from lineage_service.store.receipts import read_receipts, read_receipts_of
from lineage_service.store.stored_blocks import StoredBlocks
from lineage_service.store.tables import (
    TABLES,
    Bounds,
    annotation_batches,
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
    "NoStoreError",
    "Written",
    "existing_store",
    "location_text",
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
    """Where flows are stored. `testing.flow_store.MemoryFlowStore` is the in-memory twin.

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

    def events_of(
        self, application_ids: Sequence[str], types: Collection[str] | None = None
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """The same of several applications, read together; of `types` alone, if these are named.

        Applications without such events are left out.
        """

    def receipts(self, application_id: str) -> list[tuple[int, int]]:
        """(run, seq) of the application's stored blocks, in no order."""

    def blocks(self, application_id: str) -> Collection[Receipt]:
        """The same with what is said of each block; one that was stored twice is there once."""

    def blocks_of(self, application_ids: Sequence[str]) -> Mapping[str, Collection[Receipt]]:
        """The same of several applications, read together. Those without blocks are left out."""

    def rows(self, application_id: str) -> Mapping[str, int]:
        """How many rows the tables that blocks become have of the application. They are not read."""

    def table(self, table: str, application_id: str) -> pa.Table:
        """One application's part of a table, in no order. All of it is held in memory."""

    def version(self) -> tuple[int, ...]:
        """Differs from an earlier answer if anything was written since."""

    def version_of(self, application_id: str) -> object:
        """Differs from an earlier answer if an event or a receipt of this application was written since."""

    def versions(self, table: str) -> Mapping[str, object]:
        """Of each application in a table: differs from an earlier answer if rows of it came since."""

    def latest(self) -> Mapping[str, int | None]:
        """The time of the last event of each application (Unix ms), where it is known without reading."""

    def mark_deleted(self, application_id: str) -> None:
        """From now on nothing more of the application is stored, whoever writes. What is stored stays."""

    def delete(self, application_id: str) -> None:
        """Mark it, and remove its rows. Deleting twice is no error. May raise StoreConflictError."""

    def deleted(self, application_ids: Iterable[str]) -> set[str]:
        """Which of the applications are marked as deleted."""


class NoStoreError(NotFoundError):
    """There is no flow store where the settings say."""


def open_store(settings: Settings) -> DeltaFlowStore:
    """The flow store that the settings name, its tables made if they are missing."""
    return DeltaFlowStore(_location_of(settings))


def existing_store(settings: Settings) -> DeltaFlowStore:
    """The same for those who only read: nothing is created. Raises NoStoreError."""
    location = _location_of(settings)
    with translated_errors(location.uri):
        exists = location.has("events")
    if not exists:
        raise NoStoreError(
            f"there is no flow store in {location_text(settings)}: run a job with lineage, and "
            "`lineage consume`"
        )
    return DeltaFlowStore(location)


def location_text(settings: Settings) -> str:
    """Which store and which home, for a message about what is not there."""
    return f"{_location_of(settings).uri} (home {settings.home.absolute()})"


def _location_of(settings: Settings) -> StoreLocation:
    home = settings.home.absolute()
    return StoreLocation(settings.store or home / "flows", copies=home / "copies")


class DeltaFlowStore:
    """The FlowStore in Delta tables. Threads may share it, and processes the location."""

    def __init__(self, location: str | Path | StoreLocation) -> None:
        """Makes the tables that are missing, but `annotations`. Raises StoreUnavailableError."""
        self.location = location if isinstance(location, StoreLocation) else StoreLocation(location)
        self._events, self._blocks = (Table(self.location, name) for name in ("events", "blocks"))
        self._tables: dict[str, Table | LateTable] = {
            "events": self._events,
            "blocks": self._blocks,
            "flows": Table(self.location, "flows"),
            "records": Table(self.location, "records"),
            "annotations": LateTable(self.location, "annotations"),
        }
        self._stored_blocks = StoredBlocks(partial(self.files, "blocks"))
        self._logged: set[str] = set()  # deleted applications that were logged
        self._writing = Lock()  # what is cached and what is stored move together

    @property
    def store_id(self) -> str:
        """A UUID that the store has since it was made, wherever it is moved to."""
        return self._events.table_id

    # -- writing -------------------------------------------------------------------------------------

    def offset(self, source: str) -> int | None:
        offsets = [table.offset(source) for table in (self._blocks, self._events)]
        return max((offset for offset in offsets if offset is not None), default=None)

    def write_flows(self, batch: FlowBatch) -> Written:
        """1. Leave out what is stored. 2. The tables of `_CONTENTS`, 3. the receipts; see the module."""
        applications = {block.application_id for _, block in batch.rows}
        with self._writing:
            deleted = self._deleted(applications)
            written = self._write_flows(batch, deleted)
        self._take_back(applications - deleted)
        return written

    def _write_flows(self, batch: FlowBatch, deleted: set[str]) -> Written:
        offset = self._blocks.offset(batch.source)
        if offset is not None and offset >= batch.next_offset:
            return Written(repeated=len(batch.rows))
        blocks = (block for block in batch.since(offset or 0) if block.application_id not in deleted)
        new = self._stored_blocks.new_among(batch.source, offset, blocks)
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
        self._blocks.append(
            batch.source, batch.next_offset, lambda _since: iter([receipts_batch(new)]), at=offset
        )
        self._stored_blocks.add(batch.source, batch.next_offset, new)
        return Written(rows=rows, repeated=len(batch.rows) - len(new))

    def write_events(self, batch: EventBatch) -> Written:
        applications = {event.application_id for _, event in batch.rows}
        deleted = self._deleted(applications)
        rows = self._events.append(
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
        self._events.append(_mark(application_id), 1, lambda _since: iter([events_batch([])]))

    def delete(self, application_id: str) -> None:
        """1. The mark. 2. The rows, the receipts last; see the module."""
        self.mark_deleted(application_id)
        for name in _DELETING:
            self._tables[name].delete(application_id)

    def deleted(self, application_ids: Iterable[str]) -> set[str]:
        marks = {_mark(application_id): application_id for application_id in application_ids}
        return {marks[mark] for mark in self._events.offsets(marks)}

    def _deleted(self, application_ids: Iterable[str]) -> set[str]:
        deleted = self.deleted(application_ids)
        for application_id in sorted(deleted - self._logged):
            logger.warning("%s was deleted: what still comes of it is left out", application_id)
        self._logged |= deleted
        return deleted

    def _take_back(self, application_ids: Iterable[str]) -> None:
        """Applications that were marked while they were written."""
        for application_id in self.deleted(application_ids):
            self.delete(application_id)

    # -- reading -------------------------------------------------------------------------------------

    def files(self, table: str, application_id: str, node: int | None = None) -> list[str]:
        """Parquet files of the newest snapshot that hold one application's part of a table, on this machine.

        With `node`, without those whose statistics say that they hold nothing of that node.
        """
        uris = self._tables[table].files(application_id, node)
        with translated_errors(self.location.table(table)):
            return self.location.files(table, uris)

    def bounds(self, application_id: str) -> dict[str, Bounds]:
        """What the log says of files with texts and annotations of an application, by their paths here."""
        bounds: dict[str, Bounds] = {}
        for name in _BOUNDED:
            of_table = self._tables[name].bounds(application_id)
            with translated_errors(self.location.table(name)):
                paths = self.location.files(name, list(of_table))
            bounds |= zip(paths, of_table.values(), strict=True)
        return bounds

    def table_names(self) -> list[str]:
        """The tables that are there."""
        return [
            name for name, table in self._tables.items() if not isinstance(table, LateTable) or table.exists()
        ]

    def uris(self, table: str, application_id: str) -> list[str]:
        """The same files where they are: paths, or URLs in an object store."""
        return self.location.uris(table, self._tables[table].files(application_id, None))

    def applications(self) -> list[str]:
        return sorted({name for table in ("events", "blocks") for name in self.versions(table)})

    def events(self, application_id: str) -> list[dict[str, Any]]:
        return _decoded(self._read("events", self.files("events", application_id), ["time", "body"]))

    def events_of(
        self, application_ids: Sequence[str], types: Collection[str] | None = None
    ) -> dict[str, list[dict[str, Any]]]:
        contents = self._events.contents()
        uris = [uri for name in application_ids for uri in contents.get(name, NOTHING).uris]
        with translated_errors(self.location.table("events")):
            files = self.location.files("events", uris)
        events: dict[str, list[dict[str, Any]]] = {}
        chosen = None if types is None else pyarrow.dataset.field("type").isin(list(types))
        for event in _decoded(self._read("events", files, ["time", "body"], chosen)):
            events.setdefault(event["application_id"], []).append(event)
        return events

    def receipts(self, application_id: str) -> list[tuple[int, int]]:
        stored = self._read("blocks", self.files("blocks", application_id), ["run", "seq"])
        return list(zip(stored["run"].to_pylist(), stored["seq"].to_pylist(), strict=True))

    def rows(self, application_id: str) -> dict[str, int]:
        return {name: self._tables[name].contents().get(application_id, NOTHING).rows for name in _CONTENTS}

    def blocks(self, application_id: str) -> Sequence[Receipt]:
        return read_receipts(self.files("blocks", application_id))

    def blocks_of(self, application_ids: Sequence[str]) -> dict[str, Sequence[Receipt]]:
        application_of: dict[str, str] = {}
        for application_id in application_ids:
            application_of |= dict.fromkeys(self.files("blocks", application_id), application_id)
        return read_receipts_of(application_of)

    def table(self, table: str, application_id: str) -> pa.Table:
        names = TABLES[table].names
        rows = self._read(table, self.files(table, application_id), names)
        # The files do not hold the column that the table is partitioned by.
        return rows.set_column(0, TABLES[table].field(0), [pa.repeat(application_id, rows.num_rows)])

    def version(self) -> tuple[int, ...]:
        return tuple(table.version() for table in self._tables.values())

    def versions(self, table: str) -> dict[str, int]:
        return {name: contents.version for name, contents in self._tables[table].contents().items()}

    def latest(self) -> dict[str, int | None]:
        return {name: contents.latest for name, contents in self._events.contents().items()}

    def version_of(self, application_id: str) -> int:
        return hash(tuple(frozenset(self.files(table, application_id)) for table in ("events", "blocks")))

    def _read(
        self,
        table: str,
        files: Sequence[str],
        columns: list[str],
        chosen: pyarrow.dataset.Expression | None = None,
    ) -> pa.Table:
        with translated_read_errors():
            stored = pyarrow.dataset.dataset(files, schema=TABLES[table], format="parquet")
            return stored.to_table(columns=columns, filter=chosen)


def _decoded(stored: pa.Table) -> list[dict[str, Any]]:
    """Events by time; one that was stored twice comes once."""
    bodies = stored.sort_by("time")["body"].to_pylist()
    return [json.loads(body) for body in dict.fromkeys(bodies)]


#: The tables that blocks become rows of, in the order of writing.
_CONTENTS = {"flows": flow_batches, "records": record_batches, "annotations": annotation_batches}

#: Those whose files are opened when a query needs them.
_BOUNDED = ("records", "annotations")

#: The tables in the order in which a deletion goes through them.
_DELETING = ("events", *_CONTENTS, "blocks")


def _mark(application_id: str) -> str:
    """The application transaction that says that it was deleted. No source's name is without a slash."""
    return f"deleted:{application_id}"

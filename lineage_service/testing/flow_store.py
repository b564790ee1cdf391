"""The in-memory twin of the flow store, for tests and demonstrations: same results, nothing on a disk.

Keeps the promises of `flow_store` by other means (a dictionary of receipts, one offset for each source), so
that one suite of tests can compare the two.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from lineage_service.completeness import Receipt
from lineage_service.decode.batches import EventBatch, FlowBatch
from lineage_service.decode.rows import BlockRows, EventRow
from lineage_service.store.flow_store import Written
from lineage_service.store.tables import (
    TABLES,
    annotation_batches,
    events_batch,
    flow_batches,
    receipts_batch,
    record_batches,
)

__all__ = ["MemoryFlowStore"]

_CONTENTS = {"flows": flow_batches, "records": record_batches, "annotations": annotation_batches}


class MemoryFlowStore:
    """The FlowStore in memory. For one thread."""

    def __init__(self) -> None:
        self._offsets: dict[str, int] = {}
        self._blocks: dict[tuple[str, int, int], BlockRows] = {}
        self._events: list[EventRow] = []
        self._deleted: set[str] = set()
        self._version = 0

    def offset(self, source: str) -> int | None:
        return self._offsets.get(source)

    def write_flows(self, batch: FlowBatch) -> Written:
        rows = repeated = 0
        offset = self._offsets.get(batch.source, 0)
        for message, block in batch.rows:
            key = block.application_id, block.run, block.seq
            is_unwanted = block.application_id in self._deleted
            if message.offset < offset or is_unwanted or key in self._blocks:
                repeated += 1
            else:
                self._blocks[key] = block
                rows += block.rows
        self._move(batch)
        return Written(rows=rows, repeated=repeated)

    def write_events(self, batch: EventBatch) -> Written:
        since = self._offsets.get(batch.source, 0)
        new = [event for event in batch.since(since) if event.application_id not in self._deleted]
        self._events.extend(new)
        self._move(batch)
        return Written(rows=len(new), repeated=len(batch.rows) - len(new))

    def _move(self, batch: FlowBatch | EventBatch) -> None:
        if batch.next_offset > self._offsets.get(batch.source, 0):
            self._offsets[batch.source] = batch.next_offset
            self._version += 1

    def applications(self) -> list[str]:
        return sorted({event.application_id for event in self._events} | {key[0] for key in self._blocks})

    def events(self, application_id: str) -> list[dict[str, Any]]:
        chosen = [event for event in self._events if event.application_id == application_id]
        chosen.sort(key=lambda event: event.time)
        return [dict(event.event) for event in {event.body: event for event in chosen}.values()]

    def events_of(
        self, application_ids: Sequence[str], types: Collection[str] | None = None
    ) -> dict[str, list[dict[str, Any]]]:
        chosen = {
            application_id: [
                event for event in self.events(application_id) if types is None or event["type"] in types
            ]
            for application_id in application_ids
        }
        return {application_id: events for application_id, events in chosen.items() if events}

    def receipts(self, application_id: str) -> list[tuple[int, int]]:
        return [(run, seq) for application, run, seq in self._blocks if application == application_id]

    def rows(self, application_id: str) -> dict[str, int]:
        return {name: self.table(name, application_id).num_rows for name in _CONTENTS}

    def blocks(self, application_id: str) -> list[Receipt]:
        return [
            Receipt(run=block.run, seq=block.seq, node=block.node, relation=block.relation, rows=block.rows)
            for block in self._blocks.values()
            if block.application_id == application_id
        ]

    def blocks_of(self, application_ids: Sequence[str]) -> dict[str, list[Receipt]]:
        blocks = {application_id: self.blocks(application_id) for application_id in application_ids}
        return {application_id: receipts for application_id, receipts in blocks.items() if receipts}

    def latest(self) -> dict[str, int | None]:
        latest: dict[str, int | None] = {}
        for event in sorted(self._events, key=lambda event: event.time):
            latest[event.application_id] = event.time
        return latest

    def table(self, table: str, application_id: str) -> pa.Table:
        return pa.Table.from_batches(self._batches(table, application_id), TABLES[table])

    def _batches(self, table: str, application_id: str) -> Iterator[pa.RecordBatch]:
        if table == "events":
            return iter(
                [events_batch(event for event in self._events if event.application_id == application_id)]
            )
        blocks = [block for block in self._blocks.values() if block.application_id == application_id]
        if table == "blocks":
            return iter([receipts_batch(blocks)])
        return _CONTENTS[table](blocks)

    def version(self) -> tuple[int, ...]:
        return (self._version,)

    def version_of(self, application_id: str) -> tuple[int, int]:
        events = sum(event.application_id == application_id for event in self._events)
        return events, len(self.receipts(application_id))

    def versions(self, table: str) -> dict[str, int]:
        counts = {name: self.table(table, name).num_rows for name in self.applications()}
        return {name: rows for name, rows in counts.items() if rows}

    def mark_deleted(self, application_id: str) -> None:
        if application_id not in self._deleted:
            self._deleted.add(application_id)
            self._version += 1

    def delete(self, application_id: str) -> None:
        self.mark_deleted(application_id)
        if application_id in self.applications():
            self._events = [event for event in self._events if event.application_id != application_id]
            self._blocks = {key: block for key, block in self._blocks.items() if key[0] != application_id}
            self._version += 1

    def deleted(self, application_ids: Iterable[str]) -> set[str]:
        return self._deleted.intersection(application_ids)

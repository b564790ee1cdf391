"""The records of one node that a query is about: which runs hold them, where a page begins, stored texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lineage_service.errors import InvalidQueryError
from lineage_service.queries import RecordQuery
from lineage_service.tracing.columns.application import OpenedApplication
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.columns.store_cursor import StoreCursor
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.model.elements import TaskRun
from lineage_service.tracing.walk.result import Position
from lineage_service.tracing.walk.starts import node_named

__all__ = ["HAS_KEY", "HOLDS_TEXT", "Place", "RequestedRecords"]

Place = tuple[int, int]
"""(partition, offset)."""

#: Conditions on `records`, with the parameter `text`.
HAS_KEY = "records.kind = 'key' AND records.text = $text"
HOLDS_TEXT = "contains(lower(records.text), lower($text))"


class RequestedRecords:
    """The records of one node that a query is about, and what the store holds of their texts."""

    def __init__(
        self,
        opened: OpenedApplication[Snapshot],
        cursor: StoreCursor,
        query: RecordQuery,
        check: Check,
        search_until: float,
    ) -> None:
        """Raises NotFoundError, InvalidQueryError."""
        self.opened, self.cursor = opened, cursor
        self.query, self.check = query, check
        self.search_until = search_until  # by the monotonic clock
        self.node = node_named(opened.graph, query.node)
        self.runs: dict[int, TaskRun] = {
            run.partition: run
            for run in opened.graph.holders(self.node.number)
            if query.partition is None or run.partition == query.partition
        }
        if query.offset is not None and query.partition is None:
            raise InvalidQueryError("offset needs partition: offsets count from 0 in each")
        self.least = (query.partition or 0, query.offset or 0)
        after = _read_cursor(query.cursor)
        self.first = self.least if after is None else max(self.least, (after[0], after[1] + 1))

    def count(self, partition: int) -> int:
        return self.opened.graph.count(self.node.number, self.runs[partition].number)

    def positions(self, places: Iterable[Place]) -> list[Position]:
        return [
            Position(self.node.number, partition, offset, self.runs[partition].number)
            for partition, offset in places
        ]

    def stored(self, condition: str, text: str, limit: int) -> list[Place]:
        """The first places, in order, of which the store has a text that fulfils a condition."""
        rows = self.cursor.execute(
            "SELECT DISTINCT holders.partition_id, records.pos FROM records JOIN "
            "(SELECT unnest($runs) AS run, unnest($partitions) AS partition_id) AS holders "
            "ON records.run = holders.run "
            f"WHERE records.node = $node AND {condition} "
            "AND (holders.partition_id > $partition "
            "OR (holders.partition_id = $partition AND records.pos >= $offset)) "
            "ORDER BY holders.partition_id, records.pos LIMIT $limit",
            {
                **self._parameters(text),
                "partitions": list(self.runs),
                "partition": self.first[0],
                "offset": self.first[1],
                "limit": limit,
            },
        ).fetchall()
        return [(partition, pos) for partition, pos in rows]

    def count_of_key(self, key: str) -> int:
        """How many records have it, on all pages."""
        row = self.cursor.execute(
            "SELECT count(*) FROM (SELECT DISTINCT run, pos FROM records "
            f"WHERE node = $node AND {HAS_KEY} AND run IN (SELECT unnest($runs)) AND pos >= $offset)",
            {**self._parameters(key), "offset": self.least[1]},
        ).fetchone()
        return int(row[0]) if row is not None else 0

    def _parameters(self, text: str) -> dict[str, object]:
        runs = [run.number for run in self.runs.values()]
        return {"runs": runs, "node": self.node.number, "text": text}

    def holding(self, places: Sequence[Place], text: str) -> set[Place]:
        """Which of some places have a stored text that holds this one."""
        partitions = {self.runs[partition].number: partition for partition, _ in places}
        rows = self.cursor.execute(
            "SELECT DISTINCT records.run, records.pos FROM records SEMI JOIN "
            "(SELECT unnest($runs) AS run, unnest($offsets) AS pos) AS chosen "
            "ON records.run = chosen.run AND records.pos = chosen.pos "
            f"WHERE records.node = $node AND {HOLDS_TEXT}",
            {
                "runs": [self.runs[partition].number for partition, _ in places],
                "offsets": [offset for _, offset in places],
                "node": self.node.number,
                "text": text,
            },
        ).fetchall()
        return {(partitions[run], pos) for run, pos in rows}


def _read_cursor(text: str | None) -> Place | None:
    if text is None:
        return None
    partition, _, offset = text.partition(":")
    if not all(number.isascii() and number.isdigit() and len(number) < 19 for number in (partition, offset)):
        raise InvalidQueryError(f"cursor {text!r} was not given by this endpoint")
    return int(partition), int(offset)

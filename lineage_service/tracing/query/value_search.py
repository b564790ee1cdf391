"""The records of a node that fulfil a condition: by the rows of its files, else by their captured values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Protocol

from lineage_service.conditions.column_types import ColumnType
from lineage_service.conditions.columns import json_lines
from lineage_service.conditions.filters import Where
from lineage_service.errors import InvalidQueryError
from lineage_service.tracing.columns.application import OpenedApplication
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.columns.store_cursor import StoreCursor
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.line_search import types_of_json
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.files.record_search import RecordSearch
from lineage_service.tracing.files.row_search import RowSearch
from lineage_service.tracing.model.elements import TaskRun, TopologyNode

__all__ = ["search_of"]

#: Values that are looked at together; of the first ones the columns are known.
_BATCH = 1 << 14


class _Requested(Protocol):
    """What is searched."""

    opened: OpenedApplication[Snapshot]
    cursor: StoreCursor
    node: TopologyNode
    runs: dict[int, TaskRun]


def search_of(requested: _Requested, locations: RecordLocations, where: Where) -> RecordSearch:
    """Raises InvalidQueryError where records have neither files nor values."""
    opened, node = requested.opened, requested.node
    if locations.has_files(node, requested.runs) or not requested.runs:
        return locations.search(node, where, ended=opened.application.ended)
    if node.number not in opened.graph.blocks.valued:
        raise InvalidQueryError(
            f"node {node.number} ({node.name}) has no files, and no values of its records were captured, so "
            "there are no columns to ask for: ask an input or output with files, or run the job again with "
            "spark.lineage.detailed=true"
        )
    return _ValueSearch(requested, where, locations)


class _ValueSearch(RecordSearch):
    """Values that are objects of JSON have their keys as columns, all others the column `value`."""

    def __init__(self, requested: _Requested, where: Where, locations: RecordLocations) -> None:
        self._requested, self._where = requested, where
        self._rows: RowSearch = locations.search(requested.node, where)
        super().__init__(self._rows.database)
        self._types: dict[str, ColumnType] = {}

    def matching(self, partition: int, *, first: int, last: int, check: Check) -> Iterator[tuple[int, bool]]:
        opened, node = self._requested.opened, self._requested.node
        maker = opened.graph.maker(node.number, self._requested.runs[partition].number)
        while True:
            check()
            values = self._requested.cursor.execute(
                "SELECT pos, any_value(type), any_value(text) FROM records WHERE node = ? AND run = ? "
                "AND kind = 'value' AND pos >= ? AND pos < ? GROUP BY pos ORDER BY pos LIMIT ?",
                [node.number, maker, first, last, _BATCH],
            ).fetchall()
            if not values:
                break
            lines = [_as_json(type, text) for _, type, text in values]
            self._types |= types_of_json(lines)
            filter = self._where.on(json_lines(self._types))
            for at in self._rows.lines.in_table({"c0": lines}, len(lines), filter, is_json=True):
                yield int(values[at][0]), True
            first = int(values[-1][0]) + 1
            yield first, False
        yield last, False


def _as_json(type: str, text: str) -> str:
    """A captured value as an object of JSON."""
    try:
        value = json.loads(text) if type == "json" else text
    except (ValueError, RecursionError):
        value = text
    return text if isinstance(value, Mapping) else json.dumps({"value": text}, ensure_ascii=False)

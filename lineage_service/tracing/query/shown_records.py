"""Makes of positions what people see of records: keys, values, and the rows of files that they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol

from lineage_service.lineage import Record
from lineage_service.tracing.columns.application import OpenedApplication
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.columns.store_cursor import StoreCursor
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.files.row_columns import ColumnRequest
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.query.trace_results import Texts, records_of
from lineage_service.tracing.walk.result import Position

__all__ = ["Show", "shown_by"]


class Show(Protocol):
    """Makes what people see of records of one node."""

    def __call__(
        self,
        opened: OpenedApplication[Snapshot],
        cursor: StoreCursor,
        node: TopologyNode,
        positions: Sequence[Position],
        *,
        values: bool,
        check: Check,
        columns: ColumnRequest | None = None,
    ) -> tuple[Record, ...]: ...


def shown_by(locations: RecordLocations) -> Show:
    """With rows of files as these know them."""

    def show(
        opened: OpenedApplication[Snapshot],
        cursor: StoreCursor,
        node: TopologyNode,
        positions: Sequence[Position],
        *,
        values: bool,
        check: Check,
        columns: ColumnRequest | None = None,
    ) -> tuple[Record, ...]:
        texts: Texts = {}
        if node.number in opened.graph.blocks.keyed:
            has_values = values and node.number in opened.graph.blocks.valued
            texts = _texts(opened, cursor, node, positions, ("key", "value") if has_values else ("key",))
        return records_of(opened, node, positions, texts, locations, check, columns)

    return show


def _texts(
    opened: OpenedApplication[Snapshot],
    cursor: StoreCursor,
    node: TopologyNode,
    positions: Sequence[Position],
    kinds: Sequence[str],
) -> Texts:
    offsets_of: dict[int, list[int]] = defaultdict(list)
    for position in positions:
        offsets_of[opened.graph.maker(node.number, position.run)].append(position.offset)
    texts = opened.snapshot.texts.of(cursor, node.number, offsets_of, kinds)
    return {(node.number, text.run, text.position, text.kind): (text.type, text.text) for text in texts}

"""Makes of positions what people see of records: keys, values, and the rows of files that they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from lineage_service.lineage import Record
from lineage_service.tracing.columns.application import OpenedApplication
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.columns.store_cursor import StoreCursor
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.files.row_columns import ColumnRequest
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.query.trace_results import Operations, Texts, records_of
from lineage_service.tracing.walk.result import Position
from spark_agent import contract

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
        operations = _operations(opened, node, positions)
        return records_of(opened, node, positions, texts, locations, check, columns, operations)

    return show


def _operations(
    opened: OpenedApplication[Snapshot], node: TopologyNode, positions: Sequence[Position]
) -> Operations:
    """Those that are not that of the node."""
    offsets_of: dict[int, set[int]] = defaultdict(set)
    for position in positions:
        if (node.number, position.run, contract.OPERATIONS) in opened.graph.blocks.annotated:
            offsets_of[position.run].add(position.offset)
    operations: dict[tuple[int, int], str] = {}
    for run, offsets in offsets_of.items():
        ascending = np.array(sorted(offsets), np.int64)
        is_known, numbers = opened.snapshot.annotations.at(node.number, run, contract.OPERATIONS, ascending)
        for offset, number in zip(ascending[is_known].tolist(), numbers.tolist(), strict=True):
            if number in contract.ROW_OPERATIONS:
                operations[run, offset] = contract.ROW_OPERATIONS[number]
    return operations


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

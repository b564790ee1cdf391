"""The five tables, and the rows of many messages as record batches in the order in which files hold them.

Sorted rows are what makes tracing fast and files small (measured): the positions of one run lie
side by side, and ascending. Everything is made lazily, a batch at a time. Knows nothing of files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from lineage_service.decode.rows import Annotations, BlockRows, EventRow, Flows, Integers, Texts
from spark_agent import contract

_APPLICATION = pa.field("application_id", pa.string())

#: Table name -> its columns; docs/architecture/stores.md says what they mean.
TABLES: Mapping[str, pa.Schema] = {
    "events": pa.schema(
        [
            _APPLICATION,
            ("type", pa.string()),
            ("time", pa.int64()),
            ("node", pa.int32()),
            ("run", pa.int64()),
            ("body", pa.string()),
        ]
    ),
    "blocks": pa.schema(
        [
            _APPLICATION,
            ("node", pa.int32()),
            ("run", pa.int64()),
            ("split", pa.int32()),
            ("seq", pa.int32()),
            ("relation", pa.string()),
            ("rows", pa.int64()),
            ("bytes", pa.int64()),
        ]
    ),
    "flows": pa.schema(
        [
            _APPLICATION,
            ("node", pa.int32()),
            ("run", pa.int64()),
            ("out_pos", pa.int64()),
            ("out_count", pa.int64()),
            ("in_pos", pa.int64()),
            ("in_step", pa.int8()),
            ("in_run", pa.int64()),
        ]
    ),
    "records": pa.schema(
        [
            _APPLICATION,
            ("node", pa.int32()),
            ("run", pa.int64()),
            ("pos", pa.int64()),
            ("kind", pa.string()),
            ("type", pa.string()),
            ("text", pa.string()),
        ]
    ),
    "annotations": pa.schema(
        [
            _APPLICATION,
            ("node", pa.int32()),
            ("run", pa.int64()),
            ("relation", pa.string()),
            ("pos", pa.int64()),
            ("value", pa.int64()),
        ]
    ),
}

Bounds = Mapping[str, tuple[int, int]]
"""Column -> its smallest and its largest value in a file, where they are known."""

#: Rows of a Parquet row group. A trace reads whole ones, mostly for a few positions of each: fewer rows are
#: less time. Of fewer than these, a file takes more bytes (measured, with delta_table.WRITER).
ROW_GROUP = 40_960
#: Rows of a record batch: of fewer, writing takes a tenth longer (measured).
BATCH_ROWS = 3 * ROW_GROUP


def flow_batches(blocks: Iterable[BlockRows]) -> Iterator[pa.RecordBatch]:
    """The blocks' rows of `flows`, sorted by (application_id, node, run, out_pos, in_pos)."""
    for key, stream in _streams(blocks, Flows):
        rows = _concatenated([block.content for block in stream])
        order = _order(rows)
        total = len(rows.out_pos)
        for start in range(0, total, BATCH_ROWS):
            count = min(BATCH_ROWS, total - start)
            yield _flow_batch(
                key, rows, slice(start, start + count) if order is None else order[start : start + count]
            )


def record_batches(blocks: Iterable[BlockRows]) -> Iterator[pa.RecordBatch]:
    """The blocks' rows of `records`, sorted by (application_id, node, run), then (kind, pos)."""
    for key, stream in _streams(blocks, Texts):
        for block in stream:
            content: Texts = block.content
            count = len(content.texts)
            if count:
                kind = "key" if block.relation == contract.KEYS else "value"
                yield pa.record_batch(
                    [
                        *_constants("records", key, count),
                        pa.array(content.positions.astype(np.int64)),
                        pa.repeat(kind, count),
                        pa.array(content.types, pa.string()),
                        pa.array(content.texts, pa.string()),
                    ],
                    schema=TABLES["records"],
                )


def annotation_batches(blocks: Iterable[BlockRows]) -> Iterator[pa.RecordBatch]:
    """The blocks' rows of `annotations`, sorted by (application_id, node, run, relation, pos)."""
    for key, stream in _streams(blocks, Annotations):
        for relation, of_relation in groupby(stream, lambda block: block.relation):
            parts: list[Annotations] = [block.content for block in of_relation]
            positions = np.concatenate([part.positions for part in parts]).astype(np.int64)
            values = np.concatenate([part.values for part in parts]).astype(np.int64)
            if not bool(np.all(positions[1:] > positions[:-1])):
                order = _stable_order(positions)
                positions, values = positions[order], values[order]
            for start in range(0, len(positions), BATCH_ROWS):
                count = min(BATCH_ROWS, len(positions) - start)
                yield pa.record_batch(
                    [
                        *_constants("annotations", key, count),
                        pa.repeat(relation, count),
                        pa.array(positions[start : start + count]),
                        pa.array(values[start : start + count]),
                    ],
                    schema=TABLES["annotations"],
                )


def receipts_batch(blocks: Iterable[BlockRows]) -> pa.RecordBatch:
    """One row of `blocks` for each block."""
    schema = TABLES["blocks"]
    return pa.RecordBatch.from_pylist(
        [{name: getattr(block, name) for name in schema.names} for block in blocks], schema=schema
    )


def events_batch(events: Iterable[EventRow]) -> pa.RecordBatch:
    """One row of `events` for each event."""
    schema = TABLES["events"]
    return pa.RecordBatch.from_pylist(
        [{name: getattr(event, name) for name in schema.names} for event in events], schema=schema
    )


_Key = tuple[str, int, int]


def _streams(
    blocks: Iterable[BlockRows], kind: type[Flows] | type[Texts] | type[Annotations]
) -> Iterator[tuple[_Key, list[Any]]]:
    """The blocks of one kind by (application, node, run), those of one stream in the order of their bases."""

    def key(block: BlockRows) -> _Key:
        return block.application_id, block.node, block.run

    chosen = [block for block in blocks if isinstance(block.content, kind)]
    chosen.sort(key=lambda block: (*key(block), block.relation, *block.order, block.seq))
    for stream_key, stream in groupby(chosen, key):
        yield stream_key, list(stream)


def _concatenated(parts: Sequence[Flows]) -> Flows:
    if len(parts) == 1:
        return parts[0]

    def joined(name: str, otherwise: int) -> Integers | None:
        columns = [getattr(part, name) for part in parts]
        if all(column is None for column in columns):
            return None
        return np.concatenate(
            [
                np.full(len(part.out_pos), otherwise) if column is None else column.astype(np.int64)
                for column, part in zip(columns, parts, strict=True)
            ]
        )

    return Flows(
        out_pos=np.concatenate([part.out_pos for part in parts]),
        in_pos=np.concatenate([part.in_pos for part in parts]),
        out_count=joined("out_count", 1),
        in_step=joined("in_step", 0),
        in_run=joined("in_run", _NO_RUN),
    )


#: Stands for null while blocks with and without a `run` column are one; runs are not negative, and ids of a
#: node have -2 and less.
_NO_RUN = -1


def _order(rows: Flows) -> Integers | None:
    """The order of rows by (out_pos, in_pos), or None if they stand in it."""
    outputs, inputs = rows.out_pos, rows.in_pos
    rising_in = inputs[1:] >= inputs[:-1]
    if bool(np.all((outputs[1:] > outputs[:-1]) | ((outputs[1:] == outputs[:-1]) & rising_in))):
        return None
    if bool(np.all(rising_in)):  # codes: the sort is stable, so inputs stay ascending within an output
        return _stable_order(outputs)
    order = _stable_order(inputs)
    return order[_stable_order(outputs[order])]


def _stable_order(values: Integers) -> Integers:
    """Indices that sort `values`, stable. NumPy sorts 16-bit integers by radix, three times as fast as wider
    ones, so wider ones are sorted digit by digit, the lowest first."""
    largest = int(values.max())
    order: Integers = np.argsort(values.astype(np.uint16), kind="stable")
    if largest >= 1 << 32:
        return np.argsort(values, kind="stable")
    if largest >= 1 << 16:
        high = (values >> 16).astype(np.uint16)
        order = order[np.argsort(high[order], kind="stable")]
    return order


def _flow_batch(key: _Key, rows: Flows, chosen: slice | Integers) -> pa.RecordBatch:
    outputs = rows.out_pos[chosen].astype(np.int64)
    count = len(outputs)
    runs = None if rows.in_run is None else rows.in_run[chosen].astype(np.int64)
    return pa.record_batch(
        [
            *_constants("flows", key, count),
            pa.array(outputs),
            pa.repeat(pa.scalar(1, pa.int64()), count)
            if rows.out_count is None
            else pa.array(rows.out_count[chosen].astype(np.int64)),
            pa.array(rows.in_pos[chosen].astype(np.int64)),
            pa.repeat(pa.scalar(0, pa.int8()), count)
            if rows.in_step is None
            else pa.array(rows.in_step[chosen].astype(np.int8)),
            pa.nulls(count, pa.int64()) if runs is None else pa.array(runs, mask=runs == _NO_RUN),
        ],
        schema=TABLES["flows"],
    )


def _constants(table: str, key: _Key, count: int) -> list[pa.Array]:
    """The columns application_id, node and run, which a stream's rows share."""
    schema = TABLES[table]
    return [pa.repeat(pa.scalar(value, schema.field(index).type), count) for index, value in enumerate(key)]

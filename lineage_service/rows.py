"""Turns what came off the topics into rows of the four tables: the table "How a block becomes rows" as code.

Promises that a message either becomes rows or raises ContractError, whatever it holds: what decodes but does
not fit a table is refused here, before a batch is written. A block never makes more rows than its longest
column has values. Vectorised; knows nothing of Kafka and of how tables are stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_agent import contract
from spark_agent.contract import Block, ContractError

Integers = npt.NDArray[Any]

_APPLICATION = pa.field("application_id", pa.string())

#: Table name -> its columns; docs/architecture.md says what they mean.
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
}

#: Rows of a record batch and of a Parquet row group (FINDINGS, section 7).
ROW_GROUP = 122_880
MAX_POSITION = (1 << 63) - 1
MAX_NUMBER = (1 << 31) - 1  # node, split, seq
MAX_STEP = 127
#: Numbers in events that are smaller than positions.
_LARGEST = {
    "node": MAX_NUMBER,
    "source": MAX_NUMBER,
    "target": MAX_NUMBER,
    "split": MAX_NUMBER,
    "input": MAX_NUMBER,
    "blocks": MAX_NUMBER,
    "run": contract.MAX_RUN - 1,
}
#: Which field is the column `node`.
_NODE_FIELD = {contract.NODE_REGISTERED: "node", contract.PARTITIONS: "node", contract.LINK: "target"}
#: Becomes a folder's name and a part of node ids, URLs and Cypher parameters.
_APPLICATION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,199}", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flows:
    """Rows of `flows` that one block makes. A column that is None holds the same value in each row:
    `out_count` 1, `in_step` 0, `in_run` null."""

    out_pos: Integers
    in_pos: Integers
    out_count: Integers | None = None
    in_step: Integers | None = None
    in_run: Integers | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """Rows of `records` that one block makes: the texts of positions `first`, `first` + 1, ..."""

    first: int
    types: list[str]
    texts: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockRows:
    """One block's header and its rows. `bytes` is the size of the message."""

    application_id: str
    node: int
    run: int
    split: int
    seq: int
    relation: str
    bytes: int
    order: tuple[int, int]  # base_out, base_in: blocks of a stream follow each other in this order
    content: Flows | Texts

    @property
    def rows(self) -> int:
        return len(self.content.out_pos if isinstance(self.content, Flows) else self.content.texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """One row of `events`, with the event that it was made from."""

    application_id: str
    type: str
    time: int
    node: int | None
    run: int | None
    body: str
    event: Mapping[str, Any]


# -- one message ------------------------------------------------------------------------------------


def rows_of_block(message: bytes) -> BlockRows:
    """Decode one message of `lineage-flow`. Raises ContractError."""
    block = contract.decode_block(message)
    _check_application(block.application_id)
    for name in ("node", "split", "seq"):
        _check_number(name, getattr(block, name), MAX_NUMBER)
    content: Flows | Texts
    if block.relation in (contract.KEYS, contract.VALUES):
        content = _texts(block)
    else:
        content = _FLOWS_OF[block.relation](block)
    return BlockRows(
        application_id=block.application_id,
        node=block.node,
        run=block.run,
        split=block.split,
        seq=block.seq,
        relation=block.relation,
        bytes=len(message),
        order=(block.base_out, block.base_in),
        content=content,
    )


def row_of_event(message: bytes) -> EventRow:
    """Decode one message of `lineage-node`. Raises ContractError."""
    event = contract.decode_event(message)
    _check_application(event["application_id"])
    _check_number("time", event["time"], MAX_POSITION)
    for name, kinds in contract.EVENT_FIELDS[event["type"]].items():
        if int in kinds and event[name] is not None:
            _check_number(name, event[name], _LARGEST.get(name, MAX_POSITION))
    for node in event.get("nodes", ()) if event["type"] == contract.RUN_COMMITTED else ():
        _check_number("nodes", node, MAX_NUMBER)
    return EventRow(
        application_id=event["application_id"],
        type=event["type"],
        time=event["time"],
        node=event[_NODE_FIELD[event["type"]]] if event["type"] in _NODE_FIELD else None,
        run=event["run"] if event["type"] == contract.RUN_COMMITTED else None,
        body=message.decode("utf-8", "replace"),
        event=event,
    )


def _check_application(application_id: str) -> None:
    if _APPLICATION_ID.fullmatch(application_id) is None:
        raise ContractError(
            f"application_id {application_id[:80]!r} is not 1 to 200 letters, digits or . _ : - "
            "that begin with a letter or digit"
        )


def _check_number(name: str, value: object, largest: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= largest:
        raise ContractError(f"{name} is {value!r}, not a number from 0 to {largest}")


# -- block relations --------------------------------------------------------------------------------


def _positions(block: Block) -> Flows:
    inputs = _column(block, "in")
    return Flows(out_pos=_from(block.base_out, len(inputs)), in_pos=inputs)


def _counts(block: Block) -> Flows:
    counts = _column(block, "count")
    starts, inputs = _starts(block.base_out, counts), _from(block.base_in, len(counts))
    made = counts > 0
    return Flows(out_pos=starts[made], out_count=counts[made], in_pos=inputs[made])


def _codes(block: Block) -> Flows:
    codes = _column(block, "code")
    return Flows(out_pos=codes, in_pos=_from(block.base_in, len(codes)))


def _spans(block: Block) -> Flows:
    counts, inputs, steps = (_column(block, name) for name in ("count", "in", "step"))
    runs = _column(block, "run", contract.MAX_RUN - 1) if "run" in block.columns else None
    starts = _starts(block.base_out, counts)
    _check_column("step", steps, MAX_STEP)
    _check_span_ends(counts, inputs, steps)
    made = counts > 0
    return Flows(
        out_pos=starts[made],
        out_count=counts[made],
        in_pos=inputs[made],
        in_step=steps[made],
        in_run=runs[made] if runs is not None else None,
    )


def _gather(block: Block) -> Flows:
    counts, inputs = _column(block, "count"), _column(block, "in")
    # The counts add up to len(inputs), which the decoder has checked: the repeat is bounded.
    return Flows(
        out_pos=np.repeat(_from(block.base_out, len(counts)), counts.astype(np.int64)), in_pos=inputs
    )


_FLOWS_OF = {
    contract.POSITIONS: _positions,
    contract.COUNTS: _counts,
    contract.CODES: _codes,
    contract.SPANS: _spans,
    contract.GATHER: _gather,
}


def _texts(block: Block) -> Texts:
    entries = block.columns["text"]
    if not all(isinstance(entry, tuple) for entry in entries):
        raise ContractError(f"{block.relation} block has a text column that is not typed texts")
    _from(block.base_out, len(entries))  # the last position must exist
    return Texts(
        first=block.base_out,
        types=[_storable(kind) for kind, _ in entries],
        texts=[_storable(text) for _, text in entries],
    )


def _storable(text: str) -> str:
    """UTF-8 has no lone surrogates; JSON escapes can smuggle them in."""
    return text if text.isascii() else _SURROGATE.sub("�", text)


def _column(block: Block, name: str, largest: int = MAX_POSITION) -> Integers:
    """The column as an array of integers, narrow if it travelled so, its values checked."""
    values = np.asarray(block.columns[name])
    if not len(values):
        return np.zeros(0, np.int64)
    if values.dtype.kind not in "ui":
        raise ContractError(f"column {name!r} of a {block.relation} block is not a column of integers")
    _check_column(name, values, largest)
    # Never uint64: NumPy joins it with int64 into floats.
    return values.astype(np.int64) if values.dtype == np.uint64 else values


def _check_column(name: str, values: Integers, largest: int) -> None:
    if len(values) and not 0 <= int(values.min()) <= int(values.max()) <= largest:
        raise ContractError(f"column {name!r} holds {values.max()}, more than {largest}")


def _from(first: int, count: int) -> Integers:
    """`first`, `first` + 1, ... as positions."""
    if first + count - 1 > MAX_POSITION:
        raise ContractError(f"positions from {first} on, {count} of them, pass 2**63")
    return np.arange(first, first + count, dtype=np.int64) if count else np.zeros(0, np.int64)


def _starts(base: int, counts: Integers) -> Integers:
    """The first position of each span: base + sum(counts[:k])."""
    if not len(counts):
        return np.zeros(0, np.int64)
    # NumPy wraps silently. Adding up as Python integers is exact and only needed for absurd counts.
    bound = base + int(counts.max()) * len(counts)
    if bound > MAX_POSITION and base + sum(counts.tolist()) > MAX_POSITION:
        raise ContractError(f"counts of a block from position {base} on pass 2**63")
    ends = np.cumsum(counts, dtype=np.int64)
    ends += base
    return ends - counts.astype(np.int64)


def _check_span_ends(counts: Integers, inputs: Integers, steps: Integers) -> None:
    if not len(counts) or int(inputs.max()) + int(counts.max()) * int(steps.max()) <= MAX_POSITION:
        return
    for count, first, step in zip(counts.tolist(), inputs.tolist(), steps.tolist(), strict=True):
        if count and first + (count - 1) * step > MAX_POSITION:
            raise ContractError(f"span of {count} inputs from {first} on passes 2**63")


# -- many messages ----------------------------------------------------------------------------------


def flow_batches(blocks: Iterable[BlockRows]) -> Iterator[pa.RecordBatch]:
    """The blocks' rows of `flows`, sorted by (application_id, node, run, out_pos, in_pos)."""
    for key, stream in _streams(blocks, Flows):
        rows = _concatenated([block.content for block in stream])
        order = _order(rows)
        total = len(rows.out_pos)
        for start in range(0, total, ROW_GROUP):
            count = min(ROW_GROUP, total - start)
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
                        *_constants("records", (*key,), count),
                        pa.array(_from(content.first, count)),
                        pa.repeat(kind, count),
                        pa.array(content.types, pa.string()),
                        pa.array(content.texts, pa.string()),
                    ],
                    schema=TABLES["records"],
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
    blocks: Iterable[BlockRows], kind: type[Flows] | type[Texts]
) -> Iterator[tuple[_Key, list[Any]]]:
    """The blocks of one kind by (application, node, run), those of one stream in the order of their bases."""

    def key(block: BlockRows) -> _Key:
        return block.application_id, block.node, block.run

    chosen = [block for block in blocks if isinstance(block.content, kind)]
    chosen.sort(key=lambda block: (*key(block), block.relation, *block.order, block.seq))
    for each, stream in groupby(chosen, key):
        yield each, list(stream)


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


#: Stands for null while blocks with and without a `run` column are one; runs are not negative.
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

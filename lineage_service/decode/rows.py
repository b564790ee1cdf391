"""One message as rows: the table "How a block becomes rows" of docs/architecture/stores.md as code.

Promises that a message either becomes rows or raises ContractError, whatever it holds: what decodes but does
not fit the tables is refused here, before a batch is written. A block never makes more rows than a column may
have values. Vectorised; knows nothing of Kafka and of stores.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spark_agent import contract
from spark_agent.contract import MAX_POSITION, Block, ContractError
from spark_agent.contract.event_checks import decode_event

Integers = npt.NDArray[Any]

MAX_STEP = 127
#: Which field is the column `node`.
_NODE_FIELD = {
    contract.NODE_REGISTERED: "node",
    contract.PARTITIONS: "node",
    contract.LINK: "target",
    contract.PERSISTED: "node",
    contract.ACTION_ENDED: "node",
    contract.GAP: "node",
    contract.COLUMNS: "node",
    contract.DRIVER: "target",
    contract.BATCH_COMMITTED: "node",
}
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
    """Rows of `records` that one block makes: the text of each position."""

    positions: Integers
    types: list[str]
    texts: list[str]
    characters: int  # of all types and texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotations:
    """Rows of `annotations` that one block makes: what is said of each position, beside flows and texts.

    Of `winners` the value is a position of an input, of `digests` it is the digest, of `operations` the
    number of the operation.
    """

    positions: Integers
    values: Integers


@dataclass(frozen=True, slots=True, kw_only=True)
class Unused:
    """A block that was checked, and that no table has rows of: no result uses what it says yet.

    Its receipt is stored, so that its run can be complete.
    """


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
    content: Flows | Texts | Annotations | Unused

    @property
    def rows(self) -> int:
        """How many rows of a table it makes."""
        match self.content:
            case Flows(out_pos=column) | Annotations(positions=column) | Texts(positions=column):
                return len(column)
            case Unused():
                return 0


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
    contract.check_application_id(block.application_id)
    content: Flows | Texts | Annotations | Unused
    if block.relation in contract.TEXT_BLOCKS:
        content = _texts(block)
    elif block.relation in contract.ANNOTATION_BLOCKS:
        content = _annotations(block)
    elif block.relation == contract.GROUPS:
        content = _unused(block)
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
    """Decode one message of `lineage-node`; its type is known or may be ignored. Raises ContractError."""
    event = decode_event(message)
    body = message.decode("utf-8", "replace")
    if "\\ud" in body.lower():  # an escape that may be half a surrogate pair, which no store can hold
        body = _storable(json.dumps(event, ensure_ascii=False))
        event = json.loads(body)
    return EventRow(
        application_id=event["application_id"],
        type=event["type"],
        time=event["time"],
        node=event[_NODE_FIELD[event["type"]]] if event["type"] in _NODE_FIELD else None,
        run=event["run"] if event["type"] in contract.MANIFESTS else None,
        body=body,
        event=event,
    )


# -- block relations --------------------------------------------------------------------------------


def _positions(block: Block) -> Flows:
    inputs = _column(block, "in")
    return Flows(
        out_pos=_from(block.base_out, len(inputs)), in_pos=inputs, in_run=_of_source(block, len(inputs))
    )


def mark_of(node: int) -> int:
    """What stands in `in_run` of rows whose inputs are ids of `node`: no run, and below the mark of none."""
    return -2 - node


def _of_source(block: Block, count: int) -> Integers | None:
    """`in_run` of the rows of a block whose inputs are ids of a node."""
    return None if block.source is None else np.full(count, mark_of(block.source), np.int64)


def _counts(block: Block) -> Flows:
    counts = _column(block, "count")
    starts, inputs = _starts(block.base_out, counts), _from(block.base_in, len(counts))
    is_used = counts > 0
    return Flows(out_pos=starts[is_used], out_count=counts[is_used], in_pos=inputs[is_used])


def _codes(block: Block) -> Flows:
    codes = _column(block, "code")
    return Flows(out_pos=codes, in_pos=_from(block.base_in, len(codes)))


def _spans(block: Block) -> Flows:
    counts, inputs, steps = (_column(block, name) for name in ("count", "in", "step"))
    runs = _column(block, "run", contract.MAX_RUN - 1) if "run" in block.columns else None
    starts = _starts(block.base_out, counts)
    _check_column("step", steps, MAX_STEP)
    _check_span_ends(counts, inputs, steps)
    is_used = counts > 0
    return Flows(
        out_pos=starts[is_used],
        out_count=counts[is_used],
        in_pos=inputs[is_used],
        in_step=steps[is_used],
        in_run=runs[is_used] if runs is not None else None,
    )


def _gather(block: Block) -> Flows:
    counts, inputs = _column(block, "count"), _column(block, "in")
    # The counts add up to len(inputs), which the decoder has checked: the repeat is bounded.
    return Flows(
        out_pos=np.repeat(_from(block.base_out, len(counts)), counts.astype(np.int64)), in_pos=inputs
    )


def _pairs(block: Block) -> Flows:
    runs = _column(block, "run", contract.MAX_RUN - 1) if "run" in block.columns else None
    inputs = _column(block, "in")
    of_source = _of_source(block, len(inputs))
    return Flows(
        out_pos=_column(block, "out"), in_pos=inputs, in_run=of_source if of_source is not None else runs
    )


def _ids(block: Block) -> Flows:
    """Written out, one row for each output: where a node names ids of several nodes, spans would overlap."""
    inputs = _column(block, "in").astype(np.int64)
    last = int(inputs.max()) if len(inputs) else 0
    if "count" not in block.columns:
        outputs = len(inputs)
    else:
        counts, steps = _column(block, "count"), _column(block, "step")
        _check_column("count", counts, contract.MAX_COLUMN_VALUES)
        _check_column("step", steps, MAX_STEP)
        outputs = int(counts.sum(dtype=np.int64))
        if outputs > contract.MAX_COLUMN_VALUES:
            raise ContractError(f"ids block has {outputs} outputs, more than {contract.MAX_COLUMN_VALUES}")
        last += MAX_STEP * contract.MAX_COLUMN_VALUES
        within = np.arange(outputs) - np.repeat(_starts(0, counts), counts)
        inputs = np.repeat(inputs, counts) + within * np.repeat(steps.astype(np.int64), counts)
    if block.base_in + last > MAX_POSITION:
        raise ContractError(f"ids from {block.base_in} on, {last} more, pass 2**63")
    return Flows(
        out_pos=_from(block.base_out, outputs),
        in_pos=inputs + np.int64(block.base_in),
        in_run=_of_source(block, outputs),
    )


def _ranges(block: Block) -> Flows:
    outputs, counts = _column(block, "out"), _column(block, "count")
    inputs, is_used = _from(block.base_in, len(counts)), counts > 0
    if len(counts) and int(outputs.max()) + int(counts.max()) - 1 > MAX_POSITION:
        for first, count in zip(outputs.tolist(), counts.tolist(), strict=True):
            if count and first + count - 1 > MAX_POSITION:
                raise ContractError(f"range of {count} outputs from {first} on passes 2**63")
    return Flows(out_pos=outputs[is_used], out_count=counts[is_used], in_pos=inputs[is_used])


_FLOWS_OF = {
    contract.POSITIONS: _positions,
    contract.COUNTS: _counts,
    contract.CODES: _codes,
    contract.SPANS: _spans,
    contract.GATHER: _gather,
    contract.PAIRS: _pairs,
    contract.IDS: _ids,
    contract.RANGES: _ranges,
}


#: Relation -> its column of values.
_ANNOTATING = {contract.WINNERS: "in", contract.DIGESTS: "digest", contract.OPERATIONS: "operation"}


def _annotations(block: Block) -> Annotations:
    values = _column(block, _ANNOTATING[block.relation])
    positions = _column(block, "out") if "out" in block.columns else _from(block.base_out, len(values))
    return Annotations(positions=positions, values=values)


def _unused(block: Block) -> Unused:
    """Refuses what would not fit a table either, so that nothing bad waits for who will use it."""
    counts = _column(block, "count")
    _from(block.base_in, len(counts))
    _starts(block.base_out, counts)
    return Unused()


def _texts(block: Block) -> Texts:
    entries = block.columns["text"]
    if not all(isinstance(entry, tuple) for entry in entries):
        raise ContractError(f"{block.relation} block has a text column that is not typed texts")
    types = [_storable(kind) for kind, _ in entries]
    texts = [_storable(text) for _, text in entries]
    return Texts(
        positions=_column(block, "out") if "out" in block.columns else _from(block.base_out, len(entries)),
        types=types,
        texts=texts,
        characters=sum(map(len, types)) + sum(map(len, texts)),
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

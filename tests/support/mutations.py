"""What the decoders must keep to, whatever they are given, and real messages to be damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lineage_service.completeness import completeness
from lineage_service.decode.rows import row_of_event, rows_of_block
from lineage_service.graph.event_rows import event_rows
from lineage_service.graph.row_values import GraphDataError
from lineage_service.store.tables import (
    annotation_batches,
    events_batch,
    flow_batches,
    receipts_batch,
    record_batches,
)
from spark_agent import contract
from spark_agent.contract import Block, ContractError
from spark_agent.contract.event_checks import decode_event

_SAMPLES = Path(__file__).parents[1] / "contract"
#: Every golden sample, good and broken.
BLOCKS = [path.read_bytes() for path in sorted(_SAMPLES.glob("*/block-*.bin"))]
EVENTS = [path.read_bytes() for path in sorted(_SAMPLES.glob("*/event-*.bin"))]


def swallow_block(message: bytes) -> Block | None:
    """Take a message of `lineage-flow` all the way to rows; None if the contract refuses it.

    A block that is not refused says the same after it was encoded and decoded again. Any other error is the
    caller's to see.
    """
    try:
        block = contract.decode_block(message)
    except ContractError:
        return None
    again = contract.encode_block(block)
    if len(again) <= contract.MAX_MESSAGE_BYTES:  # texts that were said by code are written out
        assert content(contract.decode_block(again)) == content(block)
    try:
        rows = rows_of_block(message)
    except ContractError:
        return block
    contents = (flow_batches, record_batches, annotation_batches)
    batches = [receipts_batch([rows]), *(batch for batches_of in contents for batch in batches_of([rows]))]
    assert sum(batch.num_rows for batch in batches) == rows.rows + 1
    return block


def swallow_event(message: bytes) -> dict[str, Any] | None:
    """Take a message of `lineage-node` all the way to rows, the graph and the count of what is complete."""
    try:
        event = decode_event(message)
    except ContractError:
        return None
    said = json.dumps(event)
    assert json.dumps(decode_event(said.encode())) == said
    try:
        row = row_of_event(message)
    except ContractError:
        return event
    assert events_batch([row]).num_rows == 1
    stored = json.loads(row.body)
    completeness([stored], [(1, 0)]).describe()
    try:
        event_rows([row.event])
    except GraphDataError:
        return event
    return event


def content(block: Block) -> tuple[Any, ...]:
    """What a block says, with halves of surrogate pairs as decoding replaces them."""
    columns = {
        name: [tuple(map(_whole, value)) for value in values] if name == "text" else list(values)
        for name, values in block.columns.items()
    }
    return {**vars(block), "columns": None}, columns


def _whole(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")

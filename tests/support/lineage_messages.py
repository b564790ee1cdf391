"""Messages for tests: what an agent would send, in few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lineage_service.decode.batches import Message
from spark_agent import contract
from spark_agent.contract import Block

APP = "app-1"
SMALLEST: dict[type, Any] = {str: "", int: 0, bool: False, list: [], dict: {}}


def block(
    run: int = 1,
    seq: int = 0,
    relation: str = contract.POSITIONS,
    columns: Mapping[str, Sequence[Any]] | None = None,
    *,
    application_id: str = APP,
    node: int = 1,
    split: int = 0,
    base_in: int = 0,
    base_out: int = 0,
    source: int | None = None,
) -> bytes:
    return contract.encode_block(
        Block(
            application_id=application_id,
            node=node,
            run=run,
            split=split,
            seq=seq,
            relation=relation,
            base_in=base_in,
            base_out=base_out,
            columns={"in": [10 * seq, 10 * seq + 1]} if columns is None else columns,
            source=source,
        )
    )


def event(event_type: str, *, application_id: str = APP, time: int = 0, **fields: Any) -> bytes:
    required = {name: SMALLEST[kinds[0]] for name, kinds in contract.EVENT_FIELDS[event_type].items()}
    if event_type == contract.NODE_REGISTERED:
        required |= {"kind": "operator", "relation": contract.IDENTITY}
    elif event_type == contract.ACTION_ENDED:
        required["state"] = contract.ACTION_COMPLETE
    return contract.encode_event(event_type, application_id, time, {**required, **fields})


def messages(*values: bytes | None, first: int = 0, topic: str = "flow", partition: int = 0) -> list[Message]:
    return [
        Message(topic=topic, partition=partition, offset=first + at, key=b"key", value=value)
        for at, value in enumerate(values)
    ]

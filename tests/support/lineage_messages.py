"""Messages for tests: what an agent would send, in few words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lineage_service.decode.batches import Message
from spark_agent import contract
from spark_agent.contract import Block
from spark_agent.contract.event_fields import EVENT_FIELDS, HEAD
from spark_agent.contract.field_types import (
    Boolean,
    FieldType,
    Integer,
    ListOf,
    MapOf,
    Nullable,
    Object,
    OneOf,
    Reference,
    Text,
)

APP = "app-1"
SMALLEST: Mapping[type[FieldType], Any] = {Text: "", Integer: 0, Boolean: False, ListOf: [], MapOf: {}}


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
    required = {name: smallest(field) for name, field in EVENT_FIELDS[event_type].required.items()}
    if event_type == contract.NODE_REGISTERED:
        required |= {"kind": "operator", "relation": contract.IDENTITY}
    return contract.encode_event(event_type, application_id, time, {**required, **fields})


def smallest(field: FieldType) -> Any:
    """A value that the field may hold."""
    if isinstance(field, Nullable):
        return smallest(field.type)
    return field.words[0] if isinstance(field, OneOf) else SMALLEST[type(field)]


def undeclared_fields(event: Mapping[str, Any]) -> set[str]:
    """The fields of an event that the contract does not have: readers would take no notice of them."""
    fields = Object(optional={**HEAD.fields, **EVENT_FIELDS[event["type"]].fields})
    return set(_undeclared(fields, event, event["type"]))


def _undeclared(field: FieldType, value: Any, path: str) -> Iterator[str]:
    match field:
        case Nullable() if value is not None:
            yield from _undeclared(field.type, value, path)
        case Reference():
            yield from _undeclared(field.types[field.name], value, path)
        case ListOf():
            for entry in value:
                yield from _undeclared(field.entry, entry, path)
        case Object():
            for name, entry in value.items():
                if name in field.fields:
                    yield from _undeclared(field.fields[name], entry, f"{path}.{name}")
                else:
                    yield f"{path}.{name}"


def messages(*values: bytes | None, first: int = 0, topic: str = "flow", partition: int = 0) -> list[Message]:
    return [
        Message(topic=topic, partition=partition, offset=first + at, key=b"key", value=value)
        for at, value in enumerate(values)
    ]

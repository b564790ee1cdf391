"""Reads events: an event either holds what `event_fields` says of its type, or is refused with the reason.

Fields of no known name are left as they came, and so is all of a type that is not known and may be ignored.
Only readers import this: who writes events needs none of it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

from spark_agent.contract.errors import ContractError, check_size, in_short
from spark_agent.contract.event_fields import EVENT_FIELDS, HEAD, LATER_EVENT
from spark_agent.contract.field_types import FieldError
from spark_agent.contract.limits import MAX_EVENT_DEPTH, MAX_MESSAGE_BYTES
from spark_agent.contract.version import check_version

__all__ = ["check_event", "decode_event"]


def decode_event(message: bytes) -> dict[str, Any]:
    """The event as a dictionary, all its fields checked. Raises ContractError."""
    check_size("event", message, MAX_MESSAGE_BYTES)
    try:
        event = json.loads(message.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise ContractError(f"event is not JSON: {error}") from None
    if not isinstance(event, dict):
        raise ContractError("event is not a JSON object")
    check_event(event)
    return event


def check_event(event: Mapping[str, Any]) -> None:
    """Raises ContractError unless the event follows the contract, or may be ignored."""
    _check_depth(event)
    check_version(event.get("version"))
    event_type = event.get("type")
    try:
        HEAD.check(event)
    except FieldError as error:
        raise ContractError(f"{_called(event_type)}: {error}") from None
    fields = EVENT_FIELDS.get(event["type"])
    if fields is None:
        try:
            LATER_EVENT.check(event)
        except FieldError:
            raise ContractError(f"event type {in_short(event_type)} is not known") from None
        return
    try:
        fields.check(event)
    except FieldError as error:
        raise ContractError(f"{_called(event_type)}: {error}") from None


def _called(event_type: object) -> str:
    return f"{event_type} event" if isinstance(event_type, str) and event_type in EVENT_FIELDS else "event"


def _check_depth(event: Mapping[str, Any]) -> None:
    level: list[Any] = [event]
    for _ in range(MAX_EVENT_DEPTH):
        values = itertools.chain.from_iterable(
            value.values() if isinstance(value, dict) else value for value in level
        )
        level = [value for value in values if isinstance(value, (dict, list))]
        if not level:
            return
    raise ContractError(f"event is nested more than {MAX_EVENT_DEPTH} deep")

"""docs/event.schema.json and the checks of readers say the same of events."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from scripts.event_schema import event_schema
from spark_agent.contract import ContractError
from spark_agent.contract.event_checks import decode_event
from tests.support.wild_events import broken_events, right_events

SCHEMA = jsonschema.Draft202012Validator(event_schema())
#: What no schema can say: the depth of an event, the order of its parts.
BEYOND_A_SCHEMA = ("nested more than", "does not stand in the order of")


def refusal(event: dict[str, Any]) -> str:
    """Why readers refuse it; empty if they do not."""
    try:
        decode_event(json.dumps(event).encode())
    except ContractError as error:
        return str(error)
    return ""


@given(right_events())
def test_what_follows_the_contract_is_read_and_is_valid(event: dict[str, Any]) -> None:
    assert refusal(event) == ""
    SCHEMA.validate(event)


@given(broken_events())
def test_what_readers_refuse_is_not_valid_and_the_other_way_round(event: dict[str, Any]) -> None:
    reason = refusal(event)
    if any(text in reason for text in BEYOND_A_SCHEMA):
        return
    assert SCHEMA.is_valid(event) is (not reason), reason


@given(
    right_events(), st.sampled_from(["party", "link2", "x" * 81, "Link", "", 7]), st.booleans() | st.none()
)
def test_types_of_later_are_valid_if_they_may_be_ignored(
    event: dict[str, Any], event_type: object, ignorable: bool | None
) -> None:
    later = {**event, "type": event_type, "ignorable": ignorable}
    assert SCHEMA.is_valid(later) is (not refusal(later))

"""docs/event.schema.json is made from the contract, and takes every golden sample."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from scripts import event_schema
from spark_agent.contract import ContractError
from spark_agent.contract.event_checks import decode_event
from tests.support.poison import EVENTS

HERE = Path(__file__).parent
SCHEMA = json.loads(event_schema.FILE.read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
#: What no schema can say.
BEYOND_A_SCHEMA = {"deep for those who read it later", "oversized"}


def samples(pattern: str) -> list[Any]:
    paths = sorted(HERE.glob(pattern))
    assert paths
    return [pytest.param(path, id=f"{path.parent.name}/{path.stem}") for path in paths]


def test_the_file_is_what_the_contract_makes() -> None:
    assert event_schema.FILE.read_text(encoding="utf-8") == event_schema.text(), (
        "the contract has changed: python -m scripts.event_schema"
    )


def test_the_file_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", samples("[0-9]*/event-*.bin"))
def test_a_sample_is_valid(path: Path) -> None:
    VALIDATOR.validate(json.loads(path.read_bytes()))


@pytest.mark.parametrize("path", samples("broken/event-*.bin"))
def test_a_broken_sample_is_not_valid(path: Path) -> None:
    try:
        event = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return
    # No schema says how deep a value is.
    assert VALIDATOR.is_valid(event) == (path.stem == "event-nested-for-later")


@pytest.mark.parametrize("name", [name for name in EVENTS if name not in BEYOND_A_SCHEMA])
def test_poison_is_not_valid(name: str) -> None:
    message, _ = EVENTS[name]
    with pytest.raises(ContractError):
        decode_event(message)
    try:
        event = json.loads(message)
    except (ValueError, RecursionError):
        return
    assert not VALIDATOR.is_valid(event)

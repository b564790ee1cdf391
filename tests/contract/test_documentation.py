"""docs/contract.md says all that the code knows: who writes an agent in another language has only that."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spark_agent import contract

PAGE = (Path(__file__).parents[2] / "docs" / "contract.md").read_text(encoding="utf-8")
EVENTS: dict[str, str] = dict(
    re.findall(r"^\*\*`(\w+)`\*\*(.*?)(?=^\*\*`|^An application is)", PAGE, re.DOTALL | re.MULTILINE)
)


@pytest.mark.parametrize("event_type", contract.EVENT_FIELDS)
def test_every_event_type_is_described_with_its_fields(event_type: str) -> None:
    described = {
        name
        for row in re.findall(r"^\| ([^|]*) \|", EVENTS[event_type], re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }
    assert set(contract.EVENT_FIELDS[event_type]) <= described


@pytest.mark.parametrize("relation", contract.BLOCK_COLUMNS)
def test_every_block_relation_is_described_with_its_columns(relation: str) -> None:
    [columns] = re.findall(rf"^\| `{relation}` \| ([^|]*) \| [^|]* \| [^|]* \|$", PAGE, re.MULTILINE)
    wanted = (*contract.BLOCK_COLUMNS[relation], *contract.OPTIONAL_COLUMNS.get(relation, ()))
    assert tuple(re.findall(r"`(\w+)`", columns)) == wanted


@pytest.mark.parametrize(
    "word", [*contract.RELATIONS, *contract.KINDS, contract.NODE_TOPIC, contract.FLOW_TOPIC]
)
def test_every_word_is_there(word: str) -> None:
    assert f"`{word}`" in PAGE


@pytest.mark.parametrize(
    "value", [1, "a", 1.5, True, None, b"\0", [1], {1, 2}], ids=lambda value: type(value).__name__
)
def test_every_type_of_text_is_there(value: object) -> None:
    assert f"`{contract.typed_text(value)[0]}`" in PAGE


def test_the_text_that_stands_for_a_withheld_one_is_there() -> None:
    assert f"`{contract.WITHHELD[0]}`" in PAGE
    assert contract.WITHHELD[1] in PAGE


@pytest.mark.parametrize(
    "number",
    [
        contract.MAX_BLOCK_BYTES,
        contract.MAX_COLUMN_VALUES,
        contract.MAX_HEADER_BYTES,
        contract.MAX_MESSAGE_BYTES,
        contract.MAX_EVENT_DEPTH,
        contract.MAX_BLOCK_CHARACTERS,
        contract.MAX_TEXT_CHARACTERS,
        contract.MAX_VALUE_CHARACTERS,
        contract.NODE_PARTITIONS,
        contract.FLOW_PARTITIONS,
    ],
)
def test_every_limit_is_there(number: int) -> None:
    assert f"{number:,}" in PAGE


def test_the_version_is_there() -> None:
    assert f"**{contract.VERSION}**" in PAGE


def test_the_example_of_a_column_is_right() -> None:
    block = contract.Block("app", 1, 1, 0, 0, contract.POSITIONS, columns={"in": [3, 4, 4, 300]})
    message = contract.encode_block(block)
    assert message.endswith(bytes.fromhex("03 01 00 28 00 00 00 01"))
    assert b'{"name":"in","count":4,"bytes":8,"width":2,"delta":true}' in message

"""docs/contract.md says all that the code knows: who writes an agent in another language has only that."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_agent import contract
from spark_agent.contract.event_fields import DEFINITIONS, EVENT_FIELDS, HEAD
from spark_agent.contract.field_types import (
    Boolean,
    FieldType,
    Integer,
    ListOf,
    MapOf,
    Nullable,
    Number,
    Object,
    OneOf,
    Reference,
    Text,
    TupleOf,
)

PAGE = (Path(__file__).parents[2] / "docs" / "contract.md").read_text(encoding="utf-8")
EVENTS: dict[str, str] = dict(
    re.findall(r"^\*\*`(\w+)`\*\*(.*?)(?=^\*\*`|^An application is)", PAGE, re.DOTALL | re.MULTILINE)
)


#: What the page calls the types of fields.
WORD_OF: dict[type[FieldType], str] = {
    Text: "string",
    OneOf: "string",
    Boolean: "boolean",
    Integer: "integer",
    Number: "number",
    ListOf: "list",
    TupleOf: "`[",
    Object: "object",
    MapOf: "object",
    Reference: "object",
}


def described_fields(section: str) -> dict[str, tuple[str, str]]:
    """The fields of a section's table: name -> (type, what is said of it)."""
    rows = re.findall(r"^\| (`[^|]*) \| ([^|]+) \| ?([^|]*?) ?\|$", section, re.MULTILINE)
    return {name: (type_, said) for names, type_, said in rows for name in re.findall(r"`(\w+)`", names)}


def words(page: str) -> set[str]:
    """The words that a page quotes as code."""
    return {word for code in re.findall(r"`([^`]+)`", page) for word in re.findall(r"\w+", code)}


def section_of(event_type: str) -> str:
    """Where a type is described. The manifests refer to each other."""
    types = (contract.RUN_COMMITTED, contract.RUN_KEPT, event_type)
    return "".join(map(EVENTS.__getitem__, types if event_type in contract.MANIFESTS else (event_type,)))


@pytest.mark.parametrize("event_type", EVENT_FIELDS)
def test_every_event_type_is_described_with_its_fields(event_type: str) -> None:
    described, declared = described_fields(section_of(event_type)), EVENT_FIELDS[event_type]
    assert set(described) == set(declared.fields)
    optional = {name for name, (_, said) in described.items() if said.startswith("optional")}
    assert optional == set(declared.optional)
    for name, field in declared.fields.items():
        type_, _ = described[name]
        is_nullable = isinstance(field, Nullable)
        assert type_.startswith(WORD_OF[type(field.type if is_nullable else field)]), name
        if name in declared.required:
            assert type_.endswith("or null") is is_nullable, name


def names_within(field: FieldType) -> Iterator[str]:
    """The names of all fields below a field."""
    match field:
        case Object():
            yield from field.fields
            yield from itertools.chain.from_iterable(map(names_within, field.fields.values()))
        case TupleOf():
            yield from field.entries
        case Nullable():
            yield from names_within(field.type)
        case ListOf():
            yield from names_within(field.entry)
        case MapOf():
            yield from names_within(field.value)


@pytest.mark.parametrize("event_type", EVENT_FIELDS)
def test_what_stands_in_its_fields_is_described_too(event_type: str) -> None:
    assert set(names_within(EVENT_FIELDS[event_type])) <= words(section_of(event_type))


@pytest.mark.parametrize("name", DEFINITIONS)
def test_what_stands_in_many_events_is_described(name: str) -> None:
    assert set(names_within(DEFINITIONS[name])) <= words(PAGE)


def test_the_fields_of_every_event_are_described() -> None:
    head = PAGE[PAGE.index("\n## Events") : PAGE.index("\n**`application_started`**")]
    described = described_fields(head)
    assert set(described) == set(HEAD.fields)


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

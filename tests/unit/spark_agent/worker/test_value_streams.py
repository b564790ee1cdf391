"""Which values are kept, as what text, and what a redaction function lets through."""

from __future__ import annotations

import dataclasses
import json
import sys
import types
from types import SimpleNamespace
from typing import Any

import pytest

from spark_agent import contract
from spark_agent.delivery.settings import AgentSettings, read
from spark_agent.driver.nodes import Node
from spark_agent.driver.value_filters import filtered_operations
from spark_agent.worker.block_sink import Tally
from spark_agent.worker.value_streams import TextStream

SECRET = "4000123412341234"


@dataclasses.dataclass
class Guest:
    name: str
    card: str = dataclasses.field(default=SECRET, repr=False)


@dataclasses.dataclass
class Unreadable:
    name: str = "x"

    def __getattribute__(self, attribute: str) -> Any:
        if attribute == "name":
            raise OSError("no name")
        return super().__getattribute__(attribute)

    def __repr__(self) -> str:
        return "an unreadable"


class FakeRun:
    """Takes the blocks of a stream."""

    def __init__(self, **settings: Any) -> None:
        self.plan = SimpleNamespace(
            settings=AgentSettings(bootstrap_servers="", **settings), nodes=(1, 2), names=("map", "join")
        )
        self.tally = Tally()
        self.distinct_texts: set[tuple[str, int]] = set()
        self.texts: list[contract.Text] = []

    def emit(self, _node: int, _relation: str, _base_in: int, base_out: int, columns: dict[str, Any]) -> None:
        assert base_out == len(self.texts)
        self.texts += columns["text"]


def sent(*values: Any, relation: str = contract.VALUES, **settings: Any) -> FakeRun:
    run: Any = FakeRun(**settings)
    stream = TextStream(run, 2, relation)
    for value in values:
        assert stream.note(value) is value
    stream.close()
    return run


@pytest.fixture
def privacy(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A module `privacy` for a function `redact`."""
    module = types.ModuleType("privacy")
    monkeypatch.setitem(sys.modules, "privacy", module)
    return module


# -- texts ------------------------------------------------------------------------------------------


def test_a_value_is_cut_to_its_limit_and_counted() -> None:
    run = sent("123456", "12345", "1234567", b"123", (1, 2), values_max_characters=5)
    assert run.texts == [
        ("str", "1234…"),
        ("str", "12345"),
        ("str", "1234…"),
        ("bytes", "3132…"),
        ("json", "[1, …"),
    ]
    assert run.tally.cut == 4


def test_a_key_has_a_limit_of_its_own() -> None:
    run = sent("123456", "x" * 5_000, relation=contract.KEYS, values_max_characters=5)
    assert [len(text) for _, text in run.texts] == [6, contract.MAX_TEXT_CHARACTERS]
    assert run.tally.cut == 1


def test_of_a_long_list_only_the_beginning_is_written() -> None:
    kind, text = contract.whole_text([0] * 10**6, 100)
    assert kind == "json"
    assert 100 < len(text) < 1_000
    assert contract.typed_text({i: i for i in range(10**5)}, 20) == ("json", '{"0": 0, "1": 1, "2…')


def test_a_dataclass_is_json_of_the_fields_that_its_repr_shows() -> None:
    assert contract.typed_text(Guest("Ada")) == ("json", '{"name": "Ada"}')
    assert contract.typed_text((1, [Guest("Ada")])) == ("json", '[1, [{"name": "Ada"}]]')
    assert contract.typed_text(Guest) == ("repr", repr(Guest))


def test_what_has_no_json_is_its_repr() -> None:
    assert contract.typed_text(Unreadable()) == ("repr", "an unreadable")
    assert contract.typed_text({1, 2}) == ("repr", "{1, 2}")
    assert contract.typed_text([float("nan")]) == ("repr", "[nan]")


def test_a_column_of_any_characters_fits_a_block() -> None:
    blocks: list[bytes] = []
    run: Any = FakeRun(values_max_characters=contract.MAX_VALUE_CHARACTERS)
    run.emit = lambda node, relation, base_in, base_out, columns: blocks.append(
        contract.encode_block(contract.Block("app", node, 1, 0, 0, relation, columns=columns))
    )
    stream = TextStream(run, 2, contract.VALUES)
    for _ in range(9):
        stream.add("\0" * contract.MAX_VALUE_CHARACTERS)
    stream.close()
    assert max(map(len, blocks)) <= contract.MAX_BLOCK_BYTES


# -- filters ----------------------------------------------------------------------------------------


def numbers_chosen(nodes: str = "*", call_sites: str = "*") -> tuple[int, ...]:
    conf = {"spark.lineage.values.nodes": nodes, "spark.lineage.values.call.sites": call_sites}
    given = [
        Node(1, "map", call_site="/home/me/job.py:41"),
        Node(2, "join: map", call_site="/home/me/job.py:42", kind="step", operation=3),
        Node(3, "join", call_site="/home/me/job.py:42"),
        Node(4, "combine", call_site="/home/me/job.py:42", operation=-1),
        Node(5, "mapValues", call_site="/home/me/lib.py:7"),
        Node(7, "filter", call_site="In [12]:3"),
        Node(6, "collect", call_site="/home/me/job.py:50", kind="sink"),
    ]
    return filtered_operations(read(lambda key, default: conf.get(key, default)), given)


@pytest.mark.parametrize(
    ("nodes", "call_sites", "wanted"),
    [
        ("*", "*", (1, 3, 5, 7)),
        ("map*", "*", (1, 5)),
        ("join, mapValues", "*", (3, 5)),
        ("!map*", "*", (3, 7)),
        ("*,!join", "*", (1, 5, 7)),
        ("*", "job.py:4?", (1, 3)),
        ("*", "/home/*/lib.py:*", (5,)),
        ("map*", "job.py:*", (1,)),
        ("*", "!lib.py:*", (1, 3, 7)),
        ("*", "In [12]:*", (7,)),
        ("*", "!In [1?]:3", (1, 3, 5)),
        ("*", "In [1]:*", ()),
        ("MAP", "*", ()),
        ("", "", (1, 3, 5, 7)),
    ],
)
def test_values_are_chosen_by_name_and_call_site(
    nodes: str, call_sites: str, wanted: tuple[int, ...]
) -> None:
    assert numbers_chosen(nodes, call_sites) == wanted


# -- redaction --------------------------------------------------------------------------------------


def test_what_the_function_gives_is_what_is_sent(privacy: Any) -> None:
    asked = []

    def redact(*question: Any) -> Any:
        asked.append(question)
        return question[2].replace(SECRET, "***")

    privacy.redact = redact
    assert sent(f"card {SECRET}", redact="privacy:redact").texts == [("str", "card ***")]
    assert sent(SECRET, relation=contract.KEYS, redact="privacy:redact").texts == [("str", "***")]
    assert asked == [("join", "value", f"card {SECRET}"), ("join", "key", SECRET)]


def test_what_the_function_raises_on_is_withheld_and_counted(privacy: Any) -> None:
    def redact(_name: str, _kind: str, value: Any) -> Any:
        if value == 2:
            sys.exit(SECRET)
        return {"is": 10 // value}

    privacy.redact = redact
    run = sent(0, 1, 2, redact="privacy:redact")
    assert run.texts == [contract.WITHHELD, ("json", '{"is": 10}'), contract.WITHHELD]
    assert run.tally.failed_redactions == 2
    assert "privacy:redact raised SystemExit" in run.tally.problem
    assert SECRET not in run.tally.problem


@pytest.mark.parametrize("name", ["nowhere:redact", "privacy:missing", "privacy:text", "no colon", "json:"])
def test_without_the_function_everything_is_withheld(name: str, privacy: Any) -> None:
    privacy.text = "not a function"
    for relation in (contract.KEYS, contract.VALUES):
        run = sent(SECRET, json, relation=relation, redact=name)
        assert run.texts == [contract.WITHHELD] * 2
        assert run.tally.failed_redactions == 2
        assert f"spark.lineage.redact={name}" in run.tally.problem


def test_a_name_that_is_none_is_told_and_still_closes_the_door() -> None:
    settings = read(lambda key, default: {"spark.lineage.redact": "privacy.redact"}.get(key, default))
    assert settings.redact == "privacy.redact"
    assert "not MODULE:FUNCTION" in settings.problems[0]


@pytest.mark.parametrize("text", ["0", "-1", "65537", "many", "9" * 40])
def test_a_limit_that_cannot_be_is_told(text: str) -> None:
    conf = {"spark.lineage.values.max.characters": text}
    settings = read(lambda key, default: conf.get(key, default))
    assert settings.values_max_characters == contract.MAX_TEXT_CHARACTERS
    assert text in settings.problems[0]

"""Texts that are encoded together are those of each value on its own, whatever the values and their order."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_agent import contract
from spark_agent.contract import Block
from spark_agent.delivery.settings import AgentSettings
from spark_agent.worker import value_streams
from spark_agent.worker.block_sink import Tally
from spark_agent.worker.value_streams import TextStream


class Name(str):
    """Equal to the string, and not the same value."""


SCALARS = st.sampled_from(
    [
        0,
        1,
        -1,
        1.0,
        True,
        False,
        0.0,
        -0.0,
        None,
        "",
        "a",
        "1",
        "\ud800",
        "ü" * 70,
        "x" * 300,
        Name("a"),
        10**30,
    ]
)
VALUES = (
    SCALARS
    | st.tuples(SCALARS, SCALARS)
    | st.tuples(SCALARS, SCALARS, SCALARS)
    | st.lists(SCALARS, max_size=3)
)


class Run:
    """Takes blocks as a consumer does."""

    def __init__(self, application_id: str, limit: int) -> None:
        settings = AgentSettings(bootstrap_servers="", values_max_characters=limit)
        self.plan = SimpleNamespace(application_id=application_id, settings=settings, nodes=(), names=())
        self.tally = Tally()
        self.distinct_texts: set[tuple[str, int]] = set()
        self.texts: list[contract.Text] = []

    def emit(self, node: int, relation: str, _base_in: int, base_out: int, columns: dict[str, Any]) -> None:
        assert base_out == len(self.texts)
        message = contract.encode_block(Block("app", node, 1, 0, 0, relation, columns=columns))
        assert len(message) <= contract.MAX_BLOCK_BYTES
        self.texts += contract.decode_block(message).columns["text"]


def texts_of(
    records: list[Any], limit: int = contract.MAX_TEXT_CHARACTERS
) -> tuple[list[contract.Text], Tally]:
    run: Any = Run("app", limit)
    stream = TextStream(run, 1, contract.VALUES)
    for passed, record in zip(stream.through(records), records, strict=True):
        assert passed is record
    stream.close()
    return run.texts, run.tally


def received(text: contract.Text) -> contract.Text:
    return text[0], text[1].encode("utf-8", "surrogatepass").decode("utf-8", "replace")


@given(st.lists(VALUES, max_size=60), st.sampled_from([1, 5, 300, contract.MAX_TEXT_CHARACTERS]))
def test_texts_together_are_those_of_each_value(records: list[Any], limit: int) -> None:
    texts, tally = texts_of(records, limit)
    assert texts == [received(contract.typed_text(record, limit)) for record in records]
    assert tally.cut == sum(len(contract.whole_text(record, limit)[1]) > limit for record in records)


@pytest.mark.parametrize(
    "records",
    [
        [f"word {number % 7}" for number in range(200_000)],
        [f"word {number}" for number in range(20_000)],
        [("word", number % 3) for number in range(10_000)] + [("word", number) for number in range(10_000)],
        [{"number": number} for number in range(9_000)],
        ["\0" * 256 + str(number % 3_000) for number in range(9_000)],
        ["short"] * 5_000 + ["\0" * value_streams.SHORT] * 500 + [("\0" * 64, "\0" * 64)] * 500,
        ["\0" * 4_096] * 300,
    ],
    ids=["few words", "different words", "pairs", "dictionaries", "long", "mixed", "longest"],
)
def test_blocks_of_many_values_fit_and_say_each(records: list[Any]) -> None:
    assert texts_of(records)[0] == list(map(contract.typed_text, records))


def test_a_value_that_changes_later_keeps_its_text() -> None:
    reused = [0]
    run: Any = Run("app", 100)
    stream = TextStream(run, 1, contract.VALUES)
    for number, _ in enumerate(stream.through(reused for _ in range(300))):
        reused[:] = [number + 1]
    stream.close()
    assert run.texts == [("json", f"[{number}]") for number in range(300)]


@given(st.lists(VALUES | st.just(ValueError), max_size=300))
def test_what_comes_after_a_record_that_raised_is_noted_too(records: list[Any]) -> None:
    def read(record: Any) -> Any:
        if record is ValueError:
            raise ValueError
        return record

    run: Any = Run("app", contract.MAX_TEXT_CHARACTERS)
    stream = TextStream(run, 1, contract.VALUES)
    passing, ended = stream.through(map(read, records)), object()
    record: Any = None
    while record is not ended:
        with contextlib.suppress(ValueError):
            record = next(passing, ended)
    stream.close()
    assert run.texts == [
        received(contract.typed_text(record)) for record in records if record is not ValueError
    ]


def test_long_values_that_repeat_come_in_blocks_that_readers_take() -> None:
    value = "x" * 59_000  # the longest that is written once for many
    texts, _ = texts_of([value] * 10_000, contract.MAX_VALUE_CHARACTERS)
    assert texts == [("str", value)] * 10_000

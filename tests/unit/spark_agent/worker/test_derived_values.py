"""Which functions are known to parse JSON, or to give a pair with a constant: none that may do more."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from json import loads
from typing import Any

import pytest

from spark_agent.worker.derived_values import Pair, pair_made, parses_json

other = json.dumps


class Parser:
    loads = staticmethod(json.dumps)


def parse(line: str) -> Any:
    return json.loads(line)


@pytest.mark.parametrize(
    "function", [json.loads, parse, lambda line: json.loads(line), lambda line: loads(line), loads]
)
def test_functions_that_parse_json_are_known(function: Callable[[Any], Any]) -> None:
    assert parses_json(function)


def generated(line: str) -> Any:
    yield json.loads(line)


@pytest.mark.parametrize(
    "function",
    [
        json.dumps,
        functools.partial(json.loads),
        lambda line: json.loads(line)["text"],
        lambda line: json.loads(line, parse_int=str),
        lambda line: json.loads(line, **{}),
        lambda line: json.loads(line.strip()),
        lambda line, more="": json.loads(more),
        lambda *line: json.loads(line),
        lambda line: json.loads,
        lambda line: json.load(line),
        lambda line: Parser.loads(line),
        lambda line: other(line),
        lambda line: line.loads(line),
        lambda line: missing.loads(line),  # type: ignore[name-defined] # noqa: F821 - a name that is not there
        lambda line: json.loads(json),
        lambda line: (json.loads(line),),
        lambda line: lambda: json.loads(line),
        generated,
        None,
    ],
)
def test_functions_that_may_do_more_than_parse_are_not_taken(function: Any) -> None:
    assert not parses_json(function)


def test_another_parser_in_the_place_of_json_loads_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json, "loads", json.dumps)
    assert not parses_json(parse)
    assert not parses_json(json.loads)


def plainly(line: str) -> tuple[str, int]:
    fields = line.split(",")
    return fields[0], 1


@pytest.mark.parametrize(
    ("function", "pair"),
    [
        (lambda word: (word, 1), Pair(1, True)),
        (lambda word, more=0: (word, None), Pair(None, True)),
        (lambda word: (word, "one"), Pair("one", True)),
        (lambda word: (word, 100_000), Pair(100_000, True)),
        (lambda word: (word.lower(), 1), Pair(1, False)),
        (lambda row: (row[0], True), Pair(True, False)),
        (lambda word, more=0: (more, 1), Pair(1, False)),
        (lambda *words: (words, 1), Pair(1, False)),
        (lambda word: ((word, word), 1), Pair(1, False)),
        (lambda word: (lambda: word, 1), Pair(1, False)),
        (lambda word: (word if len(word) > 1 else 0, 1), Pair(1, False)),
        (plainly, Pair(1, False)),
    ],
)
def test_pairs_with_a_constant_are_known(function: Any, pair: Pair) -> None:
    assert pair_made(function) == pair


def assigned(word: str) -> Any:
    word = word.lower()
    return word, 1


def sometimes(word: str) -> Any:
    if word:
        return word, 1
    return None


def falls_through(word: str) -> Any:
    if word:
        return word, 1


def swallows(word: str) -> Any:
    with pytest.raises(ValueError, match="x"):
        return word.index("x"), 1


def gives(word: str) -> Any:
    yield word, 1


async def waits(word: str) -> Any:
    return word, 1


def test_an_argument_that_was_set_anew_is_not_the_argument() -> None:
    assert pair_made(assigned) == Pair(1, False)


@pytest.mark.parametrize(
    "function",
    [
        lambda word: (word, 1, 2),
        lambda word: [word, 1],
        lambda word: (1, word),
        lambda word: (word, word),
        lambda word: (word, 1 if word else 2),
        lambda word: (word, word or 1),
        lambda word: (word, word and 1),
        lambda word: (word, 1.5),
        lambda word: (word, ()),
        lambda word: (word, len),
        lambda word: (word, 1) if word else (word, "2"),
        lambda word: word and (word, 1),
        lambda word: (1, 2),
        sometimes,
        falls_through,
        swallows,
        gives,
        waits,
        functools.partial(plainly),
        dict.items,
        None,
    ],
)
def test_what_may_give_anything_else_is_no_pair(function: Any) -> None:
    assert pair_made(function) is None

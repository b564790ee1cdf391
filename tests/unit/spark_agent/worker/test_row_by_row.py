"""Which sources the outputs of a function of a partition have: a catalogue of functions of all kinds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
import pytest

from spark_agent.worker import partition_sources
from spark_agent.worker.reading import analysis, decision, instructions
from tests.support.generators.batches import BATCHES
from tests.support.generators.by_row import BY_ROW, KEPT_BOUNDS
from tests.support.generators.capture import captured
from tests.support.generators.hostile import HOSTILE
from tests.support.generators.setup import ROWS


def test_the_catalogue_is_large_and_a_third_of_it_is_hostile() -> None:
    total = len(BY_ROW) + len(BATCHES) + len(HOSTILE)
    assert total >= 60
    assert 3 * len(HOSTILE) >= total


@pytest.mark.parametrize("name", BY_ROW)
def test_an_output_is_made_of_its_row(name: str) -> None:
    of_each = [list(BY_ROW[name](iter([row]))) for row in ROWS]
    outputs, sources = captured(BY_ROW[name], ROWS)
    assert outputs == [output for of_row in of_each for output in of_row]
    assert sources == [[position] for position, of_row in enumerate(of_each) for _ in of_row]


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("many", [len(ROWS), 7, 3, 1, 0])
def test_an_output_is_made_of_its_batch(name: str, many: int) -> None:
    function, truth = BATCHES[name]
    rows = ROWS[:many]
    outputs, sources = captured(function, rows)
    assert outputs == list(function(iter(rows)))
    assert sources == truth(rows)


@pytest.mark.parametrize("name", HOSTILE)
def test_what_carries_something_on_stays_a_bound(name: str) -> None:
    _outputs, sources = captured(HOSTILE[name], ROWS)
    assert sources is None


@pytest.mark.parametrize("name", KEPT_BOUNDS)
def test_what_is_not_understood_stays_a_bound(name: str) -> None:
    _outputs, sources = captured(KEPT_BOUNDS[name], ROWS)
    assert sources is None


@pytest.fixture
def unknown_python(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    caches = (
        analysis.effects_of,
        analysis.read_generator,
        decision.decision_on,
        decision.listing_by,
        instructions.blocks_of,
    )
    monkeypatch.setattr(instructions, "VERSIONS", frozenset())
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


@pytest.mark.usefixtures("unknown_python")
def test_in_a_python_whose_bytecode_is_not_known_functions_stay_bounds() -> None:
    functions = {name: function for name, (function, _truth) in BATCHES.items()} | BY_ROW | HOSTILE
    exact = {name for name, function in functions.items() if captured(function, ROWS)[1] is not None}
    assert exact == {"decorated_map", "behind_a_line"}  # of functions of Python's own


def test_who_reads_a_few_outputs_gets_their_sources() -> None:
    outputs, sources = captured(BATCHES["behind_a_header"][0], ROWS, many=3)
    assert outputs == ["header", "b", "a:1"]
    assert sources == [[], [0, 1, 2], [0, 1, 2]]


def test_an_error_in_the_middle_is_raised_as_it_is() -> None:
    def failing(rows: Iterator[str]) -> Any:
        batch = []
        for row in rows:
            batch.append(len(row) // (row != "e"))
            if len(batch) == 2:
                yield batch
                batch = []

    with pytest.raises(ZeroDivisionError):
        captured(failing, ROWS)


def test_rows_that_many_outputs_are_made_of_are_not_named_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_sources, "MAX_NAMED", 20)
    function, truth = BATCHES["flushed_and_new_list"]
    assert captured(function, ROWS[:6])[1] == truth(ROWS[:6])
    outputs, sources = captured(function, ROWS)
    assert sources is None
    assert outputs == list(function(iter(ROWS)))


def changed_in_place(rows: Iterator[str]) -> Any:
    total = numpy.zeros(1)
    for row in rows:
        numpy.add(total, len(row), out=total)
        yield float(total[0])


def changed_by_a_call(rows: Iterator[str]) -> Any:
    total = numpy.zeros(1)
    for row in rows:
        numpy.copyto(total, total + len(row))
        yield float(total[0])


def changed_by_an_operator(rows: Iterator[str]) -> Any:
    total = numpy.zeros(1)
    for row in rows:
        total += len(row)
        yield float(total[0])


@pytest.mark.parametrize("function", [changed_in_place, changed_by_a_call, changed_by_an_operator])
def test_an_array_of_a_library_may_hold_earlier_rows(function: Any) -> None:
    assert captured(function, ROWS)[1] is None


def test_an_object_of_a_library_is_taken_for_a_model() -> None:
    def scored(rows: Iterator[str]) -> Any:
        weights = numpy.ones(2)
        for row in rows:
            yield float(weights.dot(numpy.array([len(row), 1])))

    outputs, sources = captured(scored, ROWS)
    assert outputs == [len(row) + 1 for row in ROWS]
    assert sources == [[position] for position in range(len(ROWS))]


def test_an_object_that_cannot_be_looked_at_does_no_harm() -> None:
    class Shy:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(name)

        def __hash__(self) -> int:
            raise RuntimeError

    def function(rows: Iterator[str]) -> Any:
        shy = Shy()
        for row in rows:
            yield row if shy else shy.other(row)

    assert captured(function, ROWS) == (ROWS, None)


def test_the_end_of_a_generator_that_is_left_early_is_not_put_off() -> None:
    ended = []

    def closing(rows: Iterator[str]) -> Any:
        try:
            for row in rows:
                yield row.upper()
        finally:
            ended.append(True)

    captured(closing, ROWS, many=2)
    assert ended == [True]

"""Where a look from outside finds a task: at the record of a function, or at none."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from spark_agent.worker.operators.adapters import Sort
from spark_agent.worker.operators.narrow import Filter, FlatMap, Map
from spark_agent.worker.process_state import worker_process
from spark_agent.worker.record_at_hand import AtHand, record_at_hand
from tests.support.observed_chains import ENDS, OPERATORS, Observed, chain_of, run_chain

MANY = 12_000  # more than an operator handles in one way


def said() -> AtHand | None:
    """Of the function that calls this one."""
    run = worker_process.run
    assert run is not None
    return record_at_hand(sys._getframe(1), run.stages)


@pytest.mark.parametrize("step", OPERATORS)
def test_a_function_is_at_its_input(step: str) -> None:
    observed = Observed()
    run_chain(((at % 5, at) for at in range(MANY)), chain_of(observed, [step]))
    assert len(observed.seen) >= MANY - 1
    assert [pair for pair in observed.seen if pair[0] != pair[1]] == []


@pytest.mark.parametrize("end", ENDS)
def test_the_end_of_a_chain_is_at_its_input(end: str) -> None:
    observed = Observed()
    run_chain([(at % 5, at) for at in range(3_000)], chain_of(observed, ["map"], end))
    assert [pair for pair in observed.seen if pair[0] != pair[1]] == []
    assert len(observed.seen) == 6_000


def test_a_task_that_reads_is_at_no_record() -> None:
    seen: list[AtHand | None] = []

    def records() -> Iterator[int]:
        for at in range(10):
            seen.append(said())
            yield at

    run_chain(records(), [Map(lambda record: record + 1), Filter(lambda record: record % 2)])
    assert seen == [None] * 10


def test_a_sort_is_at_no_record() -> None:
    seen: list[AtHand | None] = []

    class Key(int):
        def __lt__(self, other: Any) -> bool:
            seen.append(said())
            return int(self) < int(other)

    pairs = [(Key(-at), at) for at in range(20)]
    run_chain(pairs, [Map(lambda pair: pair), Sort(lambda records: sorted(records))])
    assert seen
    assert set(seen) == {None}


def test_two_lazy_results_in_each_other_are_told_apart() -> None:
    seen: list[AtHand | None] = []

    def lazily(record: Any) -> Iterator[Any]:
        for _ in range(2):
            seen.append(said())
            yield record

    run_chain(range(2), [FlatMap(lazily), FlatMap(lazily)])
    outer = [at_hand.position for at_hand in seen if at_hand is not None and at_hand.node == 1]
    inner = [at_hand.position for at_hand in seen if at_hand is not None and at_hand.node == 2]
    assert (outer, inner) == ([0, 0, 1, 1], [0, 0, 1, 1, 2, 2, 3, 3])


def test_nothing_is_held_of_the_records() -> None:
    class Record:
        pass

    alive: list[weakref.ref[Record]] = []

    def records() -> Iterator[Record]:
        for _ in range(5):
            record = Record()
            alive.append(weakref.ref(record))
            yield record
            del record
            gc.collect()
            assert alive[-1]() is None

    def function(record: Record) -> list[int]:
        assert said() == AtHand(1, len(alive) - 1)
        return [1]

    run_chain(records(), [FlatMap(function), Map(lambda number: (said(), number)[1])])
    assert len(alive) == 5

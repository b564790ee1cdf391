"""Operations in one task, without Spark: random jobs with loops give what plain Python gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark import shuffle

from spark_agent.worker.record_lists import Of, Step, TaskProgram
from tests.support.spark import looped_program as looped


@pytest.fixture(scope="module", autouse=True)
def _hash_seed() -> Iterator[None]:
    """As workers have it: PySpark hashes no text without."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONHASHSEED", "0")
        yield


class Recorded:
    """As an RDD, of which each operation becomes a step of a program."""

    def __init__(self, steps: list[Step], step: Step) -> None:
        self.steps, self.at = steps, len(steps)
        steps.append(step)

    def __getattr__(self, name: str) -> Any:
        def operation(*arguments: Any) -> Recorded:
            others = [Of(one.at) if isinstance(one, Recorded) else one for one in arguments]
            return Recorded(self.steps, Step(len(self.steps), name, [Of(self.at), *others]))

        return operation


LINES = st.lists(st.builds("{} {}".format, st.integers(0, looped.KEYS - 1), st.integers(0, 20)), max_size=12)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), LINES, LINES)
def test_a_job_gives_what_plain_python_gives(seed: int, left: list[str], right: list[str]) -> None:
    steps: list[Step] = []
    sources = [Recorded(steps, Step(at, "textFile", lines=lines)) for at, lines in enumerate((left, right))]
    looped.job(seed, *(source.map(looped.pair_of) for source in sources)).map(looped.text_of)
    run = TaskProgram(steps, list, frozenset()).run()
    assert Counter(run.seen) == looped.plain(seed, left, right)


def extended(one: list[int], other: list[int]) -> list[int]:
    one.extend(other)
    return one


def test_a_function_that_changes_a_record_changes_a_copy() -> None:
    steps = [
        Step(0, "textFile", lines=["a", "a", "b"]),
        Step(1, "map", [Of(0), lambda line: (line, [1])]),
        Step(2, "reduceByKey", [Of(1), extended, 1]),
        Step(3, "mapValues", [Of(2), lambda ones: ones.append(9) or len(ones)]),
        Step(4, "mapValues", [Of(2), len]),
        Step(5, "join", [Of(3), Of(4), 1]),
    ]
    run = TaskProgram(steps, sorted, frozenset({2})).run()
    assert run.seen == [("a", (3, 2)), ("b", (2, 1))]
    assert run.keys == {2: ("a", "b")}


def test_what_a_function_raises_is_raised() -> None:
    steps = [Step(0, "textFile", lines=["1", "x"]), Step(1, "map", [Of(0), int])]
    with pytest.raises(ValueError, match="invalid literal"):
        TaskProgram(steps, list, frozenset()).run()


def test_a_union_has_records_as_often_as_they_were_put_in() -> None:
    steps = [Step(0, "textFile", lines=["a", "b"]), Step(1, "union", [[Of(0), Of(0)]], is_of_context=True)]
    assert sorted(TaskProgram(steps, list, frozenset()).run().seen) == ["a", "a", "b", "b"]


def test_groups_stay_in_memory_in_a_process_that_has_much_already(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffle, "get_used_memory", lambda: 100_000)
    spilled = []
    monkeypatch.setattr(shuffle.ExternalMerger, "_spill", lambda merger: spilled.append(merger))
    steps = [
        Step(0, "textFile", lines=[str(at) for at in range(5_000)]),
        Step(1, "map", [Of(0), lambda line: (int(line) % 7, 1)]),
        Step(2, "reduceByKey", [Of(1), lambda one, other: one + other, 1]),
    ]
    run = TaskProgram(steps, sorted, frozenset()).run()
    assert sum(count for _, count in run.seen) == 5_000
    assert not spilled

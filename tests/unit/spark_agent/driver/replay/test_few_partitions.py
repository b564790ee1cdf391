from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_agent.driver.replay.few_partitions import in_few_parts, one_partition, who_looks


@given(st.dictionaries(st.integers(0, 40), st.lists(st.text(max_size=2), max_size=3)))
def test_lines_keep_their_order_and_those_of_a_partition_stay_together(parts: dict[int, list[str]]) -> None:
    texts, count = in_few_parts({str(split): lines for split, lines in parts.items()})
    in_order = [line for split in sorted(parts) for line in parts[split]]
    assert [line for split in range(count) for line in texts.get(str(split), [])] == in_order
    assert 1 <= count <= 8
    assert all(texts.values())
    few = [lines for _, lines in sorted(parts.items()) if lines]
    if len(few) <= 8:
        assert [texts[str(split)] for split in range(len(texts))] == few


@pytest.mark.parametrize(("count", "parts"), [(0, 1), (1, 1), (8, 8), (9, 5), (16, 8), (30, 8), (1_000, 8)])
def test_many_partitions_become_few(count: int, parts: int) -> None:
    assert in_few_parts({str(split): [f"{split}"] for split in range(count)})[1] == parts


class Operations:
    def summed(self, function: Any, numPartitions: int | None = None, *, seed: int = 0) -> Any:
        return function, numPartitions, seed

    def mapped(self, function: Any) -> Any:
        return function


@pytest.mark.parametrize(
    ("arguments", "keywords"),
    [(("f", 30), {}), (("f",), {"numPartitions": 30}), (("f",), {}), ((), {"function": "f"})],
)
def test_an_operation_gives_one_partition(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    operation = one_partition(Operations.summed, Operations.summed)
    assert operation(Operations(), *arguments, **keywords) == ("f", 1, 0)
    assert operation(Operations(), *arguments, **keywords, seed=5) == ("f", 1, 5)


def test_one_that_does_not_let_its_caller_say_how_many_is_called_as_ever() -> None:
    assert one_partition(Operations.mapped, Operations.mapped)(Operations(), function="f") == "f"


def test_wrong_arguments_are_the_error_of_the_operation() -> None:
    with pytest.raises(TypeError, match=r"summed\(\) missing 1 required positional argument: 'function'"):
        one_partition(Operations.summed, Operations.summed)(Operations(), numPartitions=3)


def test_a_program_that_asks_for_partitions_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_agent.driver.replay.few_partitions._own_modules", lambda: iter(()))
    assert who_looks(lambda: "rdd.map(f).reduceByKey(add, 30)") == ""
    assert who_looks(lambda: "n = rdd.getNumPartitions()") == "getNumPartitions"
    assert who_looks(lambda: (tmp_path / "none.py").read_text()) == "code that cannot be read"


def test_so_is_a_module_of_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "helper_of_the_users.py"
    file.write_text("from pyspark import TaskContext")
    module = ModuleType("helper_of_the_users")
    module.__file__ = str(file)
    monkeypatch.setattr(sys, "modules", {"helper_of_the_users": module})
    assert who_looks(lambda: "") == "TaskContext"

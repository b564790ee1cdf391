"""Sifts in a session in memory: the fewest lines on which a job gives a wrong row."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest

from spark_agent.client.http import TraceError
from spark_agent.client.input_rows import NamedRow
from spark_agent.client.outputs_again import FailedRunError
from spark_agent.client.sifted_rows import sift_of, sifted
from spark_agent.driver.recipes import Recipe
from tests.support.memory_session import MemorySession

SUM = {0: ("textFile", []), 1: ("map", [0]), 2: ("saveAsTextFile", [1])}


def rows_of(numbers: Sequence[int]) -> list[NamedRow]:
    return [NamedRow(0, 0, at, "/in", at, str(number)) for at, number in enumerate(numbers)]


def is_large(text: str) -> bool:
    return float(text) > 100


def mean_of(rows: Collection[NamedRow]) -> list[str]:
    """Of all but one, which fails on a single row."""
    if len(rows) < 2:
        raise FailedRunError("ZeroDivisionError: division by zero")
    return [str(sum(int(row.text or "") for row in rows) / (len(rows) - 1))]


@pytest.mark.parametrize(
    ("numbers", "necessary"), [([1, 2, 3, 500], True), ([500, 600, 700, 800], False), ([1, 500], None)]
)
def test_a_run_that_fails_counts_as_passed_and_is_noted(numbers: list[int], necessary: bool | None) -> None:
    sift = sifted(rows_of(numbers), mean_of, is_large)
    assert len(sift.rows) == 2
    assert is_large(mean_of(sift.rows)[0])
    assert (sift.minimal, sift.necessary) == (True, necessary)
    (note,) = sift.notes
    assert note.endswith("counted as passed, as the operations failed: ZeroDivisionError: division by zero")


def test_where_all_rows_fail_to_run_nothing_is_said_of_the_output() -> None:
    with pytest.raises(TraceError, match=r"the rows of the lineage alone the operations fail \(Zero"):
        sifted(rows_of([500]), mean_of, is_large)
    with pytest.raises(TraceError, match="no output row of the lineage alone is wrong"):
        sifted(rows_of([5, 6]), mean_of, is_large)
    with pytest.raises(TraceError, match="the time was over before the first test"):
        sifted(rows_of([500, 600]), mean_of, is_large, until=0)


def test_an_output_that_is_wrong_of_nothing_is_said() -> None:
    sift = sifted(rows_of([5, 6]), lambda rows: ["101"], is_large)
    assert (sift.rows, sift.minimal) == ((), True)
    assert "it is not these inputs that are wrong" in str(sift)


def test_a_sift_behind_a_checkpoint_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    why = "it was checkpointed, and how it was made is forgotten then"
    recipe = Recipe(1, "map", source="/in", why_whole=why)
    session = MemorySession(lambda lines: lines[1], recipe, {"/in": ["7", "500"]}, {0: "/in"}, SUM)
    with pytest.raises(TraceError, match="textFile is not read again: map is read whole"):
        sift_of(session.chosen("500", {0: [1]}, monkeypatch), is_large)


def test_a_sift_next_to_a_source_that_is_read_whole_is_not_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    other = Recipe(5, "map", source="/more", why_whole="it was checkpointed")
    recipe = Recipe(6, "union", ([Recipe(0, "textFile", source="/in"), other],))
    files = {"/in": ["7", "500"], "/more": ["9"]}
    session = MemorySession(lambda lines: [*lines[0], *lines[5]], recipe, files, {0: "/in"}, SUM)
    sift = sift_of(session.chosen("500", {0: [1]}, monkeypatch), is_large)
    assert [row.text for row in sift.rows] == ["500"]
    assert (sift.exact, sift.notes) == (False, ("map is read whole (it was checkpointed)",))


def test_operations_that_raise_are_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def means(lines: dict[int, list[str]]) -> list[str]:
        return [str(sum(map(int, lines[0])) / (len(lines[0]) - 1))] if lines[0] else []

    recipe = Recipe(1, "mapPartitions", (Recipe(0, "textFile", source="/in"),))
    session = MemorySession(means, recipe, {"/in": ["1", "2", "500"]}, {0: "/in"}, SUM)
    sift = sift_of(session.chosen("251.5", {0: [0, 1, 2]}, monkeypatch), is_large)
    assert len(sift.rows) == 2
    assert "500" in {row.text for row in sift.rows}
    assert sift.exact
    assert any("ZeroDivisionError" in note for note in sift.notes)

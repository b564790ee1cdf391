"""Influences in a session in memory, against the job on the files without one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from spark_agent.client.http import TraceError
from spark_agent.client.input_rows import NamedRow
from spark_agent.client.left_out_rows import Influence, influence_of, input_rows_of
from spark_agent.driver.recipes import Recipe
from tests.support.memory_session import MemorySession

CHECKPOINTED = "it was checkpointed, and how it was made is forgotten then"
LINES = ["a,1", "b,2", "a,4", "b,8", "a,16"]
SUMS = {0: ("textFile", []), 1: ("map", [0]), 2: ("reduceByKey", [1]), 3: ("saveAsTextFile", [2])}


def fields(line: str) -> tuple[str, int]:
    key, number = line.split(",")
    return key, int(number)


def sums_of(lines: Iterable[str]) -> list[str]:
    sums: Counter[str] = Counter()
    for key, number in map(fields, lines):
        sums[key] += number
    return [f"('{key}', {total})" for key, total in sums.items()]


def source(number: int, path: str = "/in", why_whole: str = "") -> Recipe:
    return Recipe(number, "textFile", source=path, why_whole=why_whole)


def without(influence: Influence) -> dict[str | None, str | None]:
    return {row.text: row.without for row in influence.inputs}


def test_rows_behind_a_checkpoint_cannot_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = Recipe(1, "map", source="/in", why_whole=CHECKPOINTED)
    recipe = Recipe(2, "reduceByKey", (pairs,), {"func": max})
    session = MemorySession(lambda lines: sums_of(lines[1]), recipe, {"/in": LINES}, {0: "/in"}, SUMS)
    why = "textFile is not read again: map is read whole .it was checkpointed.*so none of its rows can be"
    with pytest.raises(TraceError, match=why):
        influence_of(session.chosen("('a', 21)", {0: [0, 2, 4]}, monkeypatch))


def test_a_source_that_is_checkpointed_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Recipe(2, "glom", (source(0, why_whole=CHECKPOINTED),))
    session = MemorySession(lambda lines: sums_of(lines[0]), recipe, {"/in": LINES}, {0: "/in"}, SUMS)
    with pytest.raises(TraceError, match=r"textFile is read whole \(it was checkpointed"):
        influence_of(session.chosen("('a', 21)", {0: [0, 2, 4]}, monkeypatch))


def test_another_source_that_is_read_whole_makes_it_unsure(monkeypatch: pytest.MonkeyPatch) -> None:
    other = Recipe(4, "map", source="/more", why_whole=CHECKPOINTED)
    recipe = Recipe(5, "union", ([source(0), other],))
    session = MemorySession(
        lambda lines: sums_of([*lines[0], *lines[4]]),
        recipe,
        {"/in": LINES, "/more": ["c,9"]},
        {0: "/in"},
        SUMS,
    )
    influence = influence_of(session.chosen("('a', 21)", {0: [0, 2, 4]}, monkeypatch))
    assert without(influence) == {"a,1": "('a', 20)", "a,4": "('a', 17)", "a,16": "('a', 5)"}
    assert (influence.exact, influence.notes) == (False, (f"map is read whole ({CHECKPOINTED})",))


def joined(lines: dict[int, list[str]]) -> list[str]:
    return [f"{one} {two}" for one in lines[0] for two in lines[1] if one[0] == two[0]]


SELF_JOIN = {
    **{0: ("textFile", []), 1: ("textFile", []), 2: ("map", [0]), 3: ("map", [1])},
    **{4: ("join", [2, 3]), 5: ("saveAsTextFile", [4])},
}


@pytest.mark.parametrize("operation", ["join", "zipWithIndex"])  # of the second, rows outside may matter
def test_a_row_that_two_sources_read_is_left_out_of_each(
    operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["k one", "l two", "k three"]
    pairs = [Recipe(number + 2, "map", (source(number),), {"f": len}) for number in (0, 1)]
    session = MemorySession(
        joined,
        Recipe(4, "join", (*pairs,)),
        {"/in": lines},
        {0: "/in", 1: "/in"},
        {**SELF_JOIN, 4: (operation, [2, 3])},
    )
    influence = influence_of(session.chosen("k one k three", {0: [0], 1: [2]}, monkeypatch))
    assert [(row.row, row.without) for row in influence.inputs] == [(0, None), (2, None)]
    both = influence_of(session.chosen("l two l two", {0: [1], 1: [1]}, monkeypatch))
    assert [(row.path, row.row, row.without) for row in both.inputs] == [("/in", 1, None)]
    assert both.exact
    assert both.notes == ()


def counted(lines: dict[int, list[str]]) -> list[str]:
    """Each line of the first source with how many lines the second one has."""
    return [f"{line},{len(lines[1])}" for line in lines[0]]


@pytest.mark.parametrize("name", ["cartesian", "map?"])
def test_where_rows_outside_of_the_lineage_matter_a_row_is_left_out_of_every_reader(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["k", "l", "m"]
    recipe = Recipe(2, "cartesian", (source(0), source(1)))
    operations = {**{0: ("textFile", []), 1: ("textFile", []), 2: (name, [0, 1]), 3: ("saveAsTextFile", [2])}}
    session = MemorySession(counted, recipe, {"/in": lines}, {0: "/in", 1: "/in"}, operations)
    influence = influence_of(session.chosen("k,3", {0: [0], 1: [2]}, monkeypatch))
    assert [(row.text, row.without) for row in influence.inputs] == [("k", None), ("m", "k,2")]


def test_an_operation_with_an_upper_bound_runs_on_all_rows_but_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def largest(lines: dict[int, list[str]]) -> list[str]:
        return [max(lines[0])]

    recipe = Recipe(1, "mapPartitions", (source(0),))
    operations = {0: ("textFile", []), 1: ("map?", [0]), 2: ("saveAsTextFile", [1])}
    session = MemorySession(largest, recipe, {"/in": LINES}, {0: "/in"}, operations)
    influence = influence_of(session.chosen("b,8", {0: [3]}, monkeypatch))
    assert [(row.text, row.without) for row in influence.inputs] == [("b,8", "b,2")]


def test_a_run_that_fails_says_nothing_of_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def shares(lines: dict[int, list[str]]) -> list[str]:
        total = sum(map(int, lines[0]))
        if not total:
            raise ValueError("nothing to share")
        return [f"k {100 // total}"]

    recipe = Recipe(1, "mapPartitions", (source(0),))
    operations = {0: ("textFile", []), 1: ("map", [0]), 2: ("saveAsTextFile", [1])}
    session = MemorySession(shares, recipe, {"/in": ["5", "3", "-3"]}, {0: "/in"}, operations)
    influence = influence_of(session.chosen("k 20", {0: [0, 1, 2]}, monkeypatch))
    assert {row.text: (row.failed, row.without) for row in influence.inputs} == {
        "5": (True, None),
        "3": (False, "k 50"),
        "-3": (False, "k 12"),
    }
    why = "without 1 of the rows the operations failed: ValueError: nothing to share"
    assert (influence.exact, influence.notes) == (False, (why,))
    assert "      failed  /in:1  5" in str(influence)


def test_operations_that_fail_on_all_rows_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(lines: dict[int, list[str]]) -> list[str]:
        raise ValueError("no more\nof this")

    recipe = Recipe(1, "mapPartitions", (source(0),))
    operations = {0: ("textFile", []), 1: ("map", [0]), 2: ("saveAsTextFile", [1])}
    session = MemorySession(failing, recipe, {"/in": LINES}, {0: "/in"}, operations)
    with pytest.raises(TraceError, match=r"with no row left out: ValueError: no more$"):
        influence_of(session.chosen("a,1", {0: [0]}, monkeypatch))


@pytest.mark.parametrize("function", ["a lock", "raises"])
def test_a_function_that_cannot_run_in_the_driver_is_run(
    function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raises(line: str) -> Any:
        raise RuntimeError(line)

    class Unpickled:
        def __reduce__(self) -> Any:
            raise RuntimeError("not in the driver")

        def __call__(self, line: str) -> Any:
            return line

    pairs = Recipe(1, "map", (source(0),), {"f": raises if function == "raises" else Unpickled()})
    recipe = Recipe(2, "reduceByKey", (pairs,), {"func": max})
    session = MemorySession(lambda lines: sums_of(lines[0]), recipe, {"/in": LINES}, {0: "/in"}, SUMS)
    influence = influence_of(session.chosen("('b', 10)", {0: [1, 3]}, monkeypatch))
    assert (influence.way, influence.exact) == ("runs", True)
    assert influence.why.startswith("a function of the job raised RuntimeError")
    assert without(influence) == {"b,2": "('b', 8)", "b,8": "('b', 2)"}


def test_what_is_folded_needs_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = Recipe(1, "map", (source(0),), {"f": fields})
    recipe = Recipe(2, "reduceByKey", (pairs,), {"func": lambda one, other: one + other})
    session = MemorySession(lambda lines: sums_of(lines[0]), recipe, {"/in": LINES}, {0: "/in"}, SUMS)
    influence = influence_of(session.chosen("('a', 21)", {0: [0, 2, 4]}, monkeypatch))
    assert without(influence) == {"a,1": "('a', 20)", "a,4": "('a', 17)", "a,16": "('a', 5)"}
    assert (influence.way, influence.exact, session.runs) == ("folds", True, 0)


def test_records_of_the_same_row_of_a_file_are_one_input() -> None:
    def row(number: int, position: int, path: str | None) -> NamedRow:
        return NamedRow(number, 0, position, path, None if path is None else position, "x")

    records = [row(0, 1, "/in"), row(0, 2, "/in"), row(1, 1, "/in"), row(1, 1, "/other"), row(2, 1, None)]
    records.append(row(3, 1, None))
    places: Sequence[Sequence[int]] = [[record.source for record in of] for of in input_rows_of(records)]
    assert places == [[0, 1], [0], [1], [2], [3]]

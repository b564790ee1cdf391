"""The smallest failing rows, against brute force over tests of any kind."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lineage_service.replays.sift.candidates import Candidates
from lineage_service.replays.sift.ready_test import ready_test
from lineage_service.replays.specification import Plan
from spark_agent.contract.odd_rows import odd_first
from spark_agent.contract.row_sets import ranges_of, rows_in
from spark_agent.contract.smallest_rows import OutOfTimeError, SmallestRows, Subset

Test = Callable[[Subset], bool]


class Counted:
    """A test that notes what it was asked."""

    def __init__(self, test: Test, most: float = float("inf")) -> None:
        self._test, self._most = test, most
        self.asked: list[Subset] = []

    def __call__(self, rows: Subset) -> bool:
        if len(self.asked) >= self._most:
            raise OutOfTimeError
        self.asked.append(rows)
        return self._test(rows)


@st.composite
def monotone(draw: st.DrawFn) -> tuple[int, Test, list[int]]:
    """Fails where all rows of one of some sets are there."""
    count = draw(st.integers(1, 40))
    rows = st.integers(0, count - 1)
    culprits = draw(st.lists(st.frozensets(rows, min_size=1, max_size=6), min_size=1, max_size=3))
    order = draw(st.permutations(range(count)))
    return count, lambda some: any(culprit <= set(some) for culprit in culprits), order


@st.composite
def arbitrary(draw: st.DrawFn) -> tuple[int, Test, list[int]]:
    """Fails on any sets at all, with all rows among them."""
    count = draw(st.integers(1, 8))
    failing = draw(st.sets(st.integers(0, 2**count - 2), max_size=60)) | {2**count - 1}
    order = draw(st.permutations(range(count)))
    return count, lambda some: sum(1 << row for row in some) in failing, order


@given(monotone() | arbitrary())
def test_what_is_found_fails_and_no_row_can_be_left_out(problem: tuple[int, Test, list[int]]) -> None:
    count, test, order = problem
    counted = Counted(test)
    search = SmallestRows(count, counted, order)
    search.search()
    best = search.best
    assert best is not None
    assert test(best)
    assert search.is_minimal
    assert not best or not any(test(rest) for rest in combinations(best, len(best) - 1))
    assert search.is_necessary() == (not test(tuple(row for row in range(count) if row not in best)))
    assert len(counted.asked) == len(set(counted.asked)) == search.tests
    assert all(list(rows) == sorted(rows) for rows in counted.asked)


@given(monotone(), st.data())
def test_one_culprit_that_is_suspected_first_takes_three_tests(
    problem: tuple[int, Test, list[int]], data: st.DataObject
) -> None:
    count = problem[0] + 1
    culprit = data.draw(st.integers(0, count - 1))
    order = [culprit, *(row for row in range(count) if row != culprit)]
    search = SmallestRows(count, lambda rows: culprit in rows, order)
    search.search()
    assert search.best == (culprit,)
    assert search.tests <= 3  # all, none, this one


@given(monotone() | arbitrary(), st.integers(0, 12))
def test_there_is_an_answer_at_any_time(problem: tuple[int, Test, list[int]], most: int) -> None:
    count, test, order = problem
    counted = Counted(test, most)
    search = SmallestRows(count, counted, order, {tuple(range(count)): True})
    search.search()
    assert search.best is not None
    assert test(search.best)
    assert len(search.best) == min([count, *(len(rows) for rows in counted.asked if test(rows))])
    if search.is_minimal:
        assert not any(test(rest) for rest in combinations(search.best, max(len(search.best) - 1, 0))) or (
            not search.best
        )


@given(st.integers(0, 30))
def test_nothing_is_found_where_nothing_fails(count: int) -> None:
    search = SmallestRows(count, lambda rows: False)
    search.search()
    assert search.best is None
    assert not search.is_necessary()


@given(st.lists(st.text(max_size=20), max_size=30))
def test_odd_rows_are_an_order_of_all(texts: list[str]) -> None:
    assert sorted(odd_first(texts)) == list(range(len(texts)))


@given(st.lists(st.integers(0, 100), min_size=20, max_size=60), st.integers(0, 19), st.booleans())
def test_a_number_far_from_the_others_is_odd_and_is_tested_for(
    numbers: list[int], at: int, is_negative: bool
) -> None:
    wrong = -100_000 if is_negative else 100_000
    texts = [f"R{number % 7},{number}" for number in numbers]
    texts[at] = f"R1,{wrong}"
    assert odd_first(texts)[0] == at
    test = ready_test(texts[at], [text for number, text in enumerate(texts) if number != at])
    assert test.fails(texts[at])
    assert not any(test.fails(text) for number, text in enumerate(texts) if number != at)


POSITIONS = st.dictionaries(st.integers(0, 3), st.sets(st.integers(0, 20), min_size=1), max_size=3)


@given(st.dictionaries(st.integers(0, 3), POSITIONS, max_size=3), st.data())
def test_a_plan_has_the_chosen_rows_and_their_texts(
    rows_of: dict[int, dict[int, set[int]]], data: st.DataObject
) -> None:
    sources = [
        {
            "node": node,
            "name": "textFile",
            "whole": False,
            "files": [],
            "splits": [
                {"split": split, "positions": ranges_of(positions)}
                for split, positions in sorted(splits.items())
            ],
            "texts": {
                str(split): [f"{node} {split} {position}" for position in sorted(positions)]
                for split, positions in splits.items()
            },
        }
        for node, splits in rows_of.items()
    ]
    candidates = Candidates(sources)
    numbers = sorted(
        data.draw(st.sets(st.sampled_from(range(len(candidates.rows))))) if candidates.rows else ()
    )
    plan = candidates.plan(Plan(mode="only", sources=()), numbers)
    assert [source["node"] for source in plan.sources] == list(rows_of)
    chosen = {
        (source["node"], split["split"], position): text
        for source in plan.sources
        for split in source["splits"]
        for position, text in zip(
            rows_in(split["positions"]), source["texts"][str(split["split"])], strict=True
        )
    }
    assert chosen == {row: f"{row[0]} {row[1]} {row[2]}" for row in (candidates.rows[n] for n in numbers)}
    assert list(Candidates(plan.sources).rows) == sorted(chosen)
    assert candidates.common([Candidates(plan.sources)]).rows == Candidates(plan.sources).rows


@given(
    st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=3), min_size=1, max_size=3),
    st.data(),
)
def test_a_plan_has_the_chosen_rows_of_each_block(sizes: list[list[int]], data: st.DataObject) -> None:
    """`sizes`: how many rows each block of each partition has; of each row its partition and position."""
    rows = [(split, position) for split, of_split in enumerate(sizes) for position in range(sum(of_split))]
    meant = sorted(data.draw(st.sets(st.sampled_from(rows)))) if rows else []
    candidates = Candidates([scan(sizes, meant)])
    assert list(candidates.rows) == [(4, *row) for row in meant]
    numbers = sorted(data.draw(st.sets(st.sampled_from(range(len(meant)))))) if meant else []
    plan = candidates.plan(Plan(mode="only", sources=()), numbers)
    chosen = [meant[number] for number in numbers]
    pairs = zip(scan(sizes, chosen)["blocks"], scan(sizes, meant)["blocks"], strict=True)
    assert plan.sources[0]["blocks"] == [{**block, "candidates": whole["rows"]} for block, whole in pairs]
    assert list(Candidates(plan.sources).rows) == [(4, *row) for row in chosen]
    whole = candidates.whole_but([4], "for a reason")
    assert not whole.rows
    assert "blocks" not in whole.sources[0]


def scan(sizes: list[list[int]], rows: list[tuple[int, int]]) -> dict[str, Any]:
    splits = {split: [position for number, position in rows if number == split] for split, _ in rows}
    blocks = []
    for split, of_split in enumerate(sizes):
        first = 0
        for at, size in enumerate(of_split):
            inside = [
                position - first for position in splits.get(split, ()) if first <= position < first + size
            ]
            block = {"path": f"/in/{split}", "start": at * 10, "length": 10, "rows": ranges_of(inside)}
            blocks.append(block)
            first += size
    return {
        "node": 4,
        "name": "Scan csv",
        "whole": False,
        "files": [],
        "splits": [
            {"split": split, "positions": ranges_of(positions)} for split, positions in splits.items()
        ],
        "blocks": blocks,
    }

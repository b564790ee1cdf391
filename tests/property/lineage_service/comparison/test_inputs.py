"""Input rows of two runs: what both have is not listed, and nothing is lost or listed twice."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from lineage_service.comparison.inputs import Input, changed_inputs, paired_by_inputs


def inputs(folder: str) -> st.SearchStrategy[list[Input]]:
    """No two rows have one place."""
    files, texts = st.sampled_from(["a.csv", "b.csv"]), st.sampled_from(["x", "y", "z"])
    rows = st.builds(Input, files.map(lambda name: f"/{folder}/{name}"), st.integers(0, 4), texts)
    return st.lists(rows, max_size=8, unique_by=lambda row: row[:2])


@given(was=inputs("monday"), now=inputs("tuesday"))
def test_what_differs_are_the_texts_that_one_has_more_often(was: list[Input], now: list[Input]) -> None:
    pairs = changed_inputs(was, now)
    before, after = Counter(row.text for row in was), Counter(row.text for row in now)
    assert Counter(old.text for old, _ in pairs if old) == before - after
    assert Counter(new.text for _, new in pairs if new) == after - before
    for old, new in pairs:
        if old and new:
            assert (old.file, old.row) == (new.file, new.row)
            assert old.text != new.text
    assert {old for old, _ in pairs if old} <= set(was)
    assert {new for _, new in pairs if new} <= set(now)


@given(records=st.dictionaries(st.integers(0, 5), inputs("monday"), max_size=5))
def test_records_of_the_same_rows_are_paired_unless_there_are_several(
    records: dict[int, list[Input]],
) -> None:
    moved = {
        number + 10: [Input(f"/tuesday/{row.file}", row.row, row.text) for row in rows]
        for number, rows in records.items()
    }
    pairs = paired_by_inputs(records, moved)
    assert len({before for before, _ in pairs}) == len({after for _, after in pairs}) == len(pairs)
    names = {number: Counter((row.file, row.text) for row in rows) for number, rows in records.items()}
    for number, rows in records.items():
        is_only = list(names.values()).count(names[number]) == 1
        if rows and is_only:
            assert (number, number + 10) in pairs

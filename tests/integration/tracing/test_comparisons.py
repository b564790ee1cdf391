"""Two runs of a job: which of their rows differ, and because of which input rows."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lineage_service.errors import InvalidQueryError, NotFoundError, UnknownApplicationError
from lineage_service.lineage import Comparison
from lineage_service.queries import CompareQuery
from lineage_service.tracing.query import input_differences
from tests.support.linked_applications import Applications

MONDAY = ("a 1", "b 2", "c 3", "d 4", "d 4", "f 7")
TUESDAY = ("a 1", "b 5", "d 4", "e 6", "d 4")


@pytest.fixture
def applications(tmp_path: Path) -> Applications:
    """Each copies its input; `again` writes to where `tuesday` wrote."""
    applications = Applications(tmp_path)
    for began, name, rows in ((1_000, "monday", MONDAY), (2_000, "tuesday", TUESDAY)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "in").write_text("".join(f"{row}\n" for row in rows))
        applications.copy(name, began, tmp_path / name / "in", tmp_path / name / "out", (0, 5))
        applications.end(name)
    return applications


def compared(applications: Applications, **query: Any) -> Comparison:
    return applications.questions.compare(CompareQuery(**{"before": "monday", "after": "tuesday", **query}))


def test_without_a_key_rows_of_the_same_input_row_are_one(applications: Applications, tmp_path: Path) -> None:
    result = compared(applications)
    assert [run.application_id for run in result.runs] == ["monday", "tuesday"]
    assert [run.rows for run in result.runs] == [6, 5]
    [changed] = [pair for pair in result.changed if pair.was == {"value": "b 2"}]
    assert (changed.is_, changed.columns, changed.key) == ({"value": "b 5"}, ("value",), None)
    assert changed.because is not None
    [row] = changed.because
    assert (row.path, row.row, row.was, row.is_) == (str(tmp_path / "tuesday" / "in"), 1, "b 2", "b 5")
    assert (result.same, result.changed_total) == (3, len(result.changed))
    assert len(MONDAY) == result.same + len(result.gone) + len(result.changed)
    assert len(TUESDAY) == result.same + len(result.new) + len(result.changed)
    assert result.complete
    assert result.exact
    assert not result.truncated
    assert result.warnings == ()


def runs_of(folder: Path, **inputs: Sequence[str]) -> Applications:
    """Each run copies these rows, in two partitions."""
    applications = Applications(folder)
    for began, (name, rows) in enumerate(inputs.items(), 1):
        source = folder / name / "in"
        source.parent.mkdir()
        source.write_text("".join(f"{row}\n" for row in rows))
        applications.copy(name, began * 1_000, source, folder / name / "out", (0, source.stat().st_size // 2))
        applications.end(name)
    return applications


def alone(rows: Sequence[str], others: Sequence[str]) -> list[int]:
    """Which rows the others do not have, each as often as it is there: the last ones of these."""
    numbers = []
    for text in set(rows):
        places = [number for number, row in enumerate(rows) if row == text]
        numbers += places[min(len(places), others.count(text)) :]
    return sorted(numbers)


@pytest.mark.parametrize("seed", range(8))
def test_behind_a_row_that_is_gone_or_new_are_the_input_rows_of_that_run_alone(
    tmp_path: Path, seed: int
) -> None:
    """Rows move, and with a key a row says what is at its place in the other run, if that is of it alone."""
    random = Random(seed)
    rows = {name: random.sample("abcdefghijklmnop", random.randint(4, 12)) for name in ("monday", "tuesday")}
    result = compared(runs_of(tmp_path, **rows), key=("value",))
    sides = ("monday", "tuesday", result.gone, "was"), ("tuesday", "monday", result.new, "is_")
    for name, other, listed, word in sides:
        own, others = alone(rows[name], rows[other]), alone(rows[other], rows[name])
        # Of the second partition of a file it is not known which rows are at one place.
        at_place = {number: rows[other][number] for number in others}
        assert [row.columns["value"] for row in listed] == [rows[name][number] for number in own]
        for row, number in zip(listed, own, strict=True):
            assert row.because is not None
            [by] = row.because
            assert (by.path, by.row) == (str(tmp_path / name / "in"), number)
            assert getattr(by, word) == rows[name][number]
            counterpart = by.is_ if word == "was" else by.was
            assert counterpart in (None, at_place.get(number))
            assert row.because_note == ""
    assert result.exact


def test_an_input_row_at_the_place_of_another_one_is_that_one_changed(tmp_path: Path) -> None:
    result = compared(runs_of(tmp_path, monday=("a", "b", "c"), tuesday=("a", "x", "c")), key=("value",))
    for row in (*result.gone, *result.new):
        assert row.because is not None
        assert [(by.row, by.was, by.is_) for by in row.because] == [(1, "b", "x")]


@pytest.mark.parametrize(
    ("limit", "value", "note"),
    [
        ("MOST_ROWS", 2, "has more than 2 rows: they were not compared"),
        ("MOST_DIFFERENT", 1, "more than 1 rows of .* differ"),
    ],
)
def test_what_is_too_much_to_compare_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, note: str
) -> None:
    applications = runs_of(tmp_path, monday=("a", "b", "c"), tuesday=("x", "y", "c"))
    monkeypatch.setattr(input_differences, limit, value)
    result = compared(applications, key=("value",))
    assert len(result.gone) == len(result.new) == 2
    for row in (*result.gone, *result.new):
        assert row.because is None
        assert re.search(note, row.because_note)
    assert not result.exact


def test_of_input_rows_that_are_not_there_any_more_nothing_is_said(tmp_path: Path) -> None:
    applications = runs_of(tmp_path, monday=("a", "b", "c"), tuesday=("a", "c"))
    source = tmp_path / "tuesday" / "in"
    source.write_text("other\n")
    result = compared(applications)
    [row] = result.gone
    assert row.because is None
    assert row.because_note.startswith(
        f"input rows of tuesday cannot be read: {source}: the file has changed"
    )
    assert not result.exact


def test_with_a_key_what_another_key_has_is_gone_or_new(applications: Applications) -> None:
    with pytest.raises(InvalidQueryError, match=r"2 rows of monday have value = 'd 4'\. Give more columns"):
        compared(applications, key=("value",))
    with pytest.raises(InvalidQueryError, match="no column valeu to be a key: did you mean value"):
        compared(applications, key=("valeu",))


def test_a_trace_starts_at_each_row(applications: Applications) -> None:
    result = compared(applications, limit=1)
    assert result.truncated
    for row in (*result.gone, *result.new):
        application, node, record = row.record.split("#", 2)
        assert application in ("monday", "tuesday")
        assert (node, record.split("#")[0]) == ("1", "write")


def test_rows_that_were_overwritten_are_counted_only(applications: Applications, tmp_path: Path) -> None:
    out = tmp_path / "monday" / "out-0"
    before = out.stat().st_mtime_ns
    out.write_text("other\n")
    os.utime(out, ns=(before + 10**9, before + 10**9))
    result = compared(applications)
    assert (result.same, result.gone_total, result.gone, result.complete) == (None, None, (), False)
    assert [run.rows for run in result.runs] == [6, 5]
    [warning] = result.warnings
    assert warning.startswith(f"rows of monday (monday) cannot be read: {out}: the file has changed since")


def test_what_cannot_be_compared_is_one_sentence(applications: Applications, tmp_path: Path) -> None:
    with pytest.raises(InvalidQueryError, match="monday is one run: give two runs of a job"):
        compared(applications, after="monday")
    with pytest.raises(UnknownApplicationError):
        compared(applications, after="wednesday")
    with pytest.raises(InvalidQueryError, match="say which two applications, or which dataset"):
        compared(applications, before=None, after=None)
    with pytest.raises(NotFoundError, match="was once written by a run that ended well"):
        compared(applications, before=None, after=None, dataset=str(tmp_path / "monday" / "out-0"))
    with pytest.raises(NotFoundError, match="no application wrote or read a dataset"):
        compared(applications, dataset="/nowhere")

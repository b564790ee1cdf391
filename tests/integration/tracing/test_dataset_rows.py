"""Which application a dataset means, and which rows of its files fulfil a condition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lineage_service.errors import InvalidQueryError, NotFoundError, NothingMatchesError
from lineage_service.lineage import Choices
from lineage_service.queries import RowQuery, TraceQuery
from lineage_service.tracing.query import row_choices
from tests.support.linked_applications import Applications

ROWS = "".join(f"row {number}\n" for number in range(6))


@pytest.fixture
def applications(tmp_path: Path) -> Applications:
    """`early` and `late` copy the input to the same place, `reader` reads what `late` wrote."""
    (tmp_path / "input").write_text(ROWS)
    (tmp_path / "out").mkdir()
    applications = Applications(tmp_path)
    for name, began in (("early", 1_000), ("late", 3_000)):
        applications.copy(name, began, tmp_path / "input", tmp_path / "out" / "part", (0, 17))
    applications.copy("reader", 5_000, tmp_path / "out" / "part-0", tmp_path / "end")
    return applications


def rows(
    applications: Applications, dataset: Path | str, where: str = "value like 'row%'", **query: Any
) -> Choices:
    return applications.questions.rows(RowQuery(dataset=str(dataset), where=where, **query))


def test_the_newest_writer_is_meant_else_the_newest_reader(
    applications: Applications, tmp_path: Path
) -> None:
    out = rows(applications, tmp_path / "out")
    assert (out.application_id, out.direction, out.total, out.files) == ("late", "backward", 6, 2)
    assert rows(applications, tmp_path / "input").application_id == "late"
    assert rows(applications, tmp_path / "input").direction == "forward"
    assert rows(applications, "input").dataset == str(tmp_path / "input")  # as the catalogue names it
    assert rows(applications, "input", application="early").application_id == "early"
    with pytest.raises(NotFoundError, match="application reader neither wrote nor read"):
        rows(applications, "input", application="reader")
    assert rows(applications, tmp_path / "out", at=2_999).application_id == "early"
    assert rows(applications, tmp_path / "out", application="reader").direction == "forward"
    assert rows(applications, tmp_path / "out", application="early").total == 6
    assert rows(applications, tmp_path / "out", direction="forward").direction == "forward"
    with pytest.raises(NotFoundError, match="the first began at 1970-01-01 00:00:01 UTC"):
        rows(applications, tmp_path / "out", at=999)
    with pytest.raises(NotFoundError, match=f"nearest: .*{tmp_path}/out"):
        rows(applications, tmp_path / "outt")
    with pytest.raises(NotFoundError, match=r"no source or sink of this application has the file"):
        rows(applications, tmp_path / "end", application="early")


def test_files_are_those_below_a_folder_or_that_fit_a_glob(
    applications: Applications, tmp_path: Path
) -> None:
    for dataset, total in (
        (tmp_path / "out" / "part-*", 6),
        (tmp_path / "out" / "part-1", 3),
        (tmp_path / "o?t", 6),
        ("part-[01]", 6),
        (f"file:{tmp_path}/out", 6),
    ):
        assert rows(applications, dataset).total == total, dataset


def test_choices_come_in_pages_and_each_is_where_a_trace_starts(
    applications: Applications, tmp_path: Path
) -> None:
    every = rows(applications, tmp_path / "out", "value >= 'row 2' and value != 'row 4'").choices
    assert [(Path(choice.path or "").name, choice.row, choice.text) for choice in every] == [
        ("part-0", 2, "row 2"),
        ("part-1", 0, "row 3"),
        ("part-1", 2, "row 5"),
    ]
    assert every[0].columns == {"value": "row 2"}
    paged, cursor = [], None
    while True:
        page = rows(
            applications, tmp_path / "out", "value >= 'row 2' and value != 'row 4'", limit=1, cursor=cursor
        )
        paged += page.choices
        if (cursor := page.next) is None:
            break
    assert tuple(paged) == every
    for choice in every:
        query = TraceQuery(direction="backward", path=choice.path, row=choice.row)
        assert applications.questions.trace("late", query).start[0].record_id == choice.record_id


def test_a_trace_starts_at_all_rows_that_fulfil_a_condition(
    applications: Applications, tmp_path: Path
) -> None:
    query = TraceQuery(
        direction="backward", path=str(tmp_path / "out"), where="value in ('row 1', 'row 4')", across=False
    )
    trace = applications.questions.trace("late", query)
    assert [len(node.records) for node in trace.nodes] == [2] * len(trace.nodes)
    assert [record.source.text for record in trace.nodes[-1].records if record.source] == ["row 1", "row 4"]
    assert (trace.starts[0].total, trace.exact) == (2, True)


def test_more_starts_than_there_may_be_are_refused(
    applications: Applications, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_choices, "MOST_STARTS", 5)
    query = TraceQuery(direction="backward", path=str(tmp_path / "out"), where="value is not null")
    with pytest.raises(InvalidQueryError, match="more than 5 rows fulfil the condition"):
        applications.questions.trace("late", query)


def test_where_nothing_matches_it_is_said_what_was_looked_at(
    applications: Applications, tmp_path: Path
) -> None:
    with pytest.raises(NothingMatchesError) as refused:
        rows(applications, tmp_path / "out", "value = 'row 9'")
    assert str(refused.value) == (
        "no row fulfils value = 'row 9': 2 files with 6 records were looked at that late (late) wrote"
    )


def test_files_that_are_gone_or_have_changed_are_said(applications: Applications, tmp_path: Path) -> None:
    (tmp_path / "out" / "part-0").unlink()
    (tmp_path / "out" / "part-1").write_text("row 3\nanother\nrow 5\n")
    choices = rows(applications, tmp_path / "out", "value like 'row%'")
    assert [choice.text for choice in choices.choices] == ["row 3", "row 5"]
    assert choices.total is None
    gone, changed = sorted(choices.warnings)
    assert "part-0 was not searched to its end: the file cannot be read any more (it is gone)" in gone
    assert "part-1: the file has changed since the run" in changed


def test_of_an_application_its_one_output_is_meant(applications: Applications) -> None:
    backward = applications.questions.rows(RowQuery(application="late", where="value = 'row 1'"))
    assert [choice.text for choice in backward.choices] == ["row 1"]
    forward = RowQuery(application="late", where="value = 'row 1'", direction="forward")
    assert [choice.line for choice in applications.questions.rows(forward).choices] == [2]
    with pytest.raises(InvalidQueryError, match="say which dataset, or which application"):
        applications.questions.rows(RowQuery(where="value = 'x'"))
    with pytest.raises(InvalidQueryError, match="did you mean value"):
        applications.questions.rows(RowQuery(where="valu = 'x'", application="late"))

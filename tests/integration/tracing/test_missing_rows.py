"""Rows that an output should have are looked for in its inputs, and in those of applications before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lineage_service.errors import NotFoundError, NothingMatchesError
from lineage_service.queries import MissingQuery, RowQuery
from tests.support.linked_applications import Applications


@pytest.fixture
def applications(tmp_path: Path) -> Applications:
    """`first` copies in.txt to middle-0, and `second` that to out-0."""
    (tmp_path / "in.txt").write_text("Graz 5\nLinz 7\n")
    applications = Applications(tmp_path)
    for began, (name, source, output) in enumerate(
        (("first", "in.txt", "middle"), ("second", "middle-0", "out")), start=1_732_183_200_000
    ):
        applications.copy(name, began, tmp_path / source, tmp_path / output)
        applications.end(name)
    return applications


def test_where_no_input_has_the_row_the_application_that_wrote_it_is_asked(
    applications: Applications, tmp_path: Path
) -> None:
    query = MissingQuery(path=str(tmp_path / "out-0"), where="value like 'Wien%'")
    missing = applications.questions.missing("second", query)
    assert (missing.rows, missing.reached, missing.present) == ((), (), ())
    asked = [(asked.application_id, asked.matches) for asked in missing.inputs or ()]
    assert asked == [("second", 0), ("first", 0)]


def test_a_row_that_is_there_is_said_to_be(applications: Applications, tmp_path: Path) -> None:
    query = MissingQuery(path=str(tmp_path / "out-0"), where="value like 'Linz%'")
    missing = applications.questions.missing("second", query)
    assert [choice.text for choice in missing.present or ()] == ["Linz 7"]
    assert [(row.path, row.row) for row in missing.reached] == [(str(tmp_path / "middle-0"), 1)]
    assert len(missing.inputs or ()) == 1


@pytest.mark.parametrize("output", [None, "out-0"])
def test_a_row_is_followed_into_the_application_that_read_the_output(
    applications: Applications, tmp_path: Path, output: str | None
) -> None:
    named = None if output is None else str(tmp_path / output)
    query = MissingQuery(path=str(tmp_path / "in.txt"), row=1, output=named)
    missing = applications.questions.missing("first", query)
    assert missing.rows == ()
    assert [(row.application_id, row.path) for row in missing.reached] == [
        ("first", str(tmp_path / "in.txt")),
        ("second", str(tmp_path / "middle-0")),
    ]


def test_a_row_stays_in_its_application_if_asked_to(applications: Applications, tmp_path: Path) -> None:
    query = MissingQuery(path=str(tmp_path / "in.txt"), row=1, across=False)
    missing = applications.questions.missing("first", query)
    assert [row.application_id for row in missing.reached] == ["first"]
    beyond = replace(query, output=str(tmp_path / "out-0"))
    with pytest.raises(NotFoundError, match="no output of application first is"):
        applications.questions.missing("first", beyond)
    nowhere = replace(query, output="/no/such/output", across=True)
    with pytest.raises(NotFoundError, match="no output of application first is /no/such/output"):
        applications.questions.missing("first", nowhere)


def test_of_an_input_the_application_that_read_it_is_meant(
    applications: Applications, tmp_path: Path
) -> None:
    rows = RowQuery(dataset=str(tmp_path / "middle-0"))
    assert applications.questions.rows(rows).application_id == "first"
    rows = RowQuery(dataset=str(tmp_path / "middle-0"), as_input=True)
    assert applications.questions.rows(rows).application_id == "second"
    query = MissingQuery(path=str(tmp_path / "middle-0"), where="value = 'x'")
    with pytest.raises(NothingMatchesError, match="no row of this input fulfils value = 'x'"):
        applications.questions.missing("second", query)

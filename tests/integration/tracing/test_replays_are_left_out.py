"""Replays read what their originals read: they are applications, and nobody should meet them unasked."""

from __future__ import annotations

from pathlib import Path

import pytest

from lineage_api.app import create_app
from lineage_service.cli import main
from lineage_service.newest_application import NoApplicationError, application_named
from lineage_service.queries import DatasetQuery
from tests.support.api_client import Client
from tests.support.linked_applications import Applications


@pytest.fixture
def applications(tmp_path: Path) -> Applications:
    made = Applications(tmp_path)
    made.replays = {"again": "job"}
    source = tmp_path / "in"
    source.write_text("a\nb\n")
    made.copy("job", 1_000, source, tmp_path / "out")
    made.copy("again", 2_000, source, tmp_path / "sandbox")
    return made


def test_the_last_application_is_no_replay(applications: Applications) -> None:
    assert [app.application_id for app in applications.questions.applications()] == ["again", "job"]
    assert application_named(applications.questions, "last") == "job"
    assert application_named(applications.questions, "again") == "again"


def test_where_all_are_replays_there_is_no_last_one(tmp_path: Path) -> None:
    alone = Applications(tmp_path)
    alone.replays = {"again": "job"}
    (tmp_path / "in").write_text("a\n")
    alone.copy("again", 1, tmp_path / "in", tmp_path / "out")
    with pytest.raises(NoApplicationError):
        application_named(alone.questions, "last")


def test_lists_have_replays_only_where_they_are_asked_for(
    applications: Applications, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    client = Client(create_app(applications.questions))
    listed = client.get("/api/applications").json()["applications"]
    assert [(app["application_id"], app.get("replay_of")) for app in listed] == [("job", None)]
    listed = client.get("/api/applications?replays=true").json()["applications"]
    assert [(app["application_id"], app.get("replay_of")) for app in listed] == [
        ("again", "job"),
        ("job", None),
    ]
    flags = ["--store", str(tmp_path / "flows"), "--home", str(tmp_path)]
    assert main.main(["apps", *flags]) == 0
    assert "again" not in capsys.readouterr().out
    assert main.main(["apps", "--replays", *flags]) == 0
    assert "again (replay of job)" in capsys.readouterr().out


def test_journeys_and_datasets_leave_them_out(applications: Applications, tmp_path: Path) -> None:
    trace = applications.trace("job", direction="forward", path=str(tmp_path / "in"), row=0)
    assert {node.application_id for node in trace.nodes} == {"job"}
    page = applications.questions.dataset(DatasetQuery(name=str(tmp_path / "in")))
    assert {use.application_id for use in page.history} == {"job"}


def test_a_replay_that_is_named_is_traced_as_any_other(applications: Applications, tmp_path: Path) -> None:
    trace = applications.trace("again", direction="backward", path=str(tmp_path / "sandbox-0"), row=1)
    [row] = [record.source for node in trace.nodes if node.kind == "source" for record in node.records]
    assert row is not None
    assert (row.path, row.row) == (str(tmp_path / "in"), 1)

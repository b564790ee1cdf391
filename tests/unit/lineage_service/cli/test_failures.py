"""`lineage failures` prints what the API answers, and `lineage trace --failure` begins at a culprit."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lineage_api.app import create_app
from lineage_service.cli import main
from lineage_service.cli.query import start
from lineage_service.lineage import FailedRecord, Failure, SourceRow
from lineage_service.testing.queries import MemoryQueries
from tests.support.api_client import Client
from tests.support.flights_and_weather import APP, run

pytestmark = pytest.mark.unit

FAILURE = Failure(
    failure=1,
    error="ValueError",
    message="no number: 'x'",
    frame="/home/me/job.py:12",
    node_id=f"{APP}#8",
    name="map",
    call_site="/home/me/job.py:40",
    stage=2,
    partition=0,
    attempts=4,
    record=FailedRecord(record_id="write#0#3", node_id=f"{APP}#8", value="x"),
    sources=(SourceRow(path="/data/flights.csv", row=4, line=5, text="4,x", warning=None),),
    sources_total=3,
    exact=True,
    recovered=True,
    reason="",
)
UNKNOWN = replace(
    FAILURE, failure=2, record=None, sources=(), sources_total=0, attempts=0, exact=False, reason="killed"
)


def with_failures(*failures: Failure) -> MemoryQueries:
    return MemoryQueries([replace(run(260), failures=failures)])


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    queries = with_failures(FAILURE, UNKNOWN)
    monkeypatch.setattr(start, "open_queries", lambda _settings, makes_store: queries)
    return monkeypatch


@pytest.mark.parametrize(("flag", "accept"), [("--json", "application/json"), ("--csv", "text/csv")])
def test_json_and_csv_are_what_the_api_answers(
    flag: str, accept: str, use: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["failures", APP, flag]) == 0
    client = Client(create_app(with_failures(FAILURE, UNKNOWN)))
    answer = client.get(f"/api/applications/{APP}/failures", headers={"Accept": accept})
    printed = capsys.readouterr().out
    if flag == "--json":
        assert json.loads(printed) == answer.json()
    else:
        assert printed.splitlines() == answer.text.splitlines()
        assert answer.headers["Lineage-Truncated"] == "true"


def test_people_read_the_error_the_record_and_its_rows(
    use: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["failures", APP]) == 0
    printed = capsys.readouterr().out
    for text in (
        "1  ValueError: no number: 'x'",
        "map at job.py:40, raised at job.py:12, partition 0, stage 2, 4 attempts, a later one ended well",
        "record 8#write#0#3  x",
        "/data/flights.csv:5  4,x",
        "and 2 more input records",
        "not exact: killed",
    ):
        assert text in printed


def test_nothing_that_failed_is_exit_code_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(start, "open_queries", lambda _settings, makes_store: with_failures())
    assert main.main(["failures", APP]) == 3
    captured = capsys.readouterr()
    assert "No failure is known." in captured.out + captured.err


def test_a_trace_begins_at_the_record_of_a_failure(
    use: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["trace", APP, "backward", "--failure", "1", "--json"]) == 0
    client = Client(create_app(with_failures(FAILURE)))
    answer = client.get(f"/api/applications/{APP}/trace?direction=backward&failure=1&limit=20")
    assert json.loads(capsys.readouterr().out)["start"] == answer.json()["start"]
    assert answer.json()["start"][0]["record_id"] == "write#0#3"
    assert client.get(f"/api/applications/{APP}/trace?direction=backward&failure=2").status_code == 404
    assert client.get(f"/api/applications/{APP}/trace?direction=forward&failure=1").status_code == 422


def test_a_failure_is_a_start_of_its_own(use: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["trace", APP, "backward", "write#0#3", "--failure", "1"]) == 1
    assert "leave out START" in capsys.readouterr().err

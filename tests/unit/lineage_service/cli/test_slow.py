"""`lineage slow` prints what the API answers."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lineage_api.app import create_app
from lineage_service.cli import main
from lineage_service.cli.query import start
from lineage_service.lineage import SlowRecord, SlowRecordId, SourceRow
from lineage_service.testing.queries import MemoryQueries
from spark_agent.client.slow_records import slow_records_of
from tests.support.api_client import Client
from tests.support.flights_and_weather import APP, run

pytestmark = pytest.mark.unit

RECORD = SlowRecord(
    ms=2104,
    node_id=f"{APP}#8",
    name="map",
    call_site="/home/me/job.py:40",
    partition=3,
    record=SlowRecordId(record_id="3#17", node_id=f"{APP}#7", key="EWR", value=None),
    sources=(SourceRow(path="/data/flights.csv", row=4, line=5, text="4,x", warning=None),),
    sources_total=12,
    exact=True,
    reason="",
)
UNKNOWN = replace(RECORD, ms=95, record=None, sources=(), sources_total=0, exact=False, reason="not stored")


def with_slow(*records: SlowRecord) -> MemoryQueries:
    return MemoryQueries([replace(run(260), slow=records)])


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> None:
    queries = with_slow(RECORD, UNKNOWN)
    monkeypatch.setattr(start, "open_queries", lambda _settings, makes_store: queries)


@pytest.mark.parametrize(("flag", "accept"), [("--json", "application/json"), ("--csv", "text/csv")])
def test_json_and_csv_are_what_the_api_answers(
    flag: str, accept: str, use: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["slow", APP, flag, "--limit", "1"]) == 0
    client = Client(create_app(with_slow(RECORD, UNKNOWN)))
    answer = client.get(f"/api/applications/{APP}/slow?limit=1", headers={"Accept": accept})
    printed = capsys.readouterr().out
    if flag == "--json":
        assert json.loads(printed) == answer.json()
    else:
        assert printed.splitlines() == answer.text.splitlines()
        assert answer.headers["Lineage-Truncated"] == "true"


def test_people_read_the_time_the_operation_the_record_and_its_rows(
    use: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["slow", APP]) == 0
    printed = capsys.readouterr().out
    for text in (
        "2,104 ms  map job.py:40, partition 3",
        "record 7#3#17  EWR",
        "/data/flights.csv:5  4,x",
        "and 11 more input records",
        "not exact: not stored",
    ):
        assert text in printed


def test_nothing_that_took_long_is_exit_code_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(start, "open_queries", lambda _settings, makes_store: with_slow())
    assert main.main(["slow", APP]) == 3
    assert capsys.readouterr().out == ""


def test_a_session_reads_the_same() -> None:
    answer = Client(create_app(with_slow(RECORD, UNKNOWN))).get(f"/api/applications/{APP}/slow").json()
    first, second = slow_records_of(answer)
    assert (first.ms, first.key, first.sources[0].row, second.exact) == (2104, "EWR", 4, False)
    assert str(first) == "2,104 ms in map at /home/me/job.py:40, partition 3\n  /data/flights.csv:5  4,x"
    assert "not exact: not stored" in str(second)

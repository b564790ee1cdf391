"""The report of a replay: always a whole file, never an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_agent.contract.replay_notes import note
from spark_agent.driver.replay import report as reports
from spark_agent.driver.replay.report import Report


def read(folder: Path) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return fields


@pytest.fixture
def report(tmp_path: Path) -> Report:
    return Report(str(tmp_path))


def test_what_the_processes_noted_is_in_the_file(report: Report, tmp_path: Path) -> None:
    refusal = {"what": "remove", "path": "/data/orders.csv", "where": "job.py:12"}
    note(str(tmp_path), "refused", refusal)
    note(str(tmp_path), "connection", "db:5432")
    report.begin("app-1", is_first_named=False)
    fields = read(tmp_path)
    assert fields["application"] == "app-1"
    assert (fields["refused"], fields["connections"]) == ([refusal], ["db:5432"])
    assert (tmp_path / "report.json").stat().st_mode & 0o777 == 0o600


def test_of_a_sink_more_is_said_later(report: Report, tmp_path: Path) -> None:
    sink = report.sink({"node": None, "name": "csv", "to": "/out"})
    report.update(sink, node=7)
    report.values(sink, [("int", "1")], 1)
    report.write()
    assert read(tmp_path)["sinks"] == [
        {"node": 7, "name": "csv", "to": "/out", "values": [["int", "1"]], "total": 1}
    ]


def test_values_are_bounded(report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "MAX_VALUES", 3)
    monkeypatch.setattr(reports, "MAX_VALUE_CHARACTERS", 7)
    first, second = report.sink({"node": 1}), report.sink({"node": 2})
    report.values(first, [("str", "ab")] * 5, 5)
    report.values(second, [("str", "ab")] * 5, 5)
    report.write()
    assert [(len(sink["values"]), sink["total"]) for sink in read(tmp_path)["sinks"]] == [(3, 5), (0, 5)]


def test_sentences_are_said_once(report: Report, tmp_path: Path) -> None:
    report.differs("a")
    report.differs("b")
    report.differs("a")
    report.write()
    assert read(tmp_path)["differences"] == ["a", "b"]


def test_skipped_records_are_counted_beyond_those_that_are_listed(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "MAX_SKIPPED", 2)
    for number in range(5):
        report.skipped([{"node": number}], 1)
    report.write()
    fields = read(tmp_path)
    assert (len(fields["skipped"]), fields["skipped_total"]) == (2, 5)


def test_a_record_that_is_dropped_again_counts_once(report: Report, tmp_path: Path) -> None:
    first, second = ({"node": 1, "record": {"node": 0, "record_id": f"0#{at}"}} for at in range(2))
    report.skipped([first], 1)
    report.skipped([first, second], 2)
    report.write()
    fields = read(tmp_path)
    assert (fields["skipped"], fields["skipped_total"]) == ([first, second], 2)


def test_a_folder_that_is_gone_fails_no_job(tmp_path: Path) -> None:
    report = Report(str(tmp_path / "gone"))
    report.begin("app-1", is_first_named=False)
    report.write()


def test_of_several_applications_the_one_of_the_original_s_name_counts(tmp_path: Path) -> None:
    report = Report(str(tmp_path))
    report.begin("app-1", is_first_named=False)
    report.source(0, "textFile", "job.py:1", "whole", "the row set does not name it")
    report.differs("textFile of the original was not read", is_about_rows=True)
    report.differs("the script wrote twice to one place")
    report.begin("app-2", is_first_named=False)
    report.begin("app-3", is_first_named=True)
    report.source(0, "textFile", "job.py:9", "literal")
    report.begin("app-4", is_first_named=False)
    report.write()
    said = json.loads((tmp_path / "report.json").read_text())
    assert said["application"] == "app-3"
    assert [source["call_site"] for source in said["sources"]] == ["job.py:9"]
    assert said["differences"] == ["the script wrote twice to one place"]

"""The load of perf.api against a small service: what is counted, and what counts as an error."""

from __future__ import annotations

import pytest

from lineage_api.app import create_app
from lineage_api.etags import etag_function
from lineage_service.tracing.query.service import LineageQueries
from perf.api.clients import Answered, Question, ask, target
from perf.api.report import Result, markdown, rows_of, wrong_of
from tests.support.api_client import Client
from tests.support.api_store import APP, HALF, build
from tests.support.e2e.browser import served

BASE = f"/api/applications/{APP}"


def result(answers: list[Answered]) -> Result:
    return Result(
        about={"commit": "0123abc"},
        clients=3,
        seconds=1.0,
        rows=rows_of(answers, ["graph", "held", "trace", "gone", "half"]),
        wrong=wrong_of(answers),
        cpu_s=0.5,
        peak_mib_before=100.0,
        peak_mib=101.0,
    )


@pytest.mark.thorough
def test_clients_ask_what_they_are_given_and_notice_what_is_wrong(tmp_path):
    store = build(tmp_path)
    app = create_app(LineageQueries(store, time_budget_s=60), etag_of=etag_function(store, "1"))
    held = {"If-None-Match": Client(app).get(BASE).headers["etag"]}
    start = {"direction": "backward", "path": tmp_path / "sums.csv", "row": 0}
    pool = [
        Question(kind="graph", target=target(f"{BASE}/graph"), headers={}),
        Question(kind="held", target=target(BASE), headers=held),
        Question(kind="trace", target=target(f"{BASE}/trace", **start), headers={}),
        Question(kind="gone", target=target(f"{BASE}/nowhere"), headers={}),
        Question(kind="half", target=target(f"/api/applications/{HALF}"), headers={}),
    ]
    with served(app) as url:
        good = ask(url.rstrip("/"), pool, {"graph": 1, "held": 1, "trace": 1}, clients=3, seconds=4.0, seed=1)
        bad = ask(url.rstrip("/"), pool, {"gone": 1, "half": 1}, clients=1, seconds=4.0, seed=1)
    assert {each.kind for each in good} == {"graph", "held", "trace"}
    assert not [each for each in good if each.wrong]
    assert all(each.received == 0 for each in good if each.kind == "held")
    assert all(each.received > 0 for each in good if each.kind != "held")
    assert all(each.wrong for each in bad)
    page = markdown(result(good))
    assert "0 errors (**met**: 0)" in page
    assert "## Errors" not in page
    assert f"| all | {len(good):,} | 0 |" in page
    page = markdown(result(good + bad))
    assert "(missed: 0)" in page
    assert "x gone: 404: " in page
    assert "x half: the answer says that it is not complete" in page


def test_percentiles_are_of_each_kind():
    answers = [Answered(kind="graph", ms=float(ms), received=2_000, wrong="") for ms in range(1, 101)]
    row, total = rows_of(answers, ["graph", "held"])
    assert (row.kind, row.asked, row.median, row.p95, row.p99, row.largest, row.kilobytes) == (
        *("graph", 100, 50.5, 96.0, 100.0, 100.0, 2.0),
    )
    assert total.kind == "all"

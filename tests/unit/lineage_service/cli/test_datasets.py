from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lineage_service.cli import main
from lineage_service.cli.query import start
from lineage_service.cli.query.output import moment
from spark_agent import contract
from tests.support.dataset_applications import Job, dataset, queries_of

DAY_MS = 86_400_000


def job(application_id: str, name: str, day: int) -> Job:
    return Job(application_id, name, day * DAY_MS)


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = job("app-1", "Nightly", 1), job("app-2", "Nightly", 2)
    for nightly in (first, second):
        read = nightly.read("/in", ["/in/a.csv", "/in/b.csv"], rows=9, name="csv")
        nightly.write(
            "/data/monthly",
            [read],
            rows=4,
            name="parquet",
            call_site="/jobs/nightly.py:41",
            dataset=dataset("/data/monthly", "parquet", partitions=["month"]),
            schema=[{"name": "airport", "type": "string"}, {"name": "delay", "type": "double"}],
        )
        nightly.end()
    broken = job("app-3", "Report", 3)
    read = broken.read("/data/monthly", ["/data/monthly/month=1/part-0"], rows=4)
    sink = broken.node("sink", contract.IDENTITY, [read], dataset=dataset("/data/report"))
    error = {"type": "ZeroDivisionError", "message": "division by zero", "frame": "report.py:7"}
    broken.tell(contract.ACTION_ENDED, node=sink, state="failed", error=error)
    broken.end(state="failed")
    stream = job("app-4", "Stream", 4)
    stream.unfollowed([{"dataset": dataset("/data/monthly")}], {"name": "console"})
    stream.end()
    queries = queries_of(first, second, broken, stream)
    monkeypatch.setattr(start, "open_queries", lambda _settings, makes_store: queries)


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run(*argv: str) -> str:
        assert main.main(list(argv)) == 0
        return capsys.readouterr().out

    return run


def test_datasets_are_listed_the_latest_written_first(said: Callable[..., str]) -> None:
    head, report, monthly, read, count, *notes = said("datasets").splitlines()
    assert head.startswith("dataset ")
    assert report.startswith("/data/report")
    assert "failed (1 of 1 failed)" in report
    assert monthly.startswith("/data/monthly")
    assert "Nightly (app-2)" in monthly
    assert "only read" in read
    assert count == "3 of 3 datasets"
    assert notes == [
        "/data/monthly: read by a query of 'Stream' that was not followed: it is a stream",
    ]


def test_the_rest_of_a_list_is_told(said: Callable[..., str]) -> None:
    *_, count, more = said("datasets", "--limit", "1").splitlines()
    assert count == "1 of 3 datasets"
    cursor = more.removeprefix("there are more: --cursor ")
    assert "/data/monthly" in said("datasets", "--limit", "1", "--cursor", cursor)


def test_nothing_is_said_in_words(said: Callable[..., str]) -> None:
    assert said("datasets", "nothing").startswith("no datasets with 'nothing' in their name in ")


def test_one_dataset_has_its_history_and_its_neighbours(said: Callable[..., str]) -> None:
    text = said("dataset", "monthly")
    lines = text.splitlines()
    assert lines[:3] == [
        "/data/monthly  parquet",
        "columns: airport string, delay double",
        "partitioned by month",
    ]
    uses = [line for line in lines if line.startswith("1970-")]
    assert [line.split()[3] for line in uses] == ["Stream", "Report", "Nightly", "Nightly"]
    assert [line.split()[4] for line in uses] == ["app-4", "app-3", "app-2", "app-1"]
    assert "nightly.py:41" in uses[2]
    assert "4 of 4 writes and reads" in lines
    assert f"/in -> Nightly (2 runs, last {moment(2 * DAY_MS)}) -> /data/monthly" in text
    assert f"/data/monthly -> Report (1 run, 1 failed, last {moment(3 * DAY_MS)}) -> /data/report" in text
    assert "Stream (app-4) is an upper bound: it is a stream" in lines


def test_a_failed_write_says_why(said: Callable[..., str]) -> None:
    *_, note = said("dataset", "report").splitlines()
    assert note == "Report (app-3) failed: ZeroDivisionError: division by zero at report.py:7"


def test_a_relative_path_of_this_machine_is_made_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    assert main.main(["dataset", "out"]) == 1
    assert f"'{tmp_path}/out'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (
            ("dataset", "/data/monthyl"),
            1,
            "lineage: no application wrote or read a dataset '/data/monthyl'; ",
        ),
        (("dataset",), 2, "name"),
        (("dataset", "monthly", "--direction", "up"), 2, "'up'"),
        (("dataset", "monthly", "--depth", "x"), 2, "'x' is no whole number"),
        (
            ("dataset", "monthly", "--cursor", "x"),
            1,
            "lineage: the cursor is not one that this service gave out",
        ),
        (("datasets", "a", "b"), 2, "'b' is one word too many"),
    ],
)
def test_bad_input_is_one_sentence(
    argv: tuple[str, ...], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(list(argv)) == code
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1

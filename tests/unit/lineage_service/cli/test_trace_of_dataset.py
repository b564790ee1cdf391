"""`lineage trace DATASET`: a row by what it says, whichever application wrote it; and the same over HTTP."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lineage_api.app import create_app
from lineage_service.cli import main
from lineage_service.cli.query import start
from lineage_service.testing.queries import MemoryQueries
from tests.support.api_client import Client
from tests.support.flights_and_weather import APP, questions

ONE, SEVERAL = "value like '%UA1095%'", "value ilike '%ua1%'"

#: command line -> what it is over HTTP.
SAME = {
    ("/data/delayed", "--where", ONE): {"where": ONE},
    ("/data/delayed", "backward", "--where", ONE): {"where": ONE, "direction": "backward"},
    ("/data/delayed", "--where", ONE, "--forward"): {"where": ONE, "direction": "forward"},
    ("/data/delayed", "--where", ONE, "--app", "last"): {"where": ONE, "app": APP},
    ("/data/delayed", "--where", SEVERAL, "--all"): {"where": SEVERAL, "all": "true"},
    ("/data/delayed", "--where", SEVERAL, "--all", "--cursor", "20"): {
        **{"where": SEVERAL, "all": "true", "cursor": "20"}
    },
    ("/data/delayed/part-00000:3",): {"dataset": "/data/delayed/part-00000", "row": "2"},
    ("/data/delayed/part-00000:3", "--node", "8"): {
        **{"dataset": "/data/delayed/part-00000", "row": "2", "node": "8"}
    },
    ("/data/delayed", "--where", SEVERAL, "--limit", "2"): {"where": SEVERAL, "limit": "2"},
    ("/data/delayed", "--where", SEVERAL, "--limit", "2", "--cursor", "0:0:2"): {
        **{"where": SEVERAL, "limit": "2", "cursor": "0:0:2"}
    },
}


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryQueries:
    queries = questions()
    monkeypatch.setattr(start, "open_queries", lambda _settings, makes_store: queries)
    return queries


@pytest.mark.parametrize("argv", SAME, ids=" ".join)
def test_json_and_csv_are_what_the_api_answers(
    argv: tuple[str, ...], store: MemoryQueries, capsys: pytest.CaptureFixture[str]
) -> None:
    parameters = {"dataset": "/data/delayed", "limit": "20", **SAME[argv]}
    if "--app" in argv:
        argv = (*argv[:-1], APP)
    client = Client(create_app(store))
    answer = client.get("/api/trace", params=parameters)
    assert answer.status_code == 200, answer.text
    code = 3 if "choices" in answer.json() else 0
    assert main.main(["trace", *argv, "--json"]) == code
    assert json.loads(capsys.readouterr().out) == answer.json()
    assert main.main(["trace", *argv, "--csv"]) == code
    as_csv = client.get("/api/trace", params=parameters, headers={"Accept": "text/csv"})
    assert capsys.readouterr().out == as_csv.text


def test_several_rows_are_listed_to_choose_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["trace", "/data/delayed", "--where", SEVERAL, "--limit", "2"]) == 3
    said = capsys.readouterr().out
    assert said.splitlines()[1].startswith("  /data/delayed/part-00000:1  (ORD 06h, UA1001")
    assert "Choose one: narrow the condition, or give FILE:LINE; or trace all of them: --all" in said
    assert "--cursor 0:0:2" in said


def test_a_trace_of_all_starts_at_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main.main(["trace", "/data/delayed", "--where", SEVERAL, "--all", "--json", "--limit", "1000"]) == 0
    )
    trace = json.loads(capsys.readouterr().out)
    assert trace["starts"][0]["total"] > 2
    assert all("UA1" in record["source"]["text"] for record in trace["start"])


def test_an_application_stands_before_a_direction(capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (
        ("trace", APP, "backward", "--where", ONE, "--node", "8"),
        ("trace", APP, "backward", "/data/delayed", "--where", ONE),
        ("trace", APP, "--backward", "--where", ONE, "--node", "8"),
    ):
        assert main.main([*argv, "--json"]) == 0, capsys.readouterr().err
        [record] = json.loads(capsys.readouterr().out)["start"]
        assert record["source"]["line"] == 3


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (("/data/delayed", "--where", "value = 'no such row'"), 3, "no row fulfils value = 'no such row'"),
        (("/data/delayed",), 1, "say which row of /data/delayed: --where CONDITION"),
        (("/data/delayed:3", "--where", ONE), 1, "is a row already"),
        (("/data/delayed", "backward", "--where", ONE, "--forward"), 1, "say different things"),
        (("/data/delayed:3", "--all"), 1, "--all needs --where"),
        ((APP, "write#0#3"), 2, "'write#0#3' is no direction"),
        ((APP, "--where", ONE, "--at", "2026-01-01"), 1, "--app and --at are for datasets"),
        (("/data/delayed", "--where", ONE, "--at", "soon"), 2, "'soon' is no time: write '2013-02-28'"),
        (("/nowhere", "--where", ONE), 1, "no application wrote or read /nowhere"),
    ],
)
def test_what_cannot_be_asked_is_said(
    argv: tuple[str, ...], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["trace", *argv]) == code
    answer = capsys.readouterr()
    assert answer.out == ""
    assert answer.err.count("\n") == 1
    assert said in answer.err


def test_a_condition_that_cannot_be_read_shows_the_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["trace", "/data/delayed", "--where", "valeu = 'x'"]) == 1
    assert capsys.readouterr().err == (
        "lineage: there is no column valeu: did you mean value?\n    valeu = 'x'\n    ^\n"
    )
    assert main.main(["show", APP, "8", "--where", "value ="]) == 1
    assert capsys.readouterr().err.endswith("\n    value =\n           ^\n")


def test_show_lists_what_fulfils_a_condition(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["show", APP, "8", "--where", ONE]) == 0
    said = capsys.readouterr().out
    assert "/data/delayed/part-00000:3" in said
    assert f"1 of 1 matching records of {APP}#8" in said


def test_a_data_set_of_this_folder_is_meant_from_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path)
    assert start.line_of_file("out") == (str(tmp_path / "out"), None)
    assert start.line_of_file("out:7") == (str(tmp_path / "out"), 6)
    assert start.line_of_file("out/part-*:7") == (str(tmp_path / "out" / "part-*"), 6)
    assert start.line_of_file("part-*.csv") == ("part-*.csv", None)
    assert start.line_of_file("s3a://bucket/out") == ("s3a://bucket/out", None)

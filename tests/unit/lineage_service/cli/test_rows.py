"""`lineage rows` prints what the API answers, writes row sets for their user alone, and copies rows."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from lineage_api.app import create_app
from lineage_service.cli import main
from lineage_service.cli.query import start
from lineage_service.testing.queries import MemoryQueries
from spark_agent.contract.row_sets import decode_row_set
from tests.support.api_client import Client
from tests.support.copying_applications import APP as COPYING
from tests.support.copying_applications import Source, copying, sink_of
from tests.support.file_applications import splits_of
from tests.support.flights_and_weather import APP, run

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def queries() -> MemoryQueries:
    return MemoryQueries([run(260)])


@pytest.fixture
def _memory(monkeypatch: pytest.MonkeyPatch, queries: MemoryQueries) -> None:
    monkeypatch.setattr(start, "open_queries", lambda _settings, makes_store: queries)


def lineage(*words: str) -> int:
    return main.main(["rows", *words])


@pytest.mark.usefixtures("_memory")
@pytest.mark.parametrize(("flag", "accept"), [("--json", "application/json"), ("--csv", "text/csv")])
def test_json_and_csv_are_what_the_api_answers(
    flag: str, accept: str, queries: MemoryQueries, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lineage(APP, "8#write#0#3", "8#write#0#4", flag) == 0
    starts = json.dumps([{"record": "8#write#0#3"}, {"record": "8#write#0#4"}])
    answer = Client(create_app(queries)).get(
        f"/api/applications/{APP}/rowset", params={"starts": starts}, headers={"Accept": accept}
    )
    assert answer.status_code == 200, answer.text
    printed = capsys.readouterr().out
    if flag == "--json":
        assert json.loads(printed) == answer.json()
        assert len(answer.json()["asked"]) == 2
    else:
        assert printed.splitlines() == answer.text.splitlines()
        assert answer.headers["Lineage-Exact"] == "true"


@pytest.mark.usefixtures("_memory")
def test_a_row_set_is_written_for_its_user_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.json"
    path.write_text("{}")
    path.chmod(0o644)
    assert lineage(APP, "8#write#0#3", "--output", str(path)) == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert decode_row_set(path.read_text())["application"] == APP
    assert [path.name for path in tmp_path.iterdir()] == ["rows.json"]
    assert lineage(APP, "8#write#0#3", "--output", str(tmp_path / "no" / "rows.json")) == 1
    assert "rows.json cannot be written: No such file" in capsys.readouterr().err


@pytest.mark.usefixtures("_memory")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "say which records"),
        (("8#write#0#3", "--without"), "--without and --anyway are for --extract"),
        (("nothing",), "neither FILE:LINE nor a record id"),
        (("--key", "a"), "--key needs --node"),
        (("x:0",), "lines count from 1"),
        (("8#write#9#9",), "no such record"),
    ],
)
def test_what_cannot_be_understood_is_one_line(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lineage(APP, *words) == 1
    printed = capsys.readouterr().err
    assert said in printed
    assert printed.count("\n") == 1


@pytest.fixture
def store(tmp_path: Path) -> list[str]:
    """The flags of a store with an application that read two files of text."""
    sources = []
    for name in ("sales.csv", "stop.txt"):
        path = tmp_path / name
        path.write_text("".join(f"{name} {row}\n" for row in range(4)))
        sources.append(Source(splits_of(path), [4], location=str(path)))
    copying(tmp_path, *sources, Source(name="jdbc", format="jdbc"))
    return ["--store", str(tmp_path / "flows"), "--home", str(tmp_path / "home")]


def test_people_read_files_lines_and_texts(
    store: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = sink_of(0)
    places = [f"{node}#write#0#{at}" for at in (0, 1, 3)]
    assert lineage("last", *places, *store, "--limit", "2") == 0
    printed = capsys.readouterr().out
    for text in (
        f"{node}#write#0#0",
        "0 textFile: 3 of 4 records",
        f"  {tmp_path}/sales.csv:1-2,4",
        "    2  sales.csv 1",
        "    and 1 more",
        "1 textFile: all rows (no record of it",
    ):
        assert text in printed
    assert "sales.csv 3" not in printed


def test_rows_are_copied_and_what_is_not_copied_is_said(
    store: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (COPYING, f"{tmp_path}/sales.csv:2", "--where", "value like '% 3'", f"{tmp_path}/sales.csv")
    assert lineage(*words, *store, "--extract", str(tmp_path / "out")) == 3
    printed = capsys.readouterr().out
    assert (tmp_path / "out" / "sales.csv").read_text() == "sales.csv 1\nsales.csv 3\n"
    assert (tmp_path / "out" / "stop.txt").read_text() == (tmp_path / "stop.txt").read_text()
    assert f"wrote {tmp_path}/out/sales.csv  2 rows of {tmp_path}/sales.csv" in printed
    assert "not written: 2 (jdbc )" in printed
    assert lineage(*words, *store, "--json", "--extract", str(tmp_path / "new"), "--without") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["application"] == COPYING
    assert "wrote" in captured.err
    assert (tmp_path / "new" / "sales.csv").read_text() == "sales.csv 0\nsales.csv 2\n"
    assert not (tmp_path / "new" / "stop.txt").exists()
    assert lineage(*words, *store, "--extract", str(tmp_path / "out")) == 1
    assert "out is there already: name a folder that is new, or empty" in capsys.readouterr().err

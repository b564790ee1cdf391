"""`lineage suspects` and `lineage contrast` print what the API answers, and ask for what was typed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from lineage_api.app import create_app
from lineage_service.cli import main
from lineage_service.cli.query import start
from lineage_service.lineage import SharedProperty, SourceRow, Suspect, SuspectRecord
from lineage_service.queries import ContrastQuery, StartQuery, SuspectsQuery
from lineage_service.testing.queries import MemoryQueries
from tests.support.api_client import Client
from tests.support.flights_and_weather import APP, run

pytestmark = pytest.mark.unit

ODD = Suspect(
    rank=1,
    node_id=f"{APP}#8",
    name="flatMap",
    call_site="/home/me/job.py:12",
    partition=3,
    score=22.5,
    unusual=True,
    feature="outputs",
    value=57.0,
    low=1.0,
    high=3.0,
    others=11_999,
    why="flatMap job.py:12, partition 3: input 7#3#17 (crash.html:88) gave 57 outputs; "
    "the other 11,999 gave 1 to 3",
    record=SuspectRecord(record_id="3#17", node_id=f"{APP}#7"),
    sources=(SourceRow(path="/data/crash.html", row=87, line=88, text="<p>crash", warning=None),),
    sources_total=3,
    leads_to_bad=True,
    follows_from=None,
)
PLAIN = replace(
    ODD,
    rank=2,
    score=3.0,
    unusual=False,
    record=None,
    sources=(),
    sources_total=0,
    leads_to_bad=None,
    follows_from=1,
)
SHARED = SharedProperty(
    property="file = crash.html and genre is empty",
    bad=412,
    of_bad=412,
    good=0,
    of_good=9,
    score=1.0,
    g=87.5,
    unusual=True,
)


class Asked(MemoryQueries):
    """Remembers what it was asked."""

    def __init__(self, *suspects: Suspect, properties: tuple[SharedProperty, ...] = (SHARED,)) -> None:
        super().__init__([replace(run(260), suspects=suspects, properties=properties)])
        self.asked: list[SuspectsQuery | ContrastQuery] = []

    def suspects(self, application_id: str, query: SuspectsQuery) -> Any:
        self.asked.append(query)
        return super().suspects(application_id, query)

    def contrast(self, application_id: str, query: ContrastQuery) -> Any:
        self.asked.append(query)
        return super().contrast(application_id, query)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return use(monkeypatch, Asked(ODD, PLAIN))


def use(monkeypatch: pytest.MonkeyPatch, queries: Asked) -> Asked:
    monkeypatch.setattr(start, "open_queries", lambda _settings, makes_store: queries)
    return queries


@pytest.mark.parametrize("command", ["suspects", "contrast --failures"])
@pytest.mark.parametrize(("flag", "accept"), [("--json", "application/json"), ("--csv", "text/csv")])
def test_json_and_csv_are_what_the_api_answers(
    command: str, flag: str, accept: str, asked: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *flags = command.split()
    assert main.main([name, APP, *flags, flag]) == 0
    address = f"/api/applications/{APP}/{name}{'?failures=true' if flags else ''}"
    answer = Client(create_app(asked)).get(address, headers={"Accept": accept})
    assert answer.status_code == 200
    printed = capsys.readouterr().out
    if flag == "--json":
        assert json.loads(printed) == answer.json()
    else:
        assert printed.splitlines() == answer.text.splitlines()
    assert asked.asked[0] == asked.asked[1]


def test_people_read_the_evidence_and_the_rows(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["suspects", APP]) == 0
    printed = capsys.readouterr().out
    for text in (
        "1    22.5  flatMap job.py:12, partition 3: input 7#3#17 (crash.html:88) gave 57 outputs;",
        "unusual, leads to a bad output, record 7#3#17",
        "/data/crash.html:88  <p>crash",
        "and 2 more input records",
        "2       3  flatMap",
        "may be chance, follows from 1",
    ):
        assert text in printed


def test_people_read_what_bad_outputs_share(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["contrast", APP, "--failures"]) == 0
    printed = capsys.readouterr().out
    assert "file = crash.html and genre is empty" in printed
    assert "412 of 412" in printed
    assert "0 of 9" in printed
    assert "may be chance" not in printed


@pytest.mark.parametrize("command", ["suspects", "contrast"])
def test_outputs_are_named_by_lines_records_and_conditions(command: str, asked: Asked) -> None:
    flags = ["--bad", "/out/part-0:2", "--bad", "3#write#0#12", "--bad-where", "sum < 0"]
    assert main.main([command, APP, *flags, "--good", "/out/part-0:7"]) == 0
    assert asked.asked[0].bad == (
        StartQuery(path="/out/part-0", row=1),
        StartQuery(record="3#write#0#12"),
        StartQuery(where="sum < 0"),
    )
    assert asked.asked[0].good == (StartQuery(path="/out/part-0", row=6),)


def test_where_nothing_is_odd_the_exit_code_is_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, Asked(properties=()))
    assert main.main(["suspects", APP]) == 3
    assert "Nothing is odd." in capsys.readouterr().out
    assert main.main(["contrast", APP, "--failures"]) == 3
    assert "have nothing that those of good ones have less often" in capsys.readouterr().out


def test_more_suspects_than_are_listed_are_mentioned(
    asked: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["suspects", APP, "--limit", "1"]) == 0
    assert "1 more have a score: --limit" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("suspects?bad=none", "bad is no list of starts in JSON"),
        ("suspects?bad=[]", "bad is empty"),
        ('suspects?bad=[{"row":1}]', ", at 0: name one start"),
        ("suspects?method=guess", "graded"),
        ("contrast", "name bad outputs"),
        ('contrast?failures=true&good=[{"record":"x"}]', "good is no list of starts"),
    ],
)
def test_what_is_no_list_of_outputs_is_refused_in_one_sentence(
    address: str, words: str, asked: Asked
) -> None:
    answer = Client(create_app(asked)).get(f"/api/applications/{APP}/{address}")
    assert answer.status_code == 422
    assert words in answer.text
    assert asked.asked == []

"""`lineage explain` prints what the API answers: rows, turns of loops, what was left out."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lineage_api.app import create_app
from lineage_service.cli import main
from lineage_service.cli.query import start
from lineage_service.testing.memory.lineages import MemoryLineage
from lineage_service.testing.queries import MemoryQueries
from tests.support.api_client import Client
from tests.support.decided_labels import APP, labels

pytestmark = pytest.mark.unit


def use(monkeypatch: pytest.MonkeyPatch, lineage: MemoryLineage) -> None:
    monkeypatch.setattr(start, "open_queries", lambda _settings, makes_store: MemoryQueries([lineage]))


def explain(*words: str) -> int:
    return main.main(["explain", APP, *words])


@pytest.mark.parametrize(("flag", "accept"), [("--json", "application/json"), ("--csv", "text/csv")])
@pytest.mark.parametrize("is_plain", [True, False])
def test_json_and_csv_are_what_the_api_answers(
    flag: str,
    accept: str,
    is_plain: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    use(monkeypatch, labels())
    words = [] if is_plain else ["--no-plain"]
    assert explain("write#0#0", flag, "--limit", "5", *words) == 0
    answer = Client(create_app(MemoryQueries([labels()]))).get(
        f"/api/applications/{APP}/explanation",
        params={"record": "write#0#0", "limit": 5, "plain": str(is_plain).lower()},
        headers={"Accept": accept},
    )
    assert answer.status_code == 200, answer.text
    printed = capsys.readouterr().out
    if flag == "--json":
        assert json.loads(printed) == answer.json()
        assert answer.json()["plain_total"] == (3 if is_plain else None)
    else:
        assert printed.splitlines() == answer.text.splitlines()
        assert answer.headers["Lineage-Total"] == "1"
        assert answer.headers["Lineage-Truncated"] == "false"


def test_people_read_the_rows_the_turns_and_what_was_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, labels())
    assert explain("write#0#0") == 0
    assert capsys.readouterr().out.splitlines() == [
        "2 /data/labels/part-00000:1  1,17",
        "1 of 3 input rows (a plain trace: 3)",
        "given: 3 textFile at labels.py:33 of /data/stop.txt (the program may have used values of it)",
        "0 textFile",
        "  /data/edges.csv:1  1,17",
        "loop at labels.py:31",
        "  turn 0  0 textFile  0#0  key 1",
        "  turn 1  1 reduceByKey  0#0  key 1 (unchanged to turn 14)",
        "  turn 1  from  /data/edges.csv:1  1,17",
        "1 reduceByKey at labels.py:31: 1 of 3 inputs count, what its merges gave back",
    ]


def test_of_two_records_people_read_what_they_share(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, labels())
    assert explain("--same", "write#0#0", "1#0#0") == 0
    assert capsys.readouterr().out.splitlines()[:6] == [
        "A  2 /data/labels/part-00000:1  1,17",
        "B  1 0#0  key 1",
        "It is not known whether they have the same value: name rows of an output file, or capture values "
        "(spark.lineage.detailed=true)",
        "they meet in turn 1 of the loop at labels.py:31: 1 reduceByKey  0#0  key 1",
        "input rows: 1 for A, 1 for B, 1 for both",
        "1 of 3 input rows (a plain trace: 3)",
    ]
    assert explain("--same", "0#read#0#0", "0#read#0#2") == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[2:5] == [
        "Both have field 1 '1'",
        "their explanations share no record",
        "input rows: 1 for A, 1 for B, 0 for both",
    ]
    assert printed[8:10] == ["  A    /data/edges.csv:1  1,17", "    B  /data/edges.csv:3  1,90"]
    assert explain("--node", "1", "--same", "1", "1") == 1
    assert "are the same record" in capsys.readouterr().err


def test_the_json_of_two_records_is_what_the_api_answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, labels())
    assert explain("--same", "2#write#0#0", "1#0#0", "--json", "--limit", "5") == 0
    answer = Client(create_app(MemoryQueries([labels()]))).get(
        f"/api/applications/{APP}/explanation",
        params={"starts": '[{"record":"2#write#0#0"},{"record":"1#0#0"}]', "same": "true", "limit": 5},
    )
    assert json.loads(capsys.readouterr().out) == answer.json()
    assert [row["of"] for row in answer.json()["rows"]] == [["A", "B"]]


def test_a_demanded_row_is_there_with_its_way(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, labels())
    assert explain("write#0#0", "--with", "/data/edges.csv:3", "--with", "/data/stop.txt:1") == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[1] == "2 of 3 input rows (a plain trace: 3)"
    assert printed[3:11] == [
        "0 textFile",
        "  /data/edges.csv:1  1,17",
        "+ /data/edges.csv:3  1,90",
        "with  /data/edges.csv:3  1,90",
        "  went into 1 reduceByKey  0#0  key 1  (turn 1 of the loop at labels.py:31)",
        "  went into 2 saveAsTextFile  /data/labels/part-00000:1  1,17",
        "with  /data/stop.txt:1  0",
        "  It is no part of the trace: these records were not made of it.",
    ]


def test_the_json_of_demanded_rows_is_what_the_api_answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, labels())
    assert explain("write#0#0", "--with", "/data/edges.csv:3", "--json", "--limit", "5") == 0
    answer = Client(create_app(MemoryQueries([labels()]))).get(
        f"/api/applications/{APP}/explanation",
        params={"record": "write#0#0", "with": '[{"path":"/data/edges.csv","row":2}]', "limit": 5},
    )
    assert json.loads(capsys.readouterr().out) == answer.json()
    assert [row.get("demanded") for row in answer.json()["rows"]] == [None, True]
    assert [row["in_trace"] for row in answer.json()["demanded"]] == [True]


def test_how_rows_go_together_is_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, labels(has_winners=False))
    assert explain("write#0#0", "--how") == 0
    assert "how  edges.csv:1 · edges.csv:2 · edges.csv:3\n" in capsys.readouterr().out
    assert explain("write#0#0", "--how", "--json", "--limit", "5") == 0
    answer = Client(create_app(MemoryQueries([labels(has_winners=False)]))).get(
        f"/api/applications/{APP}/explanation", params={"record": "write#0#0", "how": "true", "limit": 5}
    )
    assert json.loads(capsys.readouterr().out) == answer.json()
    assert len(answer.json()["how_graph"]["facts"]) == 5


def test_of_an_absent_key_people_read_who_has_it_and_where_it_ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lineage = labels()
    use(monkeypatch, replace(lineage, flows=lineage.flows[:-1]))
    assert explain("--node", "2", "--absent", "1") == 0
    assert capsys.readouterr().out.splitlines() == [
        "2 saveAsTextFile at labels.py:32 has no record with the key 1",
        "1 reduceByKey at labels.py:31 has the key: 1 record",
        "  0#0  key 1",
        "  ended at 2 saveAsTextFile at labels.py:32: saveAsTextFile: it gave nothing for it",
        f"why it had the key: lineage explain {APP} --node 1 --key 1",
    ]
    assert explain("--node", "2", "--absent", "1", "--json") == 0
    queries = MemoryQueries([replace(lineage, flows=lineage.flows[:-1])])
    answer = Client(create_app(queries)).get(
        f"/api/applications/{APP}/absence", params={"node": "2", "key": "1"}
    )
    assert json.loads(capsys.readouterr().out) == answer.json()
    assert explain("--node", "2", "--absent", "1", "--csv") == 0
    assert f"{APP}#1,reduceByKey,/jobs/labels.py:31,0#0,1," in capsys.readouterr().out
    assert explain("--node", "2", "--absent", "7") == 3
    assert "these do not have it, either: 1 reduceByKey" in capsys.readouterr().out


def test_of_two_runs_people_read_which_rows_came_and_went(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = labels()
    later = labels(has_winners=False)
    other = replace(later, application=replace(later.application, application_id="later"))
    both = MemoryQueries([first, other])
    monkeypatch.setattr(start, "open_queries", lambda _settings, makes_store: both)
    assert explain("write#0#0", "--compare", "later", "--no-plain") == 0
    printed = capsys.readouterr().out.splitlines()
    begin = printed.index("compared with later (labels)")
    assert printed[begin : begin + 5] == [
        "compared with later (labels)",
        "  2 /data/labels/part-00000:1  1,17",
        "  1 rows are the same, 0 gone, 2 new",
        "  + /data/edges.csv:2  1,<b>23",
        "  + /data/edges.csv:3  1,90",
    ]
    assert explain("write#0#0", "--compare", "later", "--json", "--limit", "5") == 0
    answer = Client(create_app(both)).get(
        f"/api/applications/{APP}/explanation",
        params={"record": "write#0#0", "compare": "later", "limit": 5},
    )
    assert json.loads(capsys.readouterr().out) == answer.json()


def test_without_winners_it_is_a_plain_trace_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, labels(has_winners=False))
    assert explain("write#0#0", "--limit", "2", "--no-plain") == 0
    printed = capsys.readouterr().out
    for text in (
        "3 of 3 input rows\n",
        "This is an upper bound: not all of these rows need to have decided it.",
        "Nothing was captured that says which rows decided.",
        "there are more: --cursor 2, or --limit",
    ):
        assert text in printed
    assert explain("write#0#0", "--limit", "2", "--cursor", "2", "--csv") == 0
    assert "/data/edges.csv,2,3," in capsys.readouterr().out


def test_an_upper_bound_on_the_way_makes_it_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, labels(exact=False))
    assert explain("write#0#0", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["kind"], answer["exact"], answer["verified"]) == ("bound", False, None)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "say which records"),
        (("nothing",), "neither FILE:LINE nor a record id"),
        (("--key", "a"), "--key needs --node"),
        (("write#9#9",), "no such record"),
        (("write#0#0", "--cursor", "x"), "the cursor is not one"),
        (("write#0#0", "--same", "write#0#0", "1#0#0"), "--same names both records: leave out START"),
        (("--same", "write#0#0", "nothing"), "neither FILE:LINE nor a record id"),
        (("write#0#0", "--with", "nothing"), "neither FILE:LINE nor a record id"),
        (("write#0#0", "--with", "1#0#0"), "with names rows of inputs"),
        (("write#0#0", "--with", "/data/edges.csv:1", "--save", "rows"), "ask --sufficient, too"),
        (("write#0#0", "--compare-start", "write#0#0"), "--compare-start needs --compare"),
        (("write#0#0", "--compare", APP), "not compared with itself"),
        (("--absent", "7"), "--absent needs --node"),
        (("--absent", "7", "--node", "1", "--how"), "--absent is a question of its own"),
        (("--absent", "7", "--node", "1", "--sufficient"), "--absent runs and saves nothing"),
        (("--absent", "1", "--node", "1"), "has records with the key '1'"),
    ],
)
def test_what_cannot_be_understood_is_one_line(
    words: tuple[str, ...],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    use(monkeypatch, labels())
    assert explain(*words) == 1
    printed = capsys.readouterr().err
    assert said in printed
    assert printed.count("\n") == 1

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lineage_api.app import create_app
from lineage_service.cli import main
from lineage_service.cli.query import start
from lineage_service.cli.query.output import plain, print_line, print_table, table
from lineage_service.cli.query.records import line_of
from lineage_service.cli.query.row_table import print_records, rounded
from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import Column, Graph, Node, Record, RecordPage, Remark, SourceRow
from lineage_service.queries import TraceQuery
from lineage_service.testing.queries import MemoryQueries
from tests.support.api_client import Client
from tests.support.flights_and_weather import (
    APP,
    MARKUP,
    NAME,
    RUNNING,
    questions,
    with_an_old_one_called_last,
)

#: command line -> what it is over HTTP.
SAME = {
    ("apps",): "/api/applications",
    ("datasets",): "/api/datasets?limit=20",
    ("datasets", "DATA", "--limit", "2"): "/api/datasets?text=DATA&limit=2",
    ("dataset", "/data/flights.csv"): "/api/dataset?name=/data/flights.csv&limit=20",
    (
        *("dataset", "delayed", "--namespace", "file", "--direction", "backward", "--depth", "1"),
    ): "/api/dataset?name=delayed&namespace=file&direction=backward&depth=1&limit=20",
    ("graph", APP): f"/api/applications/{APP}/graph",
    ("show", APP, "0", "--limit", "3"): f"/api/applications/{APP}/nodes/0/records?limit=3",
    ("show", APP, "8", "--text", "STORM"): f"/api/applications/{APP}/nodes/8/records?text=STORM&limit=20",
    (
        *("show", APP, "0", "--partition", "1", "--offset", "7", "--limit", "2"),
    ): f"/api/applications/{APP}/nodes/0/records?partition=1&offset=7&limit=2",
    (
        *("trace", APP, "backward", "write#0#3", "--node", "8"),
        *("--limit", "2", "--values"),
    ): f"/api/applications/{APP}/trace?direction=backward&record=write%230%233&node=8&limit=2&values=true",
    (
        *("trace", APP, "forward", "/data/flights.csv:3", "--to", "8"),
        *("--depth", "4"),
    ): f"/api/applications/{APP}/trace?direction=forward&path=/data/flights.csv&row=2&to=8&depth=4&limit=20",
    (
        *("trace", APP, "backward", "write#0#0", "--node", "10", "--only", "0"),
        *("--sort", "delay", "--desc", "--columns", "*", "--remarks"),
    ): f"/api/applications/{APP}/trace?direction=backward&record=write%230%230&node=10&limit=20&only=0"
    "&sort=delay&desc=true&columns=*&remarks=true",
    (
        *("trace", APP, "backward", "write#0#0", "--node", "10", "--only", "0"),
        *("--filter", "value like '%JFK%'", "--columns", "hour"),
    ): f"/api/applications/{APP}/trace?direction=backward&record=write%230%230&node=10&limit=20&only=0"
    "&filter=value+like+'%25JFK%25'&columns=hour",
    ("show", APP, "0", "--columns", "hour,flight"): f"/api/applications/{APP}/nodes/0/records"
    "?limit=20&columns=hour,flight",
    (
        "values",
        APP,
        "write#0#3",
        "--node",
        "8",
    ): f"/api/applications/{APP}/values?record=write%230%233&node=8",
}


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryQueries:
    found = questions()
    monkeypatch.setattr(start, "open_queries", lambda _settings, makes_store: found)
    return found


def said(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main.main(list(argv)) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("argv", SAME, ids=" ".join)
def test_json_is_what_the_api_answers(
    argv: tuple[str, ...], store: MemoryQueries, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = Client(create_app(store)).get(SAME[argv])
    assert answer.status_code == 200, answer.text
    assert json.loads(said(capsys, *argv, "--json")) == answer.json()


@pytest.mark.parametrize(
    "argv", [each for each in SAME if each[0] in ("show", "trace", "datasets", "dataset")], ids=" ".join
)
def test_csv_is_what_the_api_answers(
    argv: tuple[str, ...], store: MemoryQueries, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = Client(create_app(store)).get(SAME[argv], headers={"Accept": "text/csv"})
    assert said(capsys, *argv, "--csv") == answer.text


def test_csv_says_beside_the_table_what_has_no_place_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["trace", APP, "forward", "/data/weather.csv:2", "--limit", "1", "--csv"]) == 0
    answer = capsys.readouterr()
    assert "there are more: --cursor 1" in answer.err
    assert "--cursor" not in answer.out


def test_people_read_file_line_and_text_of_the_rows(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "trace", APP, "backward", "write#0#3", "--node", "8")
    [row] = [line for line in out.splitlines() if line.startswith("  /data/delayed/part-00000:4  ")]
    answer = said(capsys, "show", APP, "8", "--text", row.split("  ")[2])
    assert row.strip() in answer


def test_what_a_search_could_not_look_at_is_said(
    store: MemoryQueries, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = RecordPage(node_id=f"{APP}#0", total=None, records=(), next="3:7", warnings=("a file is gone",))
    monkeypatch.setattr(store, "records", lambda *_: page)
    out = said(capsys, "show", APP, "0", "--text", "storm")
    assert f"0 of an unknown number of matching records of {APP}#0" in out
    assert "a file is gone" in out
    assert "--cursor 3:7" in out


def test_a_trace_across_applications_says_whose_operations_it_lists(
    store: MemoryQueries, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ("trace", APP, "backward", "8#write#0#3")
    assert said(capsys, *argv).splitlines()[0] == f"application {NAME} ({APP})"
    trace = store.trace(APP, TraceQuery(direction="backward", record="8#write#0#3"))
    whose = {"application_id": "other", "application_name": ""}
    others = tuple(
        replace(node, node_id=f"other#{node.node_id.rpartition('#')[2]}", **whose) for node in trace.nodes
    )
    monkeypatch.setattr(store, "trace", lambda *_: replace(trace, nodes=(*trace.nodes, *others)))
    lines = said(capsys, *argv).splitlines()
    headings = [line for line in lines if line.startswith("application ")]
    assert headings == [f"application {NAME} ({APP})", "application other"]
    assert lines[0] == headings[0]


def test_a_trace_that_starts_at_several_operations_names_them(
    store: MemoryQueries, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ("trace", APP, "forward", "/data/flights.csv:3")
    assert "starts at each" not in said(capsys, *argv)
    trace = store.trace(APP, TraceQuery(direction="forward", path="/data/flights.csv", row=2))
    again = replace(trace.starts[0], node_id=f"{APP}#77", name="Scan csv")
    monkeypatch.setattr(store, "trace", lambda *_: replace(trace, starts=(*trace.starts, again)))
    number = trace.start_node.rpartition("#")[2]
    assert f"starts at each: {number} (textFile), 77 (Scan csv);" in " ".join(said(capsys, *argv).split())


def test_what_is_not_exact_or_not_complete_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert "is an upper bound:" in said(capsys, "graph", APP)
    assert f"{RUNNING} " in said(capsys, "apps")
    numbers = [node["node"] for node in json.loads(said(capsys, "graph", APP, "--json"))["nodes"]]
    answers = [json.loads(said(capsys, "show", APP, str(number), "--json")) for number in numbers]
    inexact = 0
    for number, answer in zip(numbers, answers, strict=True):
        for record in answer["records"][:1]:
            argv = ("trace", APP, "backward", record["record_id"], "--node", str(number))
            exact = json.loads(said(capsys, *argv, "--json"))["exact"]
            inexact += not exact
            assert ("took no part" in said(capsys, *argv)) is not exact
    assert inexact


def test_a_graph_says_what_each_operator_does_and_where_it_stands(
    store: MemoryQueries, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    condition = " AND ".join(f"(column_{number} > {number})" for number in range(9))
    nodes = [
        replace(node, name="Filter", description=text, dataset=None, call_site=place)
        for node, text, place in zip(
            store.graph(APP).nodes,
            ("v > 3", condition, "Filter"),
            ("/home/me/job.py:12, 14", "In [3]:2", ""),
            strict=False,
        )
    ]
    monkeypatch.setattr(store, "graph", lambda _: Graph(application_id=APP, nodes=tuple(nodes), edges=()))
    lines = said(capsys, "graph", APP).splitlines()
    assert lines[2].split() == ["0", "Filter", *_records_of(nodes[0]), "job.py:12,", "14", "v", ">", "3"]
    assert condition[:79] + "…" in lines[3]
    assert " In [3]:2 " in lines[3]
    assert lines[4].split() == ["2", "Filter", *_records_of(nodes[2])]
    assert json.loads(said(capsys, "graph", APP, "--json"))["nodes"][1]["description"] == condition
    assert condition in said(capsys, "graph", APP, "--csv")


def _records_of(node: Node) -> list[str]:
    return ["not", "counted"] if node.records is None else [f"{node.records:,}"]


def test_last_is_the_newest_application(capsys: pytest.CaptureFixture[str]) -> None:
    newest = json.loads(said(capsys, "apps", "--json"))["applications"][0]["application_id"]
    assert said(capsys, "graph", "last", "--json") == said(capsys, "graph", newest, "--json")


def test_last_of_no_applications_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(start, "open_queries", lambda _settings, makes_store: MemoryQueries())
    assert main.main(["graph", "last", "--home", "/h"]) == 1
    assert "no applications in /h/flows (home /h): run a job" in capsys.readouterr().err
    assert said(capsys, "apps", "--home", "/h", "--store", "/s") == "no applications in /s (home /h)\n"


def test_an_application_that_is_called_last_is_the_one_that_is_meant(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = with_an_old_one_called_last()
    monkeypatch.setattr(start, "open_queries", lambda _settings, makes_store: found)
    assert json.loads(said(capsys, "graph", "last", "--json"))["application_id"] == "last"


def test_an_unknown_application_is_told_with_the_store_that_was_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main.main(["graph", "nobody", "--home", "/h"]) == 1
    assert capsys.readouterr().err == "lineage: no application nobody is known in /h/flows (home /h)\n"


def test_records_are_counted_in_one_form_of_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    every = json.loads(said(capsys, "show", APP, "8", "--json"))
    last = said(capsys, "show", APP, "8", "--limit", "2").splitlines()
    assert f"2 of {every['total']:,} records of {APP}#8" in last
    storms = json.loads(said(capsys, "show", APP, "8", "--text", "STORM", "--json"))
    shown = said(capsys, "show", APP, "8", "--text", "STORM").splitlines()
    assert f"20 of {storms['total']} matching records of {APP}#8" in shown


def test_a_trace_through_an_action_that_failed_says_so_and_speaks_of_no_bound(
    store: MemoryQueries, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = ("trace", APP, "backward", "8#write#0#3")
    trace = store.trace(APP, TraceQuery(direction="backward", record="8#write#0#3"))
    nodes = tuple(
        replace(node, exact=False, state="failed", reason="it failed") if node.node_id == f"{APP}#8" else node
        for node in trace.nodes
    )
    monkeypatch.setattr(store, "trace", lambda *_: replace(trace, exact=False, nodes=nodes))
    text = said(capsys, *argv)
    assert (
        f"{APP}#8 (saveAsTextFile of {NAME}) failed: its records are those of tasks that had ended before."
        in text
    )
    assert "bound" not in text


def test_show_prints_ids_that_trace_and_values_take(capsys: pytest.CaptureFixture[str]) -> None:
    [record_id] = {
        line.split()[0] for line in said(capsys, "show", APP, "8", "--limit", "1").splitlines()[:1]
    }
    traced = said(capsys, "trace", APP, "backward", record_id, "--node", "8", "--json")
    for name in (f"8#{record_id}", f"{APP}#8#{record_id}"):
        assert said(capsys, "trace", APP, "backward", name, "--json") == traced
        lines = said(capsys, "values", APP, name).splitlines()
        assert lines[0] == f"application {NAME} ({APP})"
        assert lines[1].startswith("node")


def row_of(at: int, columns: dict[str, Any] | None, **more: Any) -> Record:
    path = f"/out/monthly/origin={'EWR' if at % 2 else 'JFK'}/part-0.parquet"
    row = SourceRow(path=path, row=at, line=at + 1, text="{}", warning=None, columns=columns)
    return Record(record_id=f"write#0#{at}", partition=0, offset=at, source=replace(row, **more))


def printed(records: Sequence[Record], width: int | None = None, **more: Any) -> list[str]:
    """On a terminal of a width, or in a pipe."""
    written = io.StringIO()
    console = Console(
        file=written, force_terminal=width is not None, width=width or 10_000, color_system=None
    )
    schema = [Column(name="mean", type="double"), Column(name="price", type="decimal(9,2)")]
    print_records(console, records, schema, **more)
    return written.getvalue().splitlines()


MEANS = [
    row_of(0, {"origin": "JFK", "mean": 17.534653465346533, "price": "7.50", "n": 9655, "ok": True}),
    row_of(1, {"origin": "EWR", "mean": 1048.36058, "price": None, "n": 12, "ok": False}),
]


def test_rows_are_a_table_with_the_place_that_tells_them_apart() -> None:
    assert printed(MEANS) == [
        "  in /out/monthly",
        "  row                          origin     mean  price     n  ok",
        "  origin=JFK/part-0.parquet:1  JFK     17.5347   7.50  9655  true",
        "  origin=EWR/part-0.parquet:2  EWR     1048.36   null    12  false",
    ]
    full = printed(MEANS, is_full=True)
    assert "17.534653465346533" in full[1]
    assert "/out/monthly/origin=JFK/part-0.parquet:1" in full[1]


def test_a_table_is_cut_to_a_terminal_and_names_what_has_no_place() -> None:
    lines = printed(MEANS, 50)
    assert max(map(len, lines)) <= 50
    assert lines[1] == "  row                          origin     mean"
    assert lines[-1] == "  and 3 more columns: price, n, ok"
    long = [row_of(at, {"text": "x" * 200}) for at in range(2)]
    assert any(line.endswith("…") for line in printed(long, 120))
    assert sum(line.endswith("x" * 200) for line in printed(long)) == 2


def test_what_is_wrong_with_rows_is_said_below_them_once() -> None:
    changed = [row_of(at, {"n": at}, warning="the file has changed") for at in range(3)]
    assert printed(changed)[-1] == "  (3 of these rows: the file has changed)"
    cut = [row_of(0, {"n": 1}, columns_cut=True)]
    assert printed(cut)[-1] == "  (cut, since it has many columns or long values)"


def test_a_row_without_columns_is_its_line() -> None:
    mixed = [row_of(0, {"n": 1}), row_of(1, None, text="EWR,1")]
    assert [line.split()[-1] for line in printed(mixed)] == ["{}", "EWR,1"]


def test_data_of_rows_cannot_command_the_terminal() -> None:
    for value in ("\x1b[2J\n", {"b": ["\x1b]0;"]}):
        assert "\x1b" not in "".join(printed([row_of(0, {"a\x1b": value})]))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (57.81, "57.81"),
        (17.534653465346533, "17.5347"),
        (1048.36058, "1048.36"),
        (12345678.9012, "12345678.9"),
        (0.0, "0.0"),
        (-3.0, "-3.0"),
        (1e-9, "1e-09"),
        (1.5e300, "1.5e+300"),
        (0.1234567, "0.12346"),
    ],
)
def test_floats_are_rounded_for_reading(value: float, text: str) -> None:
    assert rounded(value) == text


def test_what_stands_out_is_said_below_its_operation(
    store: MemoryQueries, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = store.trace(APP, TraceQuery(direction="backward", record="8#write#0#3"))
    about = {"record_id": "read#0#2", "path": "/d/w.csv", "row": 2, "line": 3, "column": "wind"}
    remark = Remark(**about, value=1048.36, low=0, high=42, text="w.csv:3: wind 1,048.36, the others 0 to 42")
    nodes = tuple(replace(node, remarks=(remark,), remarks_of=1, total=9) for node in trace.nodes[-1:])
    monkeypatch.setattr(store, "trace", lambda *_: replace(trace, nodes=nodes))
    lines = said(capsys, "trace", APP, "backward", "8#write#0#3").splitlines()
    assert "  stands out: w.csv:3: wind 1,048.36, the others 0 to 42" in lines
    assert "  (of the first 1 of 9 rows)" in lines


def test_lines_are_cut_to_a_terminal_and_whole_in_a_pipe() -> None:
    text = plain("x" * 20_000)
    for is_terminal, width in ((True, 40), (False, 20_000)):
        written = io.StringIO()
        console = Console(file=written, force_terminal=is_terminal, width=40, color_system=None)
        print_line(console, text)
        assert [len(line) for line in written.getvalue().splitlines()] == [width]


def test_a_wide_value_in_a_table_is_cut_to_a_terminal() -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=40, color_system=None)
    rows = table("record", "value~")
    rows.add_row("write#0#1", plain("x" * 20_000))
    print_table(console, rows)
    lines = written.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[1] == f"write#0#1  {'x' * 28}…"


def test_applications_can_be_found_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    names = [
        application["name"] for application in json.loads(said(capsys, "apps", "--json"))["applications"]
    ]
    wanted = names[0][1:4].upper()
    chosen = json.loads(said(capsys, "apps", "--json", "--name", wanted))["applications"]
    assert {each["name"] for each in chosen} == {name for name in names if wanted.lower() in name.lower()}


@pytest.mark.parametrize(
    ("argv", "said_of_it"),
    [
        (("trace", APP, "backward"), "say where the trace begins: FILE:LINE"),
        (("trace", APP, "backward", "3"), "'3' is neither FILE:LINE nor a record id"),
        (("trace", APP, "backward", "/data/flights.csv:0"), "lines count from 1"),
        (("trace", APP, "backward", "--key", "JFK"), "--key needs --node"),
        (("trace", APP, "backward", "0#1", "--key", "JFK", "--node", "3"), "say where the trace begins"),
        (("trace", APP, "backward", "/nowhere:3"), "there is no such record"),
        (("graph", "nobody"), "nobody"),
        (("show", APP, "99"), "99"),
    ],
)
def test_a_question_without_an_answer_is_one_line(
    argv: tuple[str, ...], said_of_it: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(list(argv)) == 1
    answer = capsys.readouterr()
    assert answer.out == ""
    assert answer.err.count("\n") == 1
    assert said_of_it in answer.err


@pytest.mark.parametrize("limit", ["0", "-1", "x", "10001", "٣"])
def test_a_limit_that_is_none_is_refused(limit: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["show", APP, "0", "--limit", limit]) == 2
    assert "is no whole number from 1 to 10000" in capsys.readouterr().err


def test_nothing_of_a_terminal_is_in_what_is_piped(capsys: pytest.CaptureFixture[str]) -> None:
    for argv in SAME:
        assert "\x1b" not in said(capsys, *argv)


def test_the_data_cannot_command_the_terminal_nor_the_table() -> None:
    assert plain("\x1b[2J\x07\r[bold]\x9b").plain == "\\x1b[2J\\x07\\x0d[bold]\\x9b"
    row = SourceRow(path="/a\x1b]0;b", row=0, line=1, text=MARKUP, warning=None)
    record = Record(record_id="read#0#0", partition=0, offset=0, source=row)
    assert line_of(record).plain == f"/a\\x1b]0;b:1  {MARKUP}"


def test_a_file_with_a_number_sign_in_its_name_is_a_file_where_it_is_there(tmp_path: Path) -> None:
    file = tmp_path / "a#b"
    assert start.start_of(f"{file}:2", None, None) == {"record": f"{file}:2", "node": None}
    file.touch()
    assert start.start_of(f"{file}:2", None, None) == {"path": str(file), "row": 1, "node": None}


def test_a_path_of_this_folder_is_meant_from_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in.txt").touch()
    monkeypatch.chdir(tmp_path)
    assert start.start_of("in.txt:1", None, None) == {
        "path": str(tmp_path / "in.txt"),
        "row": 0,
        "node": None,
    }
    assert start.start_of("hdfs://host/in.txt:1", None, "4") == {
        **{"path": "hdfs://host/in.txt", "row": 0, "node": "4"}
    }
    with pytest.raises(InvalidQueryError):
        start.start_of("in.txt:1", "key", "3")

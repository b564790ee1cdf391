"""`lineage missing` prints what the API answers, and says in words where a row ended."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lineage_api.app import create_app
from lineage_service.cli import main
from lineage_service.cli.query import start
from lineage_service.lineage import (
    AskedInput,
    Choices,
    Duplicate,
    MissedOutput,
    Missing,
    MissingRow,
    ReachedRow,
    Record,
    RowEnd,
    SourceRow,
)
from lineage_service.queries import MissingQuery, RowQuery
from lineage_service.testing.queries import MemoryQueries
from tests.support.api_client import Client

pytestmark = pytest.mark.unit

OUTPUT = MissedOutput(node_id="app-1#9", name="parquet", description="/data/out", call_site="job.py:12")
FILTER = RowEnd(
    node_id="app-1#3",
    name="Filter",
    description="amount > 5",
    call_site="/home/me/job.py:7",
    why="filter: amount > 5",
)
JOIN = RowEnd(
    node_id="app-1#5",
    name="Join",
    description="Inner, (a = b)",
    call_site="/home/me/job.py:9",
    why="join: it has no match on the other side: (a = b)",
)
ROW = {
    "application_id": "app-1",
    "node_id": "app-1#0",
    "record_id": "read#0#4",
    "path": "/data/orders.csv",
    "row": 4,
    "line": 5,
    "text": "4,Graz",
    "columns": {"id": 4},
}


def ended(*ends: RowEnd, reason: str = "") -> MissingRow:
    return MissingRow(
        **ROW,
        ended=ends[0] if len(ends) == 1 else None,
        candidates=ends if len(ends) > 1 else (),
        last=(),
        last_node_id="app-1#0",
        last_total=1,
        outputs=(OUTPUT,),
        exact=not reason,
        reason=reason,
    )


def answer(*rows: MissingRow, **fields: object) -> Missing:
    every = {"reached": (), "complete": True, **fields}
    return Missing(application_id="app-1", name="Takings", rows=rows, **every)


class Asked(MemoryQueries):
    """Answers with what it was given, and remembers what was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.result, self.asked = answer(ended(FILTER)), list[tuple[str, MissingQuery]]()

    def missing(self, application_id: str, query: MissingQuery) -> Missing:
        self.asked.append((application_id, query))
        return self.result

    def rows(self, query: RowQuery) -> Choices:
        assert query.as_input  # who read it comes before who wrote it
        return Choices(
            application_id="app-of-dataset",
            name="",
            started=0,
            direction="forward",
            dataset=query.dataset,
            where=None,
            nodes=(),
            total=None,
            files=1,
            choices=(),
            next=None,
        )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    queries = Asked()
    monkeypatch.setattr(start, "open_queries", lambda _settings, makes_store: queries)
    return queries


@pytest.mark.parametrize(
    ("argv", "parameters"),
    [
        (("app-1", "/d/orders.csv:5"), {"path": "/d/orders.csv", "row": 4}),
        (("app-1", "0#read#0#4"), {"record": "0#read#0#4"}),
        (("app-1", "/d/o.csv:5", "--output", "/out"), {"path": "/d/o.csv", "row": 4, "output": "/out"}),
        (("app-1", "/d/o", "--where", "id = 4"), {"path": "/d/o", "where": "id = 4"}),
        (
            ("app-1", "/d/o", "--where", "id = 4", "--input", "--node", "3"),
            {"path": "/d/o", "where": "id = 4", "direction": "forward", "node": "3"},
        ),
    ],
)
def test_json_and_csv_are_what_the_api_answers(
    argv: tuple[str, ...],
    parameters: dict[str, str],
    asked: Asked,
    capsys: pytest.CaptureFixture[str],
) -> None:
    client = Client(create_app(asked))
    address = "/api/applications/app-1/missing"
    result = client.get(address, params=parameters)
    assert result.status_code == 200, result.text
    assert main.main(["missing", *argv, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == result.json()
    assert main.main(["missing", *argv, "--csv"]) == 0
    as_csv = client.get(address, params=parameters, headers={"Accept": "text/csv"})
    assert capsys.readouterr().out == as_csv.text
    assert as_csv.headers["Lineage-Exact"] == "true"
    assert len({str(one) for one in asked.asked}) == 1


@pytest.mark.parametrize(
    ("argv", "query"),
    [
        (("/d/o.csv:5",), MissingQuery(path="/d/o.csv", row=4)),
        (
            ("/d/o", "--where", "id = 4", "--input"),
            MissingQuery(path="/d/o", where="id = 4", direction="forward"),
        ),
    ],
)
def test_a_dataset_names_its_application(argv: tuple[str, ...], query: MissingQuery, asked: Asked) -> None:
    assert main.main(["missing", *argv]) == 0
    assert asked.asked == [("app-of-dataset", query)]


def test_people_see_the_operation_its_line_and_why(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["missing", "app-1", "/data/orders.csv:5"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "/data/orders.csv:5  4,Graz  (read by 0)",
        "  is not in 9 parquet /data/out",
        "  ended at 3 Filter (job.py:7): filter: amount > 5",
    ]


def test_people_see_every_candidate_and_why_it_is_not_exact(
    asked: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    asked.result = answer(ended(FILTER, JOIN, reason="flows do not tell"), complete=False)
    assert main.main(["missing", "app-1", "/data/orders.csv:5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:5] == [
        "  ended at one of 3 Filter (job.py:7): filter: amount > 5",
        "               or 5 Join (job.py:9): join: it has no match on the other side: (a = b)",
        "  not exact: flows do not tell",
    ]
    assert "not complete" in lines[5]


def test_people_see_the_outputs_that_a_row_is_in_and_the_inputs_that_were_asked(
    asked: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = AskedInput(
        application_id="app-1",
        node_id="app-1#0",
        name="Scan csv",
        dataset="/data/orders.csv",
        condition="id = 4",
        lacks=("name",),
        matches=1,
        note="",
    )
    asked.result = answer(reached=(ReachedRow(**ROW, outputs=(OUTPUT,)),), inputs=(inputs,), present=())
    assert main.main(["missing", "app-1", "/data/out", "--where", "id = 4"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "0 Scan csv /data/orders.csv: 1 row with id = 4, without name",
        "/data/orders.csv:5  4,Graz  (read by 0)",
        "  is in 9 parquet /data/out",
    ]


def test_people_see_where_a_row_was_one_of_several(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    source = SourceRow(path="/data/orders.csv", row=0, line=1, text="0,Graz", warning=None)
    duplicate = Duplicate(
        node_id="app-1#6",
        name="Aggregate",
        description="[city], [city]",
        call_site="/home/me/job.py:8",
        why="distinct: 3 rows of this input were equal here, and one row stands for all of them",
        total=3,
        equal=(Record(record_id="read#0#0", partition=0, offset=0, source=source),),
        exact=True,
    )
    asked.result = answer(reached=(ReachedRow(**ROW, outputs=(OUTPUT,), duplicates=(duplicate,)),))
    asked.result = replace(asked.result, rows=())
    assert main.main(["missing", "app-1", "/data/orders.csv:5"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  is in 9 parquet /data/out",
        f"  one of several at 6 Aggregate (job.py:8): {duplicate.why}",
        "  the others: /data/orders.csv:1 and 1 more",
    ]


def test_whose_operation_it_is_is_said_of_another_application(
    asked: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    other = {**ROW, "application_id": "app-2", "node_id": "app-2#0"}
    asked.result = answer(reached=(ReachedRow(**other, outputs=(OUTPUT,)),))
    assert main.main(["missing", "app-1", "/data/orders.csv:5"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "/data/orders.csv:5  4,Graz  (read by app-2#0)"


@pytest.mark.parametrize(
    ("parameters", "query"),
    [
        ({"dataset": "/d/o.csv", "row": "4"}, MissingQuery(path="/d/o.csv", row=4)),
        (
            {"dataset": "/d/o", "where": "id = 4", "direction": "forward", "across": "false"},
            MissingQuery(path="/d/o", where="id = 4", direction="forward", across=False),
        ),
    ],
)
def test_over_http_a_dataset_names_its_application(
    parameters: dict[str, str], query: MissingQuery, asked: Asked
) -> None:
    result = Client(create_app(asked)).get("/api/missing", params=parameters)
    assert result.status_code == 200, result.text
    assert asked.asked == [("app-of-dataset", query)]


@pytest.mark.parametrize("more", [{}, {"where": "a = 1", "row": "1"}])
def test_over_http_a_dataset_needs_one_way_to_name_rows(more: dict[str, str], asked: Asked) -> None:
    result = Client(create_app(asked)).get("/api/missing", params={"dataset": "/d/o.csv", **more})
    assert result.status_code == 422
    assert "name the rows: where or row" in result.text
    assert asked.asked == []


def test_nothing_that_fulfils_it_is_exit_code_3(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    asked.result = answer(inputs=(), present=())
    assert main.main(["missing", "app-1", "/d", "--where", "id = 4"]) == 3
    assert "No input has such a row." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("/d/o.csv",), "say which row of /d/o.csv"),
        (("/d/o.csv:5", "--where", "id = 4"), "say which row of"),
        (("app-1", "/d/o.csv:5", "--where", "id = 4"), "is a row already"),
        (("app-1", "/d/o.csv:5", "--input"), "--input needs --where"),
        (("app-1", "/d/o.csv:5", "--app", "x"), "--app and --at are for datasets"),
        (("app-1", "word"), "neither FILE:LINE nor a record id"),
    ],
)
def test_arguments_that_make_no_sense_are_one_line(
    argv: tuple[str, ...], words: str, asked: Asked, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["missing", *argv]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
    assert asked.asked == []


@pytest.mark.parametrize("parameters", [{}, {"path": "/d"}, {"row": "1"}, {"where": "a = 1", "row": "1"}])
def test_over_http_they_are_invalid_queries(parameters: dict[str, str], asked: Asked) -> None:
    result = Client(create_app(asked)).get("/api/applications/app-1/missing", params=parameters)
    assert result.status_code == 422
    assert asked.asked == []

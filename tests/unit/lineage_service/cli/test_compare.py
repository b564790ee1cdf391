"""`lineage compare` prints what the API answers, and says what it could not compare."""

from __future__ import annotations

import json

import pytest

from lineage_api.app import create_app
from lineage_service.cli import main
from lineage_service.cli.query import start
from lineage_service.lineage import ChangedInput, ChangedRow, ComparedRow, ComparedRun, Comparison
from lineage_service.queries import CompareQuery
from lineage_service.testing.queries import MemoryQueries
from tests.support.api_client import Client

pytestmark = pytest.mark.unit

RUNS = tuple(
    ComparedRun(
        application_id=name,
        name="Takings",
        started=1_732_183_200_000,
        node_id=f"{name}#3",
        dataset=f"/data/{name}",
        rows=3,
        complete=True,
    )
    for name in ("app-1", "app-2")
)
RESULT = Comparison(
    runs=RUNS,
    key=("city",),
    gone=(
        ComparedRow(
            key={"city": "Graz"},
            record="app-1#3#write#0#0",
            path="/data/app-1/part-0",
            row=0,
            columns={"city": "Graz", "sum": 5},
            because=(ChangedInput(path="/in/a.csv", row=1, line=2, was="Graz,5", is_=None),),
        ),
    ),
    new=(),
    changed=(
        ChangedRow(
            key={"city": "Linz"},
            was={"city": "Linz", "sum": 7},
            is_={"city": "Linz", "sum": None},
            was_record="app-1#3#write#0#1",
            is_record="app-2#3#write#0#0",
            columns=("sum",),
            because=(ChangedInput(path="/in/a.csv", row=4, line=5, was="Linz,7", is_="Linz,"),),
        ),
    ),
    same=1,
    gone_total=1,
    new_total=0,
    changed_total=1,
    complete=True,
    exact=True,
    truncated=False,
    warnings=(),
)
UNREAD = Comparison(
    runs=RUNS,
    key=(),
    gone=(),
    new=(),
    changed=(),
    same=None,
    gone_total=None,
    new_total=None,
    changed_total=None,
    complete=False,
    exact=True,
    truncated=False,
    warnings=("rows of app-1 (Takings) are gone",),
)


class Compared(MemoryQueries):
    """Answers comparisons with what it was given, and remembers what was asked."""

    def __init__(self, result: Comparison) -> None:
        super().__init__()
        self.result, self.asked = result, list[CompareQuery]()

    def compare(self, query: CompareQuery) -> Comparison:
        self.asked.append(query)
        return self.result


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> Compared:
    queries = Compared(RESULT)
    monkeypatch.setattr(start, "open_queries", lambda _settings, makes_store: queries)
    return queries


@pytest.mark.parametrize(
    ("argv", "parameters"),
    [
        (("app-1", "app-2"), {"before": "app-1", "after": "app-2"}),
        (("app-1", "app-2", "--key", "city"), {"before": "app-1", "after": "app-2", "key": "city"}),
        (
            ("app-1", "app-2", "--dataset", "/data/out", "--key", 'a,"b,c"'),
            {"before": "app-1", "after": "app-2", "dataset": "/data/out", "key": 'a,"b,c"'},
        ),
        (("/data/out",), {"dataset": "/data/out"}),
    ],
)
def test_json_and_csv_are_what_the_api_answers(
    argv: tuple[str, ...],
    parameters: dict[str, str],
    compared: Compared,
    capsys: pytest.CaptureFixture[str],
) -> None:
    client = Client(create_app(compared))
    answer = client.get("/api/compare", params={"limit": "20", **parameters})
    assert answer.status_code == 200, answer.text
    assert main.main(["compare", *argv, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == answer.json()
    assert main.main(["compare", *argv, "--csv"]) == 0
    as_csv = client.get("/api/compare", params={"limit": "20", **parameters}, headers={"Accept": "text/csv"})
    assert capsys.readouterr().out == as_csv.text
    assert as_csv.headers["Lineage-Complete"] == "true"
    assert len(set(compared.asked)) == 1
    [changed] = answer.json()["changed"]
    assert changed["is"] == {"city": "Linz", "sum": None}
    assert changed["because"] == [{"path": "/in/a.csv", "row": 4, "line": 5, "was": "Linz,7", "is": "Linz,"}]


def test_people_see_old_and_new_values_and_the_input_rows_behind_them(
    compared: Compared, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["compare", "app-1", "app-2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("was Takings (app-1, ")
    assert lines[2:] == [
        "1 changed, 1 gone, 0 new, 1 the same",
        "~ city Linz: sum 7 -> null",
        "    because /in/a.csv:5: Linz,7 -> Linz,",
        "- city Graz, sum 5",
        "    because /in/a.csv:2: Graz,5 -> nothing",
    ]


def test_what_could_not_be_compared_is_said_and_is_exit_code_3(
    compared: Compared, capsys: pytest.CaptureFixture[str]
) -> None:
    compared.result = UNREAD
    assert main.main(["compare", "/data/out"]) == 3
    assert "rows of app-1 (Takings) are gone" in capsys.readouterr().out


@pytest.mark.parametrize("argv", [("a", "b", "c"), ("/data", "--dataset", "/data")])
def test_arguments_that_make_no_sense_are_one_line(
    argv: tuple[str, ...], compared: Compared, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["compare", *argv]) == 1
    assert capsys.readouterr().err == "lineage: give two applications (and --dataset), or one dataset\n"


def test_an_application_has_the_same_answer_of_another_one(compared: Compared) -> None:
    client = Client(create_app(compared))
    named = {"dataset": "/data/out", "key": "city", "limit": "7"}
    plain = client.get("/api/compare", params={"before": "a", "after": "b", **named})
    answer = client.get("/api/applications/a/compare", params={"with": "b", **named})
    assert (answer.status_code, answer.json()) == (200, plain.json())
    assert len(set(compared.asked)) == 1
    assert client.get("/api/applications/a/compare").status_code == 422


@pytest.mark.parametrize("parameters", [{}, {"before": "a"}, {"after": "a", "dataset": "/d"}, {"key": "a"}])
def test_over_http_they_are_invalid_queries(parameters: dict[str, str], compared: Compared) -> None:
    answer = Client(create_app(compared)).get("/api/compare", params=parameters)
    assert answer.status_code == 422
    assert compared.asked == []

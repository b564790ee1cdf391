"""An unmodified job writes sums in each format, by folders too: a condition leads to the rows in them."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lineage_service.dataset_trace import ChosenTrace, chosen_trace
from lineage_service.errors import InvalidQueryError, NothingMatchesError
from lineage_service.lineage import Choices
from lineage_service.queries import RecordQuery, RowQuery, TraceQuery
from tests.support.spark.application import Application, run_application

FORMATS = ("parquet", "orc", "json", "csv")
AIRPORTS, MONTHS = ("EWR", "JFK", "L,A", 'Q"A', ""), ("2013-01", "2013-02")


def flights() -> list[dict[str, Any]]:
    return [
        {
            "flight": number,
            "airport": AIRPORTS[number % 5],
            "month": MONTHS[number % 7 % 2],
            "delay": number % 11,
        }
        for number in range(200)
    ]


@pytest.fixture(scope="module")
def application(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Application:
    folder = tmp_path_factory.mktemp("conditions")
    with (folder / "flights.csv").open("w", newline="") as file:
        writer = csv.DictWriter(
            file, ["flight", "airport", "month", "delay"], escapechar="\\", doublequote=False
        )
        writer.writeheader()
        writer.writerows(flights())

    def job(context: Any) -> None:
        spark = SparkSession(context)
        schema = "flight INT, airport STRING, month STRING, delay INT"
        read = spark.read.schema(schema).csv(str(folder / "flights.csv"), header=True)
        sums = read.groupBy("airport", "month").agg({"delay": "sum"}).withColumnRenamed("sum(delay)", "total")
        for format in FORMATS:
            sums.write.partitionBy("month").format(format).option("header", True).save(str(folder / format))
        sums.select("total", "airport").coalesce(1).write.csv(str(folder / "one"), header=True)
        read.select("airport").distinct().collect()

    _, application = run_application(kafka.bootstrap_servers, folder / "store", job)
    assert application is not None
    assert application.store is not None
    return application


def folder_of(application: Application) -> Path:
    assert application.store is not None
    return application.store.folder.parent


def lines_behind(application: Application, data: str, where: str, *, is_of_all: bool = False) -> set[int]:
    """The lines of the input that a trace from the rows that fulfil a condition leads to."""
    rows = RowQuery(dataset=str(folder_of(application) / data), where=where)
    chosen = chosen_trace(
        application.questions, rows, TraceQuery(direction="backward", limit=10_000), is_of_all=is_of_all
    )
    assert isinstance(chosen, ChosenTrace), chosen
    assert chosen.warnings == ()
    trace = application.questions.trace(chosen.application_id, chosen.query)
    assert trace.exact
    assert trace.complete
    return {
        record.source.row
        for node in trace.nodes
        if node.kind == "source"
        for record in node.records
        if record.source is not None
    }


def flights_of(airports: Sequence[str], month: str) -> set[int]:
    """Their lines: the header is before them."""
    return {
        flight["flight"] + 1
        for flight in flights()
        if flight["airport"] in airports and flight["month"] == month
    }


@pytest.mark.parametrize("format", FORMATS)
def test_a_sum_leads_to_the_flights_in_it(application: Application, format: str) -> None:
    assert lines_behind(application, format, "airport = 'EWR' and month = '2013-02'") == flights_of(
        ["EWR"], "2013-02"
    )
    assert lines_behind(application, format, "airport = 'L,A' and month = '2013-01'") == flights_of(
        ["L,A"], "2013-01"
    )
    total = sum(f["delay"] for f in flights() if (f["airport"], f["month"]) == ('Q"A', "2013-01"))
    where = f"airport like 'Q%' and total = {total} and month < '2013-02'"
    assert lines_behind(application, format, where) == flights_of(['Q"A'], "2013-01")
    # An empty text of a file is null to Spark.
    assert lines_behind(application, format, "airport is null and month = '2013-01'") == flights_of(
        [""], "2013-01"
    )


@pytest.mark.parametrize("format", FORMATS)
def test_several_sums_are_choices_or_one_trace_of_all(application: Application, format: str) -> None:
    data, where = str(folder_of(application) / format), "airport in ('EWR', 'JFK') and month = '2013-02'"
    choices = application.questions.rows(RowQuery(dataset=data, where=where))
    assert isinstance(choices, Choices)
    assert choices.total == len(choices.choices) == 2
    assert {choice.columns["airport"] for choice in choices.choices if choice.columns} == {"EWR", "JFK"}
    assert {choice.columns["month"] for choice in choices.choices if choice.columns} == {"2013-02"}
    assert all(choice.path is not None and "/month=2013-02/" in choice.path for choice in choices.choices)
    assert lines_behind(application, format, where, is_of_all=True) == flights_of(["EWR", "JFK"], "2013-02")
    page = application.questions.rows(RowQuery(dataset=data, where=where, limit=1))
    rest = application.questions.rows(RowQuery(dataset=data, where=where, limit=1, cursor=page.next))
    assert (*page.choices, *rest.choices) == choices.choices
    sink = choices.nodes[0]
    records = application.questions.records(application.application_id, RecordQuery(node=sink, where=where))
    assert [record.record_id for record in records.records] == [
        choice.record_id for choice in choices.choices
    ]
    assert (records.total, records.warnings) == (2, ())
    by_text = application.questions.records(application.application_id, RecordQuery(node=sink, text="ewr"))
    assert (by_text.total, by_text.warnings) == (2, ())


def test_an_input_leads_forward_to_the_sums_that_it_is_in(application: Application) -> None:
    data = str(folder_of(application) / "flights.csv")
    choices = application.questions.rows(
        RowQuery(dataset=data, where="flight = 17 and delay between 6 and 6.5")
    )
    assert (choices.direction, [choice.row for choice in choices.choices]) == ("forward", [18])
    query = TraceQuery(direction="forward", path=data, where="flight = 17", limit=10_000)
    trace = application.questions.trace(application.application_id, query)
    texts = [
        r.source.text for n in trace.nodes if n.kind == "sink" for r in n.records if r.source is not None
    ]
    assert len(texts) == len(FORMATS) + 1
    assert all("L,A" in (text or "") for text in texts)
    assert sum(json.loads(text)["airport"] == "L,A" for text in texts if text and text.startswith("{")) == 3


def test_a_folder_a_glob_and_a_line_name_the_file_in_it(application: Application) -> None:
    folder = folder_of(application)
    [file] = (folder / "one").glob("part-*.csv")
    row = next(row for row, line in enumerate(file.read_text().splitlines()) if line.endswith("EWR"))
    expected = application.sources_of(file, row)
    for name in (folder / "one", folder / "one" / "part-*.csv", folder / "on?"):
        assert application.sources_of(name, row) == expected
    named = application.questions.rows(RowQuery(dataset="one", where="airport = 'EWR' and total > 0"))
    assert (named.dataset, named.total) == (str(folder / "one"), 2)
    with pytest.raises(InvalidQueryError, match="name one of them, or a condition"):
        application.sources_of(folder / "json", 0)


def test_what_cannot_be_answered_says_why(application: Application) -> None:
    folder, questions = folder_of(application), application.questions
    with pytest.raises(InvalidQueryError, match="there is no column airpot: did you mean airport"):
        questions.rows(RowQuery(dataset=str(folder / "orc"), where="airpot = 'EWR'"))
    with pytest.raises(InvalidQueryError, match=r"total is a number \(bigint\)"):
        questions.rows(RowQuery(dataset=str(folder / "orc"), where="total = 'x'"))
    with pytest.raises(NothingMatchesError, match="2 files with 10 records were looked at"):
        questions.rows(RowQuery(dataset=str(folder / "parquet"), where="total < 0"))
    collect = next(node for node in application.sinks() if node.dataset is None)
    with pytest.raises(InvalidQueryError, match="no values of its records were captured"):
        questions.rows(
            RowQuery(application=application.application_id, node=collect.node_id, where="airport = 'EWR'")
        )

"""Tables in folders of strange values: what is asked of their rows is what plain Python says of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from lineage_service.lineage import Choices
from lineage_service.queries import RecordQuery, RowQuery
from tests.support.spark.application import Application

pytestmark = pytest.mark.thorough

Row = tuple[int, str | None, int, str]
KEYS = [
    *("a b", "50%", None, "x/y", "k=v", "é", "'q'", "a%20b", "#h", "plain", " lead", "back\\slash"),
    *('q"d', "*", "[1]"),
]
ROWS: list[Row] = [(at, KEYS[at % len(KEYS)], at % 3, f"t {at}") for at in range(60)]
FORMATS = ["orc", "parquet", "csv", "json"]
CONDITIONS: dict[str, Callable[[Row], bool]] = {
    "k = 'a b'": lambda row: row[1] == "a b",
    "k = '50%'": lambda row: row[1] == "50%",
    "k is null": lambda row: row[1] is None,
    "k = 'x/y' or k = 'k=v'": lambda row: row[1] in ("x/y", "k=v"),
    "k = 'a%20b'": lambda row: row[1] == "a%20b",
    "k like '%[1]%' or k = '*'": lambda row: row[1] in ("*", "[1]"),
    "k = ' lead'": lambda row: row[1] == " lead",
    "k = '''q'''": lambda row: row[1] == "'q'",
    "k = 'back\\slash'": lambda row: row[1] == "back\\slash",
    "k <> 'plain'": lambda row: row[1] not in (None, "plain"),
    "d = 2 and i > 30": lambda row: row[2] == 2 and row[0] > 30,
    "t = 't 7'": lambda row: row[3] == "t 7",
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, kafka: Any) -> tuple[Path, Application]:
    from tests.support.spark.application import run_application

    folder = tmp_path_factory.mktemp("of strange folders")

    def job(context: SparkContext) -> None:
        spark = SparkSession(context)
        frame = spark.createDataFrame(ROWS, "i int, k string, d int, t string").repartition(3)
        for format in FORMATS:
            table = str(folder / format)
            frame.write.partitionBy("k", "d").format(format).option("header", True).save(table)
            rows = spark.read.format(format).option("header", True).load(table)
            rows.where("d > 0").write.parquet(f"{table}-read")

    _, application = run_application(kafka.bootstrap_servers, folder / "store", job)
    assert application is not None
    return folder, application


def asked(ran: tuple[Path, Application], place: str, where: str, **query: Any) -> Choices:
    folder, application = ran
    name = application.application_id
    return application.questions.rows(
        RowQuery(dataset=str(folder / place), where=where, limit=1_000, application=name, **query)
    )


def numbers(page: Choices) -> list[int]:
    return sorted(int((choice.columns or {})["i"]) for choice in page.choices)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("where", CONDITIONS)
def test_conditions_on_written_and_on_read_rows(
    format: str, where: str, ran: tuple[Path, Application]
) -> None:
    expected = [row[0] for row in ROWS if CONDITIONS[where](row)]
    for direction in ("backward", "forward"):
        page = asked(ran, format, where, direction=direction)
        assert (numbers(page), page.total, page.warnings) == (expected, len(expected), ())
        for choice in page.choices:
            columns = choice.columns or {}
            assert columns["k"] == ROWS[int(columns["i"])][1]


@pytest.mark.parametrize("format", FORMATS)
def test_globs_of_folders_and_texts(format: str, ran: tuple[Path, Application]) -> None:
    folder, application = ran
    plain = asked(ran, f"{format}/k=plain/**/part-*", "i >= 0", direction="backward")
    assert numbers(plain) == [row[0] for row in ROWS if row[1] == "plain"]
    first = asked(ran, f"{format}/*/d=1", "i >= 0", direction="backward")
    assert numbers(first) == [row[0] for row in ROWS if row[2] == 1]
    for node in application.questions.graph(application.application_id).nodes:
        if node.description == str(folder / format):
            query = RecordQuery(node=node.node_id, text="T 17", columns=("*",))
            (record,) = application.questions.records(application.application_id, query).records
            assert record.source is not None
            assert int((record.source.columns or {})["i"]) == 17


@pytest.mark.parametrize("format", FORMATS)
def test_a_row_comes_from_the_row_with_the_same_number(format: str, ran: tuple[Path, Application]) -> None:
    page = asked(ran, f"{format}-read", "d > 0")
    assert numbers(page) == [row[0] for row in ROWS if row[2] > 0]
    for choice in page.choices[:8]:
        trace = ran[1].trace(direction="backward", path=choice.path, row=choice.row, columns=("*",))
        read = [record.source for node in trace.nodes if node.kind == "source" for record in node.records]
        (source,) = (row for row in read if row is not None and f"/{format}/" in row.path)
        assert int((source.columns or {})["i"]) == int((choice.columns or {})["i"])

"""The input rows of outputs of real jobs: as plain Python says, and as files that give the outputs again."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from lineage_service.lineage import RowSet, RowSetSource
from lineage_service.queries import RowSetQuery, StartQuery
from lineage_service.result_json import json_value
from tests.support.spark.application import Application, part_rows, run_application

Run = Callable[..., tuple[Any, Application]]
CITIES = ("Graz", "Linz", "Wien", "Wels")


def job(context: SparkContext, folder: Path, output: Path) -> None:
    """Sums by city, without the cities of a list that the program takes; names come by a join."""
    left_out = set(context.textFile(str(folder / "left_out.txt"), 1).collect())
    lines = context.textFile(str(folder / "sales"), 3).map(lambda line: line.split(","))
    sums = (
        lines.filter(lambda sale: sale[0] not in left_out)
        .map(lambda sale: (sale[0], int(sale[1])))
        .reduceByKey(operator.add, 2)
    )
    names = context.textFile(str(folder / "names.txt"), 1).map(lambda line: tuple(line.split("=")))
    named = sums.join(names, 2).map(lambda row: f"{row[1][1]},{row[1][0]}")
    named.saveAsTextFile(str(output))
    context.textFile(str(folder / "other.txt"), 1).saveAsTextFile(str(output) + "-other")


def sales() -> dict[str, list[str]]:
    """By file."""
    return {
        f"part-{part}": [f"{CITIES[(7 * part + row * row) % 4]},{10 * part + row}" for row in range(12)]
        for part in range(3)
    }


@dataclass
class Ran:
    folder: Path
    output: Path
    application: Application

    def row_set(self, *starts: tuple[Path, int]) -> RowSet:
        query = RowSetQuery(
            starts=tuple(StartQuery(path=str(path), row=row) for path, row in starts), limit=100
        )
        return self.application.questions.row_set(self.application.application_id, query)

    def places(self, *cities: str) -> list[tuple[Path, int]]:
        rows = part_rows(self.output)
        return [(path, row) for path, row, text in rows if text.split(",")[0].lower() in cities]


@pytest.fixture(scope="module")
def ran(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("sales")
    (folder / "sales").mkdir()
    for name, lines in sales().items():
        (folder / "sales" / name).write_text("".join(f"{line}\n" for line in lines))
    (folder / "left_out.txt").write_text("Wels\n")
    (folder / "names.txt").write_text("".join(f"{city}={city.upper()}\n" for city in CITIES))
    (folder / "other.txt").write_text("other\n")
    output = folder / "sums"
    _, application = run_application(
        kafka.bootstrap_servers, folder / "store", lambda context: job(context, folder, output)
    )
    assert application is not None
    return Ran(folder, output, application)


def rows_of(source: RowSetSource) -> dict[str, list[int]]:
    return {
        Path(file.path).name: [row for first, count in file.rows for row in range(first, first + count)]
        for file in source.files
    }


def expected(*cities: str) -> dict[str, list[int]]:
    rows: dict[str, list[int]] = defaultdict(list)
    for name, lines in sales().items():
        for row, line in enumerate(lines):
            if line.split(",")[0].lower() in cities:
                rows[name].append(row)
    return rows


@pytest.mark.parametrize("cities", [("graz",), ("graz", "wien"), ("linz", "graz", "wien")])
def test_rows_are_those_of_the_cities(ran: Ran, cities: tuple[str, ...]) -> None:
    row_set = ran.row_set(*ran.places(*cities))
    sources = {Path(source.path or "").name: source for source in row_set.sources}
    assert set(sources) == {"left_out.txt", "sales", "names.txt", "other.txt"}
    assert rows_of(sources["sales"]) == expected(*cities)
    assert rows_of(sources["names.txt"]) == {
        "names.txt": [at for at, city in enumerate(CITIES) if city.lower() in cities]
    }
    assert sources["left_out.txt"].whole
    assert sources["other.txt"].whole
    assert (row_set.exact, row_set.complete, row_set.how) == (True, True, None)
    assert (sources["sales"].partitions or 0) >= 3
    texts = [row.text for row in sources["sales"].listed]
    assert texts == [sales()[name][row] for name, rows in expected(*cities).items() for row in rows]
    given = ran.application.questions.source_files.texts(row_set.application, json_value(row_set)["sources"])[
        sources["sales"].node
    ]
    assert given.texts is not None
    assert [text for lines in given.texts.values() for text in lines] == texts


def test_the_rows_as_files_give_the_outputs_again_and_all_others_the_other_ones(
    ran: Ran, tmp_path: Path
) -> None:
    row_set = json_value(ran.row_set(*ran.places("graz", "linz")))
    extraction = ran.application.questions.extraction
    extraction.extract(row_set, tmp_path / "only")
    extraction.extract(row_set, tmp_path / "others", is_without=True)
    for name in ("left_out.txt", "other.txt", "names.txt"):  # of which some are not written there
        if not (tmp_path / "others" / name).exists():
            (tmp_path / "others" / name).write_bytes((ran.folder / name).read_bytes())

    def again(context: SparkContext) -> None:
        for folder in ("only", "others"):
            job(context, tmp_path / folder, tmp_path / folder / "sums")

    run_application("", tmp_path / "store", again, lineage=False)
    texts = {
        folder: {text for *_, text in part_rows(tmp_path / folder / "sums")} for folder in ("only", "others")
    }
    original = {text for *_, text in part_rows(ran.output)}
    assert texts["only"] == {text for text in original if text.startswith(("GRAZ", "LINZ"))}
    assert texts["others"] == original - texts["only"]


@pytest.mark.thorough
@pytest.mark.parametrize("format", ["csv", "json", "parquet", "orc"])
def test_rows_of_dataframes_give_the_outputs_again(format: str, run: Run, jar: Path, tmp_path: Path) -> None:
    """Of folders of partitions."""

    def query(context: SparkContext, folder: Path, output: Path) -> None:
        reader = SparkSession(context).read.schema("city STRING, amount INT, day INT")
        read = reader.option("header", True).format(format).load(str(folder / "sales"))
        read.groupBy("city").sum("amount").selectExpr("concat(city, ',', `sum(amount)`) v").write.text(
            str(output)
        )

    def whole(context: SparkContext) -> None:
        rows = [(*line.split(","), day) for day, lines in enumerate(sales().values()) for line in lines]
        frame = SparkSession(context).createDataFrame(rows, "city STRING, amount STRING, day INT")
        frame = frame.selectExpr("city", "cast(amount as INT) amount", "day")
        frame.write.partitionBy("day").option("header", True).format(format).save(str(tmp_path / "sales"))
        query(context, tmp_path, tmp_path / "sums")

    _, application = run(whole)
    output = tmp_path / "sums"
    starts = [
        StartQuery(path=str(path), row=row)
        for path, row, text in part_rows(output)
        if text.startswith("Graz")
    ]
    row_set = application.questions.row_set(application.application_id, RowSetQuery(starts=tuple(starts)))
    (source,) = [source for source in row_set.sources if source.files]
    assert row_set.exact
    assert source.count == sum(len(rows) for rows in expected("graz").values())
    only = {**json_value(row_set), "sources": [json_value(source)]}
    application.questions.extraction.extract(only, tmp_path / "only")
    run_application(
        "",
        tmp_path / "store",
        lambda context: query(context, tmp_path / "only", tmp_path / "again"),
        lineage=False,
    )
    assert {text for *_, text in part_rows(tmp_path / "again")} == {
        text for *_, text in part_rows(output) if text.startswith("Graz")
    }

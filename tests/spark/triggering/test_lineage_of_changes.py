"""Of real jobs: which rows of their files went into which rows of their output, as plain Python says."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from lineage_service.tracing.files.decompression import unlimited
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.model.summaries import Receipts
from lineage_service.tracing.query.open_applications import OpenApplications
from lineage_service.triggering.changes.changed_elements import Elements, difference, elements
from lineage_service.triggering.changes.output_error import relative_error
from lineage_service.triggering.dependence.lineage_features import Lineage, lineage_features
from lineage_service.triggering.dependence.read_rows import ReadRows, codes_of, read_rows
from lineage_service.triggering.dependence.relation import Relation, relation_of, rows_of_outputs
from lineage_service.triggering.dependence.routes import learned
from tests.support.spark.application import Application

Run = Callable[..., tuple[Any, Application]]
TOWNS = ("Graz", "Linz", "Wien", "Wels")
SALES = [(at, TOWNS[(3 * at + at // 7) % 4], (17 * at) % 50) for at in range(60)]
COLUMNS = {"number": 0, "town": 1, "amount": 2}


def table(rows: list[tuple[int, str, int]]) -> pa.Table:
    return pa.table({name: [row[at] for row in rows] for name, at in COLUMNS.items()})


def lines(rows: list[tuple[int, str, int]]) -> list[str]:
    return [",".join(map(str, row)) for row in rows]


def text_files(folder: Path) -> None:
    for part in range(3):
        text = "".join(f"{line}\n" for line in lines(SALES[20 * part : 20 * part + 20]))
        (folder / f"part-{part}").write_text(text)


def csv_files(folder: Path) -> None:
    for part in range(3):
        text = "\n\n".join(["number,town,amount", *lines(SALES[20 * part : 20 * part + 20])])
        (folder / f"part-{part}").write_text(text)


def parquet_files(folder: Path) -> None:
    for part in range(3):
        rows = table(SALES[20 * part : 20 * part + 20])
        pq.write_table(rows, folder / f"part-{part}", row_group_size=6)


def rdd_job(context: SparkContext, source: Path, output: Path) -> None:
    sales = context.textFile(str(source), 5).map(lambda line: line.split(","))
    large = sales.filter(lambda sale: int(sale[2]) >= 10)
    sums = large.map(lambda sale: (sale[1], int(sale[2]))).reduceByKey(operator.add, 2)
    sums.map(lambda row: f"{row[0]},{row[1]}").saveAsTextFile(str(output))


def frame_job(format: str) -> Callable[[SparkContext, Path, Path], None]:
    def job(context: SparkContext, source: Path, output: Path) -> None:
        reader = SparkSession(context).read.schema("number BIGINT, town STRING, amount BIGINT")
        sales = reader.option("header", True).format(format).load(str(source)).where("amount >= 10")
        sums = sales.groupBy("town").sum("amount")
        sums.selectExpr("concat(town, ',', `sum(amount)`) v").write.text(str(output))

    return job


def ranked_job(context: SparkContext, source: Path, output: Path) -> None:
    """Every sale with those of its town before it: a window, of which rows overlap."""
    sales = SparkSession(context).read.parquet(str(source)).where("amount >= 10")
    sales.createOrReplaceTempView("sales")
    running = sales.sparkSession.sql(
        "SELECT concat(town, ',', number, ',', sum(amount) OVER (PARTITION BY town ORDER BY number)) v "
        "FROM sales"
    )
    running.write.text(str(output))


def by_town(text: str) -> set[int]:
    """The numbers of the sales that an output is made of."""
    town = text.split(",")[0]
    return {number for number, of, amount in SALES if of == town and amount >= 10}


def before_it(text: str) -> set[int]:
    town, last, _ = text.split(",")
    return {number for number in by_town(town) if number <= int(last)}


def read_lines(path: Path) -> pa.Table:
    rows = [line.split(",") for line in path.read_text().splitlines()]
    return table([(int(number), town, int(amount)) for number, town, amount in rows])


JOBS: Mapping[str, tuple[Any, Any, Any, Any]] = {
    "text": (text_files, rdd_job, read_lines, by_town),
    "parquet": (parquet_files, frame_job("parquet"), pq.read_table, by_town),
    "csv": (csv_files, frame_job("csv"), pa.csv.read_csv, by_town),
    "windows": (parquet_files, ranked_job, pq.read_table, before_it),
}


@pytest.mark.parametrize(
    "name", [name if name == "text" else pytest.param(name, marks=pytest.mark.thorough) for name in JOBS]
)
def test_rows_are_related_to_what_was_made_of_them(name: str, run: Run, jar: Path, tmp_path: Path) -> None:
    write, job, read, oracle = JOBS[name]
    source, output = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    write(source)
    _, application = run(lambda context: job(context, source, output))
    assert application.store is not None
    app = OpenApplications(application.store, Receipts()).open(application.application_id)
    sinks = [node.number for node in app.graph.topology.nodes.values() if node.kind == "sink"]
    files = RecordLocations().file_rows
    tables = {str(path): read(path) for path in sorted(source.iterdir())}
    rows = read_rows(tables, ["number"])
    relation = relation_of(app, sinks, rows, files, unlimited)
    assert isinstance(relation, Relation), relation
    assert relation.exact
    numbers = pa.concat_tables(tables.values())["number"].to_pylist()
    texts = written(output)
    output_rows = rows_of_outputs(app, sinks, texts_as_rows(texts), files, unlimited)
    assert output_rows is not None
    every = [text for of_file in texts.values() for text in of_file]
    assert sorted(output_rows.tolist()) == list(range(len(every)))
    related = defaultdict(set)
    for row, at in zip(relation.row.tolist(), output_rows[relation.output].tolist(), strict=True):
        related[every[at]].add(numbers[row])
    assert related == {text: oracle(text) for text in every}
    numbers_written = np.array([float(every[at].split(",")[-1]) for at in output_rows.tolist()])
    then = elements(table(SALES), ["number"], ["amount"])
    lineage = Lineage(rows, relation, learned(rows, relation), then, numbers_written)
    features_are_those_of_the_data(lineage, related)


def written(output: Path) -> dict[str, list[str]]:
    return {str(path): path.read_text().splitlines() for path in sorted(output.glob("part-*"))}


def texts_as_rows(texts: Mapping[str, list[str]]) -> ReadRows:
    return read_rows({path: pa.table({"line": pa.array(of, pa.string())}) for path, of in texts.items()})


def features_are_those_of_the_data(lineage: Lineage, related: Mapping[str, set[int]]) -> None:
    """After one sale has become larger, one is gone, and one is new."""
    now = [(number, town, amount + 5 * (number == 11)) for number, town, amount in SALES if number != 12]
    now.append((100, "Wien", 30))
    changes = difference(lineage.then, elements(table(now), ["number"], ["amount"]))
    known = lineage_features(["amount"], lineage, changes, codes_of(table([now[-1]])))
    features = dict(
        zip(
            (name.removeprefix("lineage.") for name in known.features.names),
            known.features.values.tolist(),
            strict=True,
        )
    )
    amounts = {number: amount for number, _, amount in SALES}
    live = {number for of in related.values() for number in of}
    shares = [len(of & {11, 12}) / len(of) for of in related.values()]
    masses = [
        (5 * (11 in of) + amounts[12] * (12 in of)) / sum(amounts[one] + 5 * (one == 11) for one in of)
        for of in related.values()
    ]
    assert features["live"] == len(live & {11, 12}) / 2
    assert np.isclose(features["reach"], sum(share > 0 for share in shares) / len(shares))
    assert np.isclose(features["share_most"], max(shares))
    assert np.isclose(features["share_mean"], sum(shares) / len(shares))
    assert np.isclose(features["amount.mass_most"], max(masses))
    assert np.isclose(features["amount.mass_mean"], sum(masses) / len(masses))
    # Each output is the sum of its rows, so it moves as they do.
    old, new = (
        np.array(
            [[sum(amount for number, _, amount in sales if number in of)] for of in related.values()], float
        )
        for sales in (SALES, now)
    )
    keys = np.arange(len(related), dtype=np.uint64)
    error = relative_error(Elements(keys, old), Elements(keys, new))
    assert np.isclose(features["amount.moved_error_low"], error)

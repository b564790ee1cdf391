"""Rows that Spark wrote, by their columns: a wrong mean in a partition folder, and the reading behind it."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lineage_service.lineage import SourceRow, Trace, TracedNode
from lineage_service.queries import RecordQuery
from lineage_service.result_tables import ROW_COLUMNS, csv_text, row_table
from tests.support.spark.application import Application, run_application

# The first test of the module runs the job of all of them.
pytestmark = pytest.mark.timeout(1800)

MONTHS, DAYS = range(1, 5), range(1, 29)
WRONG = ("EWR", 2, 12)
READINGS = [
    (origin, month, day, 1048.36 if (origin, month, day) == WRONG else (day * 7 + month) % 43 + 0.25)
    for origin in ("EWR", "JFK")
    for month in MONTHS
    for day in DAYS
]
SCHEMA = "origin string, month int, day int, wind double"


def job(folder: Path, context: SparkContext) -> None:
    spark = SparkSession(context)
    readings = spark.read.csv(f"{folder}/weather.csv", header=True, schema=SCHEMA, sep="^")
    means = readings.groupBy("origin", "month").agg(
        F.avg("wind").alias("wind"), F.count("*").alias("readings")
    )
    means.coalesce(1).write.partitionBy("origin").parquet(f"{folder}/monthly")
    spark.read.parquet(f"{folder}/monthly").where("wind > 40").coalesce(1).write.json(f"{folder}/stormy")


class Written:
    def __init__(self, application: Application, folder: Path) -> None:
        self.application, self.folder = application, folder

    def rows(self, name: str) -> list[SourceRow]:
        """The rows of the sink that wrote a folder, with all of their columns."""
        (sink,) = [node for node in self.application.sinks() if node.description.endswith(f"/{name}")]
        query = RecordQuery(node=str(sink.node), columns=("*",), limit=1_000)
        page = self.application.questions.records(self.application.application_id, query)
        return [record.source for record in page.records if record.source is not None]

    def trace(self, row: SourceRow, **query: Any) -> Trace:
        return self.application.trace(direction="backward", path=row.path, row=row.row, **query)


@pytest.fixture(scope="module")
def written(kafka: Any, jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("columns")
    # A delimiter that none of the usual ones is: the agent says which.
    lines = ["origin^month^day^wind", *("^".join(map(str, reading)) for reading in READINGS)]
    (folder / "weather.csv").write_text("\n".join(lines) + "\n")
    _, application = run_application(
        kafka.bootstrap_servers, folder / "store", lambda context: job(folder, context)
    )
    assert application is not None
    return Written(application, folder)


def means() -> Iterator[Mapping[str, Any]]:
    """The second, stupid way."""
    winds: dict[tuple[str, int], list[float]] = defaultdict(list)
    for origin, month, _, wind in READINGS:
        winds[origin, month].append(wind)
    for (origin, month), values in winds.items():
        mean = pytest.approx(fmean(values))
        yield {"origin": origin, "month": month, "wind": mean, "readings": len(values)}


def source_of(trace: Trace) -> TracedNode:
    (source,) = [node for node in trace.nodes if node.name == "Scan csv"]
    return source


def test_rows_of_folders_of_partitions_are_told_apart_by_their_columns(written: Written) -> None:
    rows = written.rows("monthly")
    key = ("origin", "month")
    found = sorted((row.columns or {} for row in rows), key=lambda row: [row[name] for name in key])
    assert found == sorted(means(), key=lambda row: [row[name] for name in key])
    assert {f"origin={(row.columns or {})['origin']}" in row.path for row in rows} == {True}


def test_rows_are_found_by_columns_between_which_the_job_said_what_stands(written: Written) -> None:
    application = written.application
    graph = application.questions.graph(application.application_id)
    (source,) = [node for node in graph.nodes if node.name == "Scan csv"]
    query = RecordQuery(node=str(source.node), where="wind > 40 and month = 2 and origin = 'EWR'")
    page = application.questions.records(application.application_id, query)
    rows = [record.source.row for record in page.records if record.source is not None]
    assert rows == [
        1 + at
        for at, (origin, month, _, wind) in enumerate(READINGS)
        if (origin, month) == WRONG[:2] and wind > 40
    ]


def test_the_reading_behind_a_wrong_mean_stands_out_and_is_first_in_the_order_of_its_column(
    written: Written,
) -> None:
    (wrong,) = [row for row in written.rows("monthly") if (row.columns or {})["wind"] > 40]
    assert wrong.columns is not None
    assert (wrong.columns["origin"], wrong.columns["month"]) == WRONG[:2]
    source = source_of(written.trace(wrong, remarks=True, columns=("*",)))
    line = 2 + [reading[:3] for reading in READINGS].index(WRONG)
    (remark,) = source.remarks or ()
    assert (remark.column, remark.value, remark.line) == ("wind", 1048.36, line)
    assert (source.remarks_of, source.total) == (len(DAYS), len(DAYS))
    # Types of CSV are those that the agent has sent; without any, its values are texts.
    types = {"origin": "string", "month": "int", "day": "int", "wind": "double"}
    assert [column.name for column in source.schema or ()] == list(types)
    assert all(column.type in ("", types[column.name]) for column in source.schema or ())
    query = {"only": source.node_id, "sort": "wind", "desc": True, "columns": ("wind", "day")}
    first = source_of(written.trace(wrong, limit=3, **query)).records
    expected = sorted(((w, d) for o, m, d, w in READINGS if (o, m) == WRONG[:2]), reverse=True)
    columns = [record.source.columns or {} for record in first if record.source is not None]
    assert [(float(row["wind"]), int(row["day"])) for row in columns] == expected[:3]
    records = source_of(written.trace(wrong, **query)).records
    table = csv.DictReader(io.StringIO(csv_text(*row_table(records, source.schema)), newline=""))
    assert tuple(table.fieldnames or ()) == (*ROW_COLUMNS, "origin", "month", "day", "wind")
    assert [float(row["wind"]) for row in table] == [wind for wind, _ in expected]


def test_a_trace_through_the_folders_goes_on_and_shows_documents_by_their_fields(written: Written) -> None:
    (stormy,) = written.rows("stormy")
    assert stormy.columns is not None
    assert {name: stormy.columns[name] for name in ("origin", "month", "readings")} == {
        **{"origin": "EWR", "month": 2, "readings": len(DAYS)}
    }
    trace = written.trace(stormy, columns=("*",))
    assert source_of(trace).total == len(DAYS)
    (read,) = [node for node in trace.nodes if node.name == "Scan parquet"]
    (record,) = read.records
    assert record.source is not None
    assert record.source.columns is not None
    assert record.source.columns["origin"] == "EWR"

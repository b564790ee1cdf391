"""Text files whose records are not their lines: rows are told rightly, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lineage_service.errors import InvalidQueryError, NotFoundError
from tests.support.spark.application import Application
from tests.support.spark.dataframe_oracle import rows_of_sources, written

Read = Callable[[SparkSession, str], DataFrame]

#: Name -> (how it is read, its text): a record is another thing than a line that is not blank.
UNLIKE_LINES: dict[str, tuple[Read, str]] = {
    "lines that end in another way": (
        lambda spark, path: spark.read.text(path, lineSep="|"),
        "a\nb|c|d\ne|f",
    ),
    "whole files": (lambda spark, path: spark.read.text(path, wholetext=True), "a\nb\nc\n"),
    "CSV that ends in another way": (
        lambda spark, path: spark.read.csv(path, schema="t string", lineSep="|"),
        "a\nb|c\n",
    ),
    "CSV without malformed lines": (
        lambda spark, path: spark.read.csv(path, schema="t int", mode="DROPMALFORMED"),
        "1\nx\n3\n",
    ),
    "CSV of wide characters": (
        lambda spark, path: spark.read.csv(path, schema="t string", encoding="UTF-16LE", multiLine=False),
        "a\x00\n\x00b\x00\n\x00",
    ),
    "JSON that ends in another way": (
        lambda spark, path: spark.read.json(path, schema="t int", lineSep="|"),
        '{"t":1}\n|{"t":\n2}',
    ),
    "JSON without malformed lines": (
        lambda spark, path: spark.read.json(path, schema="t int", mode="DROPMALFORMED"),
        '{"t":1}\n{"t":\n{"t":3}\n',
    ),
}
#: Lines of JSON, and the records that Spark makes of each.
ARRAYS = [
    ('[{"t":1},{"t":2}]', [1, 2]),
    ("", []),
    ('{"t":3}', [3]),
    ("[]", []),
    ("[7]", [None]),
    ('[{"t":4},7]', [None]),
    (' [{"t":"x"},{"t":5},{"t":6}]', [None, 5, 6]),
    ("[null]", [None]),
    ('"a"', [None]),
    ('{"t":7}{"t":8}', [7]),
    ('[{"t":9}] [{"t":10}]', [9]),
    ('[{"t":11}]', [11]),
]
ROWS = 3


@pytest.fixture(scope="module")
def written_by(tmp_path_factory: pytest.TempPathFactory, kafka: Any) -> tuple[Path, Application]:
    from tests.support.spark.application import run_application

    folder = tmp_path_factory.mktemp("lines")
    (folder / "in").mkdir()
    for name, (_, text) in UNLIKE_LINES.items():
        (folder / "in" / name).write_bytes(text.encode("latin-1"))
    (folder / "in" / "arrays").write_text("".join(f"{line}\n" for line, _ in ARRAYS))
    table = pa.table({"id": range(ROWS), "_metadata": [{"row_index": ROWS - n} for n in range(ROWS)]})
    pq.write_table(table, folder / "in" / "twice.parquet")
    pq.write_table(table, folder / "in" / "named.parquet")
    pq.write_table(table.select(["id"]), folder / "in" / "known.parquet")

    def job(context: SparkContext) -> None:
        spark = SparkSession.builder.getOrCreate()

        def write(frame: DataFrame, name: str) -> None:
            frame.coalesce(1).write.parquet(str(folder / "out" / name))

        for name, (read, _) in UNLIKE_LINES.items():
            write(read(spark, str(folder / "in" / name)), name)
        write(spark.read.json(str(folder / "in" / "arrays"), schema="t int"), "arrays")
        twice = str(folder / "in" / "twice.parquet")
        write(spark.read.parquet(twice, twice).select("id"), "twice")
        write(spark.read.parquet(str(folder / "in" / "named.parquet")).where("id > 0"), "named")
        rows = spark.read.parquet(str(folder / "in" / "known.parquet"))
        write(rows.select("id", "_metadata.file_name", "_metadata.file_size").where("id <> 1"), "known")
        write(rows.select("id", "_metadata"), "whole")
        pretty = rows.withColumn("twice", F.col("id") * 2).coalesce(1).write.option("pretty", True)
        pretty.json(str(folder / "out" / "pretty"))

    _, application = run_application(kafka.bootstrap_servers, folder / "store", job)
    assert application is not None
    return folder, application


def traced(folder: Path, application: Application, name: str) -> list[tuple[Any, ...]]:
    """(columns, its sources) of each row of an output."""
    traces = []
    for (part, at), row in written(folder / "out" / name):
        path = folder / "out" / name / part
        trace = application.trace(direction="backward", path=str(path), row=at)
        traces.append((row, trace))
    return traces


@pytest.mark.parametrize("name", UNLIKE_LINES)
def test_no_line_is_taken_for_a_record_that_it_is_not(
    name: str, written_by: tuple[Path, Application]
) -> None:
    folder, application = written_by
    rows = traced(folder, application, name)
    assert rows
    for number, (_, trace) in enumerate(rows):
        (record,) = (record for node in trace.nodes if node.kind == "source" for record in node.records)
        assert (record.partition, record.offset) == (0, number)
        assert record.source is None or (record.source.text is None and record.source.warning)
    with pytest.raises(NotFoundError):
        application.trace(direction="forward", path=str(folder / "in" / name), row=0)


def test_a_line_of_json_is_a_record_for_each_object_of_an_array(
    written_by: tuple[Path, Application],
) -> None:
    folder, application = written_by
    rows = traced(folder, application, "arrays")
    assert [(row[0], rows_of_sources(trace)) for row, trace in rows] == [
        (value, {("arrays", line)}) for line, (_, values) in enumerate(ARRAYS) for value in values
    ]
    first = 0
    for line, (_, values) in enumerate(ARRAYS):
        asked = {"direction": "forward", "path": str(folder / "in" / "arrays"), "row": line}
        if len(values) == 1:
            (sink,) = (node for node in application.trace(**asked).nodes if node.kind == "sink")
            assert [record.offset for record in sink.records] == [first]
        else:
            with pytest.raises(InvalidQueryError if values else NotFoundError):
                application.trace(**asked)
        first += len(values)


def test_a_file_that_is_read_twice_has_each_of_its_rows_twice(written_by: tuple[Path, Application]) -> None:
    folder, application = written_by
    rows = traced(folder, application, "twice")
    assert [(row[0], rows_of_sources(trace)) for row, trace in rows] == [
        (n, {("twice.parquet", n)}) for n in (*range(ROWS), *range(ROWS))
    ]
    for row in range(ROWS):
        trace = application.trace(direction="forward", path=str(folder / "in" / "twice.parquet"), row=row)
        [start] = trace.starts
        assert start.total == 2
        assert [record.source.row for record in start.records if record.source is not None] == [row, row]
        (sink,) = (node for node in trace.nodes if node.kind == "sink")
        assert (sink.total, trace.exact) == (2, True)


def test_a_column_that_is_named_as_those_of_spark_is_the_users(written_by: tuple[Path, Application]) -> None:
    folder, application = written_by
    rows = traced(folder, application, "named")
    assert [(row, rows_of_sources(trace)) for row, trace in rows] == [
        ((n, {"row_index": ROWS - n}), {("named.parquet", n)}) for n in range(1, ROWS)
    ]


def test_what_spark_says_of_the_files_of_rows_may_be_asked_for(written_by: tuple[Path, Application]) -> None:
    folder, application = written_by
    size = (folder / "in" / "known.parquet").stat().st_size
    assert [(row, rows_of_sources(trace)) for row, trace in traced(folder, application, "known")] == [
        ((n, "known.parquet", size), {("known.parquet", n)}) for n in (0, 2)
    ]
    assert [(row[0], rows_of_sources(trace)) for row, trace in traced(folder, application, "whole")] == [
        (n, {("known.parquet", n)}) for n in range(ROWS)
    ]


def test_records_that_are_written_as_several_lines_are_not_taken_for_lines(
    written_by: tuple[Path, Application],
) -> None:
    folder, application = written_by
    (part,) = (folder / "out" / "pretty").glob("part-*")
    assert len(part.read_text().splitlines()) > ROWS
    with pytest.raises(NotFoundError):
        application.trace(direction="backward", path=str(part), row=0)
    (sink,) = (sink for sink in application.sinks() if sink.description == str(part.parent))
    for row in range(ROWS):
        trace = application.trace(direction="backward", node=sink.node_id, partition=0, offset=row)
        assert rows_of_sources(trace) == {("known.parquet", row)}

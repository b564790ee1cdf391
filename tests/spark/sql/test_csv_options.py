"""CSV and JSON as the options of a job say: records, columns and nulls are those that Spark itself reads."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from lineage_service.lineage import Record
from lineage_service.queries import RecordQuery
from lineage_service.tracing.files.csv_dialect import dialect_of
from lineage_service.tracing.files.csv_lines import fields_of
from tests.support.spark.application import Application

Options = Mapping[str, Any]

WIDTH = 8
SCHEMA = ", ".join(f"c{at} string" for at in range(WIDTH))
#: Name -> options of a reader. The text is random: of letters, delimiters, quotes, escapes and spaces.
OPTIONS: dict[str, Options] = {
    "none": {},
    "an escape that is the quote": {"escape": '"'},
    "a word for null": {"nullValue": "a"},
    "a word for empty": {"emptyValue": "a"},
    "both": {"nullValue": "a", "emptyValue": "a"},
    "no quotes": {"quote": ""},
    "no escapes": {"escape": ""},
    "other quotes": {"quote": "a"},
    "without spaces": {"ignoreLeadingWhiteSpace": True, "ignoreTrailingWhiteSpace": True},
    "several characters between fields": {"sep": "a,a"},
    "a tab": {"sep": "\\t"},
    "comments": {"comment": "a"},
    "comments and a header": {"comment": "#", "header": True},
    "another encoding": {"encoding": "ISO-8859-1"},
}
EVERY = (
    "".join(random.Random(seed).choices('aé,"\\ \t#', k=random.Random(seed).randint(1, 9)))
    for seed in range(1, 500)
)
#: Without an escape right behind a closing quote, where Spark's parser leaves out characters.
LINES = [line for line in EVERY if '"\\' not in line.partition('"')[2]]
CLEAN = [",".join(letters) for letters in itertools.product("a#é", "b", "c ")]
#: Name -> (format, options, text) of files whose records have several lines.
SEVERAL: dict[str, tuple[str, Options, str]] = {
    "csv": ("csv", {}, 'x,"a\nb",1\n\n"c\n\nd",,""\ny,z,2\n'),
    "csv of Windows": ("csv", {}, 'x,"a\r\nb",1\r\n\r\ny,z,2\r\n'),
    "csv with a header": ("csv", {"header": True, "escape": '"'}, 'k,"t\nt",n\nx,"a\n""b""",1\ny,z,2'),
    "json": ("json", {}, '{"c0": "a",\n "c1": "b"}\n'),
    "an array of json": ("json", {}, '[\n {"c0": "a"},\n {"c1": "b",\n  "c0": "c"}, {}\n]\n'),
}


def text_of(options: Options) -> str:
    lines = ["#first", "c0,c1,c2", *LINES] if options.get("header") else LINES
    # Where Spark's parser does with quotes what it does not say.
    if len(options.get("sep", ",")) > 2:
        lines = [line for line in lines if '"' not in line]
    if options.get("escape") == "":
        lines = [line for line in lines if '""' not in line]
    return "".join(f"{line}\n" for line in lines)


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory, kafka: Any) -> tuple[Path, Application, dict[str, Any]]:
    from tests.support.spark.application import run_application

    folder = tmp_path_factory.mktemp("options")
    (folder / "in").mkdir()
    for name, options in OPTIONS.items():
        (folder / "in" / name).write_bytes(text_of(options).encode(options.get("encoding", "utf-8")))
    for name, (_, _, text) in SEVERAL.items():
        (folder / "in" / name).write_text(text, newline="")

    def job(context: SparkContext) -> dict[str, list[tuple[str | None, ...]]]:
        spark = SparkSession.builder.getOrCreate()
        rows = {}
        for name, options in OPTIONS.items():
            frame = spark.read.options(**options).schema(SCHEMA).csv(str(folder / "in" / name))
            rows[name] = [tuple(row) for row in frame.coalesce(1).collect()]
        for name, (format, options, _) in SEVERAL.items():
            reader = spark.read.options(multiLine=True, **options).schema(SCHEMA).format(format)
            rows[name] = [tuple(row) for row in reader.load(str(folder / "in" / name)).collect()]
        return rows

    rows, application = run_application(kafka.bootstrap_servers, folder / "store", job)
    assert application is not None
    return folder, application, rows


def records(read: tuple[Path, Application, dict[str, Any]], name: str, **query: Any) -> tuple[Record, ...]:
    """Of the source that read the file of this name, with all columns."""
    folder, application, _ = read
    (node,) = (
        node
        for node in application.questions.graph(application.application_id).nodes
        if node.kind == "source" and node.description == str(folder / "in" / name)
    )
    page = application.questions.records(
        application.application_id, RecordQuery(node=node.node_id, limit=10_000, columns=("*",), **query)
    )
    assert page.warnings == ()
    return page.records


def columns(record: Record) -> tuple[Any, ...]:
    assert record.source is not None
    assert record.source.columns is not None, record.source
    return tuple(record.source.columns.get(f"c{at}") for at in range(WIDTH))


@pytest.mark.parametrize("name", [*OPTIONS, *SEVERAL])
def test_rows_are_shown_with_the_columns_that_spark_read(
    name: str, read: tuple[Path, Application, dict[str, Any]]
) -> None:
    expected = read[2][name]
    shown = [columns(record) for record in records(read, name)]
    assert len(shown) == len(expected)
    differ = [pair for pair in zip(shown, expected, strict=True) if pair[0] != pair[1]]
    assert differ == [], "\n".join(map(repr, differ))


@pytest.mark.parametrize("name", [*OPTIONS, *SEVERAL])
@pytest.mark.parametrize("where", ["c0 is null", "c0 = 'a' or c1 = 'b'", "c1 = ''", "c1 like '%b%'"])
def test_conditions_are_those_of_the_columns_that_spark_read(
    name: str, where: str, read: tuple[Path, Application, dict[str, Any]]
) -> None:
    fulfils = {
        "c0 is null": lambda row: row[0] is None,
        "c0 = 'a' or c1 = 'b'": lambda row: row[0] == "a" or row[1] == "b",
        "c1 = ''": lambda row: row[1] == "",
        "c1 like '%b%'": lambda row: row[1] is not None and "b" in row[1],
    }[where]
    expected = [at for at, row in enumerate(read[2][name]) if fulfils(row)]
    assert [record.offset for record in records(read, name, where=where)] == expected


@pytest.mark.parametrize("name", SEVERAL)
def test_a_line_of_a_record_of_several_lines_is_that_record(
    name: str, read: tuple[Path, Application, dict[str, Any]]
) -> None:
    folder, application, rows = read
    shown = records(read, name)
    lines = SEVERAL[name][2].replace("\r\n", "\n").split("\n")
    for record, _ in zip(shown, rows[name], strict=True):
        assert record.source is not None
        assert record.source.text is not None
        assert record.source.text.split("\n")[0] in lines[record.source.row]
        row = record.source.row
        ends = [other.source for other in shown if other.source is not None and other.source.text is not None]
        if sum(end.row <= row <= end.row + end.text.count("\n") for end in ends) == 1:
            path = str(folder / "in" / name)
            trace = application.trace(direction="forward", path=path, row=record.source.row)
            assert [start.records[0].offset for start in trace.starts] == [record.offset]


@pytest.mark.parametrize("name", SEVERAL)
def test_texts_are_found_in_records_of_several_lines(
    name: str, read: tuple[Path, Application, dict[str, Any]]
) -> None:
    held = [at for at, row in enumerate(read[2][name]) if any("b" in (field or "") for field in row)]
    assert held
    assert [record.offset for record in records(read, name, text="B")] == held


@pytest.mark.parametrize("options", [OPTIONS["none"], OPTIONS["an escape that is the quote"]])
def test_a_clean_line_is_split_at_its_delimiters(options: Options) -> None:
    dialect = dialect_of({name.lower(): str(value) for name, value in options.items()})
    for line in CLEAN:
        assert fields_of(line, dialect) == line.split(",")

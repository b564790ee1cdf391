"""Records of CSV and JSON: whatever a file holds, its parts are found or it is said why not."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lineage_service.tracing.files.csv_dialect import CsvDialect, dialect_of
from lineage_service.tracing.files.csv_lines import delimiter_of, fields_of, record_ends
from lineage_service.tracing.files.decompression import unlimited
from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError
from lineage_service.tracing.files.multi_line_records import MultiLineRecords, MultiLineRecordsOfFiles
from lineage_service.tracing.files.row_formats import RowFormat

SIGNS = st.text(st.sampled_from('ab,;"\\ \t\r\n#'), max_size=24)
OPTIONS = st.dictionaries(
    st.sampled_from(
        (
            *("sep", "delimiter", "quote", "escape", "chartoescapequoteescaping", "nullvalue", "emptyvalue"),
            *("comment", "ignoreleadingwhitespace", "ignoretrailingwhitespace"),
        )
    ),
    st.sampled_from(("", ",", "a", "ab", '"', "\\", "\\t", "true", " ", "\0")) | st.text(max_size=3),
)
CELLS = st.text(st.sampled_from('ab,"\n é'), max_size=5)


@given(SIGNS | st.text(), OPTIONS)
def test_any_record_has_fields_by_any_options(text: str, options: dict[str, str]) -> None:
    dialect = dialect_of(options)
    fields = fields_of(text.replace("\n", " "), dialect)
    assert fields
    assert all(field is None or isinstance(field, str) for field in fields)
    delimiter_of([text], None, dialect)


@given(SIGNS | st.text(), OPTIONS)
def test_records_follow_each_other_and_leave_nothing_out(text: str, options: dict[str, str]) -> None:
    at = 0
    for begin, end in record_ends(text, dialect_of(options)):
        assert at <= begin <= end <= len(text)
        at = end
    if "comment" not in options and "ignoreleadingwhitespace" not in options:
        assert text[at:].strip("\n") == ""


@given(st.lists(st.lists(CELLS, min_size=2, max_size=4), max_size=8), st.booleans())
def test_what_python_writes_is_read_back(rows: list[list[str]], is_windows: bool) -> None:
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    text = written.getvalue()
    dialect = dialect_of({"escape": '"'}, is_written=True)
    records = read(text, RowFormat("csv", has_several=True, dialect=dialect))
    assert [fields_of(record, dialect) for record in records.texts] == rows
    if is_windows:
        again = read(text.replace("\n", "\r\n"), RowFormat("csv", has_several=True, dialect=dialect))
        assert again.texts == records.texts


@given(
    st.lists(st.dictionaries(st.sampled_from("ab"), st.none() | CELLS | st.integers()), max_size=8),
    st.sampled_from((None, 1)),
)
def test_an_array_of_objects_is_a_record_for_each(rows: list[dict[str, Any]], indent: int | None) -> None:
    text = json.dumps(rows, indent=indent)
    records = read(text, RowFormat("json", has_several=True))
    assert [json.loads(record) for record in records.texts] == rows
    lines = text.split("\n")
    for at, record in enumerate(records.texts):
        line = records.line_of(at)
        assert line is not None
        assert record.split("\n")[0] in lines[line]
        assert at in records.records_of(line)


@given(SIGNS | st.text() | st.text(st.sampled_from('[]{}",:1a \n')), st.sampled_from(("csv", "json")))
def test_any_file_is_cut_or_refused_with_a_reason(text: str, name: str) -> None:
    try:
        records = read(text, RowFormat(name, has_several=True, dialect=CsvDialect(delimiter=",")))
    except UnreadableError:
        return
    lines = [records.line_of(at) for at in range(len(records.texts))]
    assert lines == sorted(lines, key=lambda line: line or 0)
    for at, line in enumerate(lines):
        assert line is not None
        assert at in records.records_of(line)


def read(text: str, format: RowFormat) -> MultiLineRecords:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(text.encode("utf-8", "replace"))
        files = FileSystems()
        return MultiLineRecordsOfFiles(files).of(format, str(path), files.state(str(path)), unlimited)

"""Rows of files of which a partition is made in parts: several files or splits of them, and other formats."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from lineage_service.errors import NotFoundError
from lineage_service.lineage import SourceRow
from lineage_service.queries import RecordQuery, TraceQuery
from lineage_service.tracing.query.service import LineageQueries
from tests.support.file_applications import APP, SINK, SOURCE, questions_of


def part(path: Path, first: int, start: int = 0, length: int | None = None, **more: Any) -> dict[str, Any]:
    status = path.stat()
    return {
        "path": str(path),
        "start": start,
        "length": status.st_size - start if length is None else length,
        "size": status.st_size,
        "modified": status.st_mtime_ns // 1_000_000,
        "first": first,
        **more,
    }


def of(*splits: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"split": at, "parts": list(parts)} for at, parts in enumerate(splits)]


def rows(questions: LineageQueries, node: int = SOURCE, **query: Any) -> list[SourceRow]:
    page = questions.records(APP, RecordQuery(node=str(node), limit=1_000, **query))
    return [record.source for record in page.records if record.source is not None]


def told(found: Sequence[SourceRow]) -> list[tuple[str, int, str | None]]:
    assert [each.warning for each in found] == [None] * len(found)
    return [(Path(each.path).name, each.row, each.text) for each in found]


def found_at(questions: LineageQueries, path: Path | str, row: int) -> tuple[int, int]:
    """(partition, offset) of a row, which is the row of the record that is found there."""
    trace = questions.trace(APP, TraceQuery(direction="forward", path=str(path), row=row))
    (start,) = trace.start
    assert start.source is not None
    assert start.source.row == row
    return start.partition, start.offset


def cut(lines: Sequence[str], *starts: int) -> list[list[int]]:
    """The lines of each split by Hadoop's rule: a split has those that begin behind its first byte."""
    begin, found = 0, [list[int]() for _ in starts]
    for number, line in enumerate(lines):
        of_split = max(at for at, start in enumerate(starts) if begin > start or not at)
        found[of_split].append(number)
        begin += len(line.encode()) + 1
    return found


LONG = [f"long {number}" for number in range(40)]
SHORT = ["short 0", "kürzer 1", ""]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    long, short = tmp_path / "long.txt", tmp_path / "short file.txt"
    long.write_text("".join(f"{line}\n" for line in LONG))
    short.write_text("\n".join(SHORT) + "\n", encoding="utf-8")
    return long, short


@pytest.fixture
def texts(files: tuple[Path, Path], tmp_path: Path) -> LineageQueries:
    """The long file in three splits; the second one lies in a partition with the short file."""
    long, short = files
    first, second, third = map(len, cut(LONG, 0, 100, 250))
    return questions_of(
        tmp_path,
        of(
            [part(long, 0, length=100)],
            [part(short, 0) | {"path": short.as_uri()}, part(long, len(SHORT), 100, 150)],
            [part(long, 0, 250)],
        ),
        [first, len(SHORT) + second, third],
    )


def test_rows_of_several_files_and_splits_have_their_files_and_numbers(texts: LineageQueries) -> None:
    first, second, third = cut(LONG, 0, 100, 250)
    assert told(rows(texts)) == [
        *(("long.txt", number, LONG[number]) for number in first),
        *(("short file.txt", number, text) for number, text in enumerate(SHORT)),
        *(("long.txt", number, LONG[number]) for number in (*second, *third)),
    ]


def test_each_row_of_them_is_found_by_its_file_and_number(
    texts: LineageQueries, files: tuple[Path, Path]
) -> None:
    long, short = files
    first, second, third = cut(LONG, 0, 100, 250)
    assert [found_at(texts, long, number) for number in (*first, *second, *third)] == [
        *((0, at) for at in range(len(first))),
        *((1, at + len(SHORT)) for at in range(len(second))),
        *((2, at) for at in range(len(third))),
    ]
    assert [found_at(texts, short.as_uri(), number) for number in range(3)] == [(1, 0), (1, 1), (1, 2)]
    for path, row in ((long, 40), (short, 3)):
        with pytest.raises(NotFoundError):
            texts.trace(APP, TraceQuery(direction="forward", path=str(path), row=row))


def test_a_text_is_searched_in_all_parts(texts: LineageQueries) -> None:
    assert told(rows(texts, text="LONG 2")) == [
        ("long.txt", number, LONG[number]) for number in (2, *range(20, 30))
    ]
    assert told(rows(texts, text="Kürz")) == [("short file.txt", 1, "kürzer 1")]
    assert told(rows(texts, text="short", partition=1, offset=1)) == []


CSV = ["", "name,age", "Ann,1", "", "  ", "Bob,22", "Cid,333", "Dan,4444", "\t", "Eve,55555", "Flo,6"]
RECORDS = [number for number, line in enumerate(CSV) if line.strip() and line != "name,age"]


@pytest.mark.parametrize("start", range(1, 60))
def test_lines_of_csv_that_are_blank_or_a_header_are_no_records(start: int, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("\n".join(CSV) + "\n")
    by_split = [[line for line in lines if line in RECORDS] for lines in cut(CSV, 0, start)]
    questions = questions_of(
        tmp_path,
        of([part(path, 0, length=start)], [part(path, 0, start)]),
        [len(each) for each in by_split],
        format="csv+header",
    )
    assert told(rows(questions)) == [("people.csv", line, CSV[line]) for line in RECORDS]
    for split, lines in enumerate(by_split):
        assert [found_at(questions, path, line) for line in lines] == [
            (split, at) for at in range(len(lines))
        ]
    for line in {0, 1, 3, 4, 8}:
        with pytest.raises(NotFoundError, match="blank, a header, or not there"):
            questions.trace(APP, TraceQuery(direction="forward", path=str(path), row=line))
    assert told(rows(questions, text="5")) == [("people.csv", 9, "Eve,55555")]
    assert told(rows(questions, text=",")) == [("people.csv", line, CSV[line]) for line in RECORDS]


def test_without_a_header_the_first_line_is_a_record_and_a_split_ends_where_the_next_begins(
    tmp_path: Path,
) -> None:
    path = tmp_path / "people.json"
    path.write_text('{"a": 1}\n\n{"a": 2}\n')
    questions = questions_of(tmp_path, of([part(path, 0)]), [2], format="json")
    assert told(rows(questions)) == [("people.json", 0, '{"a": 1}'), ("people.json", 2, '{"a": 2}')]
    assert told(rows(questions, text="2")) == [("people.json", 2, '{"a": 2}')]


def test_rows_of_csv_that_is_gone_or_changed_are_told_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("\n".join(CSV))
    questions = questions_of(tmp_path, of([part(path, 0)]), [6], format="csv+header")
    path.write_text("name,age\nAnn,1\n")
    found = rows(questions)
    assert [(each.row, each.text) for each in found[:2]] == [(1, "Ann,1"), (1, None)]
    assert "the file has changed since the run" in str(found[0].warning)
    assert "no such row" in str(found[1].warning)
    path.unlink()
    assert {row.text for row in rows(questions)} == {None}
    assert "it is gone" in str(rows(questions)[0].warning)
    assert "it is gone" in questions.records(APP, RecordQuery(node="0", text="a")).warnings[0]
    with pytest.raises(NotFoundError, match="it is gone"):
        questions.trace(APP, TraceQuery(direction="forward", path=str(path), row=2))


TABLE = pa.table(
    {
        "id": list(range(10)),
        "name": [f"näme {at}" for at in range(10)],
        "when": [datetime(2013, 1, 1, 5, at) for at in range(10)],
        "price": [Decimal("1.50")] * 10,
        "raw": [b"\x00\xff"] * 10,
        "tags": [["a", None]] * 10,
    }
)


def as_json(row: int) -> str:
    return json.dumps(
        {
            "id": row,
            "name": f"näme {row}",
            "when": f"2013-01-01T05:{row:02}:00",
            "price": "1.50",
            "raw": "00ff",
            "tags": ["a", None],
        },
        ensure_ascii=False,
    )


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    path = tmp_path / "people.parquet"
    pq.write_table(TABLE, path, row_group_size=4, use_deprecated_int96_timestamps=True)
    return path


def test_rows_of_parquet_are_known_by_their_numbers_and_shown_as_json(parquet: Path, tmp_path: Path) -> None:
    """The reader began at the second row group; the first and the rest came in another partition."""
    questions = questions_of(
        tmp_path,
        of([part(parquet, 0, row=4)], [part(parquet, 0, row=0), part(parquet, 4, row=8)]),
        [4, 6],
        format="parquet",
    )
    assert told(rows(questions)) == [
        ("people.parquet", row, as_json(row)) for row in (4, 5, 6, 7, 0, 1, 2, 3, 8, 9)
    ]
    assert [found_at(questions, parquet, row) for row in range(10)] == [
        *((1, at) for at in range(4)),
        *((0, at) for at in range(4)),
        (1, 4),
        (1, 5),
    ]
    with pytest.raises(NotFoundError):
        questions.trace(APP, TraceQuery(direction="forward", path=str(parquet), row=10))


def test_values_of_parquet_for_which_python_has_no_type_are_shown_as_texts(tmp_path: Path) -> None:
    path = tmp_path / "dates.parquet"
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xff")]
    )
    columns = {
        "day": pa.array([2_932_897], pa.date32()),  # the first of the year 10000
        "times": pa.array([[2**62]], pa.list_(pa.timestamp("us"))),
        "text": broken,
        "fine": pa.array([1]),
    }
    pq.write_table(pa.table(columns), path)
    questions = questions_of(tmp_path, of([part(path, 0, row=0)]), [1], format="parquet")
    [row] = rows(questions)
    found = json.loads(row.text or "")
    assert (found["text"], found["fine"], row.warning) == ("a\ufffd", 1, None)
    assert "10000-01-01" in found["day"]
    assert str(2**62) in found["times"]


def test_only_the_row_groups_that_are_needed_are_read(parquet: Path, tmp_path: Path) -> None:
    data = bytearray(parquet.read_bytes())
    begin = pq.read_metadata(parquet).row_group(0).column(0).dictionary_page_offset or 4
    data[begin : begin + 20] = b"\xff" * 20
    parquet.write_bytes(bytes(data))
    questions = questions_of(tmp_path, of([part(parquet, 0, row=0)]), [10], format="parquet")
    assert told(rows(questions, offset=4, partition=0)) == [
        ("people.parquet", row, as_json(row)) for row in range(4, 10)
    ]
    damaged = rows(questions, partition=0)[0]
    assert (damaged.row, damaged.text) == (0, None)
    assert "the file cannot be read" in str(damaged.warning)


def test_parquet_that_was_written_counts_from_its_first_row(parquet: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.parquet"
    pq.write_table(TABLE.slice(0, 3), other)
    source = tmp_path / "in.parquet"
    pq.write_table(TABLE, source)
    questions = questions_of(
        tmp_path,
        of([part(source, 0, row=0)], [part(source, 0, row=0)]),
        [10, 13],
        format="parquet",
        written=[
            {"split": 0, **part(parquet, 0)},
            {"split": 1, "parts": [part(other, 0, row=0), part(parquet, 3, row=0)]},
        ],
    )
    assert [(Path(row.path).name, row.row) for row in rows(questions, SINK)] == [
        *(("people.parquet", row) for row in range(10)),
        *(("other.parquet", row) for row in range(3)),
        *(("people.parquet", row) for row in range(10)),
    ]
    assert found_at(questions, other, 2) == (1, 2)


@pytest.mark.parametrize("told", [{}, {"row": 0}], ids=["split from 0", "row told"])
def test_rows_of_other_formats_have_numbers_but_no_text(told: dict[str, int], tmp_path: Path) -> None:
    path = tmp_path / "people.xml"
    path.write_bytes(b"<a/>" * 300)
    pieces = [part(path, 0, **told)], [part(path, 0, 500, row=7)]
    questions = questions_of(tmp_path, of(*pieces), [7, 2], format="xml")
    found = [(row.row, row.text) for split in (0, 1) for row in rows(questions, partition=split)]
    assert found == [(row, None) for row in range(9)]
    assert "a file of the format xml holds no rows of text" in str(rows(questions)[0].warning)
    assert found_at(questions, path, 8) == (1, 1)


@pytest.mark.parametrize(
    "columns",
    [["name", "many", "id", "nested"], ["name"], ["many", "nested"]],
    ids=["a narrow one", "texts", "lists"],
)
@pytest.mark.parametrize("compression", ["zstd", "snappy", "zlib", "uncompressed"])
def test_rows_of_orc_are_shown_whatever_stripe_they_are_in(
    columns: list[str], compression: str, tmp_path: Path
) -> None:
    count, path = 20_000, tmp_path / "people.orc"
    table = pa.table(
        {
            "name": [f"row {row} {row * 7919 % 1_000_003}" for row in range(count)],
            "many": [[row, None] if row % 3 else None for row in range(count)],
            "id": pa.array((row if row % 5 else None for row in range(count)), pa.int32()),
            "nested": [{"a": row % 2 == 0, "b": str(row)} for row in range(count)],
        }
    ).select(columns)
    pyarrow.orc.write_table(table, path, stripe_size=1_024, batch_size=1_024, compression=compression)
    wanted = [0, 1_023, 1_024, 7_000, 19_999]
    pieces = [part(path, 0, at, row=row) for at, row in enumerate(wanted)]
    questions = questions_of(tmp_path, of(*([piece] for piece in pieces)), [1] * len(pieces), format="orc")
    for split, row in enumerate(wanted):
        [found] = rows(questions, partition=split)
        assert (found.row, json.loads(found.text or "")) == (row, table.slice(row, 1).to_pylist()[0])
        assert found_at(questions, path, row) == (split, 0)


@pytest.mark.parametrize(("format", "name"), [("parquet", "Parquet"), ("orc", "ORC")])
def test_a_file_that_is_of_another_format_is_told_with_a_warning(
    format: str, name: str, tmp_path: Path
) -> None:
    path = tmp_path / "people"
    path.write_text("neither of them")
    questions = questions_of(tmp_path, of([part(path, 0, row=0)]), [1], format=format)
    assert f"cannot be read as {name}" in str(rows(questions)[0].warning)


def test_where_nobody_told_which_row_it_is_that_is_said(parquet: Path, tmp_path: Path) -> None:
    questions = questions_of(tmp_path, of([part(parquet, 0, 100)]), [2], format="parquet")
    assert "which row of the file this is, is not known" in str(rows(questions)[0].warning)
    with pytest.raises(NotFoundError, match="is not known"):
        questions.trace(APP, TraceQuery(direction="forward", path=str(parquet), row=1))


def test_csv_that_was_written_without_parts_is_one_file_of_a_task(tmp_path: Path) -> None:
    path = tmp_path / "part-0.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    source = tmp_path / "in.csv"
    source.write_text("a,b\n1,2\n3,4\n")
    questions = questions_of(
        tmp_path,
        of([part(source, 0)]),
        [2],
        format="csv+header",
        written=[{"split": 0, **part(path, 0)}],
    )
    assert told(rows(questions, SINK)) == [("part-0.csv", 1, "1,2"), ("part-0.csv", 2, "3,4")]


@pytest.mark.parametrize("is_longer_last", [True, False])
def test_of_two_runs_that_told_of_a_split_the_one_that_read_more_counts(
    is_longer_last: bool, files: tuple[Path, Path], tmp_path: Path
) -> None:
    long, short = files
    shorter, longer = of([part(short, 0)]), of([part(short, 0), part(long, len(SHORT))])
    told_of = [*shorter, *longer] if is_longer_last else [*longer, *shorter]
    questions = questions_of(tmp_path, told_of, [len(SHORT) + 2])
    assert told(rows(questions)) == [
        *(("short file.txt", number, text) for number, text in enumerate(SHORT)),
        ("long.txt", 0, LONG[0]),
        ("long.txt", 1, LONG[1]),
    ]

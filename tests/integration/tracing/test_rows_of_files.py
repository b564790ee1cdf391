"""What is answered about the rows of a file, whatever became of it."""

from __future__ import annotations

import bz2
import gzip
import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lineage_service.errors import NotFoundError, TimeBudgetError
from lineage_service.lineage import Record, SourceRow
from lineage_service.queries import RecordQuery, TraceQuery
from lineage_service.tracing.files import file_systems, row_index
from lineage_service.tracing.files.file_systems import FileState, FileSystems, UnreadableError
from lineage_service.tracing.query.service import LineageQueries
from tests.support.file_applications import APP, SOURCE, questions_of, splits_of

ROWS = [f"row {number}" for number in range(40)]
DATA = "".join(f"{row}\n" for row in ROWS).encode()
STARTS = (0, 100, 107, 108, 250)
#: The third split holds no row: the one that begins in it is the last one's.
COUNTS = [16, 1, 0, 21, 2]


def records(questions: LineageQueries, **query: Any) -> tuple[Record, ...]:
    return questions.records(APP, RecordQuery(node=str(SOURCE), **query)).records


def rows(questions: LineageQueries, **query: Any) -> list[SourceRow]:
    return [record.source for record in records(questions, **query) if record.source is not None]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "in" / "rows.txt"
    path.parent.mkdir()
    path.write_bytes(DATA)
    return path


@pytest.fixture
def asked(path: Path, tmp_path: Path) -> LineageQueries:
    return questions_of(tmp_path, splits_of(path, *STARTS), COUNTS)


def test_rows_of_all_splits_have_their_text_and_number(asked: LineageQueries, path: Path) -> None:
    assert rows(asked) == [
        SourceRow(path=str(path), row=number, line=number + 1, text=text, warning=None)
        for number, text in enumerate(ROWS)
    ]


def test_each_row_of_a_file_of_several_splits_is_found_by_its_number(
    asked: LineageQueries, path: Path
) -> None:
    for number, text in enumerate(ROWS):
        trace = asked.trace(APP, TraceQuery(direction="forward", path=str(path), row=number))
        ((start,), source) = trace.start, trace.start[0].source
        assert source is not None
        assert (source.row, source.text) == (number, text)
        assert start.record_id.startswith("read#")
    with pytest.raises(NotFoundError, match="has 40 rows; row 40 is not there"):
        asked.trace(APP, TraceQuery(direction="forward", path=path.as_uri(), row=40))


def test_where_splits_were_read_whole_nothing_before_a_row_is_read(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise AssertionError("read from the start")

    asked = questions_of(tmp_path, splits_of(path, *STARTS), COUNTS, manifest={"whole": True})
    monkeypatch.setattr(row_index.RowIndex, "rows_starting_up_to", refuse)
    monkeypatch.setattr(row_index.RowIndex, "offset_of", refuse)
    assert [(row.row, row.text, row.warning) for row in rows(asked)] == [
        (number, text, None) for number, text in enumerate(ROWS)
    ]
    for number in range(40):
        source = asked.trace(APP, TraceQuery(direction="forward", path=str(path), row=number)).start[0].source
        assert source is not None
        assert (source.row, source.text) == (number, ROWS[number])
    path.unlink()
    numbers = [row.row for row in rows(asked)]
    assert numbers == list(range(40))


def test_rows_are_counted_in_the_file_where_a_split_was_not_read_whole(path: Path, tmp_path: Path) -> None:
    few = [5, *COUNTS[1:]]  # take(5) read no more of the first one
    asked = questions_of(tmp_path, splits_of(path, *STARTS), few)
    assert [row.row for row in rows(asked)] == [*range(5), *range(16, 40)]


def become_gone(path: Path) -> None:
    path.unlink()


def become_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def lose_its_folder(path: Path) -> None:
    shutil.rmtree(path.parent)
    path.parent.write_text("a file")


def become_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def become_a_ring(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (become_gone, r"cannot be read any more \(it is gone\): put it back"),
        (lose_its_folder, r"cannot be read any more \(it is gone\)"),
        (become_a_ring, r"cannot be read any more \(it is gone\)"),
        (become_a_folder, "no file at this path now but a folder"),
        (become_a_pipe, "no file at this path now but a folder or a device"),
    ],
)
def test_what_took_the_place_of_a_file_is_said(
    change: Callable[[Path], None], said: str, asked: LineageQueries, path: Path
) -> None:
    change(path)
    found = rows(asked)
    assert [(row.row, row.text) for row in found[:16]] == [(number, None) for number in range(16)]
    assert (found[16].row, found[16].text) == (0, None)  # the first of the second split
    for row in found:
        assert row.warning is not None
        assert re.search(said, row.warning)
        assert row.warning.endswith("rows count from the partition") == (row not in found[:16])
    page = asked.records(APP, RecordQuery(node=str(SOURCE), text="row"))
    assert (page.records, page.total, page.next, len(page.warnings)) == ((), None, None, 5)
    assert re.search(said, page.warnings[0])
    with pytest.raises(NotFoundError, match=said):
        asked.trace(APP, TraceQuery(direction="forward", path=str(path), row=3))


def test_a_file_that_may_not_be_read_is_said(
    asked: LineageQueries, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:  # tests may run as a user that may read everything
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(file_systems, "_without_waiting", refuse)
    (row, *_) = rows(asked)
    assert row.text is None
    assert row.warning == (
        "the file cannot be read (permission denied): let the user that runs this service read it"
    )


def test_a_file_that_fails_while_it_is_read_is_said(
    asked: LineageQueries, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> FileState:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(file_systems, "_local_state", fail)
    assert {row.warning for row in rows(asked, partition=0)} == {
        "the file cannot be read (Input/output error)"
    }


def test_a_file_that_changed_says_how(asked: LineageQueries, path: Path) -> None:
    path.write_bytes(DATA + b"more\n")
    (row, *_) = rows(asked)
    assert row.text == "row 0"
    assert row.warning is not None
    assert "has changed since the run (270 bytes then, 275 now)" in row.warning
    path.write_bytes(DATA)
    os.utime(path, ns=(0, 1_500_000_000))
    (row, *_) = rows(asked)
    assert row.warning is not None
    assert "at 1970-01-01 00:00:01.500+00:00 now); this may not be the row" in row.warning


def test_rows_beyond_the_end_of_a_file_that_became_shorter_are_said(
    asked: LineageQueries, path: Path
) -> None:
    path.write_bytes(DATA[:100])
    found = rows(asked)
    assert [row.text for row in found] == [*ROWS[:15], "row 1", *[None] * 24]
    assert (found[-1].warning or "").endswith("the file has no such row any more: put the old one back")
    path.write_bytes(b"")
    assert {row.text for row in rows(asked)} == {None}


def test_a_file_that_was_replaced_by_another_with_the_same_size_is_read_anew(
    asked: LineageQueries, path: Path
) -> None:
    assert rows(asked, limit=1)[0].text == "row 0"
    path.write_bytes(DATA.upper())
    os.utime(path, ns=(0, 7_000_000))
    (row,) = rows(asked, limit=1)
    assert row.text == "ROW 0"
    assert "has changed" in (row.warning or "")


def test_bytes_that_are_no_utf_8_are_shown_as_the_job_read_them(tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes("gr\u00fcn\nblau\n".encode("latin-1"))
    bad, good = rows(questions_of(tmp_path, splits_of(path), [2]))
    assert (bad.text, good.text, good.warning) == ("gr\ufffdn", "blau", None)
    assert "not all UTF-8" in (bad.warning or "")


def test_a_path_that_no_system_takes_is_no_file() -> None:
    with pytest.raises(UnreadableError, match="embedded null byte"):
        FileSystems().state("/in/zero\0byte")


def test_a_very_long_row_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_bytes("\u00e9".encode() * 100_000 + b"x" * 100_000 + b"\nend\n")
    long, end = rows(questions_of(tmp_path, splits_of(path), [2]))
    assert (long.text, long.warning) == ("\u00e9" * 50_000 + "\u2026", None)
    assert (end.row, end.text) == (1, "end")


@pytest.mark.parametrize(
    ("ending", "packed"), [(".gz", gzip.compress(DATA * 5_000)), (".bz2", bz2.compress(DATA * 5_000))]
)
def test_rows_before_the_place_where_a_compressed_file_is_cut_off_are_shown(
    ending: str, packed: bytes, tmp_path: Path
) -> None:
    path = tmp_path / f"rows.txt{ending}"
    path.write_bytes(packed)
    count = 40 * 5_000
    asked = questions_of(tmp_path, splits_of(path), [count])
    assert rows(asked, partition=0, offset=count - 1)[0].text == "row 39"
    path.write_bytes(packed[: len(packed) * 2 // 3])
    (first,) = rows(asked, partition=0, offset=3, limit=1)
    assert first.text == "row 3"
    (last,) = rows(asked, partition=0, offset=count - 1)
    assert last.text is None
    assert f"its {ending} data is cut off or damaged" in (last.warning or "")
    path.write_bytes(b"no such thing")
    (first,) = rows(asked, limit=1)
    assert first.text is None
    assert f"its {ending} data is cut off or damaged" in (first.warning or "")


@pytest.mark.parametrize("ending", [".snappy", ".lz4"])
def test_what_is_not_decompressed_here_is_said(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows.txt{ending}"
    path.write_bytes(b"\0\1\2\3")
    (row,) = rows(questions_of(tmp_path, splits_of(path), [1]))
    assert (row.text, row.warning) == (
        None,
        f"the file cannot be read (this service does not decompress {ending}): look at it with Spark",
    )


def test_the_later_splits_of_a_bzip2_file_hold_the_rows_of_their_blocks(tmp_path: Path) -> None:
    """One block here, which is the first split's: the others are empty (test_rows_of_sources has many)."""
    path = tmp_path / "rows.txt.bz2"
    path.write_bytes(bz2.compress(DATA))
    asked = questions_of(tmp_path, splits_of(path, 0, 40), [40, 1])
    assert [row.text for row in rows(asked, partition=0)] == ROWS
    (row,) = rows(asked, partition=1)
    assert (row.row, row.text, row.warning) == (40, None, "the file has no such row")
    trace = asked.trace(APP, TraceQuery(direction="forward", path=str(path), row=3))
    assert (trace.start[0].partition, trace.start[0].offset) == (0, 3)
    path.write_bytes(path.read_bytes()[:50] + b"damaged" + path.read_bytes()[57:])
    (row,) = rows(asked, partition=1)
    assert "its .bz2 data is cut off or damaged" in (row.warning or "")


@pytest.mark.parametrize(
    ("format", "said"),
    [("pickle", "a pickle file holds no rows of text, and is never unpickled"), ("hadoop", "SequenceFile")],
)
def test_rows_of_formats_that_are_no_text_say_so(format: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "part-00000"
    path.write_bytes(b"SEQ\x06\0\n\0\n")
    asked = questions_of(tmp_path, splits_of(path), [3], format=format)
    assert [(row.row, row.text) for row in rows(asked)] == [(0, None), (1, None), (2, None)]
    assert said in (rows(asked)[0].warning or "")
    assert "spark.lineage.detailed=true" in (rows(asked)[0].warning or "")
    assert records(asked, text="SEQ") == ()
    path.unlink()
    assert "it is gone" in (rows(asked)[0].warning or "")


def whole(*paths: Path) -> list[dict[str, Any]]:
    files = [
        {
            "path": str(path),
            "size": path.stat().st_size,
            "modified": path.stat().st_mtime_ns // 1_000_000,
        }
        for path in paths
    ]
    return [{"split": 0, "files": files}]


def test_whole_files_show_their_beginning_or_say_that_they_are_no_text(tmp_path: Path) -> None:
    files = {
        "a.txt": b"short\ntext",
        "b.txt": "\u00e9".encode() * 3_000,
        "c.bin": b"\x89PNG\0\xff" * 2,
        "d.gz": gzip.compress(b"inside"),
        "e.txt": b"",
        "f.txt": b"gone",
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    partitions = whole(*(tmp_path / name for name in files))
    (tmp_path / "f.txt").unlink()
    asked = questions_of(tmp_path / "1", partitions, [6], name="wholeTextFiles", format="file")
    a, b, c, d, e, f = rows(asked)
    assert (a.row, a.text, a.warning) == (0, "short\ntext", None)
    assert (b.text, b.warning) == ("\u00e9" * 2_048 + "\u2026", None)
    assert (c.text, c.warning) == (
        "89504e4700ff" * 2,
        "the file is no UTF-8 text: its first bytes are shown as hexadecimal",
    )
    assert (d.text, e.text, e.warning) == ("inside", "", None)
    assert (f.text, f.warning) == (
        None,
        "the file cannot be read any more (it is gone): put it back at this path to see its rows",
    )
    asked = questions_of(tmp_path / "2", partitions, [6], name="binaryFiles", format="file")
    assert (rows(asked)[3].text or "").startswith("1f8b")  # binaryFiles does not decompress
    trace = asked.trace(APP, TraceQuery(direction="forward", path=str(tmp_path / "d.gz"), row=0))
    assert trace.start[0].offset == 3


def test_records_of_one_length_that_are_not_there_whole_are_said(tmp_path: Path) -> None:
    path = tmp_path / "records.bin"
    path.write_bytes(bytes(range(20)))
    partitions = [{**split, "record_length": 4} for split in splits_of(path, 0, 8)]
    asked = questions_of(tmp_path, partitions, [2, 3], name="binaryRecords", format="binary")
    assert [(row.row, row.text, row.warning) for row in rows(asked)] == [
        (number, bytes(range(4 * number, 4 * number + 4)).hex(), None) for number in range(5)
    ]
    path.write_bytes(bytes(range(18)))
    *_, cut = rows(asked)
    assert cut.text == "1011"
    assert (cut.warning or "").endswith("the file ends within this record")
    path.write_bytes(bytes(range(16)))
    *_, missing = rows(asked)
    assert missing.text is None
    assert (missing.warning or "").endswith("the file has no such record")
    path.unlink()
    assert {row.text for row in rows(asked)} == {None}


@pytest.mark.parametrize(
    ("remote", "said"),
    [
        ("hdfs://nowhere.invalid:8020/in/rows.txt", "hdfs:// needs Hadoop's libhdfs and a JVM"),
        ("hdfs:/in/rows.txt", "hdfs:// needs Hadoop's libhdfs and a JVM"),
        ("hdfs:///in/rows.txt", "hdfs:// needs Hadoop's libhdfs and a JVM"),
        ("viewfs://cluster/in/rows.txt", "viewfs:// needs Hadoop's libhdfs and a JVM"),
        ("wasb://box@account/in/rows.txt", "reads no wasb:// paths"),
        ("/" + 300 * "x", "it is gone"),
    ],
)
def test_places_that_cannot_be_read_from_here_say_what_is_missing(
    remote: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HADOOP_HOME", "ARROW_LIBHDFS_DIR", "CLASSPATH"):
        monkeypatch.delenv(name, raising=False)
    asked = questions_of(tmp_path, splits_of(remote, 0, 100, size=200), [2, 3])
    found = rows(asked)
    assert [(row.path, row.row, row.text) for row in found] == [
        (remote, row, None) for row in (0, 1, 0, 1, 2)
    ]
    assert all(said in (row.warning or "") for row in found)
    assert records(asked, text="row") == ()


def test_a_row_of_a_split_is_read_without_what_is_before_the_split(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    original = row_index.RowIndex._read_on

    def counting(self: Any, file: Any, base: int, check: Any) -> Any:
        for offset, data in original(self, file, base, check):
            read.append(offset)
            yield offset, data

    monkeypatch.setattr(row_index.RowIndex, "_read_on", counting)
    split = row_index.RowIndex(str(path), 8, start=150)
    assert split.read(2) == "row 25"
    assert min(read) == 150
    assert max(read) < 190


@pytest.mark.parametrize("is_trace", [False, True])
def test_counting_that_outlasts_the_time_goes_on_when_asked_again(
    is_trace: bool, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time is what reads cost here: each piece a hundredth of a second."""
    original = row_index.RowIndex._read_on

    def slow(self: Any, file: Any, base: int, check: Any) -> Any:
        self._chunk = 4
        for piece in original(self, file, base, check):
            time.sleep(0.01)
            yield piece

    monkeypatch.setattr(row_index, "_MOST_NEW", 4)
    monkeypatch.setattr(row_index.RowIndex, "_read_on", slow)
    asked = questions_of(tmp_path, splits_of(path, 0, 250), [38, 2], time_budget_s=0.3)
    refused = 0
    while True:
        try:
            if is_trace:
                query = TraceQuery(direction="forward", path=str(path), row=39)
                row = asked.trace(APP, query).start[0].source
            else:
                (row,) = rows(asked, partition=1, offset=1)
        except TimeBudgetError:
            refused += 1
            assert refused < 200
            continue
        break
    assert refused
    assert row is not None
    assert (row.row, row.text, row.warning) == (39, "row 39", None)

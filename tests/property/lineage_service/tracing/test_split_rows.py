"""Rows of splits, searched and compressed, against a reader that does it the slow and plain way."""

from __future__ import annotations

import bz2
import gzip
import random
import re
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineage_service.errors import TimeBudgetError
from lineage_service.tracing.files import bzip2_splits, row_ends, row_index
from lineage_service.tracing.files.bzip2_splits import text_starts
from lineage_service.tracing.files.decompression import FileBytes, unlimited
from lineage_service.tracing.files.file_systems import FileSystems
from lineage_service.tracing.files.row_index import RowIndex
from lineage_service.tracing.model.partition_rows import rows_of_partitions
from tests.support.lines import naive

texts = st.lists(
    st.sampled_from(
        [b"a", b"Bc", b"\n", b"\r", b"\r\n", b"\r\r", b"\n\n", "é€😀ſß".encode(), b"\xff", b"x" * 9]
    ),
    max_size=30,
).map(b"".join)
chunks = st.integers(1, 9)


@contextmanager
def file_of(data: bytes, name: str = "rows.txt") -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        yield str(path)


def hadoop_rows(data: bytes, start: int, end: int) -> list[bytes]:
    """What Hadoop's LineRecordReader gives for a split: it drops the row that the start is in, and reads the
    one that its end is in to that one's end."""
    rows = []
    at = start
    if start:
        at = _after_row(data, start)
    while at <= end and at < len(data):
        after = _after_row(data, at)
        rows.append(data[at:after].rstrip(b"\r\n") if after > at else b"")
        at = after
    return rows


def _after_row(data: bytes, at: int) -> int:
    while at < len(data):
        if data[at : at + 2] == b"\r\n":
            return at + 2
        at += 1
        if data[at - 1 : at] in (b"\r", b"\n"):
            return at
    return at


@given(texts, chunks, st.lists(st.integers(0, 90), max_size=4))
def test_rows_of_partitions_are_those_that_hadoop_gives(data: bytes, chunk: int, cuts: list[int]) -> None:
    bounds = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    with file_of(data) as path:
        whole = RowIndex(path, chunk)
        row = 0
        for start, end in pairwise(bounds):
            expected = hadoop_rows(data, start, end)
            split = RowIndex(path, chunk, start=start)
            assert split.read_bytes(range(len(expected))) == dict(enumerate(expected))
            # The number in the file is what counting to the split's start says, and one walks back with it.
            assert (whole.rows_starting_up_to(start) if start else 0) == row
            for offset in range(len(expected)):
                begin = naive(data)[row + offset][0]
                assert whole.offset_of(row + offset) == begin
                assert start < begin <= end or not start
            row += len(expected)
        assert row == whole.count == len(naive(data))
        assert whole.offset_of(row) is None


@given(texts, st.lists(st.integers(0, 90), max_size=5), st.sets(st.integers(0, 5)))
def test_what_was_read_of_whole_splits_says_which_rows_they_have(
    data: bytes, cuts: list[int], unknown: set[int]
) -> None:
    bounds = sorted({0, len(data) or 1, *(cut for cut in cuts if cut < len(data))})
    splits = list(enumerate(pairwise(bounds)))
    counts = {split: len(hadoop_rows(data, start, end)) for split, (start, end) in splits}
    partitions = {
        split: {"split": split, "path": "in", "start": start, "length": end - start}
        for split, (start, end) in splits
    }
    first, expected = 0, {}
    for split, _ in splits:
        if split in unknown or len(splits) < 2:
            break
        expected[split] = range(first, first + counts[split])
        first += counts[split]
    known = {split: count for split, count in counts.items() if split not in unknown}
    assert rows_of_partitions(partitions, known) == expected


@given(texts, chunks, st.sampled_from(["a", "BC", "é€", "\ufffd", "ss", "S", "xx", "\n", ""]), st.data())
def test_a_search_finds_what_a_look_at_each_row_finds(
    data: bytes, chunk: int, wanted: str, drawn: st.DataObject
) -> None:
    start = drawn.draw(st.integers(0, len(data)))
    rows = hadoop_rows(data, start, len(data))
    first = drawn.draw(st.integers(0, len(rows) + 1))
    last = drawn.draw(st.integers(first, len(rows) + 1))
    with file_of(data) as path:
        index = RowIndex(path, chunk, start=start)
        said = list(index.matching(wanted, first, last))
    expected = [
        row
        for row, text in enumerate(rows)
        if first <= row < last and wanted.casefold() in text.decode("utf-8", "replace").casefold()
    ]
    assert [row for row, is_match in said if is_match] == expected
    assert said == sorted(said)


@given(texts, chunks, st.integers(1, 7))
def test_what_was_counted_before_the_time_was_spent_is_known_when_asked_again(
    data: bytes, chunk: int, pieces: int
) -> None:
    questions = 0
    with file_of(data) as path:
        index = RowIndex(path, chunk)
        while True:
            questions += 1
            left = iter(range(pieces))

            def check(left: Iterator[int] = left) -> None:
                if next(left, None) is None:
                    raise TimeBudgetError("spent")

            try:
                assert index.count_rows(check) == len(naive(data))
            except TimeBudgetError:
                continue
            break
    assert questions <= len(data) // (chunk * pieces) + 2


@given(st.lists(texts, min_size=1, max_size=3), chunks, st.sampled_from([".gz", ".bz2", ".deflate", ".zst"]))
def test_compressed_rows_are_those_of_the_plain_text(parts: list[bytes], chunk: int, ending: str) -> None:
    import pyarrow as pa

    data = b"".join(parts)
    if ending == ".gz":
        packed = b"".join(map(gzip.compress, parts))
    elif ending == ".bz2":
        packed = b"".join(map(bz2.compress, parts))
    elif ending == ".deflate":
        packed = zlib.compress(data)
    else:
        packed = pa.Codec("zstd").compress(data, asbytes=True)
    with file_of(packed, f"rows.txt{ending}") as path:
        index = RowIndex(path, chunk)
        expected = {row: text for row, (_, text) in enumerate(naive(data))}
        assert index.read_bytes(range(len(expected) + 2)) == expected
        assert index.count == len(expected)
        for row in expected:
            assert index.read_bytes([row]) == {row: expected[row]}


@given(st.binary(max_size=4_000), st.integers(0, 5_000), st.integers(1, 2_000))
def test_gzip_goes_on_from_where_it_kept_its_state(data: bytes, offset: int, spacing: int) -> None:
    with file_of(gzip.compress(data[:1_000]) + b"\0\0" + gzip.compress(data[1_000:]), "rows.gz") as path:
        source = FileBytes(path, FileSystems())
        source._spacing = spacing
        for at in (0, offset, offset // 2, offset):
            with source.reading(at, unlimited) as reader:
                found = b""
                while more := reader.read(97):
                    found += more
            assert found == data[at:]
        assert len(source._restarts) <= 8


@pytest.mark.parametrize("most", [2, 5])
def test_an_index_stays_small_and_true_however_long_the_file(
    most: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(row_index, "_MOST_MARKS", most)
    (tmp_path / "rows").write_bytes(b"".join(b"%d\n" % row for row in range(2_000)))
    index = RowIndex(str(tmp_path / "rows"), 16)
    assert index.count == 2_000
    assert len(index._marks[0]) <= most
    assert index.read_bytes(range(0, 2_000, 7)) == {row: b"%d" % row for row in range(0, 2_000, 7)}


def test_a_row_of_megabytes_is_cut_and_costs_no_square(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(b"first\n" + b"\xc3\xa9" * 20_000_000 + b"\nlast")
    index = RowIndex(str(path))
    assert index.read(1) == "é" * (row_ends.MAX_ROW_BYTES // 2) + "…"
    assert (index.count, index.read(2)) == (3, "last")
    assert [each for each in index.matching("LAST", 0, 3) if each[1]] == [(2, True)]


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bytes, bytes]:
    """(path, text, bzip2 of it in blocks of 99,981 bytes: no byte stands four times in a row)."""
    chance = random.Random(5)
    text = b"".join(bytes(chance.sample(b"abcdefgh\n", 9)) for _ in range(90_000))
    data = bz2.compress(text, 1)
    path = tmp_path_factory.mktemp("packed") / "rows.bz2"
    path.write_bytes(data)
    return str(path), text, data


def test_splits_of_bzip2_begin_with_the_first_block_behind_their_start(
    packed: tuple[str, bytes, bytes],
) -> None:
    path, text, data = packed
    bits = bin(int.from_bytes(b"\1" + data, "big"))[3:]
    marks = [found.start() for found in re.finditer(f"{0x314159265359:048b}", bits)]
    assert len(marks) == 9
    assert {mark % 8 for mark in marks} > {0}
    near = {mark // 8 + by for mark in marks for by in (-1, 0, 1)} | {1, 3, 4, 5, len(data) - 1}
    starts = [start for start in sorted(near | set(range(7, len(data), 4_999))) if start > 0]
    expected = {
        start: min(99_981 * max(sum(mark < 8 * start for mark in marks), 1), len(text)) for start in starts
    }
    files = FileSystems()
    assert text_starts(path, starts, files, unlimited) == expected
    assert text_starts(path, [starts[9]], files, unlimited) == {starts[9]: expected[starts[9]]}


def test_the_marks_of_blocks_are_found_across_pieces(
    packed: tuple[str, bytes, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _, data = packed
    starts = range(1, len(data), 60_000)
    whole = text_starts(path, starts, FileSystems(), unlimited)
    for piece in (4_001, 10_007):
        monkeypatch.setattr(bzip2_splits, "_PIECE", piece)
        assert text_starts(path, starts, FileSystems(), unlimited) == whole

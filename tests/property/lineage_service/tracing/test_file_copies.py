"""Copies of rows of files: those that are chosen and all others are together the file, byte by byte."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineage_service.tracing.files import columnar_copies, line_copies
from lineage_service.tracing.files.chosen_rows import ChosenRows
from lineage_service.tracing.files.columnar_copies import copy_rows
from lineage_service.tracing.files.decompression import FileBytes, unlimited
from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError
from lineage_service.tracing.files.line_copies import compressed, copy_lines

FILES = FileSystems()
CHOSEN = st.sets(st.integers(0, 12))
TEXTS = st.lists(st.sampled_from(["a", "é", "\r", "\n", "\r\n", '"', ",", ""]), max_size=30).map("".join)


def lines_of(data: bytes) -> list[bytes]:
    """With their ends: LF, CR LF or a lone CR."""
    return [line for line in re.findall(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z", data) if line]


@given(CHOSEN, st.integers(0, 12), st.integers(0, 12))
def test_chosen_rows_and_the_others_are_all(chosen: set[int], first: int, end: int) -> None:
    rows = ChosenRows.of(chosen)
    assert rows.numbers_within(first, end) == [at for at in range(first, end) if at in chosen]
    assert rows.others.numbers_within(first, end) == [at for at in range(first, end) if at not in chosen]
    assert rows.others.others.numbers_within(0, 50) == sorted(chosen)


@settings(deadline=None)
@given(TEXTS, CHOSEN, st.sampled_from(["", ".gz", ".bz2", ".deflate", ".zst"]), st.integers(1, 9))
def test_lines_are_copied_as_they_are(text: str, chosen: set[int], ending: str, piece: int) -> None:
    data = text.encode()
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_copies, "_PIECE", piece)
        path = Path(folder) / f"rows.txt{ending}"
        with path.open("wb") as file, compressed(str(path), file) as copy:
            copy.write(data)
        for rows, is_kept in (
            (ChosenRows.of(chosen), chosen.__contains__),
            (ChosenRows.of(chosen).others, lambda at: at not in chosen),
        ):
            target = Path(folder) / f"copy.txt{ending}"
            with target.open("wb") as file:
                count = copy_lines(FILES, str(path), file, rows, unlimited)
            expected = [line for at, line in enumerate(lines_of(data)) if is_kept(at)]
            with FileBytes(str(target), FILES).reading(0, unlimited) as reader:
                assert b"".join(iter(lambda: reader.read(100), b"")) == b"".join(expected)
            assert count == len(expected)


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "number": st.none() | st.integers(-(2**63), 2**63 - 1),
            "text": st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
            "list": st.none() | st.lists(st.none() | st.integers(0, 9), max_size=3),
            "inner": st.fixed_dictionaries({"flag": st.none() | st.booleans()}),
            "price": st.none() | st.decimals(-99, 99, places=2),
        }
    ),
    max_size=13,
)
CODECS = [
    *(("parquet", codec) for codec in ("none", "snappy", "gzip", "zstd", "lz4", "brotli")),
    *(("orc", codec) for codec in ("uncompressed", "snappy", "zlib", "lz4", "zstd")),
]
SCHEMA = pa.schema(
    {
        "number": pa.int64(),
        "text": pa.string(),
        "list": pa.list_(pa.int64()),
        "inner": pa.struct({"flag": pa.bool_()}),
        "price": pa.decimal128(10, 2),
    },
    metadata={"org.apache.spark.version": "4.1.0"},
)


@settings(max_examples=60, deadline=None)
@given(ROWS, CHOSEN, st.sampled_from(CODECS), st.integers(1, 5))
def test_rows_of_columns_keep_their_schema(
    rows: list[dict[str, Any]], chosen: set[int], codec: tuple[str, str], group: int
) -> None:
    format, compression = codec
    table = pa.Table.from_pylist(rows, SCHEMA)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(columnar_copies, "_BATCH", group)
        path, target = Path(folder) / "rows", Path(folder) / "copy"
        if format == "parquet":
            pq.write_table(table, path, row_group_size=group, compression=compression)
        else:
            pyarrow.orc.write_table(table, path, compression=compression)
        for copied, expected in (
            (ChosenRows.of(chosen), [row for at, row in enumerate(rows) if at in chosen]),
            (ChosenRows.of(chosen).others, [row for at, row in enumerate(rows) if at not in chosen]),
        ):
            with target.open("wb") as file:
                assert copy_rows(FILES, format, str(path), file, copied, unlimited) == len(expected)
            if format == "parquet":
                copy = pq.read_table(target)
                assert copy.schema.metadata[b"org.apache.spark.version"] == b"4.1.0"
                original = pq.ParquetFile(path)
                assert pq.ParquetFile(target).schema_arrow.equals(original.schema_arrow, check_metadata=True)
            else:
                copy = pyarrow.orc.read_table(target)
            assert copy.schema.equals(SCHEMA)
            assert copy.to_pylist() == pa.Table.from_pylist(expected, SCHEMA).to_pylist()


def test_what_cannot_be_copied_as_it_is_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "times.orc"
    pyarrow.orc.write_table(pa.table({"at": pa.array([0], pa.timestamp("ns"))}), path)
    with pytest.raises(UnreadableError, match="it has times"):
        copy_rows(FILES, "orc", str(path), io.BytesIO(), ChosenRows.of([0]), unlimited)
    path.write_text(json.dumps({"a": 1}))
    with pytest.raises(UnreadableError, match="cannot be copied"):
        copy_rows(FILES, "parquet", str(path), io.BytesIO(), ChosenRows.of([0]), unlimited)


@pytest.mark.parametrize("is_short", [True, False])
def test_times_of_96_bits_stay_so(is_short: bool, tmp_path: Path) -> None:
    path, target = tmp_path / "times.parquet", tmp_path / "copy.parquet"
    times = pa.table({"at": pa.array([-62_135_596_800_000_000, None, 1], pa.timestamp("us"))})
    pq.write_table(times, path, use_deprecated_int96_timestamps=is_short)
    with target.open("wb") as file:
        assert copy_rows(FILES, "parquet", str(path), file, ChosenRows.of([0, 1]), unlimited) == 2
    with pq.ParquetFile(path) as original, pq.ParquetFile(target) as copy:
        assert copy.schema.column(0).physical_type == original.schema.column(0).physical_type
    read = pq.read_table(target, coerce_int96_timestamp_unit="us")
    assert read.column("at").to_pylist() == times.column("at").to_pylist()[:2]

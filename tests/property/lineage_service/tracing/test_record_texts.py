"""Keys and values of single records equal those of a search through all rows, however the rows are stored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineage_service.store.tables import TABLES
from lineage_service.tracing.columns import record_texts
from lineage_service.tracing.columns.record_texts import RecordTexts, TextCache
from lineage_service.tracing.columns.stored_files import StoredFile

_COLUMNS = TABLES["records"].names[1:]
_NODES, _RUNS, _POSITIONS = st.integers(0, 2), st.integers(5, 7), st.integers(0, 6)
_ROWS = st.tuples(
    _NODES, _RUNS, _POSITIONS, st.sampled_from(("key", "value")), st.just("str"), st.sampled_from("abé")
)
_FILES = st.lists(st.lists(_ROWS, min_size=1, max_size=12), max_size=3)
_WANTED = st.dictionaries(_RUNS, st.lists(_POSITIONS, min_size=1, max_size=5))


@pytest.mark.parametrize("small_bytes", [0, 1 << 20])
@given(
    files=_FILES,
    is_sorted=st.booleans(),
    group=st.integers(1, 12),
    asked=st.lists(st.tuples(_NODES, _WANTED, st.sampled_from((("key",), ("key", "value")))), max_size=4),
    most=st.sampled_from((0, 300, 1 << 20)),
)
def test_texts_are_those_of_all_rows(
    files: list[list[tuple[int, int, int, str, str, str]]],
    is_sorted: bool,
    group: int,
    asked: list[tuple[int, dict[int, list[int]], tuple[str, ...]]],
    most: int,
    small_bytes: int,
) -> None:
    schema = pa.schema([TABLES["records"].field(name) for name in _COLUMNS])
    one_of_each = {row[:4]: row for rows in files for row in rows}  # a record has one text of a kind
    files = [[row for row in dict.fromkeys(rows) if one_of_each[row[:4]] is row] for rows in files]
    with (
        TemporaryDirectory() as folder,
        duckdb.connect(":memory:") as database,
        pytest.MonkeyPatch.context() as patched,
    ):
        patched.setattr(record_texts, "_SMALL_BYTES", small_bytes)
        paths = []
        for number, rows in enumerate(files):
            ordered = sorted(rows) if is_sorted else rows
            table = pa.Table.from_pylist(
                [dict(zip(_COLUMNS, row, strict=True)) for row in ordered], schema=schema
            )
            paths.append(str(Path(folder) / f"{number}.parquet"))
            pq.write_table(table, paths[-1], row_group_size=group)
        texts = RecordTexts(paths, TextCache(most))
        for node, wanted, kinds in asked:
            expected = {
                row[1:]
                for rows in files
                for row in rows
                if row[0] == node and row[2] in wanted.get(row[1], ()) and row[3] in kinds
            }
            assert set(texts.of(database, node, wanted, kinds)) == expected


def test_row_groups_that_were_read_are_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {name: [0] * 3 for name in ("node", "run")} | {"pos": [0, 1, 2]}
    texts = {"kind": ["key"] * 3, "type": ["str"] * 3, "text": ["a", "b", "c"]}
    schema = pa.schema([TABLES["records"].field(name) for name in _COLUMNS])
    path = tmp_path / "0.parquet"
    pq.write_table(pa.table({**rows, **texts}, schema=schema), path)
    held = RecordTexts([str(path)])
    reads: dict[str, int] = defaultdict(int)
    read = StoredFile.read

    def counted(file: StoredFile, row_group: int, columns: Sequence[str]) -> pa.Table:
        reads[columns[-1]] += 1
        return read(file, row_group, columns)

    monkeypatch.setattr(StoredFile, "read", counted)
    with duckdb.connect(":memory:") as database:
        for pos in (2, 0, 7):
            found = held.of(database, 0, {0: [pos]}, ("key",))
            assert [text for *_, text in found] == [["a"], ["b"], ["c"], []][min(pos, 3)]
    assert reads == {"pos": 1, "text": 1}

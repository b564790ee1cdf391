"""The rows of files as tables: two outputs differ as plain Python says, whatever their format."""

from __future__ import annotations

import csv
import json
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineage_service.comparison.differences import Differences, differences
from lineage_service.lineage import Dataset
from lineage_service.tracing.files.decompression import unlimited
from lineage_service.tracing.files.file_systems import UnreadableError
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.files.row_tables import FileTable
from lineage_service.tracing.files.searched_database import searched_database
from lineage_service.tracing.model.elements import TopologyNode

FORMATS = ("parquet", "orc", "json", "csv+header")
SCHEMA = pa.schema([("n", pa.int64()), ("a.b", pa.string())])
Row = Mapping[str, Any]
TEXTS = st.text(st.sampled_from("aB ,;|é'\""), min_size=1, max_size=3).map(lambda text: f"t{text}t")
ROWS = st.lists(
    st.fixed_dictionaries({"n": st.none() | st.integers(0, 2), "a.b": st.none() | TEXTS}), max_size=8
)


def written(folder: Path, format: str, rows: Sequence[Row], day: str) -> TopologyNode:
    """Two files, each a partition: what a run wrote into a folder of its own, divided by `day`."""
    infos = {}
    for number, part in enumerate((rows[: len(rows) // 2], rows[len(rows) // 2 :])):
        path = folder / f"day={day}" / f"part-{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, format, part)
        state = {"size": path.stat().st_size, "modified": path.stat().st_mtime_ns // 1_000_000}
        infos[number] = {"split": number, "path": str(path), "start": 0, "length": None, **state}
    return TopologyNode(
        number=0,
        name="save",
        description="",
        kind="sink",
        relation="flows",
        exact=True,
        reason="",
        call_site="",
        dataset=Dataset(namespace="file", name=str(folder), format=format),
        parents=(),
        partitions=infos,
        location=str(folder),
    )


def write(path: Path, format: str, rows: Sequence[Row]) -> None:
    if format in ("parquet", "orc"):
        table = pa.Table.from_pylist([dict(row) for row in rows], SCHEMA)
        pq.write_table(table, path) if format == "parquet" else pyarrow.orc.write_table(table, path)
    elif format == "json":
        path.write_text("".join(json.dumps(dict(row)) + "\n" for row in rows))
    else:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(SCHEMA.names), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def counts_of(rows: Sequence[Row]) -> dict[int, int]:
    return {0: len(rows) // 2, 1: len(rows) - len(rows) // 2}


def compared(
    format: str, was: Sequence[Row], now: Sequence[Row], days: tuple[str, str] = ("1", "1")
) -> tuple[Differences, FileTable, FileTable]:
    with tempfile.TemporaryDirectory() as name, searched_database(()) as database:
        tables = [
            RecordLocations()
            .tables(database)
            .read(table, written(Path(name) / table, format, rows, day), counts_of(rows), None, unlimited)
            for table, rows, day in (("w0", was, days[0]), ("n0", now, days[1]))
        ]
        result = differences(tables[0].table, tables[1].table, (), 100, ("was", "now"))
        return result, tables[0], tables[1]


def text(row: Row) -> tuple[Any, ...]:
    return row["n"], row["a.b"]


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=30)
@given(was=ROWS, now=ROWS)
def test_outputs_differ_by_the_rows_that_one_has_more_often(
    format: str, was: list[Row], now: list[Row]
) -> None:
    result, before, after = compared(format, was, now)
    rows_of = {0: was[: len(was) // 2], 1: was[len(was) // 2 :]}
    others_of = {0: now[: len(now) // 2], 1: now[len(now) // 2 :]}
    gone = [before.record_of(place) for place in result.gone]
    new = [after.record_of(place) for place in result.new]
    texts, others = Counter(map(text, was)), Counter(map(text, now))
    assert Counter(text(rows_of[partition][offset]) for partition, offset in gone) == texts - others
    assert Counter(text(others_of[partition][offset]) for partition, offset in new) == others - texts
    assert result.same == (texts & others).total()


@pytest.mark.parametrize("format", FORMATS)
def test_partition_columns_belong_to_the_rows(format: str) -> None:
    rows = [{"n": 1, "a.b": "x"}, {"n": 2, "a.b": "y"}]
    result, before, _ = compared(format, rows, rows, ("1", "2"))
    assert (result.same, result.gone_total, result.new_total) == (0, 2, 2)
    assert "day" in before.table.columns


def test_lines_that_are_no_objects_are_compared_as_texts(tmp_path: Path) -> None:
    node = written(tmp_path, "json", [{"n": 1}, {"n": 2}], "1")
    path = tmp_path / "day=1" / "part-1"
    path.write_text("{broken\n")
    info = {**node.partitions[1], "size": path.stat().st_size, "modified": path.stat().st_mtime_ns // 10**6}
    node.partitions[1] = info  # type: ignore[index] - it is a dictionary here
    with searched_database(()) as database:
        table = RecordLocations().tables(database).read("w0", node, {0: 1, 1: 1}, None, unlimited)
        assert table.warnings == ("some lines are no JSON objects, so all lines were compared as texts",)
        assert (list(table.table.columns), table.table.rows) == (["value", "day"], 2)


def test_a_file_that_has_changed_is_not_read(tmp_path: Path) -> None:
    node = written(tmp_path, "csv+header", [{"n": 1, "a.b": "x"}], "1")
    (tmp_path / "day=1" / "part-0").write_text("other")
    with searched_database(()) as database, pytest.raises(UnreadableError, match="has changed since the run"):
        RecordLocations().tables(database).read("w0", node, {0: 0, 1: 1}, None, unlimited)

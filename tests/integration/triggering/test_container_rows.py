"""Rows of inputs and outputs in each format, and what cannot be read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from lineage_service.tracing.files.file_systems import FileSystems
from lineage_service.tracing.files.row_formats import RowFormat
from lineage_service.triggering.certain.file_looks import FileLooks
from lineage_service.triggering.weighing import container_rows
from lineage_service.triggering.weighing.container_rows import Container, RowReader, UnreadRowsError, files_of

ROWS = [{"town": "Aalen", "n": 1}, {"town": "Ulm", "n": 2}]


def rows(path: Path, form: str | RowFormat | None = None, columns: tuple[str, ...] = ()) -> pa.Table:
    look = FileLooks(FileSystems(), 10).at(str(path))
    of = RowFormat(form) if isinstance(form, str) else form
    return RowReader(10, {}).rows(Container(str(path), False, of, columns), look)


def as_rows(table: pa.Table) -> list[dict[str, object]]:
    return sorted(table.to_pylist(), key=lambda row: json.dumps(row, default=str))


def write(folder: Path, form: str) -> Path:
    table = pa.Table.from_pylist(ROWS)
    folder.mkdir()
    if form == "parquet":
        pq.write_table(table, folder / "part-0.parquet")
    elif form == "orc":
        pyarrow.orc.write_table(table, folder / "part-0.orc")
    elif form == "json":
        (folder / "part-0.json").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    elif form == "delta":
        write_deltalake(folder, table)
        write_deltalake(folder, pa.Table.from_pylist([{"town": "Ulm", "n": 9}]), mode="overwrite")
        write_deltalake(folder, table, mode="overwrite")
    else:
        text = b"town,n\nAalen,1\nUlm,2\n"
        (folder / f"part-0.csv{'.gz' if form == 'gz' else ''}").write_bytes(
            gzip.compress(text) if form == "gz" else text
        )
        (folder / "part-1.csv").write_bytes(b"")  # an empty partition
    return folder


@pytest.mark.parametrize("form", ["parquet", "orc", "json", "delta", "csv", "gz"])
def test_rows_are_read_in_each_format(tmp_path: Path, form: str) -> None:
    folder = write(tmp_path / "in", form)
    name = {"gz": "csv", "delta": "parquet"}.get(form, form)
    known = RowFormat(name, has_lines=True, has_header=name == "csv")
    assert as_rows(rows(folder, known)) == ROWS
    if form != "gz":  # as of a path that only the question names
        assert as_rows(rows(folder)) == ROWS


def test_text_has_lines_csv_without_a_header_the_columns_of_its_schema(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "part-0").write_bytes(b"Aalen;1\nUlm;\xff\n")
    assert as_rows(rows(folder, "text")) == [{"line": b"Aalen;1"}, {"line": b"Ulm;\xff"}]
    (folder / "part-0").write_bytes(b"Aalen,1\nUlm,2\n")
    assert as_rows(rows(folder, "csv", ("town", "n"))) == ROWS
    assert as_rows(rows(folder, "csv")) == [{"_c0": "Aalen", "_c1": 1}, {"_c0": "Ulm", "_c1": 2}]


def test_columns_of_folders_types_that_differ_and_what_is_nested(tmp_path: Path) -> None:
    for day, text in (("1", '{"n": 1, "tags": ["a"]}\n'), ("2", '{"n": 1.5, "tags": ["b", "c"]}\n')):
        folder = tmp_path / "in" / f"day={day}"
        folder.mkdir(parents=True)
        (folder / "part-0.json").write_text(text)
    assert as_rows(rows(tmp_path / "in", "json")) == [
        {"n": 1.0, "tags": '["a"]', "day": "1"},
        {"n": 1.5, "tags": '["b", "c"]', "day": "2"},
    ]


@pytest.mark.parametrize(
    ("form", "text", "says"),
    [
        ("avro", b"Obj", "its format is avro"),
        ("parquet", b"PAR1 and no more", "cannot be read"),
        ("csv", b"a,b\n1,2,3\n", "cannot be read"),
        ("json of several lines", b"{}", "its format is"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, form: str, text: bytes, says: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "part-0").write_bytes(text)
    with pytest.raises(UnreadRowsError, match=says):
        rows(tmp_path / "in", form)


def test_what_takes_too_long_or_is_written_meanwhile_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "in", "csv")
    look = FileLooks(FileSystems(), 10).at(str(folder))
    of = Container(str(folder), False, RowFormat("csv", has_header=True))
    with pytest.raises(UnreadRowsError, match=r"cannot be read within 1e-07 s"):
        RowReader(1e-7, {}).rows(of, look)

    def late(tables: list[pa.Table]) -> pa.Table:
        (folder / "part-2.csv").write_text("town,n\n")
        return tables[0]

    monkeypatch.setattr(container_rows, "_together", late)
    with pytest.raises(UnreadRowsError, match="was written while it was read"):
        RowReader(10, {}).rows(of, look)


def test_an_input_without_rows_has_none(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    assert rows(tmp_path / "in", "csv").num_rows == 0


def test_lines_end_where_those_of_spark_do_and_files_are_told_apart(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_bytes("one\x0bhalf\r\ntwo\u2028half\rthree\n\n".encode())
    (folder / "b.txt").write_bytes(b"four")
    table = rows(folder, "text")
    lines = [value.decode() for value in table["line"].to_pylist()]
    assert lines == ["one\x0bhalf", "two\u2028half", "three", "", "four"]
    assert files_of(table) == [(str(folder / "a.txt"), 4), (str(folder / "b.txt"), 1)]

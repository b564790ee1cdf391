"""Rows of inputs as files of the same shape: what is written, and what is never touched."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import stat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lineage_service.errors import InvalidQueryError, LineageError
from lineage_service.queries import RowSetQuery
from lineage_service.result_json import json_value
from lineage_service.tracing.files.copy_places import CopyPlaces
from lineage_service.tracing.query import row_extraction
from lineage_service.tracing.query.row_extraction import Extraction
from lineage_service.tracing.query.service import LineageQueries
from tests.support.copying_applications import APP, Source, copying, query_of
from tests.support.file_applications import splits_of

ROWS = [f"row {number}" for number in range(10)]


def extract(questions: LineageQueries, query: RowSetQuery, folder: Path, **options: bool) -> Extraction:
    row_set = json_value(questions.row_set(APP, query))
    return questions.extraction.extract(row_set, folder, **options)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def state(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    return folder


def part(path: Path, split: int = 0, first: int = 0) -> dict[str, Any]:
    status = path.stat()
    of_file = {"size": status.st_size, "modified": status.st_mtime_ns // 1_000_000}
    return {"split": split, "parts": [{"path": str(path), "start": 0, "first": first, "row": 0, **of_file}]}


@pytest.fixture
def text(inputs: Path) -> Source:
    path = inputs / "rows.txt"
    path.write_bytes(b"".join(f"{row}\r\n".encode() for row in ROWS))
    return Source(splits_of(path, 0, 34), [5, 5], location=str(path))


def test_lines_are_written_as_they_were_and_nothing_else_changes(
    text: Source, inputs: Path, tmp_path: Path
) -> None:
    questions = copying(tmp_path, text)
    before = state(inputs)
    target = tmp_path / "new" / "fixture"
    extraction = extract(questions, query_of(0, (0, 1), (1, 4)), target)
    assert content(target) == {"rows.txt": b"row 1\r\nrow 9\r\n"}
    (file,) = extraction.files
    assert (file.path, file.target, file.rows) == (str(inputs / "rows.txt"), str(target / "rows.txt"), 2)
    assert extraction.left_out == {}
    assert stat.S_IMODE(target.stat().st_mode) == 0o700
    assert stat.S_IMODE((target / "rows.txt").stat().st_mode) == 0o600
    extract(questions, query_of(0, (0, 1), (1, 4)), tmp_path / "cleaned", is_without=True)
    assert content(tmp_path / "cleaned") == {
        "rows.txt": b"".join(f"{row}\r\n".encode() for row in ROWS if row not in ("row 1", "row 9"))
    }
    assert state(inputs) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cleaned", "flows", "in", "new"]
    assert [path.name for path in target.parent.iterdir()] == ["fixture"]


@pytest.mark.parametrize(("name", "packed"), [("rows.txt.gz", gzip.compress), ("rows.txt.bz2", bz2.compress)])
def test_a_compressed_file_stays_compressed(name: str, packed: Any, inputs: Path, tmp_path: Path) -> None:
    path = inputs / name
    path.write_bytes(packed("".join(f"{row}\n" for row in ROWS).encode()))
    questions = copying(tmp_path, Source(splits_of(path), [10], location=str(path)))
    extract(questions, query_of(0, (0, 0), (0, 9)), tmp_path / "out")
    unpack = gzip.decompress if name.endswith("gz") else bz2.decompress
    assert unpack((tmp_path / "out" / name).read_bytes()) == b"row 0\nrow 9\n"


def test_folders_of_partitions_and_header_lines_are_kept(inputs: Path, tmp_path: Path) -> None:
    table = inputs / "events"
    files = []
    for day in (1, 2):
        folder = table / f"day={day}"
        folder.mkdir(parents=True)
        files.append(folder / "part-0.csv")
        files[-1].write_text("\na,b\n" + "".join(f"{day},{row}\n" for row in range(3)))
    partitions = [part(file, split) for split, file in enumerate(files)]
    source = Source(partitions, [3, 3], "Scan", "csv+header", str(table))
    questions = copying(tmp_path, source)
    extract(questions, query_of(0, (1, 2)), tmp_path / "only")
    assert content(tmp_path / "only") == {"events/day=2/part-0.csv": b"a,b\n2,2\n"}
    extraction = extract(questions, query_of(0, (1, 2)), tmp_path / "others", is_without=True)
    assert content(tmp_path / "others") == {
        "events/day=1/part-0.csv": files[0].read_bytes(),
        "events/day=2/part-0.csv": b"\na,b\n2,0\n2,1\n",
    }
    assert sorted((Path(file.path).parent.name, file.rows) for file in extraction.files) == [
        ("day=1", None),
        ("day=2", 4),
    ]
    of_one_day = Source([part(files[1])], [3], "Scan", "csv+header", str(table / "day=2"))
    extract(copying(tmp_path / "b", of_one_day), query_of(0, (0, 0)), tmp_path / "day")
    assert list(content(tmp_path / "day")) == ["events/day=2/part-0.csv"]


def test_parquet_has_its_schema_and_a_source_without_rows_a_file(inputs: Path, tmp_path: Path) -> None:
    path = inputs / "table.parquet"
    table = pa.table({"number": pa.array(range(10), pa.int32()), "text": [str(at) for at in range(10)]})
    pq.write_table(table, path, row_group_size=4)
    other = inputs / "names.csv"
    other.write_text("name\nAda\n")
    questions = copying(
        tmp_path,
        Source([part(path)], [10], "Scan", "parquet", str(path)),
        Source([part(other)], [1], "Scan", "csv+header", str(other)),
    )
    row_set = json_value(questions.row_set(APP, query_of(0, (0, 1), (0, 7))))
    row_set["sources"][1] |= {"whole": False, "splits": [], "files": []}
    questions.extraction.extract(row_set, tmp_path / "out")
    assert pq.read_table(tmp_path / "out" / "table.parquet").equals(table.take([1, 7]))
    assert (tmp_path / "out" / "names.csv").read_text() == "name\n"


def test_a_source_that_is_meant_as_a_whole_is_copied_as_a_whole(
    text: Source, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = inputs / "stop.txt"
    stop.write_text("the\nof")
    questions = copying(
        tmp_path, text, Source(splits_of(stop), [2], location=str(stop)), Source(name="jdbc", format="jdbc")
    )
    extraction = extract(questions, query_of(0, (0, 0)), tmp_path / "out")
    assert content(tmp_path / "out") == {"rows.txt": b"row 0\r\n", "stop.txt": b"the\nof"}
    assert [file.rows for file in extraction.files] == [1, None]
    assert list(extraction.left_out) == ["2 (jdbc )"]
    cleaned = extract(questions, query_of(0, (0, 0)), tmp_path / "cleaned", is_without=True)
    assert [Path(file.target).name for file in cleaned.files] == ["rows.txt"]
    monkeypatch.setattr(row_extraction, "_MOST_WHOLE_BYTES", 3)
    large = extract(questions, query_of(0, (0, 0)), tmp_path / "small")
    assert str(stop) in large.left_out
    assert list(content(tmp_path / "small")) == ["rows.txt"]


def test_two_inputs_of_one_name_stay_apart_and_one_read_twice_is_one(inputs: Path, tmp_path: Path) -> None:
    paths = [inputs / name / "part-0" for name in ("a", "b")]
    sources = []
    for path in paths:
        path.parent.mkdir()
        path.write_text(f"{path.parent.name} 0\n{path.parent.name} 1\n")
        sources.append(Source(splits_of(path), [2], location=str(path)))
    questions = copying(tmp_path, *sources, sources[0])
    starts = tuple(start for at in range(3) for start in query_of(at, (0, at % 2)).starts)
    extract(questions, RowSetQuery(starts=starts), tmp_path / "out")
    assert content(tmp_path / "out") == {"part-0": b"a 0\n", "part-0-2": b"b 1\n"}


def test_records_of_several_lines(inputs: Path, tmp_path: Path) -> None:
    csv, objects = inputs / "multi.csv", inputs / "multi.json"
    csv.write_text('a,b\n1,"x\ny"\n2,z\n3,"u\nv"\n')
    objects.write_text('[{"a": 1}, {"a":\n2}, {"a": 3}]')
    options = {"multiline": "true", "header": "true"}
    questions = copying(
        tmp_path,
        *(
            Source(
                [part(path)],
                [3],
                "Scan",
                f"{format} of several lines",
                str(path),
                fields={
                    "dataset": {
                        "namespace": "file",
                        "name": str(path),
                        "format": f"{format} of several lines",
                        "options": options,
                    }
                },
            )
            for path, format in ((csv, "csv+header"), (objects, "json"))
        ),
    )
    starts = (*query_of(0, (0, 0), (0, 2)).starts, *query_of(1, (0, 0), (0, 2)).starts)
    extract(questions, RowSetQuery(starts=starts), tmp_path / "out")
    assert (tmp_path / "out" / "multi.csv").read_text() == 'a,b\n1,"x\ny"\n3,"u\nv"\n'
    assert json.loads((tmp_path / "out" / "multi.json").read_text()) == [{"a": 1}, {"a": 3}]
    extract(questions, RowSetQuery(starts=starts), tmp_path / "others", is_without=True)
    assert (tmp_path / "others" / "multi.csv").read_text() == "a,b\n2,z\n"
    assert json.loads((tmp_path / "others" / "multi.json").read_text()) == [{"a": 2}]


def test_a_line_of_several_records_is_not_cut(inputs: Path, tmp_path: Path) -> None:
    path = inputs / "rows.json"
    path.write_text('{"a": 1}\n[{"a": 2}, {"a": 3}]\n')
    questions = copying(tmp_path, Source([part(path)], [3], "Scan", "json", str(path)))
    with pytest.raises(InvalidQueryError, match="holds several records, of which only some are meant"):
        extract(questions, query_of(0, (0, 1)), tmp_path / "out")
    extract(questions, query_of(0, (0, 1), (0, 2)), tmp_path / "out")
    assert content(tmp_path / "out") == {"rows.json": b'[{"a": 2}, {"a": 3}]\n'}


def test_whole_files_and_records_of_bytes(inputs: Path, tmp_path: Path) -> None:
    names = ("a.bin", "b.bin", "c.bin")
    for name in names:
        (inputs / name).write_bytes(name.encode())
    files = [{"path": str(inputs / name), "size": 5, "modified": None} for name in names]
    records = inputs / "records"
    records.write_bytes(b"aabbccd")
    questions = copying(
        tmp_path,
        Source([{"split": 0, "files": files}], [3], "binaryFiles", "file", str(inputs)),
        Source(
            [{"split": 0, "path": str(records), "start": 0, "length": 7, "record_length": 2}],
            [4],
            "binaryRecords",
            "binary",
            str(records),
        ),
    )
    starts = (*query_of(0, (0, 1)).starts, *query_of(1, (0, 1), (0, 3)).starts)
    extract(questions, RowSetQuery(starts=starts), tmp_path / "out")
    assert content(tmp_path / "out") == {"in/b.bin": b"b.bin", "records": b"bbd"}
    extract(questions, RowSetQuery(starts=starts), tmp_path / "others", is_without=True)
    assert content(tmp_path / "others") == {"in/a.bin": b"a.bin", "in/c.bin": b"c.bin", "records": b"aacc"}


# -- what is refused ------------------------------------------------------------------------------------


def occupied(folder: Path, inputs: Path) -> Path:
    folder.mkdir()
    (folder / "mine").write_text("mine")
    return folder


def a_file(folder: Path, inputs: Path) -> Path:
    folder.write_text("mine")
    return folder


def a_link(folder: Path, inputs: Path) -> Path:
    folder.symlink_to(inputs)
    return folder


def a_dangling_link(folder: Path, inputs: Path) -> Path:
    folder.symlink_to(folder.with_name("nothing"))
    return folder


@pytest.mark.parametrize("make", [occupied, a_file, a_link, a_dangling_link])
def test_nothing_is_written_over_what_is_there(make: Any, text: Source, inputs: Path, tmp_path: Path) -> None:
    questions = copying(tmp_path, text)
    folder = make(tmp_path / "out", inputs)
    before = state(tmp_path)
    with pytest.raises(InvalidQueryError, match="is there already"):
        extract(questions, query_of(0, (0, 0)), folder)
    assert {path: at for path, at in state(tmp_path).items() if "flows" not in path} == {
        path: at for path, at in before.items() if "flows" not in path
    }


def test_copies_never_become_inputs(inputs: Path, tmp_path: Path) -> None:
    path = inputs / "rows.csv"
    path.write_text("a\nb\n")
    for location in (str(inputs), f"{inputs}/*"):
        questions = copying(
            tmp_path / location.replace("/", "_"), Source(splits_of(path), [2], location=location)
        )
        with pytest.raises(InvalidQueryError, match="which the job reads"):
            extract(questions, query_of(0, (0, 0)), inputs / "fixture")
    (tmp_path / "link").symlink_to(inputs)
    with pytest.raises(InvalidQueryError, match="which the job reads"):
        extract(questions, query_of(0, (0, 0)), tmp_path / "link" / "fixture")
    assert [path.name for path in inputs.iterdir()] == ["rows.csv"]


def test_inputs_that_have_changed_are_copied_only_on_request(
    text: Source, inputs: Path, tmp_path: Path
) -> None:
    questions = copying(tmp_path, text)
    (inputs / "rows.txt").write_text("other\nrows\n")
    with pytest.raises(LineageError, match=r"has changed since the run.*--anyway"):
        extract(questions, query_of(0, (0, 0)), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    extract(questions, query_of(0, (0, 0)), tmp_path / "out", takes_changed=True)
    assert content(tmp_path / "out") == {"rows.txt": b"other\n"}
    with pytest.raises(LineageError, match="has fewer rows than the job read"):
        extract(questions, query_of(0, (0, 4)), tmp_path / "more", takes_changed=True)
    (inputs / "rows.txt").unlink()
    with pytest.raises(LineageError, match="it is gone"):
        extract(questions, query_of(0, (0, 0)), tmp_path / "more")


def test_a_copy_that_fails_leaves_nothing(
    text: Source, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> int:
        raise OSError(28, os.strerror(28))

    questions = copying(tmp_path, text)
    monkeypatch.setattr("lineage_service.tracing.files.file_copies.copy_lines", fail)
    with pytest.raises(LineageError, match="cannot be written: No space left"):
        extract(questions, query_of(0, (0, 0)), tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["flows", "in"]


def test_rows_of_formats_that_are_not_known_are_not_written(inputs: Path, tmp_path: Path) -> None:
    path = inputs / "rows.avro"
    path.write_bytes(b"Obj")
    questions = copying(tmp_path, Source([part(path)], [3], "Scan", "avro", str(path)))
    with pytest.raises(InvalidQueryError, match="rows of files of its format are not copied"):
        extract(questions, query_of(0, (0, 0)), tmp_path / "out")
    with pytest.raises(InvalidQueryError, match="there are no rows of files to write"):
        extract(
            copying(tmp_path / "b", Source(counts=[3], name="parallelize", format=None)),
            query_of(0, (0, 0)),
            tmp_path / "out",
        )


def test_no_path_leads_out_of_the_folder() -> None:
    places = CopyPlaces()
    paths = ["s3://bucket/a/../../../etc/x", "s3://bucket/a//y", "/a/./..", "/"]
    places.add("s3://bucket/a", paths[:2])
    places.add(None, paths[2:3])
    places.add("/", paths[3:])
    for name in paths:
        place = places.of(name)
        assert not place.is_absolute()
        assert ".." not in place.parts

"""Rows of files in an object store: a real S3 protocol, and what is said when it does not answer."""

from __future__ import annotations

import gzip
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import LocalFileSystem, S3FileSystem, SubTreeFileSystem

from lineage_service.devstack.ports import HOST, choose_port
from lineage_service.errors import NothingMatchesError
from lineage_service.lineage import SourceRow
from lineage_service.queries import RecordQuery, RowQuery, TraceQuery
from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError
from tests.support.file_applications import APP, SOURCE, questions_of, splits_of

ROWS = [f"row {number}" for number in range(20_000)]
DATA = "".join(f"{row}\n" for row in ROWS).encode()


def put(s3: str, url: str, data: bytes) -> None:
    scheme, _, address = s3.partition("://")
    system = S3FileSystem(endpoint_override=address, scheme=scheme, region="us-east-1")
    with system.open_output_stream(url.partition("://")[2], compression=None) as stream:
        stream.write(data)


def test_rows_of_a_file_in_s3_are_found_shown_and_searched(s3: str, bucket: str, tmp_path: Path) -> None:
    """Under the name that Spark has for it, without its size: the driver cannot see it."""
    put(s3, f"{bucket}/in/rows 100%25#.txt", DATA)
    path = f"s3a://{bucket.partition('://')[2]}/in/rows 100%25#.txt"
    asked = questions_of(tmp_path, splits_of(path, 0, 100_000, size=len(DATA)), [11_112, 8_888])
    found = asked.records(APP, RecordQuery(node=str(SOURCE), partition=1, offset=8_887))
    assert [record.source for record in found.records] == [
        SourceRow(path=path, row=19_999, line=20_000, text="row 19999", warning=None)
    ]
    for name in (path, path.replace("s3a:", "s3:"), path.replace("s3a:", "s3n:")):
        for row in (0, 11_111, 11_112, 19_999):
            trace = asked.trace(APP, TraceQuery(direction="forward", path=name, row=row))
            source = trace.start[0].source
            assert source is not None
            assert (source.row, source.text) == (row, f"row {row}")
    page = asked.records(APP, RecordQuery(node=str(SOURCE), text="ROW 1999", limit=2))
    assert [record.source.row for record in page.records if record.source] == [1_999, 19_990]
    rest = asked.records(APP, RecordQuery(node=str(SOURCE), text="ROW 1999", limit=20, cursor=page.next))
    assert [record.source.row for record in rest.records if record.source] == list(range(19_991, 20_000))


def test_a_compressed_file_in_s3_is_shown_and_one_that_is_not_there_is_said(
    s3: str, bucket: str, tmp_path: Path
) -> None:
    put(s3, f"{bucket}/rows.gz", gzip.compress(DATA))
    there, gone = f"{bucket}/rows.gz", f"{bucket}/gone"
    partitions = [*splits_of(there, size=9), {**splits_of(gone, size=9)[0], "split": 1, "length": None}]
    asked = questions_of(tmp_path, partitions, [20_000, 1])
    (last,) = asked.records(APP, RecordQuery(node=str(SOURCE), partition=0, offset=19_999)).records
    assert last.source is not None
    assert last.source.text == "row 19999"
    (missing,) = asked.records(APP, RecordQuery(node=str(SOURCE), partition=1)).records
    assert missing.source is not None
    assert (missing.source.row, missing.source.text) == (0, None)
    assert "it is gone" in (missing.source.warning or "")


def test_rows_of_parquet_in_s3_are_found_by_a_condition(
    s3: str, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row groups that their statistics rule out are not read."""
    table = pa.table({"n": range(1_000), "name": [f"name {number % 10}" for number in range(1_000)]})
    local = tmp_path / "part.parquet"
    pq.write_table(table, local, row_group_size=100)
    put(s3, f"{bucket}/out/k=7/part.parquet", local.read_bytes())
    path = f"s3a://{bucket.partition('://')[2]}/out"
    written = [{"split": 0, "path": f"{path}/k=7/part.parquet", "start": 0}]
    asked = questions_of(tmp_path, [], [1_000], written=written, format="parquet")
    read: list[int] = []
    original = pq.ParquetFile.read_row_group

    def noting(self: Any, number: int, *rest: Any, **more: Any) -> Any:
        read.append(number)
        return original(self, number, *rest, **more)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", noting)
    for where, rows, groups in (
        ("n = 512 and k = 7", [512], [5]),
        ("n between 199 and 200 and name like '%9'", [199], [1, 2]),
        ("name = 'name 3' and 5 > n", [3], [0]),
        ("n in (7, 998) and n < 998.5", [7, 998], [0, 9]),
    ):
        read.clear()
        choices = asked.rows(RowQuery(dataset=path.replace("s3a", "s3"), where=where))
        assert [choice.row for choice in choices.choices] == rows
        assert read == groups
    with pytest.raises(NothingMatchesError):
        asked.rows(RowQuery(dataset=f"{path}/k=7", where="n > 999"))


def test_a_store_that_does_not_answer_is_asked_once_and_said(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{HOST}:{choose_port('nothing', [])}")
    paths = [f"{bucket}/part-{number}" for number in range(30)]
    partitions = [{**splits_of(path, size=9)[0], "split": split} for split, path in enumerate(paths)]
    asked = questions_of(tmp_path, partitions, [1] * 30)
    page = asked.records(APP, RecordQuery(node=str(SOURCE)))
    assert len(page.records) == 30
    for record in page.records:
        assert record.source is not None
        assert record.source.text is None
        assert "its store does not answer" in (record.source.warning or "")
    files = FileSystems()
    with pytest.raises(UnreadableError, match="its store does not answer"):
        files.state(paths[0])
    files._made.clear()
    monkeypatch.setattr(pyarrow.fs, "S3FileSystem", None)  # is not asked again so soon
    with pytest.raises(UnreadableError, match="its store does not answer"):
        files.state(paths[1])


def test_a_file_in_s3_that_became_another_says_so(s3: str, bucket: str, tmp_path: Path) -> None:
    """The driver did not see it: its splits tell its size, the application's end when it was there."""
    put(s3, f"{bucket}/rows", DATA)
    splits = splits_of(f"{bucket}/rows", 0, 100_000, size=len(DATA))
    now = time.time_ns() // 1_000_000
    query = RecordQuery(node=str(SOURCE), limit=1)

    def warning(folder: str, ended: int) -> str | None:
        asked = questions_of(tmp_path / folder, splits, [11_112, 8_888], ended=ended)
        (record,) = asked.records(APP, query).records
        assert record.source is not None
        assert record.source.text == "row 0"
        return record.source.warning

    assert warning("1", now) is None
    assert "the file has changed since the run (the application ended at 19" in (warning("2", 1) or "")
    put(s3, f"{bucket}/rows", DATA + b"more\n")
    assert "(188,890 bytes then, 188,895 now)" in (warning("3", now) or "")


class Rooted:
    """Stands for a file system of pyarrow's that is not here: its paths below a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[tuple[object, ...]] = []

    def __call__(self, *address: object, **_: object) -> SubTreeFileSystem:
        self.asked.append(address)
        return SubTreeFileSystem(str(self.folder), LocalFileSystem())


@pytest.mark.parametrize(
    ("path", "system", "place", "address"),
    [
        ("hdfs://name:8020/in/rows", "HadoopFileSystem", "in/rows", ("name", 8020)),
        ("hdfs://service/in/rows", "HadoopFileSystem", "in/rows", ("service", 0)),
        ("hdfs:///in/rows", "HadoopFileSystem", "in/rows", ("default", 0)),
        ("viewfs://cluster/in/rows", "HadoopFileSystem", "in/rows", ("viewfs://cluster", 0)),
        ("gs://box/in/rows", "GcsFileSystem", "box/in/rows", ()),
    ],
)
def test_hadoop_and_google_are_asked_for_the_path_in_them(
    path: str,
    system: str,
    place: str,
    address: tuple[object, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = tmp_path / "root" / place
    target.parent.mkdir(parents=True)
    target.write_bytes(DATA)
    rooted = Rooted(tmp_path / "root")
    monkeypatch.setattr(pyarrow.fs, system, rooted)
    asked = questions_of(tmp_path, splits_of(path, 0, 100_000, size=len(DATA)), [11_112, 8_888])
    for offset in (8_887, 8_886):
        (record,) = asked.records(
            APP, RecordQuery(node=str(SOURCE), partition=1, offset=offset, limit=1)
        ).records
        assert record.source is not None
        assert (record.source.row, record.source.text) == (11_112 + offset, f"row {11_112 + offset}")
    assert rooted.asked == [address]
    target.unlink()
    (record,) = asked.records(APP, RecordQuery(node=str(SOURCE), partition=0, limit=1)).records
    assert record.source is not None
    assert "it is gone" in (record.source.warning or "")

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyarrow.fs import S3FileSystem

from lineage_service.tracing.files.file_systems import FileSystems
from lineage_service.triggering.certain import file_looks
from lineage_service.triggering.certain.file_looks import FileLook, FileLooks, LookError


def look(path: Path | str) -> FileLook:
    return FileLooks(FileSystems(), 60.0).at(str(path))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (
        "a.csv",
        "b.csv",
        "day=1/c.csv",
        "_SUCCESS",
        ".a.csv.crc",
        "_temporary/0/d.csv",
        "_x=1/e.csv",
    ):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "in"


def names(seen: FileLook, folder: Path) -> list[str]:
    return [str(Path(path).relative_to(folder)) for path in sorted(seen.files)]


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("", ["_x=1/e.csv", "a.csv", "b.csv", "day=1/c.csv"]),
        ("a.csv", ["a.csv"]),
        ("*.csv", ["a.csv", "b.csv"]),
        ("[^b].csv", ["a.csv", "b.csv"]),  # more than a job reads, and never less
        ("{a,z}.csv", ["a.csv"]),
        ("*/c.csv", ["day=1/c.csv"]),
        ("day=*", ["day=1/c.csv"]),
        ("no", []),
    ],
)
def test_a_look_lists_what_a_job_may_read(folder: Path, pattern: str, files: list[str]) -> None:
    seen = look(f"{folder}/{pattern}".rstrip("/"))
    assert names(seen, folder) == files
    assert seen.count == len(files)


def test_a_look_that_finds_the_same_has_the_same_digest(folder: Path) -> None:
    before = look(folder)
    (folder / "_SUCCESS").write_text("again")
    assert look(folder).digest == before.digest
    (folder / "a.csv").write_text("other")
    assert look(folder).digest != before.digest


def test_a_file_that_was_just_written_is_not_settled(folder: Path) -> None:
    seen = look(folder)
    assert not seen.is_settled
    assert seen.newest is not None
    assert seen.newest.endswith(".csv")


def test_the_time_of_the_inode_counts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_looks, "_LOCAL_S", 0.01)
    now = time.time_ns()
    os.utime(folder / "a.csv", (1, 1))
    seen = look(folder / "a.csv")
    assert seen.newest_ns is not None
    assert seen.newest_ns > now - 10_000_000_000
    assert not seen.is_older_than(now - 10_000_000_000)


def test_what_cannot_be_looked_at_says_why(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LookError, match="escaped"):
        look(f"{folder}/a\\*.csv")
    monkeypatch.setattr(file_looks, "MAX_FILES", 1)
    with pytest.raises(LookError, match="more than 1"):
        look(folder)
    with pytest.raises(LookError, match="too long"):
        FileLooks(FileSystems(), -1.0).at(str(folder))
    with pytest.raises(LookError):
        look("ftp://host/in")


def put(s3: str, url: str, text: str = "1") -> None:
    scheme, _, address = s3.partition("://")
    system = S3FileSystem(endpoint_override=address, scheme=scheme, region="us-east-1")
    with system.open_output_stream(url.partition("://")[2], compression=None) as stream:
        stream.write(text.encode())


def test_files_of_an_object_store_are_looked_at(
    s3: str, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("in/a.csv", "in/b.csv", "in/_SUCCESS", "in/day=1/c.csv", "inner/d.csv"):
        put(s3, f"{bucket}/{name}")
    before = look(f"{bucket}/in")
    assert sorted(before.files) == [f"{bucket}/in/{name}" for name in ("a.csv", "b.csv", "day=1/c.csv")]
    assert (before.count, before.is_local, before.is_settled) == (3, False, False)
    assert before.is_older_than(time.time_ns() + 120e9)
    assert look(f"{bucket}/in").digest == before.digest
    assert look(f"{bucket}/in/*.csv").count == 2
    assert look(f"{bucket}/in/a.csv").count == 1
    assert look(f"{bucket}/nothing").count == 0
    put(s3, f"{bucket}/in/_SUCCESS", "again")
    assert look(f"{bucket}/in").digest == before.digest
    put(s3, f"{bucket}/in/a.csv", "22")
    assert look(f"{bucket}/in").digest != before.digest


def test_a_delta_table_of_an_object_store_has_a_version(s3: str, bucket: str) -> None:
    write_deltalake(f"{bucket}/table", pa.table({"n": [1]}))
    first = look(f"{bucket}/table")
    assert (first.version, first.count) == (0, 1)
    write_deltalake(f"{bucket}/table", pa.table({"n": [2]}), mode="append")
    second = look(f"{bucket}/table")
    assert second.version == 1
    assert second.digest != first.digest

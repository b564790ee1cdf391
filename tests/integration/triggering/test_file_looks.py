from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
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
    looks = FileLooks(FileSystems(), 60)
    assert [looks.with_commit(one).replaces for one in (first, second)] == [None, False]
    assert [commit.version for commit in looks.commits(f"{bucket}/table")] == [0, 1]


def test_a_commit_says_whether_it_replaced_the_table(tmp_path: Path) -> None:
    def written(table: pa.Table, **how: Any) -> tuple[str, bool | None]:
        write_deltalake(str(tmp_path), table, **how)
        at = FileLooks(FileSystems(), 60).with_commit(look(str(tmp_path)))
        return at.commit, at.replaces

    table = pa.table({"day": [1, 2]})
    written(table)
    assert written(table, mode="append") == ("WRITE Append", False)
    assert written(table, mode="overwrite") == ("WRITE Overwrite", True)
    commit, replaces = written(pa.table({"day": [2]}), mode="overwrite", predicate="day = 2")
    assert commit.startswith("WRITE Overwrite where ")
    assert replaces is False
    written(table, mode="append")
    DeltaTable(str(tmp_path)).optimize.compact()
    at = FileLooks(FileSystems(), 60).with_commit(look(str(tmp_path)))
    assert (at.commit, at.replaces) == ("OPTIMIZE", None)


@pytest.mark.parametrize(
    ("info", "replaces"),
    [
        ({"operation": "WRITE", "operationParameters": {"mode": "Overwrite", "partitionBy": "[]"}}, True),
        (
            {"operation": "WRITE", "operationParameters": {"mode": "Overwrite", "partitionBy": '["day"]'}},
            None,
        ),
        (
            {
                "operation": "WRITE",
                "operationParameters": {
                    "mode": "Overwrite",
                    "partitionBy": '["day"]',
                    "isDynamicPartitionOverwrite": "false",
                },
            },
            True,
        ),
        (
            {
                "operation": "WRITE",
                "operationParameters": {"mode": "Overwrite", "isDynamicPartitionOverwrite": True},
            },
            None,
        ),
        ({"operation": "CREATE OR REPLACE TABLE AS SELECT", "operationParameters": {}}, True),
        ({"operation": "MERGE"}, False),
        ({"operation": "WRITE"}, None),
        ({}, None),
        ([], None),
    ],
)
def test_what_a_commit_does_not_say_is_not_known(tmp_path: Path, info: Any, replaces: bool | None) -> None:
    write_deltalake(str(tmp_path), pa.table({"n": [1]}))
    at = look(str(tmp_path))
    commit = tmp_path / "_delta_log" / f"{at.version:020}.json"
    commit.write_text(json.dumps({"protocol": {}}) + "\n" + json.dumps({"commitInfo": info}) + "\n")
    assert FileLooks(FileSystems(), 60).with_commit(at).replaces is replaces
    commit.write_text('{"commitInfo" broken')
    assert FileLooks(FileSystems(), 60).with_commit(at).replaces is None

from __future__ import annotations

import json
from typing import Any

from spark_agent.sql.table_formats.delta_log import (
    AddedFile,
    Commit,
    CommitMark,
    RemovedFile,
    commit_of,
    data_path,
)

OURS = CommitMark("ours")


def log(*commits: list[dict[str, Any]]) -> Any:
    """Reads the log of a table `/t` with these commits, from version 0 on."""
    files = {
        f"/t/_delta_log/{version:020d}.json": "\n".join(map(json.dumps, actions))
        for version, actions in enumerate(commits)
    }
    return files.get


def committed_by(transaction: str) -> dict[str, Any]:
    return {"commitInfo": {"operation": "WRITE", "txnId": transaction}}


def added(path: str, rows: int | None = 3, **more: Any) -> dict[str, Any]:
    stats = {} if rows is None else {"stats": json.dumps({"numRecords": rows})}
    return {"add": {"path": path, "size": 10, "modificationTime": 99, **stats, **more}}


def test_a_commit_is_found_behind_those_of_others() -> None:
    read = log(
        [committed_by("first"), added("a.parquet")],
        [committed_by("other"), added("b.parquet")],
        [committed_by("ours"), added("c.parquet")],
    )
    assert commit_of("/t", OURS, 0, read) == (Commit(2, (AddedFile("c.parquet", 10, 99, 3),)), 2)


def test_there_is_none_before_it_is_committed() -> None:
    read = log([committed_by("first")], [committed_by("other"), {"txn": {"appId": "ours"}}])
    assert commit_of("/t", OURS, -1, read) == (None, 1)


def test_versions_that_the_transaction_read_are_not_looked_at() -> None:
    assert commit_of("/t", OURS, 0, log([committed_by("ours"), added("a.parquet")])) == (None, 0)


def test_a_file_that_gets_another_deletion_vector_is_not_new() -> None:
    actions = [
        committed_by("ours"),
        {"remove": {"path": "old.parquet"}},
        added("old.parquet", deletionVector={"cardinality": 1}),
        added("new.parquet"),
    ]
    commit, _ = commit_of("/t", OURS, -1, log(actions))
    assert commit is not None
    assert [file.path for file in commit.files] == ["new.parquet"]


def test_paths_are_decoded_and_counts_may_lack() -> None:
    actions = [committed_by("ours"), added("p=a%2520b/c.parquet", None, baseRowId=40)]
    commit, _ = commit_of("/t", OURS, -1, log(actions))
    assert commit == Commit(0, (AddedFile("p=a%20b/c.parquet", 10, 99, None, 40),))


def test_a_rewrite_is_known_by_a_file_that_it_removes() -> None:
    read = log(
        [committed_by("first"), added("a.parquet")],
        [committed_by("other"), added("a.parquet.2")],
        [committed_by("rewrite"), {"remove": {"path": "a.parquet"}}, added("c.parquet")],
    )
    commit, _ = commit_of("/t", CommitMark(removed="a.parquet"), 0, read)
    assert commit is not None
    assert commit.version == 2


def test_what_is_removed_is_told_but_not_a_file_that_gets_another_deletion_vector() -> None:
    vector = {"storageType": "i", "pathOrInlineDv": "x", "cardinality": 1}
    actions = [
        committed_by("ours"),
        {"remove": {"path": "p=1%202/a.parquet", "size": 5, "stats": json.dumps({"numRecords": 4})}},
        {"remove": {"path": "b.parquet", "deletionVector": vector}},
        {"remove": {"path": "c.parquet"}},
        added("c.parquet", deletionVector=vector),
    ]
    commit, _ = commit_of("/t", OURS, -1, log(actions))
    assert commit is not None
    assert commit.removed == (
        RemovedFile("p=1 2/a.parquet", 5, 4),
        RemovedFile("b.parquet", None, None, vector),
    )


def test_a_file_of_the_log_is_below_the_table_or_where_it_says() -> None:
    paths = [data_path("/t", path) for path in ("a", "/other/a", "s3://bucket/a")]
    assert paths == ["/t/a", "/other/a", "s3://bucket/a"]


def test_files_of_a_change_data_feed_are_no_files_of_the_version() -> None:
    change = {"cdc": {"path": "_change_data/p=a%20b/cdc-1.parquet", "size": 7, "dataChange": False}}
    commit, _ = commit_of("/t", OURS, -1, log([committed_by("ours"), added("a.parquet"), change]))
    assert commit is not None
    assert [file.path for file in commit.files] == ["a.parquet"]
    assert commit.changes == (AddedFile("_change_data/p=a b/cdc-1.parquet", 7, None, None),)

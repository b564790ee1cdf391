"""Random MERGEs, UPDATEs and DELETEs of Iceberg: where each row came from, and where it went.

A plain Python program runs the same statements over lists (tests/support/tables/delta_oracle.py).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lineage_service.cli.stores import open_queries
from lineage_service.settings import Settings
from lineage_service.tracing.files.file_systems import FileSystems
from lineage_service.tracing.tables.iceberg_metadata import read_metadata
from tests.support.tables.delta_oracle import Changes
from tests.support.tables.row_ends import ends_by, traced_ends
from tests.support.tables.table_jobs import TableJobs, iceberg_jobs
from tests.support.tables.traced_rows import out_rows, rows_behind

# The first waits for an installation.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(1800)]

_REWRITING = "CALL ice.system.rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))"


@pytest.fixture
def lake(tmp_path: Path, kafka: Any, jar: Path, monkeypatch: pytest.MonkeyPatch) -> TableJobs:
    return iceberg_jobs(tmp_path, kafka, monkeypatch.setenv)


def put(lake: TableJobs, changes: Changes, mode: str, version: str, partitioned: str | None) -> None:
    properties = {f"write.{name}.mode": mode for name in ("delete", "update", "merge")}
    statements = [_REWRITING if text.startswith("OPTIMIZE") else text for text in changes.statements]
    properties["format-version"] = version
    changes.put(lake.folder, properties=properties, partitioned=partitioned, statements=statements)


COPY, MERGE = "copy-on-write", "merge-on-read"


@pytest.mark.parametrize(
    ("seed", "mode", "version", "partitioned"),
    [
        (1, COPY, "2", None),
        (2, MERGE, "2", None),
        (3, COPY, "3", "p"),
        (4, MERGE, "3", "p"),
        (5, COPY, "2", "bucket(3, id), p"),
        (6, MERGE, "3", "truncate(1, name)"),
        (11, COPY, "2", "p"),
        (14, MERGE, "3", "p"),
        (16, MERGE, "2", "p"),
    ],
)
def test_each_row_is_traced_through_random_changes(
    lake: TableJobs, seed: int, mode: str, version: str, partitioned: str | None
) -> None:
    changes = Changes.of(seed, 12, are_files_removed=seed > 10)
    put(lake, changes, mode, version, partitioned)
    application_id = lake.run("iceberg_statements.py")
    snapshots = json.loads((lake.folder / "snapshots.json").read_text())
    outputs = out_rows(lake.folder / "out")
    assert {int(columns[0]): tuple(columns[1:]) for _, _, columns in outputs} == {
        key: tuple(map(str, values[1:])) for key, values in changes.written().items()
    }
    queries = open_queries(Settings())
    for path, row, columns in outputs:
        origins = changes.table[int(columns[0])].origins
        assert rows_behind(queries, application_id, path, row) == origins, (columns, changes.statements)
    ends = ends_by(changes, None)
    for name, rows in changes.files.items():
        for row in range(len(rows)):
            expected = ends[f"{name}.csv", row]
            expected.deleted = {
                (statement, snapshots[changes.statement_of[number]]) for statement, number in expected.deleted
            }
            traced = traced_ends(queries, application_id, lake.folder / f"{name}.csv", row)
            assert traced == expected, (name, row, changes.statements)


#: Condition on a row of `t` -> the ids for which it holds. Ids 0 to 11 are there, and 1 to 9 in `second`.
SUBQUERIES = {
    "id IN (SELECT 2 * id FROM second)": {2, 4, 6, 8, 10},
    "NOT EXISTS (SELECT 1 FROM second s WHERE s.id = t.id)": {0, 10, 11},
    "v > (SELECT min(v) + 7 FROM second)": {9, 10, 11},
    "id = 3 OR EXISTS (SELECT 1 FROM second s WHERE s.id = t.id + 3)": {0, 1, 2, 3, 4, 5, 6},
    "id IN (SELECT 2 * id FROM second) AND name = 'n4'": {4},
}


@pytest.mark.parametrize("mode", [COPY, MERGE])
def test_a_condition_may_have_a_subquery(lake: TableJobs, mode: str) -> None:
    changes = Changes.of(0, 0)
    changes.files = {
        "first": [(key, key, f"n{key}", str(key % 3)) for key in range(12)],
        "second": [(key, key, f"n{key}", "1") for key in range(1, 10)],
    }
    statements: list[tuple[str, str, set[int]]] = []
    for condition, ids in SUBQUERIES.items():
        statements.append(("UPDATE", f"UPDATE {{table}} t SET v = v + 0 WHERE {condition}", ids))
        statements.append(("DELETE", f"DELETE FROM {{table}} t WHERE {condition}", ids))
        restore = "INSERT INTO {table} SELECT * FROM first f WHERE f.id NOT IN (SELECT id FROM {table})"
        statements.append(("INSERT", restore, set()))
    changes.statements = [text for _, text, _ in statements]
    put(lake, changes, mode, "2", None)
    application_id = lake.run("iceberg_statements.py")
    snapshots = json.loads((lake.folder / "snapshots.json").read_text())
    queries = open_queries(Settings())
    for row in range(12):
        ends = traced_ends(queries, application_id, lake.folder / "first.csv", row)
        deleted = {
            ("DELETE", snapshots[number])
            for number, (statement, _, ids) in enumerate(statements, 1)
            if statement == "DELETE" and row in ids
        }
        assert ends.deleted == deleted, row


def test_an_application_deletes_files_that_another_one_wrote(lake: TableJobs) -> None:
    changes = Changes.of(0, 0)
    changes.files = {"first": [(key, key, f"n{key}", str(key % 3)) for key in range(12)]}
    changes.statements = ["DELETE FROM {table} WHERE id = 5"]
    put(lake, changes, MERGE, "3", "p")
    writer = lake.run("iceberg_statements.py")
    [_, first] = json.loads((lake.folder / "snapshots.json").read_text())
    statements = ["DELETE FROM ice.db.t WHERE p = '2'", "DELETE FROM ice.db.t WHERE p = '7'"]
    (lake.folder / "statements.json").write_text(json.dumps([*statements, "TRUNCATE TABLE ice.db.t"]))
    deleter = lake.run("statements.py")
    metadata = read_metadata(FileSystems(), str(lake.folder / "warehouse" / "db" / "t"))
    by_time = sorted(metadata.snapshots.values(), key=lambda snapshot: snapshot.time)
    later = [snapshot.id for snapshot in by_time if snapshot.summary.get("deleted-data-files")]
    assert len(later) == 2
    queries = open_queries(Settings())
    for row in range(12):
        expected = ("DELETE", later[0]) if row % 3 == 2 else ("TRUNCATE", later[1])
        ends = traced_ends(queries, writer, lake.folder / "first.csv", row)
        assert ends.deleted == {("DELETE", first) if row == 5 else expected}, row
    sinks = [node.name for node in queries.graph(deleter).nodes if node.kind == "sink"]
    assert sinks == ["DELETE: deleted rows", "TRUNCATE: deleted rows"]


def test_rows_are_followed_into_what_is_published_later(lake: TableJobs) -> None:
    """Into a branch that a setting names, and by the id of a write that is to be audited first."""
    inputs = "".join(f"{key},n{key},{key},{key % 3}\n" for key in range(15))
    (lake.folder / "first.csv").write_text(inputs)
    columns = "id BIGINT, name STRING, v INT, p STRING"
    properties = "'write.wap.enabled' = 'true', 'write.delete.mode' = 'merge-on-read'"
    statements = [
        f"CREATE TABLE ice.db.t ({columns}) USING iceberg PARTITIONED BY (p) TBLPROPERTIES ({properties})",
        "INSERT INTO ice.db.t SELECT * FROM first WHERE id < 6",
        "SET spark.wap.branch = audit",
        "INSERT INTO ice.db.t SELECT * FROM first WHERE id BETWEEN 6 AND 11",
        "UPDATE ice.db.t SET v = v + 100 WHERE id % 4 = 0",
        "DELETE FROM ice.db.t WHERE id = 5",
        "DELETE FROM ice.db.t WHERE p = '1'",
        "RESET spark.wap.branch",
        "CALL ice.system.fast_forward('db.t', 'main', 'audit')",
        "SET spark.wap.id = nightly",
        "INSERT INTO ice.db.t SELECT * FROM first WHERE id >= 12",
        "RESET spark.wap.id",
        "CALL ice.system.publish_changes('db.t', 'nightly')",
        f"INSERT OVERWRITE DIRECTORY '{lake.folder}/out' USING csv SELECT * FROM ice.db.t",
    ]
    (lake.folder / "statements.json").write_text(json.dumps(statements))
    application_id = lake.run("statements.py")
    outcomes = json.loads((lake.folder / "outcomes.json").read_text())
    assert outcomes == ["done"] * len(statements)
    queries, rows = open_queries(Settings()), set()
    for path, row, (key, *_) in out_rows(lake.folder / "out"):
        assert rows_behind(queries, application_id, path, row) == {("first.csv", int(key))}
        rows.add(int(key))
    assert rows == {key for key in range(15) if key >= 12 or (key != 5 and key % 3 != 1)}
    for row in range(15):
        ends = traced_ends(queries, application_id, lake.folder / "first.csv", row)
        assert ends.rows == rows & {row}
        assert [statement for statement, _ in ends.deleted] == ([] if row in rows else ["DELETE"])

"""Random MERGEs, UPDATEs and DELETEs of Delta Lake: where each row came from, and where it went.

A plain Python program runs the same statements over lists (tests/support/tables/delta_oracle.py).
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from lineage_service.cli.stores import open_queries
from lineage_service.queries import TraceQuery
from lineage_service.settings import Settings
from tests.support.tables.delta_logs import lasting_log
from tests.support.tables.delta_oracle import Changes
from tests.support.tables.row_ends import ends_by, traced_ends
from tests.support.tables.table_jobs import TableJobs, delta_jobs
from tests.support.tables.traced_rows import out_rows, rows_behind

# The first waits for an installation.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(1800)]

VECTORS = {"enableDeletionVectors": "true"}
TRACKING = {"enableRowTracking": "true"}
FEED = {"enableChangeDataFeed": "true"}
MAPPING = {"columnMapping.mode": "name"}


@pytest.fixture
def lake(tmp_path: Path, kafka: Any, jar: Path, monkeypatch: pytest.MonkeyPatch) -> TableJobs:
    return delta_jobs(tmp_path, kafka, monkeypatch.setenv)


@pytest.mark.parametrize(
    ("seed", "properties", "is_partitioned"),
    [
        (11, {}, True),
        (16, VECTORS | TRACKING, True),
        (18, VECTORS, False),
        (1, {}, False),
        (2, VECTORS, False),
        (3, {}, True),
        (4, VECTORS | TRACKING, True),
        (5, TRACKING, False),
        (6, VECTORS, False),
        (21, FEED, False),
        (22, FEED | VECTORS, True),
        (23, FEED | MAPPING, True),
    ],
)
def test_each_row_is_traced_through_random_changes(
    lake: TableJobs, seed: int, properties: dict[str, str], is_partitioned: bool
) -> None:
    changes = Changes.of(seed, 12, are_files_removed=seed > 10)
    changes.put(lake.folder, properties=properties, is_partitioned=is_partitioned)
    application_id = lake.run("delta_changes.py")
    outputs = out_rows(lake.folder / "out")
    assert {int(columns[0]): tuple(columns[1:]) for _, _, columns in outputs} == {
        key: tuple(map(str, values[1:])) for key, values in changes.written().items()
    }
    queries = open_queries(Settings())
    for path, row, columns in outputs:
        origins = changes.table[int(columns[0])].origins
        assert rows_behind(queries, application_id, path, row) == origins, (columns, changes.statements)
    is_versioned = "OPTIMIZE {table}" not in changes.statements
    ends = ends_by(changes)
    for name, rows in changes.files.items():
        for row in range(len(rows)):
            traced, expected = (
                traced_ends(queries, application_id, lake.folder / f"{name}.csv", row),
                ends[f"{name}.csv", row],
            )
            if not is_versioned:  # whether an OPTIMIZE commits depends on the files
                for either in (traced, expected):
                    either.deleted = {(statement, 0) for statement, _ in either.deleted}
            assert traced == expected, (name, row, changes.statements)


@pytest.mark.parametrize(
    ("seed", "properties", "is_partitioned"),
    [(7, {}, False), (8, VECTORS | TRACKING, True), (9, FEED, True)],
)
def test_the_log_and_the_rows_of_a_table_are_those_without_lineage(
    lake: TableJobs, seed: int, properties: dict[str, str], is_partitioned: bool
) -> None:
    changes = Changes.of(seed, 8)
    results = []
    for is_followed in (False, True):
        changes.put(lake.folder, properties=properties, is_partitioned=is_partitioned)
        (lake.run if is_followed else lake.printed_by)("delta_changes.py")
        rows = [columns for _, _, columns in out_rows(lake.folder / "out")]
        results.append((rows, lasting_log(lake.folder / "table")))
        shutil.rmtree(lake.folder / "table")
        shutil.rmtree(lake.folder / "out")
    (plain_rows, plain_log), (rows, log) = results
    assert rows == plain_rows
    assert log == plain_log


def put_statements(lake: TableJobs, *texts: str) -> None:
    """A job of these statements over a table of 12 rows, of which each third has the same `p`."""
    changes = Changes.of(0, 0)
    changes.files = {
        "first": [(key, key, f"n{key}", str(key % 3)) for key in range(12)],
        "second": [(key, key, f"n{key}", "1") for key in range(100, 103)],
    }
    changes.statements = list(texts)
    changes.put(lake.folder, properties={}, is_partitioned=True)


@pytest.mark.parametrize(
    ("statement", "deleted"),
    [
        ("INSERT OVERWRITE {table} SELECT * FROM second", frozenset[int]()),
        ("INSERT INTO {table} REPLACE WHERE p = '1' SELECT * FROM second", frozenset((1, 4, 7, 10))),
        ("INSERT INTO {table} REPLACE WHERE p = '1' AND v < 9 SELECT id, 0, name, p FROM second", {1, 4, 7}),
    ],
)
def test_rows_that_a_write_replaces_are_deleted_where_it_has_a_condition(
    lake: TableJobs, statement: str, deleted: set[int]
) -> None:
    put_statements(lake, statement)
    application_id = lake.run("delta_changes.py")
    queries = open_queries(Settings())
    for row in range(12):
        ends = traced_ends(queries, application_id, lake.folder / "first.csv", row)
        assert ends.deleted == ({("DELETE", 1)} if row in deleted else set()), row


def test_an_application_deletes_files_that_another_one_wrote(lake: TableJobs) -> None:
    put_statements(lake)
    writer = lake.run("delta_changes.py")
    deleter = lake.run("delta_deleter.py", "p = '2'", "p = '2'", "p = '7'", "p = '0'")
    queries = open_queries(Settings())
    versions = {"2": 1, "0": 2}
    for row in range(12):
        ends = traced_ends(queries, writer, lake.folder / "first.csv", row)
        p = str(row % 3)
        assert ends.deleted == ({("DELETE", versions[p])} if p in versions else set())
    graph = queries.graph(deleter)
    assert [node.name for node in graph.nodes] == ["whole files", "DELETE: deleted rows"] * 2


def test_where_the_log_does_not_count_rows_a_trace_is_not_complete(lake: TableJobs) -> None:
    put_statements(lake)
    writer = lake.run("delta_changes.py", "spark.databricks.delta.stats.collect=false")
    lake.run("delta_deleter.py", "p = '2'", is_complete=False)
    queries = open_queries(Settings())
    query = TraceQuery(direction="forward", path=str(lake.folder / "first.csv"), row=2)
    trace = queries.trace(writer, query)
    assert not trace.complete

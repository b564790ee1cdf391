"""Iceberg: each row of a table is traced to the rows of files that a plain Python program says it is of.

There is no Iceberg for the newest PySpark. So the jobs run in an environment of PySpark 4.1, which is made
in .cache the first time; the service is that of the tests.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lineage_service.cli.stores import open_queries
from lineage_service.conditions.filters import Where
from lineage_service.dataset_trace import ChosenTrace, chosen_trace
from lineage_service.errors import NothingMatchesError
from lineage_service.lineage import RowHistory
from lineage_service.queries import Queries, RowQuery, TraceQuery
from lineage_service.settings import Settings
from lineage_service.store.flow_store import open_store
from lineage_service.tracing.files.decompression import unlimited
from lineage_service.tracing.files.file_systems import FileSystems
from lineage_service.tracing.tables.iceberg_metadata import read_metadata
from lineage_service.tracing.tables.iceberg_version import iceberg_version
from lineage_service.tracing.tables.table_search import TableSearch, rows_of_file
from lineage_service.tracing.tables.table_version import VersionAsked
from spark_agent import contract
from tests.support.tables.table_jobs import TableJobs, iceberg_jobs
from tests.support.tables.traced_rows import Row, input_rows, out_rows, rows_behind

# The first waits for an installation.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(1800)]

#: Name -> how many rows the table has at first, how it is partitioned, its properties.
VARIANTS = {
    "plain": (60, "-"),
    "partitioned": (60, "p"),
    "partitioned, sorted": (60, "p", "write.spark.fanout.enabled=false"),
    "buckets, not distributed, row numbers": (
        60,
        "bucket(4, id), truncate(3, name)",
        "write.distribution-mode=none",
        "format-version=3",
    ),
    "full files, by turns": (9_000, "p", "write.target-file-size-bytes=2000"),
}
Input = tuple[int, str, int, str]
"""id, name, v, p."""


@pytest.fixture
def lake(tmp_path: Path, kafka: Any, jar: Path, monkeypatch: pytest.MonkeyPatch) -> TableJobs:
    return iceberg_jobs(tmp_path, kafka, monkeypatch.setenv)


def put(folder: Path, count: int) -> dict[str, list[Input]]:
    """The inputs: file -> its rows."""
    files = {
        "old.csv": [(number, f"old{number}", number, str(number % 3)) for number in range(count)],
        "more.csv": [
            (number, f"more{number}", number - count - 3, str(number % 3))
            for number in range(count, count + 20)
        ],
        "part.csv": [(number, f"part{number}", number, "1") for number in range(50_000, 50_007)],
        "updates.csv": [
            (number, f"new{number}", -1 if number % 5 == 0 else number, str(number % 3))
            for number in range(count - 10, count + 40)
        ],
    }
    for name, rows in files.items():
        (folder / name).write_text("".join(f"{','.join(map(str, row))}\n" for row in rows))
    return files


def written(files: dict[str, list[Input]], partitions: str) -> dict[int, tuple[Input, Row]]:
    """id -> (row, the row of an input that it is), by the statements of iceberg_writes.py over lists."""
    table = {row[0]: (row, ("old.csv", at)) for at, row in enumerate(files["old.csv"])}
    table |= {row[0]: (row, ("more.csv", at)) for at, row in enumerate(files["more.csv"]) if row[2] >= 0}
    table |= {
        row[0] + 10000: ((row[0] + 10000, *row[1:]), ("updates.csv", at))
        for at, row in enumerate(files["updates.csv"])
        if row[0] % 4 == 0
    }
    if partitions == "p":
        table = {key: row for key, row in table.items() if row[0][3] != "1"}
        table |= {row[0]: (row, ("part.csv", at)) for at, row in enumerate(files["part.csv"])}
    return table


def expect_traces(
    application_id: str, folder: Path, oracle: dict[int, tuple[Input, Row]], step: int = 1
) -> None:
    """Each row of an output is the one that the oracle has, and is traced to that row."""
    outputs = out_rows(folder)
    rows = {int(columns[0]): tuple(columns) for _, _, columns in outputs}
    assert rows == {key: tuple(map(str, row)) for key, (row, _) in oracle.items()}
    queries = open_queries(Settings())
    traced = {
        int(columns[0]): rows_behind(queries, application_id, path, row)
        for path, row, columns in outputs[::step]
    }
    assert traced == {key: {oracle[key][1]} for key in traced}


@pytest.mark.parametrize("variant", VARIANTS)
def test_rows_are_followed_from_who_wrote_a_table_to_who_reads_it(lake: TableJobs, variant: str) -> None:
    count, partitions, *properties = VARIANTS[variant]
    files = put(lake.folder, count)
    application_id = lake.run("iceberg_writes.py", partitions, *properties)
    oracle = written(files, partitions)
    step = count // 60
    out = {key: row for key, row in oracle.items() if key >= 5}
    expect_traces(application_id, lake.folder / "out", out, step)
    graph = open_queries(Settings()).graph(application_id)
    sinks = [
        (node.name, node.description)
        for node in graph.nodes
        if node.kind == "sink" and node.dataset is not None and node.dataset.format == "iceberg"
    ]
    names = ["sql", "append", "sql", *(["overwritePartitions"] if partitions == "p" else [])]
    assert sinks == [
        *((name, "ice.db.t") for name in names),
        ("sql", "ice.db.copy"),
        ("sql", "ice.db.copy"),
    ]

    reader = lake.run("iceberg_reader.py")
    old = {row[0]: (row, ("old.csv", at)) for at, row in enumerate(files["old.csv"])}
    expect_traces(reader, lake.folder / "of_first", {key: old[key] for key in old if key < 40})
    expect_traces(reader, lake.folder / "of_branch", {key: old[key] for key in old if key >= 40}, step)
    copied = {key: row for key, row in oracle.items() if key % 3 == 0 and row[0][2] > 3}
    expect_traces(reader, lake.folder / "of_copy", copied, step)


#: Name -> arguments of iceberg_changes.py.
CHANGES = {
    "copy on write": ("copy-on-write", "2", "-"),
    "copy on write, partitioned, row numbers": ("copy-on-write", "3", "p"),
    "merge on read": ("merge-on-read", "2", "p"),
    "merge on read, deletion vectors": ("merge-on-read", "3", "bucket(3, id)"),
}


def changed(files: dict[str, list[Input]]) -> dict[int, tuple[Input, set[Row]]]:
    """id -> (row, the rows of inputs that it is of), by the statements of iceberg_changes.py over lists."""
    table = {row[0]: (row, {("old.csv", at)}) for at, row in enumerate(files["old.csv"])}
    for key, ((_, name, v, p), of) in table.items():
        if key % 10 == 3:
            table[key] = (key, name, v + 1000, p), of
    table = {key: row for key, row in table.items() if key % 10 != 7}
    for at, (key, name, v, p) in enumerate(files["updates.csv"]):
        if key in table and v < 0:
            del table[key]
        elif key in table and v % 2 == 0:
            (*_, old_p), of = table[key]
            table[key] = (key, name, v, old_p), of | {("updates.csv", at)}
        elif key not in table and v >= 0:
            table[key] = (key, name, v, p), {("updates.csv", at)}
    matched = {row[0] + 2 for row in files["updates.csv"]}
    for key, ((_, name, _, p), of) in list(table.items()):
        if key not in matched and key % 10 == 4:
            table[key] = (key, name, -4, p), of
        elif key not in matched and key % 10 == 5:
            del table[key]
    return table


@pytest.mark.parametrize("variant", CHANGES)
def test_each_row_is_traced_through_the_statements_that_changed_it(lake: TableJobs, variant: str) -> None:
    files = put(lake.folder, 60)
    application_id = lake.run("iceberg_changes.py", *CHANGES[variant])
    oracle, table = changed(files), str(lake.folder / "warehouse" / "db" / "t")
    outputs = out_rows(lake.folder / "out")
    rows = {int(columns[0]): tuple(columns) for _, _, columns in outputs}
    assert rows == {key: tuple(map(str, row)) for key, (row, _) in oracle.items()}
    queries = open_queries(Settings())
    traced = {
        int(columns[0]): rows_behind(queries, application_id, path, row) for path, row, columns in outputs
    }
    assert traced == {key: of for key, (_, of) in oracle.items()}
    assert {key: rows_behind_table(queries, key) for key in (3, 30, 52, 62, 84)} == {
        key: oracle[key][1] for key in (3, 30, 52, 62, 84)
    }
    with pytest.raises(NothingMatchesError, match="no row fulfils id = 17 in snapshot"):
        rows_behind_table(queries, 17)
    first = min(read_metadata(FileSystems(), table).snapshots.values(), key=lambda snapshot: snapshot.time)
    for version, key, expected in (
        (None, 13, ["inserted", "changed"]),
        (first.id, 17, ["inserted", "deleted"]),
    ):
        history = queries.history(RowQuery(dataset="ice.db.t", where=f"id = {key}", version=version))
        assert isinstance(history, RowHistory)
        assert history.complete, history
        assert history.by == ("row_id" if CHANGES[variant][1] == "3" else "links")
        changes = [one.change for one in history.versions if one.change != "rewritten"]
        assert changes == expected
        assert {one.application_id for one in history.versions if one.change != "deleted"} == {application_id}
        assert history.versions[0].version_name == str(first.id)
    names = [
        node.name
        for node in queries.graph(application_id).nodes
        if node.kind == "sink" and node.dataset is not None and node.dataset.format == "iceberg"
    ]
    is_copied = CHANGES[variant][0] == "copy-on-write"
    merge = ["MERGE: deleted rows", "MERGE"]
    of_delete = ["DELETE: deleted rows", "DELETE"] if is_copied else ["DELETE"]
    expected = ["sql", "UPDATE", *of_delete, *merge, *merge]
    assert names[: len(expected)] == expected
    assert set(names[len(expected) :]) == {"rewrite_data_files"}


def rows_behind_table(queries: Queries, key: int) -> set[Row]:
    """The rows of inputs that a row of ice.db.t is of, by what it says."""
    rows = RowQuery(dataset="ice.db.t", where=f"id = {key}")
    start = chosen_trace(queries, rows, TraceQuery(direction="backward", limit=1000), is_of_all=False)
    assert isinstance(start, ChosenTrace), start
    trace = queries.trace(start.application_id, start.query)
    assert trace.complete, trace
    return input_rows(trace)


def test_statements_make_of_a_table_what_they_make_without_lineage(lake: TableJobs) -> None:
    put(lake.folder, 60)
    printed = lake.printed_by("iceberg_plans.py").splitlines()
    assert len(printed) == 2 * 6 + 7
    (lake.folder / "warehouse").rename(lake.folder / "before")
    with_lineage = lake.printed_by("iceberg_plans.py", is_followed=True).splitlines()
    for line, line_before in zip(with_lineage, printed, strict=True):
        assert line == line_before


def test_rows_are_followed_however_a_table_is_written(lake: TableJobs) -> None:
    """A row ends at the row of the input with its id; ids from 70 on are not of the input."""
    (lake.folder / "rows.csv").write_text("".join(f"{row},{1 + row % 2}\n" for row in range(8)))
    application_id = lake.run("iceberg_ways.py")
    queries = open_queries(Settings())
    folders = sorted((lake.folder / "out").iterdir())
    assert len(folders) == 24
    for folder in folders:
        for path, row, (number, _) in out_rows(folder):
            behind = rows_behind(queries, application_id, path, row)
            wanted = {("rows.csv", int(number))} if int(number) < 70 else set()
            assert behind == wanted, (folder.name, number)


NO_ROWS = "it writes no rows"
#: Statement -> what it leaves of the rows that were there before; None: nothing.
REPLACING = {
    "CREATE TABLE ice.db.s USING iceberg PARTITIONED BY (p) AS SELECT * FROM old": None,
    "INSERT INTO ice.db.s SELECT * FROM more": "appends",
    "INSERT OVERWRITE ice.db.s PARTITION (p = '1') SELECT id, name, v FROM part": "replaces_part",
    "INSERT OVERWRITE ice.db.s SELECT * FROM old": None,
    "UPDATE ice.db.s SET v = 7 WHERE id < 9": "replaces_part",
    "MERGE INTO ice.db.s t USING more u ON t.id = u.id WHEN NOT MATCHED THEN INSERT *": "appends",
    "MERGE INTO ice.db.s t USING part u ON t.id = u.id WHEN MATCHED THEN UPDATE SET * "
    "WHEN NOT MATCHED THEN INSERT *": "replaces_part",
    "ALTER TABLE ice.db.s CREATE BRANCH b": NO_ROWS,
    "INSERT INTO ice.db.s.branch_b SELECT * FROM more": "appends",
    "INSERT INTO ice.db.s.branch_b SELECT * FROM part": "appends",
    "ALTER TABLE ice.db.s SET TBLPROPERTIES ('write.wap.enabled' = 'true')": NO_ROWS,
    "SET spark.wap.id=later": NO_ROWS,
    "INSERT INTO ice.db.s SELECT id + 1, name, v, p FROM more": "appends",
    "RESET spark.wap.id": NO_ROWS,
    "CREATE OR REPLACE TABLE ice.db.s USING iceberg AS SELECT * FROM more": None,
}
CONFLICT = (
    "MERGE INTO ice.db.s t USING (SELECT id % 2 AS id, name FROM old WHERE id < 4) u ON t.id = u.id "
    "WHEN MATCHED THEN UPDATE SET name = u.name WHEN NOT MATCHED THEN INSERT (id) VALUES (u.id)"
)


def test_a_sink_says_what_stays_of_a_table_and_a_merge_may_fail(lake: TableJobs) -> None:
    put(lake.folder, 60)
    every = list(REPLACING)
    statements = [*every[:4], CONFLICT, *every[4:]]
    (lake.folder / "statements.json").write_text(json.dumps(statements))
    lake.printed_by("statements.py")
    without = json.loads((lake.folder / "outcomes.json").read_text())
    assert "MERGE_CARDINALITY_VIOLATION" in without[4]
    assert without[:4] + without[5:] == ["done"] * len(every)
    shutil.rmtree(lake.folder / "warehouse")

    application_id = lake.run("statements.py")
    assert json.loads((lake.folder / "outcomes.json").read_text()) == without
    events = open_store(Settings()).events(application_id)
    of_nodes = {
        event["node"]: event["dataset"]
        for event in events
        if event["type"] == contract.NODE_REGISTERED and event["kind"] == "sink"
    }
    failed = [
        event["node"]
        for event in events
        if event["type"] == contract.ACTION_ENDED and event["state"] == contract.ACTION_FAILED
    ]
    assert len(failed) == 1
    said = [
        next((name for name in ("appends", "replaces_part") if dataset.get(name)), None)
        for node, dataset in sorted(of_nodes.items())
        if node not in failed
    ]
    assert said == [said for said in REPLACING.values() if said != NO_ROWS]
    assert all(dataset.get("version") for node, dataset in of_nodes.items() if node not in failed)


def test_the_rows_of_each_snapshot_are_those_that_spark_reads(lake: TableJobs) -> None:
    read = json.loads(lake.printed_by("iceberg_snapshots.py"))
    assert read.keys() == {"copied", "old", "positions", "wide", "vectors"}
    for name, expected in read.items():
        table = str(lake.folder / "warehouse" / "db" / name)
        of_asked = {VersionAsked(): expected["newest"]}
        of_asked |= {VersionAsked(int(id)): rows for id, rows in expected["snapshots"].items()}
        of_asked |= {VersionAsked(at=int(at)): rows for at, rows in expected["times"].items()}
        of_asked |= {VersionAsked(ref): rows for ref, rows in expected["refs"].items()}
        assert len(of_asked) > 10
        for asked, rows in of_asked.items():
            assert rows_asked(table, asked) == rows, (name, asked)


def rows_asked(table: str, asked: VersionAsked) -> list[str]:
    """As JSON, in the order of the texts."""
    files = FileSystems()
    version = iceberg_version(files, table, unlimited, asked)
    with TableSearch(files, version, Where("id is not null")) as search:
        rows = [
            row
            for file, numbers in search.matches(unlimited)
            for row in rows_of_file(files, version, file, numbers.tolist(), unlimited).values()
        ]
        assert not search.warnings
    return sorted(json.dumps(row, sort_keys=True) for row in rows)

"""Delta Lake: each row of a table is traced to the rows of files that a plain Python program says it is of.

There is no Delta Lake for the newest PySpark. So the jobs run in environments of PySpark 4.1 and 3.5, which
are made in .cache the first time; the service is that of the tests.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lineage_service.cli.stores import open_queries
from lineage_service.dataset_trace import ChosenTrace, chosen_trace
from lineage_service.errors import NotFoundError, NothingMatchesError
from lineage_service.lineage import RowHistory
from lineage_service.queries import Queries, RowQuery, TraceQuery
from lineage_service.settings import Settings
from lineage_service.tracing.files.file_systems import FileSystems
from lineage_service.tracing.tables.delta_version import delta_version
from lineage_service.tracing.tables.table_version import VersionAsked
from tests.support.tables.delta_logs import lasting_log
from tests.support.tables.table_jobs import DELTA_LINES, TableJobs, delta_jobs
from tests.support.tables.traced_rows import Row, inputs_of, out_rows, rows_behind

# The first waits for an installation.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(1800)]
on_both_lines = pytest.mark.parametrize("lake", DELTA_LINES, indirect=True)

VARIANTS = {
    "plain": (),
    "partitioned": ("partitioned",),
    "deletion vectors": ("enableDeletionVectors=true",),
    "partitioned, deletion vectors, row tracking": (
        "partitioned",
        "enableDeletionVectors=true",
        "enableRowTracking=true",
    ),
    "partitioned, column mapping": ("partitioned", "columnMapping.mode=name"),
}


@pytest.fixture
def lake(
    request: pytest.FixtureRequest, tmp_path: Path, kafka: Any, jar: Path, monkeypatch: pytest.MonkeyPatch
) -> TableJobs:
    return delta_jobs(tmp_path, kafka, monkeypatch.setenv, getattr(request, "param", DELTA_LINES[0]))


def put(folder: Path) -> dict[str, list[tuple[int, str, int, str]]]:
    """The inputs: file -> its rows (id, name, v, p)."""
    files = {
        "old.csv": [(number, f"old{number}", number, str(number % 3)) for number in range(60)],
        "more.csv": [(number, f"more{number}", number - 63, str(number % 3)) for number in range(60, 80)],
        "updates.csv": [
            (number, f"new{number}", -1 if number % 5 == 0 else number, str(number % 3))
            for number in range(50, 100)
        ],
    }
    for name, rows in files.items():
        (folder / name).write_text("".join(f"{','.join(map(str, row))}\n" for row in rows))
    return files


Table = dict[int, tuple[str, int, set[Row]]]
"""id -> (name, v, rows of the inputs that it is of)."""


def expected(files: dict[str, list[tuple[int, str, int, str]]]) -> Table:
    """After the last statement."""
    *_, last = versions(files)
    return last


def versions(files: dict[str, list[tuple[int, str, int, str]]]) -> Iterator[Table]:
    """The table after each statement of the job, by the statements over lists."""
    table: Table = {}
    for row, (key, name, v, _) in enumerate(files["old.csv"]):
        table[key] = name, v, {("old.csv", row)}
    yield dict(table)
    for row, (key, name, v, _) in enumerate(files["more.csv"]):
        if v >= 0:
            table[key] = name, v, {("more.csv", row)}
    yield dict(table)
    for key, (name, v, of) in table.items():
        if key % 10 == 3:
            table[key] = name, v + 1000, of
    yield dict(table)
    table = {key: row for key, row in table.items() if key % 10 != 7}
    yield dict(table)
    for row, (key, name, v, _) in enumerate(files["updates.csv"]):
        if key in table and v < 0:
            del table[key]
        elif key in table:
            table[key] = name, v, table[key][2] | {("updates.csv", row)}
        elif v >= 0:
            table[key] = name, v, {("updates.csv", row)}
    yield dict(table)
    for row, (key, name, v, _) in enumerate(files["updates.csv"]):
        if key % 4 == 0:
            table[key + 10000] = name, v, {("updates.csv", row)}
    yield dict(table)


@on_both_lines
@pytest.mark.parametrize("variant", VARIANTS)
def test_each_row_of_a_table_is_traced_through_the_statements_that_made_it(
    lake: TableJobs, variant: str
) -> None:
    files = put(lake.folder)
    application_id = lake.run("delta_statements.py", *VARIANTS[variant])
    oracle = expected(files)
    outputs = out_rows(lake.folder / "out")
    assert {int(columns[0]): (columns[1], int(columns[2])) for _, _, columns in outputs} == {
        key: (name, v) for key, (name, v, _) in oracle.items()
    }
    queries = open_queries(Settings())
    traced = {
        int(columns[0]): rows_behind(queries, application_id, path, row) for path, row, columns in outputs
    }
    assert traced == {key: of for key, (_, _, of) in oracle.items()}
    graph = queries.graph(application_id)
    written = [node.name for node in graph.nodes if node.dataset and node.dataset.format == "delta"]
    statements = [name for name in written if name != "Scan delta" and not name.endswith(": deleted rows")]
    expected_names = ["save", "save", "UPDATE", "DELETE", "MERGE", "sql", "OPTIMIZE"]
    assert list(dict.fromkeys(statements)) == list(dict.fromkeys(expected_names))
    assert not any("_delta_log" in node.description for node in graph.nodes)
    assert_rows_of_versions(queries, str(lake.folder / "table"), list(versions(files)))
    assert_histories(queries, str(lake.folder / "table"), list(versions(files)))


def assert_rows_of_versions(queries: Queries, table: str, states: list[Table]) -> None:
    """In each version a row is found by its id, with its values, and traced; one that is not there is not."""
    ids = [*range(0, 100, 7), *(23, 47, 50, 55, 10_056)]
    for version, state in enumerate(states):
        for key in ids:
            query = RowQuery(dataset=table, where=f"id = {key}", version=version)
            if key not in state:
                with pytest.raises(NothingMatchesError):
                    queries.rows(query)
                continue
            start = chosen_trace(queries, query, TraceQuery(direction="backward"), is_of_all=False)
            assert isinstance(start, ChosenTrace), (version, key, start)
            [choice] = queries.rows(query).choices
            assert choice.columns is not None
            name, v, rows = state[key]
            assert (choice.columns["name"], choice.columns["v"]) == (name, v), (version, key)
            assert inputs_of(queries, start.application_id, start.query) == rows, (version, key)
    everything = queries.rows(RowQuery(dataset=table, where="id >= 0", limit=1))
    assert everything.total == len(states[-1])


def assert_histories(queries: Queries, table: str, states: list[Table]) -> None:
    """A row is inserted, changed and deleted in the versions in which its values say so."""
    for key in (*range(0, 100, 7), 23, 47, 50, 55, 10_056):
        values = [state[key][:2] if key in state else None for state in states]
        if not any(values):
            continue
        expected = [
            (version, "deleted" if value is None else "inserted" if before is None else "changed")
            for version, (before, value) in enumerate(pairwise([None, *values]))
            if before != value
        ]
        ends = [version for version, change in expected if change == "deleted"]
        if ends:  # what has its id later is another row
            expected = [one for one in expected if one[0] <= ends[0]]
        history = queries.history(RowQuery(dataset=table, where=f"id = {key}", version=expected[0][0]))
        assert isinstance(history, RowHistory)
        told = [(version.version, version.change) for version in history.versions]
        assert [one for one in told if one[1] != "rewritten"] == expected, (key, history)
        assert history.complete, history


def test_rows_are_followed_however_a_table_is_written(lake: TableJobs) -> None:
    """A row ends at the row of the input with its id; ids from 70 on are not of the input."""
    (lake.folder / "rows.csv").write_text("".join(f"{row},{1 + row % 2}\n" for row in range(8)))
    application_id = lake.run("delta_writes.py")
    queries = open_queries(Settings())
    folders = sorted((lake.folder / "out").iterdir())
    assert len(folders) == 22
    for folder in folders:
        for path, row, (number, _) in out_rows(folder):
            behind = rows_behind(queries, application_id, path, row)
            wanted = {("rows.csv", int(number))} if int(number) < 70 else set()
            assert {of_file for of_file in behind if of_file[0] == "rows.csv"} == wanted, (
                folder.name,
                number,
            )


def test_an_old_version_that_another_job_reads_is_linked_with_the_job_that_wrote_it(lake: TableJobs) -> None:
    files = put(lake.folder)
    lake.run("delta_statements.py", *VARIANTS["partitioned"])
    reader = lake.run("delta_reader.py", "1")
    oracle = {key: (name, row) for row, (key, name, _, _) in enumerate(files["old.csv"]) if key < 40}
    outputs = out_rows(lake.folder / "of_version_1")
    assert {int(columns[0]): columns[1] for _, _, columns in outputs} == {
        key: name for key, (name, _) in oracle.items()
    }
    queries = open_queries(Settings())
    for path, row, columns in outputs:
        assert rows_behind(queries, reader, path, row) == {("old.csv", oracle[int(columns[0])][1])}


def test_a_version_of_a_time_is_the_one_that_spark_reads(lake: TableJobs) -> None:
    read = json.loads(lake.printed_by("delta_times.py"))
    assert read.keys() == {"plain", "kept", "later", "cleaned"}
    files = FileSystems()
    for name, of_times in read.items():
        table = str(lake.folder / name)
        assert {"too early", "too late"} <= set(of_times.values()), name
        for time, expected in of_times.items():
            if expected == "too early":
                with pytest.raises(NotFoundError, match="no version until then: the first is of"):
                    delta_version(files, table, VersionAsked(at=int(time)))
                continue
            version = delta_version(files, table, VersionAsked(at=int(time)))
            if expected == "too late":  # here, it is the newest
                assert version.number == delta_version(files, table).number
            else:
                assert sum(file.rows or 0 for file in version.files) == expected, (name, time)


def test_a_merge_that_fails_is_the_users_own_error(lake: TableJobs) -> None:
    put(lake.folder)
    table = f"delta.`{lake.folder}/table`"
    statements = [
        f"CREATE TABLE {table} USING delta AS SELECT * FROM old",
        f"MERGE INTO {table} t USING (SELECT id % 2 AS id, name FROM old WHERE id < 4) u ON t.id = u.id "
        "WHEN MATCHED THEN UPDATE SET name = u.name WHEN NOT MATCHED THEN INSERT (id) VALUES (u.id)",
        f"INSERT INTO {table} SELECT * FROM more",
    ]
    (lake.folder / "statements.json").write_text(json.dumps(statements))
    outcomes, logs = [], []
    for is_followed in (False, True):
        (lake.run if is_followed else lake.printed_by)("statements.py")
        outcomes.append(json.loads((lake.folder / "outcomes.json").read_text()))
        logs.append(lasting_log(lake.folder / "table"))
        shutil.rmtree(lake.folder / "table")
    assert outcomes[0] == outcomes[1]
    assert "MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE" in outcomes[0][1]
    assert outcomes[0][::2] == ["done", "done"]
    assert logs[0] == logs[1]
    assert len(logs[0]) == 2

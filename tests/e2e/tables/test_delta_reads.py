"""Conditions on tables of Delta Lake: Spark reads as little as without lineage, and each row is traced."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from lineage_service.cli.stores import open_queries
from lineage_service.queries import MissingQuery
from lineage_service.settings import Settings
from tests.support.tables.table_jobs import DELTA_LINES, TableJobs, delta_jobs
from tests.support.tables.traced_rows import out_rows, rows_behind

# The first waits for an installation.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(1800)]
on_both_lines = pytest.mark.parametrize("lake", DELTA_LINES, indirect=True)

SCRIPT = "delta_reads.py"
VARIANTS = {
    "plain": "",
    "partitioned": "partitioned",
    "copied": "deleted",
    "vectors": "deleted+enableDeletionVectors=true",
    "named": "partitioned+columnMapping.mode=name",
    "by_id": "deleted+columnMapping.mode=id",
    "all": "deleted+columnMapping.mode=name+enableDeletionVectors=true+enableRowTracking=true",
}
ROWS = [(number, f"name{number}", number * 7 % 1000, str(number % 3)) for number in range(1200)]
NAMES = [("0", "zero"), ("1", "one"), ("2", "none")]

Condition = Callable[[int, int, str], bool]
CONDITIONS: dict[str, Condition] = {
    "rows": lambda number, v, p: number > 600 and p != "2",
    "parts": lambda number, v, p: v >= 500 and p == "1",
    "joined": lambda number, v, p: v < 900 and p != "2",
    "places": lambda number, v, p: number < 50,
}
FILTERS = re.compile(r"(?:PushedFilters|PartitionFilters): \[.*?\]")


@pytest.fixture
def lake(
    request: pytest.FixtureRequest, tmp_path: Path, kafka: Any, jar: Path, monkeypatch: pytest.MonkeyPatch
) -> TableJobs:
    jobs = delta_jobs(tmp_path, kafka, monkeypatch.setenv, getattr(request, "param", DELTA_LINES[0]))
    for name, rows in (("rows.csv", ROWS), ("names.csv", NAMES)):
        (jobs.folder / name).write_text("".join(f"{','.join(map(str, row))}\n" for row in rows))
    return jobs


@on_both_lines
def test_each_row_is_traced_and_nothing_more_is_read(lake: TableJobs) -> None:
    lake.conf |= {"spark.eventLog.enabled": "true"}
    lake.conf |= dict.fromkeys(("spark.eventLog.rolling.enabled", "spark.eventLog.compress"), "false")
    # Of it Spark reads the small side once more with lineage (docs/dataframes.md).
    lake.conf["spark.sql.optimizer.dynamicPartitionPruning.enabled"] = "false"
    (without, with_lineage) = (lake.folder.parent / name for name in ("without", "with"))
    for folder in (without, with_lineage):
        folder.mkdir()
    words = [f"{variant}:{how}" for variant, how in VARIANTS.items()]
    lake.conf["spark.eventLog.dir"] = f"file:{without}"
    lake.printed_by(SCRIPT, *words)
    for entry in [*lake.folder.iterdir()]:
        if entry.is_dir():
            shutil.rmtree(entry)
    lake.conf["spark.eventLog.dir"] = f"file:{with_lineage}"
    application_id = lake.run(SCRIPT, *words)
    assert work(with_lineage) == work(without)
    assert any("EqualTo(p,1)" in of_scan for of_scan in work(without)[1])
    queries = open_queries(Settings())
    for variant, how in VARIANTS.items():
        for name, is_chosen in CONDITIONS.items():
            for is_vectorized in ("True", "False"):
                outputs = out_rows(lake.folder / "out" / variant / f"{name}-{is_vectorized}")
                chosen = [
                    number
                    for number, _, v, p in ROWS
                    if is_chosen(number, v, p) and not ("deleted" in how and number % 10 == 7)
                ]
                assert sorted(int(columns[0]) for _, _, columns in outputs) == chosen
                for path, row, columns in outputs[:: max(1, len(outputs) // 40)]:
                    number = int(columns[0])
                    of = {("rows.csv", number)}
                    if name == "joined":
                        of.add(("names.csv", number % 3))
                    assert rows_behind(queries, application_id, path, row) == of, (variant, name, number)


def work(folder: Path) -> tuple[list[int], list[str]]:
    """(numbers of tasks of all jobs, filters of all scans) of an application, by its event log."""
    [log] = folder.iterdir()
    jobs: list[int] = []
    filters: list[str] = []
    for line in log.read_text().splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerJobStart":
            jobs.append(sum(stage["Number of Tasks"] for stage in event["Stage Infos"]))
        elif event["Event"].endswith("SparkListenerSQLExecutionStart"):
            filters += FILTERS.findall(re.sub(r"#\d+L?", "", event["physicalPlanDescription"]))
    return sorted(jobs), sorted(filters)


def test_why_a_row_of_a_table_is_missing(lake: TableJobs) -> None:
    """A condition left it out, or a deletion vector had deleted it: its file still has the row."""
    application_id = lake.run(SCRIPT, "plain:", "vectors:deleted+enableDeletionVectors=true")
    queries = open_queries(Settings())
    for table, number, output, why in (
        ("plain", 30, "rows-True", "not id > 600, since id is 30"),
        ("plain", 57, "places-True", "filter: id IS NOT NULL AND (id < 50)"),
        ("vectors", 30, "parts-True", "not p = '1', since p is '0'"),
        ("vectors", 37, "rows-False", "no row of the table; version 1, which was read, does not have it"),
        ("vectors", 37, "places-True", "no row of the table; version 1, which was read, does not have it"),
    ):
        [row] = [
            row
            for row in queries.missing(application_id, row_of(lake.folder / table, number)).rows
            if any(one.description.endswith(f"/{output}") for one in row.outputs)
        ]
        assert row.exact, (number, row)
        assert row.ended is not None, (number, row)
        assert row.ended.why.endswith(why), (number, row)
    shutil.rmtree(lake.folder / "vectors" / "_delta_log")
    missing = open_queries(Settings()).missing(application_id, row_of(lake.folder / "vectors", 37))
    assert not any(row.exact for row in missing.rows)
    assert all(
        "whether the version that was read, 1, has the row is not known" in row.reason for row in missing.rows
    )


def row_of(table: Path, number: int) -> MissingQuery:
    """The row of a file of the first version with this id."""
    for path in sorted(table.glob("part-*.parquet")):
        ids = pq.read_table(path).column("id").to_pylist()
        if number in ids:
            return MissingQuery(path=str(path), row=ids.index(number))
    raise AssertionError(f"no file has the id {number}")

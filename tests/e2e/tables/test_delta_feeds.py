"""Change data feeds of Delta Lake: each change is traced to the row of a file that it is, and to its sources.

The files are read by pyarrow. What the feed has, and of which rows of inputs, is said by a plain Python
program that runs the same statements over lists (tests/support/tables/delta_oracle.py).
"""

from __future__ import annotations

import shutil
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from lineage_service.cli.stores import open_queries
from lineage_service.lineage import Trace
from lineage_service.queries import TraceQuery
from lineage_service.settings import Settings
from tests.support.tables.delta_oracle import Changes
from tests.support.tables.table_jobs import TableJobs, delta_jobs
from tests.support.tables.traced_rows import Row, input_rows, out_rows

# The first waits for an installation.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(1800)]

FEED = {"enableChangeDataFeed": "true"}
VECTORS = {"enableDeletionVectors": "true"}
TRACKING = {"enableRowTracking": "true"}


Change = tuple[tuple[str, ...], frozenset[Row]]
"""A row of a feed as texts, its type behind it, and the rows of inputs that it is of."""


@pytest.fixture
def lake(tmp_path: Path, kafka: Any, jar: Path, monkeypatch: pytest.MonkeyPatch) -> TableJobs:
    return delta_jobs(tmp_path, kafka, monkeypatch.setenv)


@cache
def rows_of_file(path: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = parquet.ParquetFile(path).read().to_pylist()
    folders = dict(part.split("=") for part in Path(path).parts if part.count("=") == 1)
    return [folders | row for row in rows]


def rows_read(trace: Trace, application_id: str) -> list[dict[str, Any]]:
    """The rows of files of the table that an application has read."""
    return [
        rows_of_file(record.source.path)[record.source.row]
        for node in trace.nodes
        for record in node.records
        if node.application_id == application_id and node.name == "Scan delta"
        if record.source is not None and record.source.row is not None
    ]


@pytest.mark.parametrize(
    ("seed", "properties", "is_partitioned"),
    [(1, {}, False), (12, VECTORS, False), (16, VECTORS | TRACKING, True)],
)
def test_each_change_is_traced_to_the_row_of_a_file(
    lake: TableJobs, seed: int, properties: dict[str, str], is_partitioned: bool
) -> None:
    changes = Changes.of(seed, 6, are_files_removed=seed > 10)
    changes.put(lake.folder, properties=FEED | properties, is_partitioned=is_partitioned)
    lake.run("delta_changes.py")
    application_id = lake.run("delta_feed_reader.py")
    queries, traced = open_queries(Settings()), Counter[Change]()
    folders = sorted(folder.name for folder in (lake.folder / "feed").iterdir())
    assert folders == ["chosen", "first_version", "joined", "of_sql", "whole"]
    for name in folders:
        outputs = out_rows(lake.folder / "feed" / name)
        assert outputs or name == "joined"
        for path, row, columns in outputs if name == "whole" else outputs[:8]:
            query = TraceQuery(direction="backward", path=str(path), row=row, limit=1000)
            trace = queries.trace(application_id, query)
            assert trace.complete, trace
            assert trace.exact, trace
            [read, *others] = rows_read(trace, application_id)
            assert all(str(other["id"]) == columns[0] for other in others), (name, columns, others)
            assert bool(others) == (name == "joined"), (name, columns)
            rows = [read, *others] if others else [read]
            texts = [[str(one[column]) for column in ("id", "v", "name", "p")] for one in rows]
            assert columns[:4] in texts, (name, columns, rows)
            if name == "whole":
                traced[tuple(columns), frozenset(input_rows(trace))] += 1
    feed = Counter[Change](
        ((*map(str, values), kind), frozenset(origins)) for kind, values, origins in changes.feed
    )
    assert traced == feed, changes.statements


def test_a_job_gets_the_same_feed_in_the_same_order_as_without_lineage(lake: TableJobs) -> None:
    changes = Changes.of(16, 3, are_files_removed=True)
    changes.put(lake.folder, properties=FEED | VECTORS, is_partitioned=True)
    lake.printed_by("delta_changes.py")
    feeds = []
    for is_followed in (False, True):
        (lake.run if is_followed else lake.printed_by)("delta_feed_reader.py")
        folders = sorted((lake.folder / "feed").iterdir())
        feeds.append({folder.name: [row for _, _, row in out_rows(folder)] for folder in folders})
        shutil.rmtree(lake.folder / "feed")
    assert feeds[0] == feeds[1]
    assert len(feeds[0]["whole"]) > 60

"""Random MERGEs, UPDATEs and DELETEs of Delta Lake: where each row came from, and where it went.

A plain Python program runs the same statements over lists (tests/support/tables/delta_oracle.py).
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from lineage_service.cli.stores import open_queries
from lineage_service.queries import Queries, TraceQuery
from lineage_service.settings import Settings
from tests.support.tables.delta_oracle import Changes, Origin
from tests.support.tables.lake import Lake, new_lake, out_rows, rows_behind

# The first waits for an installation.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(1800)]

VECTORS = {"delta.enableDeletionVectors": "true"}
TRACKING = {"delta.enableRowTracking": "true"}
_DELETED = re.compile(r"these rows were deleted: version (\d+) of .* is without them")


@pytest.fixture
def lake(tmp_path: Path, kafka: Any, jar: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    return new_lake(tmp_path, kafka, monkeypatch.setenv)


def put(lake: Lake, changes: Changes, properties: dict[str, str], *, is_partitioned: bool) -> None:
    for name, rows in changes.files.items():
        text = "".join(f"{','.join(map(str, row))}\n" for row in rows)
        (lake.folder / f"{name}.csv").write_text(text)
    job = {"properties": properties, "is_partitioned": is_partitioned, "statements": changes.statements}
    (lake.folder / "job.json").write_text(json.dumps(job))


def went_to(
    queries: Queries, application_id: str, path: Path, row: int
) -> tuple[set[int], set[tuple[str, int]]]:
    """Of a row of an input: ids of the rows in the last output, and (statement, version) that deleted it."""
    trace = queries.trace(
        application_id, TraceQuery(direction="forward", path=str(path), row=row, limit=1000)
    )
    assert trace.complete, trace
    assert trace.exact, trace
    rows, deleted = set(), set()
    for node in trace.nodes:
        if node.name.endswith("deleted rows") or node.name == "DELETE":
            match = _DELETED.fullmatch(node.reason)
            if match is not None and node.total:
                deleted.add((node.name.partition(":")[0], int(match[1])))
        for record in node.records if node.kind == "sink" else ():
            if record.source is not None and record.source.path.endswith(".csv"):
                assert record.source.text is not None
                rows.add(int(record.source.text.split(",")[0]))
    return rows, deleted


@pytest.mark.parametrize(
    ("seed", "properties", "is_partitioned"),
    [
        (1, {}, False),
        (2, VECTORS, False),
        (3, {}, True),
        (4, VECTORS | TRACKING, True),
        (5, TRACKING, False),
        (6, VECTORS, False),
    ],
)
def test_each_row_is_traced_through_random_changes(
    lake: Lake, seed: int, properties: dict[str, str], is_partitioned: bool
) -> None:
    changes = Changes.of(seed, 12)
    put(lake, changes, properties, is_partitioned=is_partitioned)
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
    ends: dict[Origin, tuple[set[int], set[tuple[str, int]]]] = defaultdict(lambda: (set(), set()))
    for key, table_row in changes.table.items():
        for origin in table_row.origins:
            ends[origin][0].add(key)
    for version, statement, origins in changes.deleted:
        for origin in origins:
            ends[origin][1].add((statement, version))
    for name, rows in changes.files.items():
        for row in range(len(rows)):
            kept, deleted = went_to(queries, application_id, lake.folder / f"{name}.csv", row)
            expected_kept, expected_deleted = ends[f"{name}.csv", row]
            assert kept == expected_kept, (name, row, changes.statements)
            if is_versioned:
                assert deleted == expected_deleted, (name, row, changes.statements)
            else:
                assert {one for one, _ in deleted} == {one for one, _ in expected_deleted}

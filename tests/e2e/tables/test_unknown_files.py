"""Where it is not known which row is in which file of a table, each answer that this concerns says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lineage_service.cli.stores import open_queries
from lineage_service.lineage import Trace
from lineage_service.queries import TraceQuery
from lineage_service.settings import Settings
from tests.support.tables.table_jobs import TableJobs, delta_jobs
from tests.support.tables.traced_rows import out_rows

# The first waits for an installation.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(1800)]

SCRIPT = "delta_unknown_files.py"
ROWS = [(number, number % 3) for number in range(60)]
UNKNOWN = "which of these rows are in which file is not known"


@pytest.fixture
def lake(tmp_path: Path, kafka: Any, jar: Path, monkeypatch: pytest.MonkeyPatch) -> TableJobs:
    jobs = delta_jobs(tmp_path, kafka, monkeypatch.setenv)
    (jobs.folder / "rows.csv").write_text("".join(f"{number},{part}\n" for number, part in ROWS))
    return jobs


def reasons(trace: Trace) -> dict[str, str]:
    return {node.name: node.reason for node in trace.nodes if node.reason}


@pytest.mark.parametrize("way", ["option", "setting", "property"])
def test_rows_that_go_to_other_tasks_are_followed_to_no_file(lake: TableJobs, way: str) -> None:
    writer, reader = lake.run(SCRIPT, way), lake.run(SCRIPT, "read")
    queries = open_queries(Settings())
    forward = queries.trace(
        writer, TraceQuery(direction="forward", path=str(lake.folder / "rows.csv"), row=7)
    )
    assert not forward.complete
    assert list(reasons(forward).values()) == [UNKNOWN]
    for path, row, _ in out_rows(lake.folder / "out" / "table")[::20]:
        trace = queries.trace(reader, TraceQuery(direction="backward", path=str(path), row=row))
        assert not trace.complete
        assert reasons(trace)["Scan delta"].startswith("operation ")
        assert f" of {writer} may have written these records" in reasons(trace)["Scan delta"]


def test_changes_that_two_queries_of_a_transaction_write_are_of_no_file(lake: TableJobs) -> None:
    writer, reader = lake.run(SCRIPT, "changes"), lake.run(SCRIPT, "read")
    queries = open_queries(Settings())
    of_changes = 0
    for path, row, columns in [
        *out_rows(lake.folder / "out" / "table")[::10],
        *out_rows(lake.folder / "out" / "feed")[::3],
    ]:
        trace = queries.trace(reader, TraceQuery(direction="backward", path=str(path), row=row))
        read = {
            record.source.path
            for node in trace.nodes
            for record in node.records
            if node.name == "Scan delta" and record.source is not None
        }
        is_change = any("/_change_data/" in file for file in read)
        assert trace.complete is not is_change, columns
        assert (f" of {writer} may have" in reasons(trace).get("Scan delta", "")) is is_change
        of_changes += is_change
    assert of_changes

"""Queries that Delta Lake answers from the log of a table: no row was read, and each answer says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lineage_service.cli import main
from lineage_service.cli.stores import open_queries
from lineage_service.queries import TraceQuery
from lineage_service.settings import Settings
from tests.support.tables.table_jobs import DELTA_LINES, TableJobs, delta_jobs
from tests.support.tables.traced_rows import input_rows, out_rows

# The first waits for an installation.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(1800)]
on_both_lines = pytest.mark.parametrize("lake", DELTA_LINES, indirect=True)

SCRIPT = "delta_counts.py"
ROWS = [(number, number % 3) for number in range(30)]
ANSWERED = "computed of what the table says of its files: no row of it was read"
PERHAPS = (
    "a list of the driver, rows in the query's text, or what a Delta table says of its files: it is not "
    "known which"
)
ANSWERS = {
    "count": "30",
    "bounds": "0,29",
    "subquery": "1,30",
    "listed": "7,a",
    "values": "2",
    "united": "50\n2",
    "halved": "A",
    "named": "4,30",
    "grouped": "1,10",
    "persisted": "30,0",
}
#: Of sources that are not exact, by their names.
SAID = {
    **{name: {"Scan delta": ANSWERED} for name in ("count", "bounds", "subquery", "named")},
    "persisted": {"LocalRelation": PERHAPS},  # what asked for the rows of a cache is not known
}
READ = {
    "subquery": {1},
    "united": {2},
    "halved": {3},
    "named": {4},
    "grouped": {number for number, part in ROWS if part == 1},
}


@pytest.fixture
def lake(
    request: pytest.FixtureRequest, tmp_path: Path, kafka: Any, jar: Path, monkeypatch: pytest.MonkeyPatch
) -> TableJobs:
    jobs = delta_jobs(tmp_path, kafka, monkeypatch.setenv, getattr(request, "param", DELTA_LINES[0]))
    (jobs.folder / "rows.csv").write_text("".join(f"{number},{part}\n" for number, part in ROWS))
    return jobs


@on_both_lines
def test_what_a_table_says_of_its_files_is_no_row_of_it(lake: TableJobs) -> None:
    lake.run(SCRIPT, "write")
    application_id = lake.run(SCRIPT)
    queries = open_queries(Settings())
    for name, answer in ANSWERS.items():
        rows_of = out_rows(lake.folder / "out" / name)
        assert "\n".join(",".join(columns) for _, _, columns in rows_of) == answer, name
        read = set[int]()
        for path, row, _ in rows_of:
            trace = queries.trace(application_id, TraceQuery(direction="backward", path=str(path), row=row))
            answered = [node for node in trace.nodes if node.kind == "source" and not node.exact]
            assert {node.name: node.reason for node in answered} == SAID.get(name, {}), name
            assert trace.exact is (not answered), name
            read |= {row for file, row in input_rows(trace) if file == "rows.csv"}
        assert read == READ.get(name, set()), name
    graph = queries.graph(application_id)
    assert "count" in {node.name for node in graph.nodes}
    answered_by_table = [node for node in graph.nodes if node.reason == ANSWERED]
    assert len(answered_by_table) == 5
    for node in answered_by_table:
        assert node.dataset is not None
        assert (node.dataset.name, node.dataset.format) == (str(lake.folder / "table"), "delta")


def test_a_replay_says_that_a_table_was_counted_whole(
    lake: TableJobs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lake.run(SCRIPT, "write")
    application_id = lake.run(SCRIPT)
    [file] = (lake.folder / "table").glob("part-*.parquet")
    command = lake.command(SCRIPT, is_followed=True)
    monkeypatch.setenv("PYSPARK_PYTHON", str(lake.python))
    capsys.readouterr()
    assert main.main(["replay", application_id, "--without", f"{file}:2,{file}:5", "--", *command]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "~ 1,10 -> 1,8" in lines  # a group of rows that were read
    assert f"{lake.folder}/out/count: 0 changed, 0 gone, 0 new, 1 the same" in lines
    assert "Scan delta was read whole: the row set does not name it" in lines

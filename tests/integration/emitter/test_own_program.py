"""The example of docs/own_programs.md, as it stands there, against a real Kafka and a real flow store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lineage_service.errors import TimeBudgetError
from lineage_service.queries import TraceQuery
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query.service import LineageQueries

ROOT = Path(__file__).parents[3]
PROGRAM = str(ROOT / "examples" / "own_program.py")
ORDERS = "shop,state,amount\nNorth,paid,10\nSouth,paid,7\nNorth,open,90\nNorth,paid,5\nSouth,paid,seven\n"


Run = Callable[..., str]


@pytest.fixture
def run(kafka: Any, group: str, tmp_path: Path) -> Run:
    """A command of Python in the folder of the example, and what it prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LINEAGE_")}
    environment |= {
        "LINEAGE_KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
        "LINEAGE_HOME": str(tmp_path / "home"),
        "LINEAGE_CONSUMER_GROUP": group,
        "PYSPARK_PYTHON": sys.executable,
    }

    def run_command(*command: str) -> str:
        done = subprocess.run(
            [sys.executable, *command],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=360,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run_command


@pytest.fixture
def folder(run: Run, group: str, tmp_path: Path) -> Path:
    """Where the example ran and its lineage was consumed."""
    (tmp_path / "orders.csv").write_text(ORDERS)
    printed = run(PROGRAM, "orders.csv", "sums.csv", f"sums-{group}")
    assert printed == f"sums-{group}\n"
    run("-m", "lineage_service.cli.main", "consume", "--until-complete", f"sums-{group}")
    return tmp_path


@pytest.mark.thorough
def test_a_replay_of_a_sum_reads_its_rows_alone_and_touches_nothing(
    folder: Path, run: Run, group: str
) -> None:
    def replay(*words: str) -> dict[str, Any]:
        command = ("--", sys.executable, PROGRAM, "orders.csv", "sums.csv", f"sums-{group}")
        answer: dict[str, Any] = json.loads(
            run("-m", "lineage_service.cli.main", "replay", f"sums-{group}", *words, "--json", *command)
        )
        return answer

    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.glob("*.csv")}
    answer = replay("sums.csv:1")
    assert (answer["verdict"], answer["rows"], answer["of"]) == ("reproduced", 2, 6), answer
    assert answer["application"].startswith(f"sums-{group}.replay-1-1-")
    assert Path(answer["sandbox"], "out", "3-output", "sums.csv").read_text() == "North,15\n"
    answer = replay("--without", "orders.csv:5")
    [diff] = answer["diff"]
    assert [(row["was"], row["is"]) for row in diff["changed"]] == [("North,15", "North,10")]
    assert (diff["gone"], diff["new"], diff["same"]) == ([], [], 1)
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before} == before
    # The application that was replayed has got no more lineage.
    run("-m", "lineage_service.cli.main", "consume", "--until-complete", answer["application"])
    questions = LineageQueries(DeltaFlowStore(folder / "home" / "flows"), time_budget_s=60)
    assert questions.application(answer["application"]).replay_of == f"sums-{group}"
    assert questions.application(f"sums-{group}").complete


def test_a_sum_is_traced_to_its_rows(folder: Path, group: str) -> None:
    assert (folder / "sums.csv").read_text() == "North,15\nSouth,7\n"
    questions = LineageQueries(DeltaFlowStore(folder / "home" / "flows"), time_budget_s=60)
    application = f"sums-{group}"
    assert questions.application(application).complete

    query = TraceQuery(direction="backward", path=str(folder / "sums.csv"), row=0, values=True)
    backward = questions.trace(application, query)
    assert (backward.exact, backward.complete) == (True, True)
    assert [(node.name, node.kind, node.total) for node in backward.nodes] == [
        ("write", "sink", 1),
        ("sum", "operator", 1),
        ("filter", "operator", 2),
        ("read", "source", 2),
    ]
    sources = [record.source for record in backward.nodes[-1].records]
    assert [(row.row, row.text) for row in sources if row is not None] == [
        (1, "North,paid,10"),
        (4, "North,paid,5"),
    ]
    assert backward.nodes[1].records[0].value == '["North", 15]'

    hurried = LineageQueries(DeltaFlowStore(folder / "home" / "flows"), time_budget_s=1e-9)
    with pytest.raises(TimeBudgetError, match="longer than its 1e-09 s"):
        hurried.trace(application, query)

    open_order = TraceQuery(direction="forward", path=str(folder / "orders.csv"), row=3)
    assert [node.name for node in questions.trace(application, open_order).nodes] == ["read"]
    by_key = questions.trace(application, TraceQuery(direction="backward", node="2", key="South"))
    assert [record.source.text for record in by_key.nodes[-1].records if record.source] == ["South,paid,7"]

    (failure,) = questions.failures(application).failures
    assert (failure.error, failure.name, failure.exact) == ("ValueError", "filter", True)
    assert [(row.line, row.text) for row in failure.sources] == [(6, "South,paid,seven")]
    assert (failure.frame or "").startswith(PROGRAM)

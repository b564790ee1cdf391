"""The commands of the example for Airflow, run without Airflow; tests/e2e/schedulers runs both
examples whole.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.triggering.stored_jobs import StoredJobs

EXAMPLES = Path(__file__).parents[3] / "examples"
RUN_ID = "scheduled__2026-11-27T03:00:00+00:00"


def commands(path: Path) -> dict[str, str]:
    """Task -> its command, with the id of a run."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    texts = [
        {word.arg: word.value.value for word in call.keywords if isinstance(word.value, ast.Constant)}
        for call in calls
    ]
    return {
        said["task_id"]: said["bash_command"].replace("{{ run_id }}", RUN_ID)
        for said in texts
        if "bash_command" in said
    }


def bash(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "LINEAGE_HOME": str(folder)}
    return subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True)


def test_the_gate_of_the_airflow_example_is_understood(tmp_path: Path) -> None:
    asked = commands(EXAMPLES / "airflow_dag.py")
    store = DeltaFlowStore(tmp_path / "flows")
    done = bash(asked["worth_it"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"run  takings · wave {RUN_ID}" in done.stdout
    assert [wave.wave for wave in StoredJobs(store).waves("takings").waves] == [RUN_ID]
    assert "spark.lineage.job=takings" in asked["takings"]


@pytest.mark.parametrize("name", ["airflow_dag.py", "dagster_sensor.py"])
def test_the_examples_are_python(name: str) -> None:
    compile((EXAMPLES / name).read_text(), name, "exec")

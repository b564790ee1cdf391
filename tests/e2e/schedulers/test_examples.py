"""The examples for schedulers, as they are: a real Airflow and a real Dagster run a Spark job, or skip it.

Each scheduler has an environment of its own in .cache, made the first time.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from lineage_service.cli import main
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.triggering.certain.executions import executions_of
from lineage_service.triggering.stored_jobs import StoredJobs
from scripts.environment import ROOT, alone, make

# The first of each scheduler waits for an installation.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(1800)]

JOB = """
import shutil

from pyspark import SparkContext

context = SparkContext(appName="Takings of the day")
shutil.rmtree("out", ignore_errors=True)
open("application", "w").write(context.applicationId)
sales = context.textFile("in", 2).map(lambda line: line.split())
sales.map(lambda sale: (sale[0], int(sale[1]))).reduceByKey(lambda a, b: a + b).map(str).saveAsTextFile("out")
context.stop()
"""
#: Gives the sensor one tick, and runs what it requests.
TICK = """
import json
import os
from datetime import datetime, timedelta

import dagster

import dagster_sensor


class Later(datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.now(tz) + timedelta(hours=int(os.environ["HOURS"]))


dagster_sensor.datetime = Later
with dagster.DagsterInstance.get() as instance:
    with dagster.build_sensor_context(instance=instance) as context:
        tick = dagster_sensor.worth_it.evaluate_tick(context)
    for request in tick.run_requests:
        job = dagster_sensor.takings_job
        assert job.execute_in_process(run_config=request.run_config, instance=instance).success
print(json.dumps({
    "requested": [[request.run_key, request.tags["why"]] for request in tick.run_requests],
    "skipped": tick.skip_message,
}))
"""


class Scheduled:
    """A folder with an example, its job and the job's input; a home of `lineage` with topics of its own."""

    def __init__(self, folder: Path, example: str, kafka: Any, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.home = folder / "dags", folder / "home"
        self.store = DeltaFlowStore(self.home / "flows")
        prefix = uuid.uuid4().hex[:10]
        topics = {"node": f"{prefix}-node", "flow": f"{prefix}-flow"}
        for topic in topics.values():
            kafka.create_topic(topic)
        self.folder.mkdir()
        shutil.copy(ROOT / "examples" / example, self.folder)
        (self.folder / "takings.py").write_text(JOB)
        (self.folder / "in").mkdir()
        self.sale("monday", "x 1\ny 2\n")
        conf = {
            "spark.master": "local[1]",
            "spark.ui.enabled": "false",
            "spark.lineage.kafka.bootstrap.servers": kafka.bootstrap_servers,
            "spark.lineage.topic.node": topics["node"],
            "spark.lineage.topic.flow": topics["flow"],
            "spark.lineage.delivery.timeout": "60",
        }
        (folder / "spark-defaults.conf").write_text(
            "".join(f"{name} {value}\n" for name, value in conf.items())
        )
        for name, value in {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "SPARK_CONF_DIR": str(folder),
            "LINEAGE_HOME": str(self.home),
            "LINEAGE_KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
            "LINEAGE_NODE_TOPIC": topics["node"],
            "LINEAGE_FLOW_TOPIC": topics["flow"],
            "LINEAGE_DEAD_LETTER_TOPIC": f"{prefix}-dead",
            "LINEAGE_CONSUMER_GROUP": prefix,
            "LINEAGE_METRICS": "false",
        }.items():
            patch.setenv(name, value)

    def sale(self, name: str, text: str) -> None:
        (self.folder / "in" / name).write_text(text)

    def takings(self) -> list[str]:
        return sorted(
            line for part in self.folder.glob("out/part-*") for line in part.read_text().splitlines()
        )

    def command(self, *command: str | Path) -> str:
        done = subprocess.run(
            [str(word) for word in command], cwd=self.folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def consume(self) -> str:
        """Brings the lineage of the execution that ran last into the store; the wave that it was told."""
        application_id = (self.folder / "application").read_text()
        assert main.main(["consume", "--until-complete", application_id]) == 0
        [execution, *_earlier] = executions_of(self.store, "takings", 1, 0)
        assert execution.application_id == application_id
        assert execution.wave is not None
        return execution.wave

    def answers(self) -> list[tuple[str, str]]:
        """Decision and reason of each wave, the newest first."""
        return [(wave.decision, wave.reason) for wave in StoredJobs(self.store).waves("takings").waves]


def environment(name: str, *packages: str) -> Path:
    folder = ROOT / ".cache" / "schedulers" / name
    with alone(folder):
        make(folder, [(name, list(packages))])
    return folder / "bin"


def test_airflow_skips_the_job_and_what_needs_it_until_an_input_changes(
    tmp_path: Path, kafka: Any, jar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    airflow = environment("airflow", "apache-airflow>=3.3,<4") / "airflow"
    scheduled = Scheduled(tmp_path, "airflow_dag.py", kafka, monkeypatch)
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    monkeypatch.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(scheduled.folder))
    scheduled.command(airflow, "db", "migrate")
    scheduled.command(airflow, "dags", "reserialize")

    def listed(*words: str) -> list[dict[str, str]]:
        # Lines of the log are on standard output, too.
        lines = scheduled.command(airflow, *words, "--output", "json").splitlines()
        return list(json.loads(next(line for line in lines if line.startswith('[{"'))))

    def states() -> dict[str, str]:
        """Task -> its state, of a run of the DAG."""
        scheduled.command(airflow, "dags", "test", "takings")
        runs = listed("dags", "list-runs", "takings")
        newest = max(runs, key=lambda run: run["start_date"])["run_id"]
        tasks = listed("tasks", "states-for-dag-run", "takings", newest)
        return {task["task_id"]: task["state"] for task in tasks}

    ran = {"worth_it": "success", "takings": "success", "report": "success"}
    assert states() == ran
    assert scheduled.takings() == ["('x', 1)", "('y', 2)"]
    assert scheduled.consume().startswith("manual__")
    assert states() == {"worth_it": "skipped", "takings": "skipped", "report": "success"}
    scheduled.sale("tuesday", "x 10\n")
    assert states() == ran
    assert scheduled.takings() == ["('x', 11)", "('y', 2)"]
    assert scheduled.answers() == [("run", "changed"), ("skip", "unchanged"), ("run", "never_ran")]


def test_dagster_requests_a_run_only_where_the_job_is_worth_it(
    tmp_path: Path, kafka: Any, jar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = environment("dagster", "dagster>=1.13,<2", "--editable", f"{ROOT}[service]") / "python"
    scheduled = Scheduled(tmp_path, "dagster_sensor.py", kafka, monkeypatch)
    (tmp_path / "dagster").mkdir()
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))

    def tick(hours: int) -> dict[str, Any]:
        """What the sensor says so many hours from now; what it requests is run."""
        monkeypatch.setenv("HOURS", str(hours))
        return dict(json.loads(scheduled.command(python, "-c", TICK).splitlines()[-1]))

    [[wave, why]] = tick(0)["requested"]
    assert why == "never_ran"
    assert scheduled.takings() == ["('x', 1)", "('y', 2)"]
    assert scheduled.consume() == wave
    unchanged = tick(1)
    assert not unchanged["requested"]
    assert "its inputs are as they were" in unchanged["skipped"]
    scheduled.sale("tuesday", "x 10\n")
    # The same hour is the same wave, and has the same answer.
    assert tick(1) == unchanged
    [[_wave, why]] = tick(2)["requested"]
    assert why == "changed"
    assert scheduled.takings() == ["('x', 11)", "('y', 2)"]

"""A folder of jobs of Delta Lake on PySpark 4.1, with topics and a store of their own."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lineage_service.cli import main
from lineage_service.queries import Queries, TraceQuery
from scripts.environment import ROOT
from scripts.pyspark_versions import environment
from scripts.table_jars import jars_of
from tests.support.tables.traced_rows import Row, input_rows

SUPPORT = ROOT / "tests" / "support" / "tables"
LOCK = SUPPORT / "delta-4.1.lock"


@dataclass
class Lake:
    """A folder of jobs of Delta Lake, topics of their own, and the store that their lineage goes to."""

    folder: Path
    conf: dict[str, str]
    python: Path

    def run(self, script: str, *arguments: str, is_followed: bool = True, is_complete: bool = True) -> str:
        """Run a job by spark-submit; its applicationId, or what it printed where it is not followed.

        `is_complete`: does the agent say so of its lineage?
        """
        jars = ",".join(map(str, jars_of(LOCK)))
        conf = {
            **self.conf,
            "spark.lineage.enabled": str(is_followed).lower(),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        }
        flags = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
        command = [self.python.parent / "spark-submit", "--master", "local[2]", "--jars", jars, *flags]
        others = ("SPARK_", "PYSPARK_")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(others)}
        done = subprocess.run(
            [str(word) for word in (*command, SUPPORT / script, self.folder, *arguments)],
            env=clean | {"PYSPARK_PYTHON": str(self.python)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        if not is_followed:
            return done.stdout
        [started] = [line for line in done.stderr.splitlines() if line.startswith("lineage: on for ")]
        assert ("lineage: complete for " in done.stderr) is is_complete, done.stderr
        application_id = started.split()[3]
        # What is never complete is given up in time, and is stored until then.
        consume = ["consume", "--until-complete", application_id, "--timeout", "300" if is_complete else "15"]
        assert main.main(consume) == (0 if is_complete else 1)
        return application_id


def new_lake(tmp_path: Path, kafka: Any, set_variable: Callable[[str, str], None]) -> Lake:
    """`set_variable` sets a variable of the environment for a test."""
    prefix = uuid.uuid4().hex[:10]
    topics = {"node": f"{prefix}-node", "flow": f"{prefix}-flow"}
    for topic in topics.values():
        kafka.create_topic(topic)
    for name, value in {
        "LINEAGE_HOME": str(tmp_path / "home"),
        "LINEAGE_KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
        "LINEAGE_NODE_TOPIC": topics["node"],
        "LINEAGE_FLOW_TOPIC": topics["flow"],
        "LINEAGE_DEAD_LETTER_TOPIC": f"{prefix}-dead",
        "LINEAGE_CONSUMER_GROUP": prefix,
        "LINEAGE_METRICS": "false",
    }.items():
        set_variable(name, value)
    folder = tmp_path / "lake"
    folder.mkdir()
    conf = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.lineage.kafka.bootstrap.servers": kafka.bootstrap_servers,
        "spark.lineage.topic.node": topics["node"],
        "spark.lineage.topic.flow": topics["flow"],
        "spark.lineage.delivery.timeout": "60",
    }
    return Lake(folder, conf, environment("4.1.4"))


def rows_behind(queries: Queries, application_id: str, path: Path, row: int) -> set[Row]:
    """The rows of the inputs that a row of an output is traced to; the trace is exact and complete."""
    return inputs_of(queries, application_id, TraceQuery(direction="backward", path=str(path), row=row))


def inputs_of(queries: Queries, application_id: str, query: TraceQuery) -> set[Row]:
    """The same of any trace."""
    trace = queries.trace(application_id, replace(query, limit=1000))
    assert trace.complete, trace
    assert trace.exact, trace
    return input_rows(trace)

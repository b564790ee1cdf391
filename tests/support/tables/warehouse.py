"""A folder of jobs of Iceberg on PySpark 4.1, topics of their own, and the store of their lineage."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lineage_service.cli import main
from lineage_service.queries import Queries, TraceQuery
from scripts.environment import ROOT
from scripts.pyspark_versions import environment
from scripts.table_jars import jars_of
from tests.support.tables.traced_rows import Row, input_rows

SUPPORT = ROOT / "tests" / "support" / "tables"
LOCK = SUPPORT / "iceberg-4.1.lock"


@dataclass
class Warehouse:
    """`folder` has inputs and outputs of its jobs, and the tables of the catalog `ice`."""

    folder: Path
    conf: dict[str, str]
    python: Path

    def run(self, script: str, *arguments: str) -> str:
        """Run a job by spark-submit; its applicationId."""
        done = self._submit(script, *arguments, is_followed=True)
        [started] = [line for line in done.stderr.splitlines() if line.startswith("lineage: on for ")]
        assert "lineage: complete for " in done.stderr, done.stderr
        application_id = started.split()[3]
        assert main.main(["consume", "--until-complete", application_id]) == 0
        return application_id

    def printed_by(self, script: str, *, is_followed: bool) -> str:
        """What a job prints, with lineage or without."""
        return self._submit(script, is_followed=is_followed).stdout

    def _submit(self, script: str, *arguments: str, is_followed: bool) -> subprocess.CompletedProcess[str]:
        conf = {
            **self.conf,
            "spark.lineage.enabled": str(is_followed).lower(),
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.ice.type": "hadoop",
            "spark.sql.catalog.ice.warehouse": str(self.folder / "warehouse"),
        }
        flags = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
        jars = ",".join(map(str, jars_of(LOCK)))
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
        return done


def warehouse(folder: Path, kafka: Any, set_variable: Callable[[str, str], None]) -> Warehouse:
    """A new one. `set_variable` sets a variable of the environment for a test."""
    prefix = uuid.uuid4().hex[:10]
    topics = {"node": f"{prefix}-node", "flow": f"{prefix}-flow"}
    for topic in topics.values():
        kafka.create_topic(topic)
    for name, value in {
        "LINEAGE_HOME": str(folder / "home"),
        "LINEAGE_KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
        "LINEAGE_NODE_TOPIC": topics["node"],
        "LINEAGE_FLOW_TOPIC": topics["flow"],
        "LINEAGE_DEAD_LETTER_TOPIC": f"{prefix}-dead",
        "LINEAGE_CONSUMER_GROUP": prefix,
        "LINEAGE_METRICS": "false",
    }.items():
        set_variable(name, value)
    lake = folder / "lake"
    lake.mkdir()
    conf = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.lineage.kafka.bootstrap.servers": kafka.bootstrap_servers,
        "spark.lineage.topic.node": topics["node"],
        "spark.lineage.topic.flow": topics["flow"],
        "spark.lineage.delivery.timeout": "60",
    }
    return Warehouse(lake, conf, environment("4.1.4"))


def rows_behind(queries: Queries, application_id: str, path: Path, row: int) -> set[Row]:
    """The rows of the inputs that a row of an output is traced to; the trace is exact and complete."""
    trace = queries.trace(
        application_id, TraceQuery(direction="backward", path=str(path), row=row, limit=1000)
    )
    assert trace.complete, trace
    assert trace.exact, trace
    return input_rows(trace)

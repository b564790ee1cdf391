"""A folder of jobs of a table format on PySpark 4.1, topics of their own, and the store of their lineage."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lineage_service.cli import main
from scripts.environment import ROOT
from scripts.pyspark_versions import environment
from scripts.table_jars import jars_of

#: Versions of PySpark: the one that all tests of Delta Lake run on, and that of its oldest tested line.
DELTA_LINES = ("4.1.4", "3.5.9")
SUPPORT = ROOT / "tests" / "support" / "tables"


@dataclass
class TableJobs:
    """`folder` has inputs and outputs of jobs, and their tables; `lock` names the jars of the format."""

    folder: Path
    lock: str
    conf: dict[str, str]
    python: Path = field(default_factory=lambda: environment("4.1.4"))

    def run(self, script: str, *arguments: str, is_complete: bool = True) -> str:
        """Run a job by spark-submit; its applicationId.

        `is_complete`: does the agent say so of its lineage?
        """
        done = self._submit(script, *arguments, is_followed=True)
        [started] = [line for line in done.stderr.splitlines() if line.startswith("lineage: on for ")]
        assert ("lineage: complete for " in done.stderr) is is_complete, done.stderr
        application_id = started.split()[3]
        consume = ["consume", "--until-complete", application_id, "--timeout", "300"]
        assert main.main(consume) == (0 if is_complete else 1)
        return application_id

    def printed_by(self, script: str, *arguments: str, is_followed: bool = False) -> str:
        """What a job prints, with lineage or without."""
        return self._submit(script, *arguments, is_followed=is_followed).stdout

    def command(self, script: str, *arguments: str, is_followed: bool) -> list[str]:
        """How a user runs a job."""
        conf = {**self.conf, "spark.lineage.enabled": str(is_followed).lower()}
        flags = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
        jars = ",".join(map(str, jars_of(SUPPORT / self.lock)))
        command = [self.python.parent / "spark-submit", "--master", "local[2]", "--jars", jars, *flags]
        return [str(word) for word in (*command, SUPPORT / script, self.folder, *arguments)]

    def _submit(self, script: str, *arguments: str, is_followed: bool) -> subprocess.CompletedProcess[str]:
        others = ("SPARK_", "PYSPARK_")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(others)}
        done = subprocess.run(
            self.command(script, *arguments, is_followed=is_followed),
            env=clean | {"PYSPARK_PYTHON": str(self.python)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done


def delta_jobs(
    folder: Path, kafka: Any, set_variable: Callable[[str, str], None], version: str = DELTA_LINES[0]
) -> TableJobs:
    """Jobs of Delta Lake on a `version` of PySpark. `set_variable` sets a variable for a test."""
    conf = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
    }
    lock, topics = f"delta-{version.rpartition('.')[0]}.lock", _topics(folder, kafka, set_variable)
    return TableJobs(_new_folder(folder), lock, conf | topics, environment(version))


def iceberg_jobs(folder: Path, kafka: Any, set_variable: Callable[[str, str], None]) -> TableJobs:
    """Jobs with a catalog `ice` of Iceberg. `set_variable` sets a variable of the environment for a test."""
    lake = _new_folder(folder)
    conf = {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": str(lake / "warehouse"),
    }
    return TableJobs(lake, "iceberg-4.1.lock", conf | _topics(folder, kafka, set_variable))


def _new_folder(folder: Path) -> Path:
    lake = folder / "lake"
    lake.mkdir()
    return lake


def _topics(folder: Path, kafka: Any, set_variable: Callable[[str, str], None]) -> dict[str, str]:
    """Settings of a job that sends to topics of its own, which the service of this test reads."""
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
    return {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.lineage.kafka.bootstrap.servers": kafka.bootstrap_servers,
        "spark.lineage.topic.node": topics["node"],
        "spark.lineage.topic.flow": topics["flow"],
        "spark.lineage.delivery.timeout": "60",
    }

"""The whole platform for one test: `lineage consume` and `lineage serve` as processes, beside a Kafka and a
Neo4j that run. A fixture for stories that are told over HTTP, at a terminal, in Neo4j, and on the page.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts import brief_jvm

_DEADLINE_S = 240.0
_BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, kw_only=True)
class Platform:
    """`environment` is what every command of a test needs to reach it, jobs included."""

    url: str
    environment: Mapping[str, str]

    def run(self, *command: str | Path, cwd: Path = ROOT) -> str:
        """What a command prints; it must end well."""
        program = _BIN / command[0]
        done = subprocess.run(
            [program if program.exists() else command[0], *command[1:]],
            cwd=cwd,
            env=dict(self.environment),
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        return done.stdout


@contextmanager
def platform(kafka: Any, neo4j: Any, folder: Path) -> Iterator[Platform]:
    """Topics, a group, a flow store and a home of its own; what was started ends with the block."""
    name, home = uuid.uuid4().hex[:12], folder / "home"
    home.mkdir(parents=True)
    (home / "spark-defaults.conf").write_text(
        f"spark.master local[2]\nspark.ui.enabled false\nspark.lineage.delivery.timeout 20\n"
        f"spark.lineage.topic.node node-{name}\nspark.lineage.topic.flow flow-{name}\n"
    )
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("LINEAGE_", "SPARK_"))},
        "PATH": os.pathsep.join([str(_BIN), os.environ.get("PATH", os.defpath)]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SUBMIT_OPTS": brief_jvm.OPTIONS,
        "SPARK_CONF_DIR": str(home),
        "LINEAGE_HOME": str(home),
        "LINEAGE_KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
        "LINEAGE_NODE_TOPIC": f"node-{name}",
        "LINEAGE_FLOW_TOPIC": f"flow-{name}",
        "LINEAGE_DEAD_LETTER_TOPIC": f"dead-{name}",
        "LINEAGE_CONSUMER_GROUP": f"group-{name}",
        "LINEAGE_NEO4J_URI": neo4j.uri,
        "LINEAGE_NEO4J_USER": neo4j.user,
        "LINEAGE_NEO4J_PASSWORD": neo4j.password,
        "LINEAGE_METRICS": "false",
        "LINEAGE_API_PORT": "0",
        "COLUMNS": "200",
    }
    with ExitStack() as cleanup:
        processes = [_started(cleanup, each, environment, home) for each in ("consume", "serve")]
        deadline = time.monotonic() + _DEADLINE_S
        while not (home / "api.json").exists():
            assert all(process.poll() is None for process in processes), _logs(home)
            assert time.monotonic() < deadline, _logs(home)
            time.sleep(0.05)
        yield Platform(url=json.loads((home / "api.json").read_text())["url"], environment=environment)


def _started(
    cleanup: ExitStack, command: str, environment: Mapping[str, str], home: Path
) -> subprocess.Popen[bytes]:
    log = cleanup.enter_context((home / f"{command}.log").open("wb"))
    process = subprocess.Popen(
        [sys.executable, "-m", "lineage_service.cli.main", command],
        env=dict(environment),
        stdout=log,
        stderr=log,
    )
    cleanup.callback(process.wait, _DEADLINE_S)
    cleanup.callback(process.terminate)
    return process


def _logs(home: Path) -> str:
    return "\n".join(f"{path.name}:\n{path.read_text()[-2000:]}" for path in sorted(home.glob("*.log")))

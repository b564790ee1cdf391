"""One unmodified job, started in every way that people start one: its lineage is complete and right."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.spark.application import Application, check_against, read_application

BIN = Path(sys.executable).parent
ROWS = 12

JOB = """
import sys
from pyspark import SparkContext, TaskContext

def once(line):
    task = TaskContext.get()
    if {fails} and task.attemptNumber() == 0 and task.partitionId() == 1:
        raise RuntimeError("the first attempt fails")
    return line

sc = SparkContext.getOrCreate()
pairs = sc.textFile({source!r}, 3).map(once).map(lambda line: (int(line) % 3, int(line)))
sums = pairs.reduceByKey(lambda x, y: x + y, 2).sortByKey(numPartitions=1)
sums.map(lambda kv: "%d %d" % kv).saveAsTextFile({output!r})
print("the job says:", len(sums.collect()))
"""


def spark_submit(job: Path, conf: list[str]) -> list[str | Path]:
    return [BIN / "spark-submit", *conf, job]


def on_local_cluster(job: Path, conf: list[str]) -> list[str | Path]:
    return [BIN / "spark-submit", "--master", "local-cluster[2,1,1024]", *conf, job]


def python(job: Path, conf: list[str]) -> list[str | Path]:
    return [sys.executable, job]


def shell(job: Path, conf: list[str]) -> list[str | Path]:
    return [BIN / "pyspark", *conf]


@pytest.mark.parametrize(
    ("start", "fails"),
    [(spark_submit, False), (python, False), (shell, False), (on_local_cluster, True)],
)
def test_the_flag_alone_switches_lineage_on(
    start: Callable[[Path, list[str]], list[str | Path]], fails: bool, kafka: Any, tmp_path: Path
) -> None:
    source, output, job = tmp_path / "in.txt", tmp_path / "out", tmp_path / "job.py"
    source.write_text("".join(f"{i}\n" for i in range(ROWS)))
    text = JOB.format(source=str(source), output=str(output), fails=fails)
    job.write_text(text)
    topics = {name: f"{uuid.uuid4().hex[:10]}-{name}" for name in ("node", "flow")}
    settings = {
        "spark.lineage.enabled": "true",
        "spark.lineage.topic.node": topics["node"],
        "spark.lineage.topic.flow": topics["flow"],
        "spark.ui.enabled": "false",
    }
    conf = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    command = start(job, conf)
    done = subprocess.run(
        [str(part) for part in command],
        # A shell that is not a terminal reads its start-up file only with -i.
        input=as_typed(text) if start is shell else None,
        env={
            **os.environ,
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "LINEAGE_KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
            "PYSPARK_SUBMIT_ARGS": " ".join([*conf, "pyspark-shell"]),
            "PYSPARK_DRIVER_PYTHON_OPTS": "-i" if start is shell else "",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the job says: 3" in done.stdout
    assert "lineage" not in done.stdout.lower(), "the agent printed something"
    check(read_application(kafka.bootstrap_servers, topics, tmp_path / "store"), source, output)


def as_typed(text: str) -> str:
    """A shell ends a definition at the first empty line, and not before."""
    return text.replace("\n\ndef", "\ndef").replace("    return line\n", "    return line\n\n")


def check(application: Application, source: Path, output: Path) -> None:
    groups = [[i for i in range(ROWS) if i % 3 == key] for key in range(3)]
    expected = Counter(
        (f"{key} {sum(rows)}", frozenset((source.name, row) for row in rows))
        for key, rows in enumerate(groups)
    )
    check_against(application, output, [source], expected)

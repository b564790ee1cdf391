"""Jobs that fail in their own ways, as programs of their own: what their ends say, and those of actions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lineage_service.outcomes import LOST_AFTER_MS, outcome_of
from spark_agent import contract
from spark_agent.contract.event_checks import decode_event
from tests.support.spark.application import messages_of

RDD = (
    "from pyspark import SparkContext\n"
    "context = SparkContext.getOrCreate()\n"
    "numbers = context.parallelize(range(9), 3)\n"
)
FRAME = """from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
rows = spark.read.csv("in.csv", header=True)
"""
CAST = 'rows.selectExpr("cast(n as int) as n").write.csv("out", mode="overwrite")\n'


@dataclass(frozen=True)
class Job:
    program: str
    code: int
    state: str
    error: tuple[str, str, str] | None  # type, a part of the message, line
    actions: list[tuple[str, str]]  # name, state


JOBS = {
    "it ends well": Job(
        RDD + "numbers.count()\ncontext.stop()\n", 0, "succeeded", None, [("count", "complete")]
    ),
    "an error behind a good action": Job(
        RDD + "numbers.count()\nraise ValueError('no such day')\n",
        1,
        "failed",
        ("ValueError", "no such day", "job.py:5"),
        [("count", "complete")],
    ),
    "an action that fails": Job(
        RDD
        + "def bad(n):\n    return 1 // (n - 4)\n"
        + "try:\n    numbers.map(bad).collect()\nfinally:\n    context.stop()\n",
        1,
        "failed",
        ("ZeroDivisionError", "integer division or modulo by zero", "job.py:5"),
        [("collect", "failed")],
    ),
    "an action that fails, caught": Job(
        RDD + "try:\n    numbers.map(lambda n: 1 // n).saveAsTextFile('out')\nexcept Exception:\n    pass\n"
        "numbers.count()\ncontext.stop()\n",
        0,
        "succeeded",
        None,
        [("saveAsTextFile", "failed"), ("count", "complete")],
    ),
    "an exit behind the stop": Job(
        RDD + "import sys\nnumbers.count()\ncontext.stop()\nsys.exit(3)\n",
        3,
        "failed",
        ("SystemExit", "exit code 3", "job.py:7"),
        [("count", "complete")],
    ),
    "a query that fails": Job(
        FRAME + "try:\n    " + CAST + "finally:\n    spark.stop()\n",
        1,
        "failed",
        ("NumberFormatException", "CAST_INVALID_INPUT", "job.py:5"),
        [("csv", "failed")],
    ),
    "a query that fails, caught": Job(
        FRAME + "import sys\ntry:\n    " + CAST + "except Exception:\n    spark.stop()\n    sys.exit(2)\n",
        2,
        "failed",
        ("SystemExit", "exit code 2", "job.py:9"),
        [("csv", "failed")],
    ),
    "queries that run as they are, of which one fails": Job(
        FRAME.replace("builder", "builder.config('spark.lineage.dataframes.level', 'lazy')")
        + "try:\n    "
        + CAST
        + "except Exception:\n    pass\nfor _ in range(2):\n    rows.count()\nspark.stop()\n",
        0,
        "succeeded",
        None,
        [("csv", "failed"), ("count", "complete"), ("count", "complete")],
    ),
}

#: What stands for the others where time is short.
IN_SHORT = ("an action that fails",)


def program(folder: Path, job: str) -> None:
    (folder / "job.py").write_text(job)
    (folder / "in.csv").write_text("n\n1\ntwo\n")


def command(kafka: Any, topics: Mapping[str, str], *, by_submit: bool) -> tuple[list[str], dict[str, str]]:
    conf = {
        "spark.master": "local[2]",
        "spark.app.name": "failing",
        "spark.ui.enabled": "false",
        "spark.sql.ansi.enabled": "true",
        "spark.lineage.enabled": "true",
        "spark.lineage.kafka.bootstrap.servers": kafka.bootstrap_servers,
        "spark.lineage.delivery.timeout": "20",
        "spark.lineage.topic.node": topics["node"],
        "spark.lineage.topic.flow": topics["flow"],
    }
    arguments = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
    if by_submit:
        return [str(Path(sys.executable).parent / "spark-submit"), *arguments, "job.py"], dict(os.environ)
    return [sys.executable, "job.py"], {
        **os.environ,
        "PYSPARK_SUBMIT_ARGS": " ".join([*arguments, "pyspark-shell"]),
    }


def events_of(kafka: Any, topics: Mapping[str, str]) -> list[dict[str, Any]]:
    events = [decode_event(message) for message in messages_of(kafka.bootstrap_servers, topics["node"])]
    return sorted(events, key=lambda event: (event["time"], event.get("event", 0)))


def names() -> dict[str, str]:
    prefix = uuid.uuid4().hex[:10]
    return {"node": f"{prefix}-node", "flow": f"{prefix}-flow"}


@pytest.mark.parametrize(
    ("job", "by_submit"),
    [
        pytest.param(
            job,
            by_submit,
            id=f"{name}-{'spark-submit' if by_submit else 'python'}",
            marks=() if by_submit and name in IN_SHORT else pytest.mark.thorough,
        )
        for name, job in JOBS.items()
        for by_submit in (False, True)
    ],
)
def test_the_end_says_what_became_of_the_job(job: Job, by_submit: bool, kafka: Any, tmp_path: Path) -> None:
    topics = names()
    program(tmp_path, job.program)
    arguments, environment = command(kafka, topics, by_submit=by_submit)
    done = subprocess.run(
        arguments, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == job.code, done.stderr
    events = events_of(kafka, topics)
    ended = [event for event in events if event["type"] == contract.APPLICATION_ENDED][-1]
    assert ended["state"] == job.state
    if job.error is None:
        assert "error" not in ended
    else:
        assert ended["error"]["type"].endswith(job.error[0])
        assert job.error[1] in ended["error"]["message"]
        assert ended["error"]["frame"].endswith(job.error[2])
    nodes = {event["node"]: event for event in events if event["type"] == contract.NODE_REGISTERED}
    actions = [event for event in events if event["type"] == contract.ACTION_ENDED]
    assert [(nodes[action["node"]]["name"], action["state"]) for action in actions] == job.actions
    assert all(bool(action["state"] == "failed") is ("error" in action) for action in actions)
    numbers = sorted(event["event"] for event in events if "event" in event)
    assert numbers == list(range(ended["event"] + 1))
    assert [event for event in events if event["type"] == contract.ALIVE]


WAITING = RDD + "numbers.count()\nprint('ready', flush=True)\nimport time\ntime.sleep(600)\n"


@contextmanager
def waiting(
    kafka: Any, topics: Mapping[str, str], folder: Path, *, by_submit: bool
) -> Iterator[subprocess.Popen[str]]:
    """A job that has begun and waits, with all processes that it started."""
    program(folder, WAITING)
    arguments, environment = command(kafka, topics, by_submit=by_submit)
    with subprocess.Popen(
        arguments, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as job:
        try:
            assert job.stdout is not None
            assert "ready\n" in iter(job.stdout.readline, "")
            yield job
        finally:
            os.killpg(job.pid, signal.SIGKILL)


@pytest.mark.thorough
def test_a_driver_that_was_killed_says_nothing_and_was_alive(kafka: Any, tmp_path: Path) -> None:
    topics = names()
    with waiting(kafka, topics, tmp_path, by_submit=False) as job:
        deadline = time.monotonic() + 480
        while not any(event["type"] == contract.ALIVE for event in events_of(kafka, topics)):
            assert time.monotonic() < deadline, "no sign of life came"
        os.kill(job.pid, signal.SIGKILL)
        job.wait(60)
    events = events_of(kafka, topics)
    assert contract.APPLICATION_ENDED not in {event["type"] for event in events}
    found = outcome_of(events)
    assert found.state == "running"
    assert found.at(events[-1]["time"] + LOST_AFTER_MS + 1).state == "lost"

"""One small job, started in every way that a user may start it: each publishes a complete lineage."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from spark_agent import contract
from tests.support.spark.application import check_against, part_rows, read_application

LINES = ["to be or not", "to be", "", "that is the question", "or is it", "to it"]

# Ends with an exit code of its own. The first attempt of some task fails where a task may be tried again.
JOB = """
import os, sys
from pyspark import SparkContext, TaskContext
context = SparkContext.getOrCreate()
is_tried_again = context.master.startswith("local-cluster")

def once_wrong(word):
    if is_tried_again and word == "question" and TaskContext.get().attemptNumber() == 0:
        raise ValueError("the first attempt")
    return word, 1

words = context.textFile(os.environ["JOB_INPUT"], 3).flatMap(lambda line: line.split())
counts = words.map(once_wrong).reduceByKey(lambda a, b: a + b, 2).sortByKey(numPartitions=2)
counts.map(lambda count: "%s %d" % count).saveAsTextFile(os.environ["JOB_OUTPUT"])
print("words:", len(counts.collect()))
print("for people", file=sys.stderr)
context.stop()
sys.exit(3)
"""


@dataclass(frozen=True)
class Start:
    """A command, what it reads from its standard input, and what it needs in its environment."""

    command: list[str]
    input: str = ""
    environment: Mapping[str, str] | None = None


def program(name: str) -> str:
    return str(Path(sys.executable).parent / name)


def confs(conf: Mapping[str, str]) -> list[str]:
    return [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]


def by_spark_submit(conf: Mapping[str, str], _folder: Path) -> Start:
    return Start([program("spark-submit"), *confs(conf), "job.py"])


def by_spark_submit_on_a_cluster(conf: Mapping[str, str], _folder: Path) -> Start:
    return Start([program("spark-submit"), "--master", "local-cluster[2,1,1024]", *confs(conf), "job.py"])


def by_python(conf: Mapping[str, str], folder: Path) -> Start:
    given = {"spark.master": "local[2]", "spark.app.name": "job", **conf}
    (folder / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in given.items()))
    return Start([sys.executable, "job.py"], environment={"SPARK_CONF_DIR": str(folder)})


def by_the_shell(conf: Mapping[str, str], _folder: Path) -> Start:
    # -i: the shell's start-up file is for interactive Pythons only.
    return Start(
        [program("pyspark"), "--master", "local[2]", *confs(conf)],
        "exec(open('job.py').read())\n",
        {"PYSPARK_DRIVER_PYTHON_OPTS": "-i"},
    )


WAYS = [
    by_spark_submit,
    *(
        pytest.param(way, marks=pytest.mark.thorough)
        for way in (by_spark_submit_on_a_cluster, by_python, by_the_shell)
    ),
]


def run(
    way: Callable[[Mapping[str, str], Path], Start], folder: Path, conf: Mapping[str, str], job: str = JOB
) -> subprocess.CompletedProcess[str]:
    folder.mkdir()
    (folder / "job.py").write_text(job)
    (folder / "in.txt").write_text("".join(f"{line}\n" for line in LINES))
    start = way({"spark.ui.enabled": "false", **conf}, folder)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "JOB_INPUT": str(folder / "in.txt"),
        "JOB_OUTPUT": str(folder / "out"),
        **(start.environment or {}),
    }
    return subprocess.run(
        start.command,
        cwd=folder,
        env=environment,
        input=start.input,
        capture_output=True,
        text=True,
        timeout=900,
    )


def without_sparks_own(text: str) -> list[str]:
    """The lines that are neither Spark's log nor the JVM's nor the progress bar."""
    lines = [
        re.sub(r"^(>>> ?)+", "", line)  # prompts of the shell
        for line in re.sub(r"\r[^\n]*\r", "", text).splitlines()
    ]
    own = re.compile(
        r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d |\tat |\t\.\.\. \d+ more|WARNING: |Using Spark's|\[Stage |\s*$"
        r"|Setting default|To adjust logging|Spark context |SparkSession available|Using Python version"
    )
    return [line for line in lines if not own.match(line)]


def notices_and_others(text: str) -> tuple[list[str], str]:
    """The lines that the agent wrote, and all others."""
    lines = text.splitlines()
    notices = [line for line in lines if line.startswith("lineage: ")]
    return notices, "\n".join(line for line in lines if line not in notices)


@pytest.mark.parametrize("way", WAYS)
def test_lineage_is_complete_and_the_job_is_as_it_was(
    way: Callable[[Mapping[str, str], Path], Start], kafka: Any, tmp_path: Path
) -> None:
    prefix = uuid.uuid4().hex[:10]
    topics = {"node": f"{prefix}-node", "flow": f"{prefix}-flow"}
    plain = run(way, tmp_path / "plain", {})
    done = run(
        way,
        tmp_path / "lineage",
        {
            "spark.lineage.enabled": "true",
            "spark.lineage.kafka.bootstrap.servers": kafka.bootstrap_servers,
            "spark.lineage.delivery.timeout": "60",  # no line about a broker that is slow on a busy machine
            "spark.lineage.topic.node": topics["node"],
            "spark.lineage.topic.flow": topics["flow"],
        },
    )
    assert (plain.returncode, "words: 9" in plain.stdout) == (3, True), plain.stderr
    assert done.returncode == plain.returncode, done.stderr
    assert without_sparks_own(done.stdout) == without_sparks_own(plain.stdout)
    assert "spark_agent" not in done.stderr
    assert "lineage: " not in plain.stderr
    notices, others = notices_and_others(done.stderr)
    assert [notice.partition(" for ")[0] for notice in notices] == ["lineage: on", "lineage: complete"]
    if way is not by_spark_submit_on_a_cluster:  # its log holds the traceback of the attempt that failed
        assert without_sparks_own(others) == without_sparks_own(plain.stderr)
    rows = [[text for _, _, text in part_rows(tmp_path / folder / "out")] for folder in ("plain", "lineage")]
    assert rows[0] == rows[1] != []

    application = read_application(kafka.bootstrap_servers, topics, tmp_path / "store")
    words = {word for line in LINES for word in line.split()}
    holding = {
        word: [row for row, line in enumerate(LINES) for part in line.split() if part == word]
        for word in words
    }
    expected = Counter(
        (f"{word} {len(found)}", frozenset(("in.txt", row) for row in found))
        for word, found in holding.items()
    )
    source = tmp_path / "lineage" / "in.txt"
    check_against(application, tmp_path / "lineage" / "out", [source], expected)
    ended = [event for event in application.events if event["type"] == contract.APPLICATION_ENDED]
    # Where the exit code comes behind the stop, the end is told twice.
    assert {event["counters"]["dropped"] for event in ended} == {0}


FRAMES = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
words = spark.read.text("in.txt").where("value like '%be%'")
counts = words.groupBy("value").count()
print("rows:", len(counts.collect()))
spark.stop()
"""


def frames_by_the_shell(conf: Mapping[str, str], folder: Path) -> Start:
    return replace(by_the_shell(conf, folder), input=FRAMES)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("way", "file"),
    [
        (by_spark_submit, "job.py"),
        (by_python, "job.py"),
        (frames_by_the_shell, "<stdin>"),
    ],
)
def test_operators_of_dataframes_have_their_lines(
    way: Callable[[Mapping[str, str], Path], Start], file: str, kafka: Any, tmp_path: Path
) -> None:
    prefix = uuid.uuid4().hex[:10]
    topics = {"node": f"{prefix}-node", "flow": f"{prefix}-flow"}
    done = run(
        way,
        tmp_path / "lineage",
        {
            "spark.lineage.enabled": "true",
            "spark.lineage.kafka.bootstrap.servers": kafka.bootstrap_servers,
            "spark.lineage.delivery.timeout": "20",  # beside other tests a broker is slow
            "spark.lineage.topic.node": topics["node"],
            "spark.lineage.topic.flow": topics["flow"],
        },
        job=FRAMES,
    )
    assert "rows: 2" in done.stdout, done.stderr
    application = read_application(kafka.bootstrap_servers, topics, tmp_path / "store")
    nodes = application.questions.graph(application.application_id).nodes
    lines = {node.name: Path(node.call_site).name for node in nodes}
    of_file = file == "job.py"  # what is typed is line 1, each time
    assert {name: lines[name] for name in ("Scan text", "Filter", "Aggregate", "collect")} == {
        "Scan text": f"{file}:{4 if of_file else 1}",
        "Filter": f"{file}:{4 if of_file else 1}",
        "Aggregate": f"{file}:{5 if of_file else 1}",
        "collect": f"{file}:{6 if of_file else 1}",
    }

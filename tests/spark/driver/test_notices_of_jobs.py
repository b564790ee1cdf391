"""What standard error has more with lineage on: two lines if all is well, one more for each problem."""

from __future__ import annotations

import errno
import os
import pty
import re
import select
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from perf.delivery.brokers import closed_port
from spark_agent import agent
from spark_agent.sql import jvm_gateway
from tests.support.spark.quick_spark import WITH_ZIP_OF_PYSPARK

DEADLINE_S = 900.0
ON = r'lineage: on for (local-\d+) "[^"]+", to Kafka at \S+:\d+; to ask: lineage graph \1'
COMPLETE = (
    r"lineage: complete for local-\d+: \d+ operations?(?:,| and) \d+ task runs?"
    r"(?: and \d+ blocks? of flows)? delivered to Kafka; `lineage consume` takes them into the stores"
)

Job = Callable[[SparkContext], Any]


def both(context: SparkContext) -> None:
    """RDDs and a query."""
    numbers = context.parallelize(range(100), 2).filter(lambda i: i % 3 == 0)
    assert numbers.map(lambda i: (i % 5, i)).reduceByKey(max).count() == 5
    assert SparkSession(context).range(10).where("id > 6").count() == 3


def ours(kafka: Any) -> dict[str, str]:
    """Settings of the agent alone; `kafka` may be an address where nobody answers."""
    is_away = isinstance(kafka, str)
    return {
        "spark.lineage.kafka.bootstrap.servers": kafka if is_away else kafka.bootstrap_servers,
        # However busy the machine is, the broker is not said to be away.
        "spark.lineage.delivery.timeout": "1" if is_away else "60",
        "spark.lineage.topic.node": f"{uuid.uuid4().hex[:10]}-node",
        "spark.lineage.topic.flow": f"{uuid.uuid4().hex[:10]}-flow",
    }


@pytest.fixture
def said(kafka: Any, capsys: pytest.CaptureFixture[str]) -> Any:
    """said(job, **conf): the lines of the agent in a standard error that was replaced, as notebooks do."""

    def said(job: Job = both, /, **conf: str) -> list[str]:
        settings = {
            "spark.master": "local[2]",
            "spark.app.name": "said",
            "spark.ui.enabled": "false",
            **({} if any("Listeners" in name for name in conf) else ours(kafka)),
            **{name.replace("_", "."): value for name, value in conf.items()},
        }
        capsys.readouterr()
        with SparkContext(conf=SparkConf().setAll(list(settings.items()))) as context:
            context.setLogLevel("OFF")
            job(context)
        out, err = capsys.readouterr()
        assert out == ""
        return [line for line in err.splitlines() if line.startswith("lineage: ")]

    return said


def test_a_job_whose_lineage_is_complete_has_two_lines(said: Any) -> None:
    begin, end = said(spark_lineage_enabled="true")
    assert re.fullmatch(ON, begin), begin
    assert re.fullmatch(COMPLETE, end), end


@pytest.mark.parametrize("conf", [{"spark.lineage.enabled": "true", "spark.lineage.quiet": "true"}, {}])
def test_a_job_that_is_quiet_or_without_lineage_has_none(conf: dict[str, str], said: Any) -> None:
    assert said(**conf) == []


def test_an_application_without_an_operation_says_so(said: Any) -> None:
    begin, end = said(lambda _context: None, spark_lineage_enabled="true")
    assert re.fullmatch(ON, begin), begin
    assert re.fullmatch(r"lineage: nothing to capture in local-\d+: no operation ran", end), end


@pytest.mark.thorough
def test_a_misspelled_key_is_one_line_with_the_nearest_one(said: Any) -> None:
    begin, problem, end = said(spark_lineage_enabled="true", spark_lineage_detaild="true")
    assert re.fullmatch(ON, begin), begin
    assert problem == (
        "lineage: spark.lineage.detaild is not a setting, and means nothing; "
        "did you mean spark.lineage.detailed?"
    )
    assert re.fullmatch(COMPLETE, end), end


@pytest.mark.parametrize(
    ("conf", "problem"),
    [
        (
            {"spark.lineage.enable": "true"},
            "spark.lineage.enable is not a setting, and means nothing; did you mean spark.lineage.enabled?",
        ),
        (
            {"spark.lineage.enabled": "yes"},
            "spark.lineage.enabled=yes is neither true nor false; set spark.lineage.enabled=true",
        ),
    ],
    ids=["enable=true", "enabled=yes"],
)
def test_a_switch_that_is_none_leaves_lineage_off_and_says_so(
    conf: dict[str, str], problem: str, said: Any
) -> None:
    (line,) = said(lambda context: context.parallelize([1]).count(), **conf)
    assert re.fullmatch(rf"lineage: off for local-\d+: {re.escape(problem)}", line), line


def test_a_switch_that_a_running_context_is_given_is_said_to_mean_nothing(said: Any) -> None:
    def job(context: SparkContext) -> None:
        for _ in range(2):
            spark = SparkSession.builder.config("spark.lineage.enabled", "true").getOrCreate()
        assert spark.range(3).count() == 3

    (line,) = said(job, **{"spark.lineage.enabled": "false"})
    assert re.match(r"lineage: spark\.lineage\.enabled means nothing to local-\d+, which was running", line)


@pytest.mark.thorough
def test_values_that_are_none_are_one_line_each(said: Any) -> None:
    _, *problems, end = said(
        spark_lineage_enabled="true", spark_lineage_onError="sometimes", spark_lineage_dataframes="maybe"
    )
    assert sorted(problems) == [
        "lineage: spark.lineage.dataframes=maybe is neither true nor false; true is used",
        "lineage: spark.lineage.onError=sometimes is none of silent, partial, fail; silent is used",
    ]
    assert re.fullmatch(COMPLETE, end), end


def test_beside_cloudera_s_listeners_the_agent_is_off_and_says_so(said: Any) -> None:
    def job(context: SparkContext) -> None:
        assert agent.active() is None
        assert context.parallelize([1]).count() == 1

    # Of a query: the class that a context would load as a listener is not on this machine.
    conf = {"spark.sql.queryExecutionListeners": "com.cloudera.spark.lineage.NavigatorQueryListener"}
    (line,) = said(job, **conf, **{"spark.lineage.enabled": "true", "spark.lineage.log.dir": "/var/log"})
    assert "off for" in line
    assert "Cloudera's lineage listeners are configured" in line


def test_without_the_jar_dataframes_are_said_to_have_no_lineage(
    said: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jvm_gateway, "JAR", "/nowhere/lineage.jar")
    begin, problem, *_ = said(spark_lineage_enabled="true")
    assert re.fullmatch(ON, begin), begin
    assert "without the agent's jar, so DataFrames and SQL have no record lineage" in problem


@pytest.mark.thorough
def test_a_jar_that_lacks_a_class_is_said_with_the_class(said: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(jvm_gateway._CLASSES, "plan", ("NoSuch",))
    _, problem, *_ = said(spark_lineage_enabled="true")
    assert "do not load into this Spark" in problem
    assert problem.endswith("java.lang.ClassNotFoundException: lineagemaster.plan.NoSuch")


def test_a_redaction_that_fails_is_one_line(said: Any) -> None:
    def job(context: SparkContext) -> None:
        assert context.parallelize([("a", 1)] * 4, 2).reduceByKey(max).count() == 1

    _, problem, _ = said(job, spark_lineage_enabled="true", spark_lineage_redact="no_such_module:function")
    assert "no_such_module" in problem


# -- as programs -------------------------------------------------------------------------------------


def confs(kafka: Any, **conf: str) -> list[str]:
    settings = {
        "spark.ui.enabled": "false",
        "spark.app.name": "said",
        "spark.lineage.enabled": "true",
        **ours(kafka),
        **conf,
    }
    return [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]


def environment(**more: str) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYSPARK_DRIVER_PYTHON": sys.executable, **more}


SHIPS_NOTHING = """
import resource, signal
from pyspark import SparkContext
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
SparkContext._ensure_initialized()  # the JVM may write, this process may not
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
with SparkContext() as context:
    print(context.parallelize(range(10), 2).map(lambda i: i + 1).sum())
"""


@pytest.mark.thorough
def test_where_the_agent_cannot_be_shipped_it_is_off_and_the_job_is_as_it_was(
    kafka: Any, tmp_path: Path
) -> None:
    (tmp_path / "job.py").write_text(SHIPS_NOTHING)
    arguments = " ".join(["--master", "local[2]", *confs(kafka), "pyspark-shell"])
    # A Python of the executors is named, so the agent must travel to them.
    executors = {"PYSPARK_PYTHON": os.path.realpath(sys.executable), **WITH_ZIP_OF_PYSPARK}
    done = subprocess.run(
        [sys.executable, "job.py"],
        cwd=tmp_path,
        env=environment(PYSPARK_SUBMIT_ARGS=arguments, **executors),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert (done.returncode, done.stdout) == (0, "55\n"), done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "lineage" in line]
    assert re.match(r"lineage: off for local-\d+: the agent could not start \(OSError", line), line
    assert os.strerror(errno.EFBIG) in line


def read_until(terminal: int, wanted: str, text: str) -> str:
    """What the terminal has shown, from `text` on until `wanted` is the end of it; all of it at its end."""
    deadline = time.monotonic() + DEADLINE_S
    while not (wanted and text.endswith(wanted)):
        assert time.monotonic() < deadline, text
        if not select.select([terminal], [], [], 1.0)[0]:
            continue
        try:
            piece = os.read(terminal, 65_536)
        except OSError:  # the other side is closed
            return text
        if not piece:
            return text
        text += piece.decode(errors="replace")
    return text


@pytest.mark.thorough
def test_the_shell_shows_two_lines_at_the_beginning_of_lines(kafka: Any, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [str(Path(sys.executable).parent / "pyspark"), "--master", "local[2]", *confs(kafka)]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment(TERM="dumb"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        text = read_until(ours, ">>> ", "")
        os.write(ours, b"sc.parallelize(range(9), 2).map(str).count()\n")
        text = read_until(ours, "9\r\n>>> ", text)
        os.write(ours, b"\x04")
        text = read_until(ours, "", text)
        assert process.wait(DEADLINE_S) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    shown = re.split(r"[\r\n]+(?:\x1b\[K)?", text)
    lines = [line for line in shown if "lineage: " in line]
    assert len(lines) == 2, text
    assert re.fullmatch(ON, lines[0]), lines
    assert re.fullmatch(COMPLETE, lines[1]), lines


@pytest.mark.thorough
def test_beside_a_broker_that_is_away_spark_submit_s_standard_output_is_the_job_s_own(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(
        "from pyspark import SparkContext\n"
        "with SparkContext() as context:\n"
        "    print(context.parallelize(range(10), 2).map(lambda i: i + 1).sum())\n"
    )
    with closed_port() as address:
        done = subprocess.run(
            [
                str(Path(sys.executable).parent / "spark-submit"),
                "--master",
                "local[2]",
                *confs(address),
                "job.py",
            ],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
    assert (done.returncode, done.stdout) == (0, "55\n"), done.stderr
    begin, problem, end = [line for line in done.stderr.splitlines() if "lineage: " in line]
    assert re.fullmatch(ON, begin), begin
    assert "are not delivered" in problem
    assert f"Kafka at {address} does not take them" in problem
    assert end.startswith("lineage: not delivered yet for local-")

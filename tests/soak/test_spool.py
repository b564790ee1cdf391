"""Many short jobs beside a broker that is slow or away: all of their lineage arrives, once or more."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import psutil
import pytest

from lineage_service.completeness import completeness
from lineage_service.devstack.errors import DownloadError, JavaError
from perf.delivery.brokers import Broker
from spark_agent import contract
from spark_agent.contract import spool_files
from tests.support.spark.application import Application, application_of, messages_of

pytestmark = pytest.mark.thorough

ROWS = 400
SPLITS = 4
#: Short applications, four at a time, and jobs one after the other.
APPLICATIONS, AT_A_TIME, IN_A_ROW = 200, 4, 100
DEADLINE_S = 900.0
#: How long one application runs; the broker is away for the second quarter and the third.
MINUTES = float(os.environ.get("LINEAGE_SOAK_MINUTES", "2"))

#: What jobs do: one of RDDs and one of DataFrames over the rows of `in.txt`.
STEPS = """
import json, sys, time
from pyspark.sql import SparkSession
folder, first, count, settings = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), json.loads(sys.argv[4])

def begin(number):
    builder = SparkSession.builder.appName(f"job {number}")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark

def run(spark, number):
    lines = spark.sparkContext.textFile(f"{folder}/in.txt", SPLITS)
    lines.filter(lambda line: int(line) % 2 == 0).saveAsTextFile(f"{folder}/even-{number}")
    frame = spark.read.text(f"{folder}/in.txt")
    frame.where("cast(value as int) % 3 = 0").write.text(f"{folder}/thirds-{number}")
"""
#: `count` applications, each with these two.
JOBS = """
for number in range(first, first + count):
    spark = begin(number)
    run(spark, number)
    spark.stop()
"""
#: One application, which has them again and again for `count` seconds.
LONG_JOB = """
spark, end = begin(first), time.monotonic() + count
while time.monotonic() < end:
    run(spark, first)
    first += 1
    time.sleep(2)
spark.stop()
"""


@pytest.fixture(scope="module")
def one_broker(
    tmp_path_factory: pytest.TempPathFactory, jar_folder: Path, cannot_have: Callable[[str], NoReturn]
) -> Iterator[Broker]:
    try:
        folder = tmp_path_factory.mktemp("broker")
        with Broker(folder, jar_folder, bytes_per_second=100_000_000, answers_after_s=30.0) as broker:
            yield broker
    except (DownloadError, JavaError) as error:
        cannot_have(f"no kafka: {error}")


@pytest.fixture
def broker(one_broker: Broker) -> Iterator[Broker]:
    one_broker.revive()
    yield one_broker
    one_broker.revive()


class Jobs:
    """Applications that share topics and a spool."""

    def __init__(self, folder: Path, servers: str, name: str) -> None:
        self.folder, self.spool = folder, folder / "spool"
        self.topics = {"node": f"{name}-node", "flow": f"{name}-flow"}
        self.settings = {
            "spark.master": "local[2]",
            "spark.ui.enabled": "false",
            "spark.lineage.enabled": "true",
            "spark.lineage.quiet": "true",
            "spark.lineage.kafka.bootstrap.servers": servers,
            "spark.lineage.spool.dir": str(self.spool),
            **{f"spark.lineage.topic.{topic}": name for topic, name in self.topics.items()},
        }
        (folder / "in.txt").write_text("".join(f"{number}\n" for number in range(ROWS)))

    def start(self, first: int, count: int, jobs: str = JOBS) -> subprocess.Popen[bytes]:
        script = self.folder / "jobs.py"
        script.write_text(STEPS.replace("SPLITS", str(SPLITS)) + jobs)
        arguments = [str(self.folder), str(first), str(count), json.dumps(self.settings)]
        return subprocess.Popen(
            [sys.executable, str(script), *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def deliver(self) -> None:
        """By the command, from a process of its own, until nothing waits."""
        code = "import sys; from lineage_service.cli.main import main; sys.exit(main(sys.argv[1:]))"
        deadline = time.monotonic() + DEADLINE_S
        while spool_files.waiting_files(str(self.spool)):
            subprocess.run(
                [sys.executable, "-c", code, "spool", "deliver", str(self.spool)],
                stdout=subprocess.DEVNULL,
                check=False,
            )
            assert time.monotonic() < deadline

    def applications(self, servers: str) -> list[Application]:
        """All that have sent something."""
        events: dict[str, list[bytes]] = defaultdict(list)
        for message in messages_of(servers, self.topics["node"]):
            events[application_id_of(message)].append(message)
        blocks: dict[str, list[bytes]] = defaultdict(list)
        for message in messages_of(servers, self.topics["flow"]):
            blocks[contract.decode_block(message).application_id].append(message)
        assert set(blocks) <= set(events)
        return [
            application_of(events[name], blocks[name], self.folder / "stores" / name)
            for name in sorted(events)
        ]

    def check_each(self, applications: Sequence[Application], numbers: Sequence[int]) -> None:
        """Each application is complete, and its traces are those of the data."""
        by_name = {}
        for application in applications:
            receipts = [(block.run, block.seq) for block in application.blocks]
            complete = completeness(application.events, receipts)
            assert complete.is_complete, complete.describe()
            (name,) = names_of(application)
            by_name[name] = application
        assert sorted(by_name) == sorted(f"job {number}" for number in numbers)
        for number in numbers:
            self.check_traces(by_name[f"job {number}"], number)

    def check_traces(self, application: Application, number: int) -> None:
        for folder, divisor in ((f"even-{number}", 2), (f"thirds-{number}", 3)):
            rows = [
                (part, row, int(text))
                for part in sorted((self.folder / folder).glob("part-*"))
                for row, text in enumerate(part.read_text().split())
            ]
            assert sorted(value for _, _, value in rows) == list(range(0, ROWS, divisor))
            for part, row, value in rows[number % 7 :: 40]:
                assert application.sources_of(part, row) == {("in.txt", value)}


def application_id_of(message: bytes) -> str:
    return str(json.loads(message)["application_id"])


@pytest.mark.timeout(3600)
def test_short_applications_on_a_busy_machine_are_all_complete(broker: Broker, tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, broker.servers, "busy")
    each = APPLICATIONS // AT_A_TIME
    processes = [jobs.start(first * each, each) for first in range(AT_A_TIME)]
    assert [process.wait() for process in processes] == [0] * AT_A_TIME
    jobs.deliver()
    jobs.check_each(jobs.applications(broker.servers), range(APPLICATIONS))


@pytest.mark.timeout(3600)
def test_jobs_in_a_row_beside_a_broker_that_answers_after_thirty_seconds(
    broker: Broker, tmp_path: Path
) -> None:
    jobs = Jobs(tmp_path, broker.slow_servers, "late")
    assert jobs.start(0, IN_A_ROW).wait() == 0
    jobs.deliver()
    jobs.check_each(jobs.applications(broker.servers), range(IN_A_ROW))


@pytest.mark.timeout(3600)
def test_an_application_whose_broker_is_away_for_half_of_its_time(broker: Broker, tmp_path: Path) -> None:
    """LINEAGE_SOAK_MINUTES=20: for ten of twenty minutes."""
    jobs = Jobs(tmp_path, broker.servers, "away")
    process = jobs.start(0, round(MINUTES * 60), LONG_JOB)
    time.sleep(MINUTES * 15)
    broker.kill()
    time.sleep(MINUTES * 30)
    broker.revive()
    assert process.wait() == 0
    jobs.deliver()
    (application,) = jobs.applications(broker.servers)
    receipts = [(block.run, block.seq) for block in application.blocks]
    complete = completeness(application.events, receipts)
    assert complete.is_complete, complete.describe()
    runs = sorted(int(folder.name.removeprefix("even-")) for folder in tmp_path.glob("even-*"))
    assert runs == list(range(len(runs)))
    assert len(runs) > MINUTES
    for number in runs:
        jobs.check_traces(application, number)


@pytest.mark.timeout(3600)
def test_jobs_while_the_broker_and_processes_of_theirs_are_killed(broker: Broker, tmp_path: Path) -> None:
    """What a job has ended counts; a driver that is killed takes its own application with it."""
    jobs = Jobs(tmp_path, broker.servers, "killed")
    jobs.settings["spark.master"] = "local[2,8]"  # tasks are tried again
    is_over = threading.Event()

    def strike() -> None:
        while not is_over.wait(5):
            broker.kill()
            with suppress(psutil.Error):  # processes end by themselves, too
                for worker in workers_of(process.pid)[:1]:  # a task of it fails and runs again
                    worker.kill()
            is_over.wait(12)
            broker.revive()

    process = jobs.start(0, 12)
    thread = threading.Thread(target=strike)
    thread.start()
    try:
        assert process.wait() == 0
        last = jobs.start(12, 1)
        while not (tmp_path / "even-12" / "_SUCCESS").exists():
            assert last.poll() is None
            time.sleep(0.01)
        for victim in [*psutil.Process(last.pid).children(recursive=True), psutil.Process(last.pid)]:
            with suppress(psutil.Error):  # it has ended meanwhile
                victim.send_signal(signal.SIGKILL)
        last.wait()
    finally:
        is_over.set()
        thread.join()
    broker.revive()
    jobs.deliver()
    applications = jobs.applications(broker.servers)
    killed = [application for application in applications if "job 12" in names_of(application)]
    for application in killed:  # nothing is claimed of the one whose driver was killed
        receipts = [(block.run, block.seq) for block in application.blocks]
        assert "its end has not arrived" in completeness(application.events, receipts).describe()
    jobs.check_each([application for application in applications if application not in killed], range(12))


def names_of(application: Application) -> set[str]:
    return {event["name"] for event in application.events if event["type"] == contract.APPLICATION_STARTED}


def workers_of(driver: int) -> list[psutil.Process]:
    """Python workers of a driver: children of the daemon that its JVM has."""
    daemons = [
        process
        for process in psutil.Process(driver).children(recursive=True)
        if "pyspark.daemon" in " ".join(process.cmdline())
    ]
    return [worker for daemon in daemons for worker in daemon.children()]

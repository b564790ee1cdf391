"""Jobs beside a broker that is away: what it did not take comes later, and nothing is lost or doubled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import pytest
from pyspark import SparkConf, SparkContext

from lineage_service.cli.main import main
from lineage_service.completeness import completeness
from lineage_service.devstack.errors import DownloadError, JavaError
from perf.delivery.brokers import NO_WRITE, Broker
from spark_agent import contract
from spark_agent.contract import spool_files
from spark_agent.delivery.process_sender import process_spool
from spark_agent.delivery.producer import Delivery, Sender
from spark_agent.delivery.settings import AgentSettings
from spark_agent.delivery.spool_delivery import SpoolDelivery
from spark_agent.delivery.wait_budget import WaitBudget
from tests.support.spark.application import Application, application_of, messages_of, read_application

RECORDS = 2_000
DEADLINE_S = 240.0


@pytest.fixture(scope="module")
def one_broker(
    tmp_path_factory: pytest.TempPathFactory, jar_folder: Path, cannot_have: Callable[[str], NoReturn]
) -> Iterator[Broker]:
    try:
        with Broker(tmp_path_factory.mktemp("broker"), jar_folder) as broker:
            yield broker
    except (DownloadError, JavaError) as error:
        cannot_have(f"no kafka: {error}")


@pytest.fixture
def broker(one_broker: Broker) -> Iterator[Broker]:
    one_broker.revive()
    yield one_broker
    one_broker.revive()


class Job:
    """A job of two stages over a file of numbers, with topics and a spool of its own."""

    def __init__(self, folder: Path, broker: Broker, *, flow: str = "flow-") -> None:
        self.folder, self.spool = folder, folder / "spool"
        unique = uuid.uuid4().hex[:10]
        self.topics = {"node": f"node-{unique}", "flow": f"{flow}{unique}"}
        self.servers = broker.servers
        (folder / "in.txt").write_text("".join(f"{number}\n" for number in range(RECORDS)))

    def run(self, before_second: Callable[[], Any] = lambda: None, **conf: str) -> None:
        """Run it; `before_second` is called between its two actions."""
        settings = {**self.settings, **{name.replace("_", "."): value for name, value in conf.items()}}
        context = SparkContext(conf=SparkConf().setAll(list(settings.items())))
        context.setLogLevel("OFF")
        try:
            numbers = context.textFile(str(self.folder / "in.txt"), 4).map(int)
            even = numbers.filter(lambda number: number % 2 == 0)
            even.map(lambda number: (number % 7, number)).reduceByKey(max, 2).saveAsTextFile(
                str(self.folder / "maxima")
            )
            before_second()
            even.map(str).saveAsTextFile(str(self.folder / "even"))
        finally:
            context.stop()

    @property
    def settings(self) -> dict[str, str]:
        return {
            "spark.master": "local[2]",
            "spark.app.name": "spool",
            "spark.ui.enabled": "false",
            "spark.lineage.enabled": "true",
            "spark.lineage.kafka.bootstrap.servers": self.servers,
            "spark.lineage.spool.dir": str(self.spool),
            **{f"spark.lineage.topic.{name}": topic for name, topic in self.topics.items()},
        }

    def run_script(self, end: str) -> subprocess.CompletedProcess[str]:
        """Run its second action in a process of its own, which does `end` before it stops the context."""
        script = (
            "import os, signal, sys, time\n"
            "from pyspark import SparkContext\n"
            "with SparkContext() as context:\n"
            "    numbers = context.textFile(sys.argv[1], 4).map(int)\n"
            "    numbers.filter(lambda number: number % 2 == 0).map(str).saveAsTextFile(sys.argv[2])\n"
            f"    {end}\n"
        )
        (self.folder / "job.py").write_text(script)
        flags = " ".join(f"--conf {name}={value}" for name, value in self.settings.items())
        return subprocess.run(
            [sys.executable, "job.py", str(self.folder / "in.txt"), str(self.folder / "even")],
            cwd=self.folder,
            env={**os.environ, "PYSPARK_SUBMIT_ARGS": f"{flags} pyspark-shell"},
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )

    def waiting(self) -> list[str]:
        return spool_files.waiting_files(str(self.spool))

    def deliver(self) -> None:
        """Deliver what waits by the command, except what this process, the driver, sends just now."""
        deadline = time.monotonic() + DEADLINE_S
        while self.waiting():
            assert main(["spool", "deliver", str(self.spool)]) == 0
            assert time.monotonic() < deadline

    def application(self) -> Application:
        """What has been delivered. Complete, and each block once or more."""
        return read_application(self.servers, self.topics, self.folder / f"store-{uuid.uuid4().hex}")

    def check(self, *, is_whole: bool = True) -> None:
        """All of it has been delivered, and traces are those of the data. Not `is_whole`: of one action."""
        application = self.application()
        parts = sorted((self.folder / "even").glob("part-*"))
        numbers = [
            (part, row, int(text)) for part in parts for row, text in enumerate(part.read_text().split())
        ]
        assert len(numbers) == RECORDS // 2
        for part, row, number in numbers[:: RECORDS // 20]:
            assert application.sources_of(part, row) == {("in.txt", number)}
        maxima = sorted((self.folder / "maxima").glob("part-*"))
        assert bool(maxima) is is_whole
        for part in maxima:
            for row, text in enumerate(part.read_text().splitlines()):
                key = int(text[1:].partition(",")[0])
                expected = {("in.txt", number) for number in range(0, RECORDS, 2) if number % 7 == key}
                assert application.sources_of(part, row) == expected


@pytest.fixture
def job(tmp_path: Path, broker: Broker) -> Job:
    return Job(tmp_path, broker)


@pytest.mark.thorough
def test_a_broker_that_is_away_for_the_whole_job_gets_all_of_it_from_the_command(
    job: Job, broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.kill()
    done = job.run_script("pass")
    assert done.returncode == 0, done.stderr
    last = [line for line in done.stderr.splitlines() if line.startswith("lineage: ")][-1]
    assert "lineage: not delivered yet for local-" in last
    assert f"wait on {os.uname().nodename} to be delivered (Kafka at {job.servers} does not take them" in last
    waiting = job.waiting()
    assert waiting
    assert main(["spool", "list", str(job.spool)]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[0] for line in listed] == waiting
    assert all(f"for Kafka at {job.servers}" in line for line in listed)
    assert main(["spool", "deliver", str(job.spool)]) == 1
    assert f"lineage: no Kafka broker answers at {job.servers}" in capsys.readouterr().err
    assert job.waiting() == waiting
    broker.revive()
    assert main(["spool", "deliver", str(job.spool)]) == 0
    assert job.waiting() == []
    assert main(["spool", "list", str(job.spool)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"nothing waits in {job.spool}"
    job.check(is_whole=False)


@pytest.mark.thorough
def test_a_broker_that_comes_back_gets_all_of_it_from_the_job_itself(job: Job, broker: Broker) -> None:
    broker.suspend()

    def resume() -> None:
        assert job.waiting()
        broker.revive()
        deadline = time.monotonic() + DEADLINE_S
        while job.waiting():  # the driver and the workers of the job send what they have put there
            assert time.monotonic() < deadline
            time.sleep(0.1)

    job.run(before_second=resume)
    job.deliver()
    job.check()


@pytest.mark.thorough
def test_the_next_job_sends_what_the_one_before_left(job: Job, broker: Broker, tmp_path: Path) -> None:
    broker.kill()
    assert job.run_script("pass").returncode == 0
    assert job.waiting()
    broker.revive()
    (tmp_path / "next").mkdir()
    following = Job(tmp_path / "next", broker)

    def wait() -> None:
        deadline = time.monotonic() + DEADLINE_S
        while job.waiting():
            assert time.monotonic() < deadline
            time.sleep(0.1)

    following.run(before_second=wait, spark_lineage_spool_dir=str(job.spool))
    following.check()
    job.check(is_whole=False)


def test_an_application_says_how_many_blocks_wait_and_where(tmp_path: Path, broker: Broker) -> None:
    job = Job(tmp_path, broker, flow=f"{NO_WRITE}flow-")
    broker.create_topic(job.topics["flow"], 6)
    job.run()
    events = messages_of(job.servers, job.topics["node"])
    application = application_of(events, [], tmp_path / "store")
    runs = [event for event in application.events if event["type"] == contract.RUN_COMMITTED]
    assert sum(run["dropped"] for run in runs) == 0
    complete = completeness(application.events, [])
    blocks = sum(run["blocks"] for run in runs)
    assert blocks > 0
    assert complete.waiting_blocks == complete.missing_blocks == blocks
    assert complete.describe().startswith(f"{blocks} blocks wait on {os.uname().nodename} to be delivered")


@pytest.mark.thorough
def test_a_driver_that_is_killed_has_put_its_events_where_they_are_found(
    job: Job, broker: Broker, tmp_path: Path
) -> None:
    broker.kill()
    # What waits longer than two seconds goes on the disk.
    done = job.run_script("time.sleep(8)\n    os.kill(os.getpid(), signal.SIGKILL)")
    assert done.returncode == -signal.SIGKILL
    broker.revive()
    job.deliver()
    events = messages_of(job.servers, job.topics["node"])
    application = application_of(events, messages_of(job.servers, job.topics["flow"]), tmp_path / "store")
    complete = completeness(application.events, [(block.run, block.seq) for block in application.blocks])
    assert complete.describe() == "its end has not arrived"
    assert len(complete.runs) == 4
    assert all(run.is_complete for run in complete.runs)


# -- the deliverer by itself ------------------------------------------------------------------------


def test_processes_that_deliver_one_spool_lose_nothing(job: Job, broker: Broker) -> None:
    settings = AgentSettings(bootstrap_servers=job.servers, spool_dir=str(job.spool))
    for number in range(30):
        spool = process_spool(settings)
        assert spool is not None
        message = spool_files.SpooledMessage(job.topics["flow"], number, b"key", f"{number}".encode())
        assert spool.write([message] * 20) == ""
        spool.close()
    code = "import sys; from lineage_service.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "spool", "deliver", str(job.spool)]
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait(DEADLINE_S) for process in processes] == [0, 0, 0]
    assert job.waiting() == []
    sent = messages_of(job.servers, job.topics["flow"])
    assert set(sent) == {f"{number}".encode() for number in range(30)}
    assert len(sent) == 600  # nobody took a file that another one had


def test_a_full_spool_drops_and_says_why(job: Job, broker: Broker) -> None:
    broker.kill()
    settings = AgentSettings(
        bootstrap_servers=job.servers, spool_dir=str(job.spool), spool_max_bytes=1_000, delivery_timeout_s=0.1
    )
    delivery = Delivery()
    with closing(Sender(settings, WaitBudget(0.1), spool=process_spool(settings))) as sender:
        for _ in range(3):
            sender.send(job.topics["flow"], 1, b"key", bytes(600), delivery)
            sender.flush(delivery)
    assert (delivery.spooled, delivery.failed + delivery.pending) == (1, 2)
    assert "is full" in delivery.problem


def test_a_damaged_file_costs_its_damaged_record_alone(job: Job, broker: Broker) -> None:
    settings = AgentSettings(bootstrap_servers=job.servers, spool_dir=str(job.spool))
    spool = process_spool(settings)
    assert spool is not None
    messages = [
        spool_files.SpooledMessage(job.topics["flow"], 0, b"key", b"message %d" % number)
        for number in range(5)
    ]
    assert spool.write(messages) == ""
    spool.close()
    (path,) = map(Path, spool.waiting())
    path.write_bytes(path.read_bytes().replace(b"message 2", b"massage 2"))
    delivery = SpoolDelivery(spool, settings, lambda: None)
    assert delivery.finish(DEADLINE_S)
    assert job.waiting() == []
    assert len(spool_files.waiting_files(str(job.spool), spool_files.DAMAGED)) == 1
    sent = messages_of(job.servers, job.topics["flow"])
    assert sent == [message.value for message in messages if message.value != b"message 2"]

"""What happens to the job and to the count of what was lost when lineage cannot leave."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import uuid
import venv
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from pyspark import SparkConf, SparkContext

from perf.delivery.brokers import closed_port, silent_listener
from spark_agent import agent, contract
from spark_agent.delivery import process_sender, producer
from spark_agent.delivery.producer import Delivery, DeliveryError, Sender
from spark_agent.delivery.settings import AgentSettings
from spark_agent.delivery.wait_budget import WaitBudget
from tests.support.lanes import sampled
from tests.support.spark.quick_spark import WITH_ZIP_OF_PYSPARK

#: What the driver and two slots may wait together: the budget of 2 s that each has, and their ends.
MOST_WAITED_MS = 10_000


@pytest.fixture(name="closed_port")
def fixture_closed_port() -> Iterator[str]:
    with closed_port() as address:
        yield address


@pytest.fixture
def silent_broker() -> Iterator[str]:
    with silent_listener() as address:
        yield address


def job(context: SparkContext) -> list[tuple[int, int]]:
    numbers = context.parallelize(range(1000), 4).filter(lambda i: i % 3 == 0)
    return numbers.map(lambda i: (i % 5, i)).reduceByKey(max, 2).sortByKey(numPartitions=2).collect()


RESULT = [(0, 990), (1, 996), (2, 987), (3, 993), (4, 999)]


def run(
    bootstrap_servers: str, job: Callable[[SparkContext], Any], **conf: str
) -> tuple[Any, dict[str, int]]:
    """(what the job gave, the counters of the session). There is no spool: what does not leave is lost."""
    settings = {
        "spark.lineage.spool.maxBytes": "0",
        "spark.master": "local[2]",
        "spark.app.name": "delivery",
        "spark.ui.enabled": "false",
        "spark.lineage.enabled": "true",
        "spark.lineage.kafka.bootstrap.servers": bootstrap_servers,
        "spark.lineage.topic.node": f"{uuid.uuid4().hex[:10]}-node",
        "spark.lineage.topic.flow": f"{uuid.uuid4().hex[:10]}-flow",
        **conf,
    }
    context = SparkContext(conf=SparkConf().setAll(list(settings.items())))
    context.setLogLevel("OFF")
    running = agent.active()
    assert running is not None
    try:
        result = job(context)
    finally:
        context.stop()
    return result, running.session.events.counters


def test_what_arrives_is_counted_and_nothing_dropped(kafka: Any) -> None:
    result, counters = run(kafka.bootstrap_servers, job)
    assert result == RESULT
    assert (counters["dropped"], counters["events_lost"]) == (0, 0)
    assert counters["runs"] > 0
    assert counters["blocks"] > 0


@pytest.mark.thorough
@pytest.mark.parametrize("broker", sampled(["silent_broker", "closed_port"], 2))
def test_a_broker_that_does_not_answer_costs_seconds_once(
    broker: str, request: pytest.FixtureRequest
) -> None:
    def jobs(context: SparkContext) -> list[Any]:
        return [job(context) for _ in range(4)]

    results, counters = run(request.getfixturevalue(broker), jobs)
    assert results == [RESULT] * 4
    assert counters["dropped"] == counters["blocks"] > 0
    assert counters["events_lost"] > 0
    assert counters["waited_ms"] + counters["driver_waited_ms"] < MOST_WAITED_MS


def test_a_job_fails_before_it_runs_if_its_lineage_must_arrive_and_cannot(closed_port: str) -> None:
    touched = []

    def fails(context: SparkContext) -> None:
        numbers = context.parallelize(range(10), 2).filter(bool)
        with pytest.raises(DeliveryError, match=rf"onError=fail.*events are lost.*{closed_port}"):
            numbers.saveAsTextFile("/nonexistent/never")
        touched.append(True)

    run(closed_port, fails, **{"spark.lineage.onError": "fail"})
    assert touched == [True]


def test_a_job_succeeds_if_its_lineage_must_arrive_and_does(kafka: Any) -> None:
    result, counters = run(kafka.bootstrap_servers, job, **{"spark.lineage.onError": "fail"})
    assert (result, counters["dropped"]) == (RESULT, 0)


def without_confluent_kafka(folder: Path) -> str:
    """A PYTHONPATH on which confluent-kafka cannot be imported."""
    (folder / "confluent_kafka.py").write_text("raise ImportError('none of it here')\n")
    return str(folder)


def test_executors_without_confluent_kafka_do_their_work_and_count_what_is_lost(
    kafka: Any, tmp_path: Path
) -> None:
    path = without_confluent_kafka(tmp_path)
    result, counters = run(kafka.bootstrap_servers, job, **{"spark.executorEnv.PYTHONPATH": path})
    assert result == RESULT
    assert counters["dropped"] == counters["blocks"] > 0


def test_topics_have_the_partitions_of_the_contract_from_the_first_message_on(kafka: Any) -> None:
    names = {"spark.lineage.topic.node": "node", "spark.lineage.topic.flow": "flow"}
    topics = {name: f"{uuid.uuid4().hex[:10]}-{kind}" for name, kind in names.items()}
    run(kafka.bootstrap_servers, job, **topics)
    found = AdminClient({"bootstrap.servers": kafka.bootstrap_servers}).list_topics(timeout=60).topics
    counts = [len(found[topic].partitions) for topic in topics.values()]
    assert counts == [contract.NODE_PARTITIONS, contract.FLOW_PARTITIONS]


JOB = """
from pyspark import SparkContext
context = SparkContext()
numbers = context.parallelize(range(100), 4).filter(lambda i: i % 3 == 0)
print(sum(numbers.map(lambda i: (i % 5, i)).reduceByKey(max, 2).values().collect()))
"""


def run_script(
    folder: Path, bootstrap_servers: str, environment: Mapping[str, str] | None = None, **conf: str
) -> subprocess.CompletedProcess[str]:
    """Runs JOB, which never stops its context, as `python job.py`. There is no spool."""
    (folder / "job.py").write_text(JOB)
    settings = {
        "spark.lineage.spool.maxBytes": "0",
        "spark.master": "local[2]",
        "spark.app.name": "delivery",
        "spark.ui.enabled": "false",
        "spark.lineage.enabled": "true",
        "spark.lineage.kafka.bootstrap.servers": bootstrap_servers,
        **conf,
    }
    arguments = " ".join(f"--conf {name}={value}" for name, value in settings.items())
    return subprocess.run(
        [sys.executable, "job.py"],
        cwd=folder,
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": f"{arguments} pyspark-shell", **(environment or {})},
        capture_output=True,
        text=True,
        timeout=900,
    )


def warnings_of(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Of Spark's own log."""
    return [line for line in done.stderr.splitlines() if "spark_agent" in line]


def notices_of(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stderr.splitlines() if line.startswith("lineage: ")]


def check_loss(done: subprocess.CompletedProcess[str], reason: str) -> None:
    """The job is as it was; three lines say that lineage is on, that it does not arrive, and what is lost."""
    assert (done.returncode, done.stdout) == (0, "465\n"), done.stderr
    begin, warning, end = notices_of(done)
    assert begin.startswith("lineage: on for local-")
    assert re.search(r"delivered( so far)?: ", warning)
    assert reason in warning
    assert re.match(r"lineage: incomplete for local-\d+: \d+ of \d+ blocks of flows", end)
    assert reason in end


def test_a_program_ends_soon_beside_a_silent_broker_and_says_what_is_lost(
    silent_broker: str, tmp_path: Path
) -> None:
    done = run_script(tmp_path, silent_broker)  # which has a time-out
    check_loss(done, f"Kafka at {silent_broker} does not take them")
    assert warnings_of(done) == []


@pytest.mark.thorough
def test_a_quiet_application_says_nothing_of_its_loss(closed_port: str, tmp_path: Path) -> None:
    done = run_script(tmp_path, closed_port, **{"spark.lineage.quiet": "true"})
    assert (done.returncode, done.stdout) == (0, "465\n"), done.stderr
    assert "lineage" not in done.stderr


@pytest.mark.thorough
def test_a_driver_without_confluent_kafka_says_what_to_install(kafka: Any, tmp_path: Path) -> None:
    path = without_confluent_kafka(tmp_path)
    done = run_script(tmp_path, kafka.bootstrap_servers, {"PYTHONPATH": path})
    check_loss(done, f"confluent-kafka is not installed for {sys.executable}")


@pytest.mark.thorough
def test_executors_that_have_nothing_of_ours_are_told_of_by_the_driver(kafka: Any, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    venv.create(bare, symlinks=True)
    python = str(bare / "bin" / "python")
    environment = {"PYSPARK_PYTHON": python, **WITH_ZIP_OF_PYSPARK}
    done = run_script(tmp_path, kafka.bootstrap_servers, environment)
    check_loss(done, f"confluent-kafka is not installed for {python}")


@pytest.mark.thorough
def test_a_loss_is_one_warning_in_sparks_log_if_the_user_wants_it(closed_port: str, tmp_path: Path) -> None:
    done = run_script(tmp_path, closed_port, **{"spark.lineage.onError": "partial"})
    check_loss(done, f"Kafka at {closed_port} does not take them")
    (warning,) = warnings_of(done)
    assert " WARN " in warning
    assert f"incomplete; not all was delivered: Kafka at {closed_port} does not take them" in warning


# -- the sender by itself ---------------------------------------------------------------------------


@contextmanager
def sender_to(bootstrap_servers: str) -> Iterator[Sender]:
    settings = AgentSettings(bootstrap_servers=bootstrap_servers, delivery_timeout_s=0.5)
    with closing(Sender(settings, WaitBudget(settings.delivery_timeout_s))) as sender:
        yield sender


def test_a_sender_waits_once_and_then_no_more(closed_port: str) -> None:
    waits = []
    with sender_to(closed_port) as sender:
        for _ in range(3):
            delivery = Delivery()
            sender.send("topic", -1, b"key", b"message", delivery)
            assert sender.flush(delivery) == 1
            waits.append(delivery.waited_s)
            assert "Connection refused" in delivery.problem
        assert waits[0] >= 0.5
        assert waits[1:] == [0, 0]
        assert sender.wait_budget.is_paused


def test_a_full_queue_costs_one_wait(silent_broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer, "QUEUE_KBYTES", 64)
    delivery = Delivery()
    with sender_to(silent_broker) as sender:
        for _ in range(50):
            sender.send("topic", -1, b"key", bytes(10_000), delivery)
        assert delivery.failed >= 43
        waited_s = delivery.waited_s
        assert waited_s >= 0.5
        assert sender.flush(delivery) == 50
        assert delivery.waited_s == waited_s


def test_threads_that_come_at_once_share_one_sender(
    monkeypatch: pytest.MonkeyPatch, closed_port: str
) -> None:
    made = []

    class SlowSender:
        spool_delivery = None

        def __init__(self, _settings: AgentSettings, _wait_budget: WaitBudget, *_more: Any) -> None:
            made.append(self)
            time.sleep(0.05)

    monkeypatch.setattr(process_sender, "Sender", SlowSender)
    monkeypatch.setattr(process_sender, "process_sender", process_sender.ProcessSender())
    with ThreadPoolExecutor(8) as pool:
        given = set(pool.map(process_sender.sender_for, [AgentSettings(bootstrap_servers=closed_port)] * 8))
    assert given == set(made)
    assert len(made) == 1

"""A job beside a real broker that is killed, hangs, is slow or refuses: its rows, its waits, what is told.

What a failure costs in seconds is printed, and measured by `python -m perf.delivery`; asserted is what bounds
it.
"""

from __future__ import annotations

import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest
from pyspark import SparkConf, SparkContext

from lineage_api.app import create_app
from lineage_service.devstack.errors import DownloadError, JavaError
from perf.delivery.brokers import NO_CREATE, NO_WRITE, Broker, silent_listener
from spark_agent import agent, contract
from spark_agent.delivery import process_sender
from spark_agent.driver.event_publisher import EventPublisher
from tests.support.api_client import Client
from tests.support.spark.application import application_of, messages_of

SLOTS = 2
TIMEOUT_S = 2.0
#: Bytes in a second: one message takes longer than TIMEOUT_S, also where the job itself is slow.
SLOW = 100
DEADLINE_S = 400.0


@pytest.fixture(scope="module")
def one_broker(
    tmp_path_factory: pytest.TempPathFactory, jar_folder: Path, cannot_have: Callable[[str], NoReturn]
) -> Iterator[Broker]:
    with ExitStack() as cleanup:
        try:
            made = Broker(tmp_path_factory.mktemp("broker"), jar_folder, bytes_per_second=SLOW)
            broker = cleanup.enter_context(made)
        except (DownloadError, JavaError) as error:
            cannot_have(f"no kafka: {error}")
        yield broker


@pytest.fixture
def broker(one_broker: Broker) -> Iterator[Broker]:
    """A broker that runs, whatever the test before did to it."""
    one_broker.revive()
    yield one_broker
    one_broker.revive()


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Where the job's messages go, and what happens in the middle of its first and its second action."""

    name: str
    told: str  # what the user reads with onError=fail, as a pattern
    servers: Callable[[Broker], str] = lambda broker: broker.servers
    node: str = "node-"
    flow: str = "flow-"
    first: Callable[[Broker], None] | None = None
    second: Callable[[Broker], None] | None = None


SILENT = r"does not take them \(.+\): see that it runs and that spark\.lineage\.kafka\.bootstrap\.servers"
FAILURES = (
    Failure(name="is killed and comes back", told=SILENT, first=Broker.kill, second=Broker.start),
    Failure(name="hangs", told=SILENT, first=Broker.suspend),
    Failure(
        name="is slow",
        told=rf"takes them more slowly than the job makes them.*spark\.lineage\.delivery\.timeout|{SILENT}",
        servers=lambda broker: broker.slow_servers,
    ),
    Failure(name="refuses flows", told=rf"write to topic {NO_WRITE}flow.*grant its user", flow=NO_WRITE),
    Failure(name="refuses events", told=rf"write to topic {NO_WRITE}node.*grant its user", node=NO_WRITE),
    Failure(
        name="takes small messages", told=r"small-flow.*set the topic's max\.message\.byt", flow="small-"
    ),
    Failure(name="has no topic", told=rf"has no topic {NO_CREATE}flow.*create it", flow=NO_CREATE),
)
#: One that says no. One that says nothing takes long.
IN_SHORT = ("refuses flows",)


@dataclass
class Done:
    """What a run gave. `manifests` are those that the driver took, sent or not."""

    rows: dict[str, list[str]] = field(default_factory=dict)
    error: str = ""
    counters: dict[str, int] = field(default_factory=dict)
    manifests: list[dict[str, Any]] = field(default_factory=list)
    topics: dict[str, str] = field(default_factory=dict)
    application_id: str = ""
    seconds: float = 0.0


def stopping_at(marks: Path, name: str, at: str) -> Callable[[str], str]:
    """A function for `map`: says that it is at a record and goes on when it may."""
    reached, going = str(marks / name), str(marks / f"go-{name}")
    deadline_s = DEADLINE_S

    def stop(line: str) -> str:
        if line == at:
            Path(reached).touch()
            deadline = time.monotonic() + deadline_s
            while not Path(going).exists():
                if time.monotonic() > deadline:
                    raise TimeoutError(f"nobody made {going}")
                time.sleep(0.02)
        return line

    return stop


def job(context: SparkContext, folder: Path) -> None:
    """Two actions over two stages each."""
    lines = context.textFile(str(folder / "in.txt"), 6)
    evens = lines.map(stopping_at(folder, "first", "200")).filter(lambda line: int(line) % 2 == 0)
    pairs = evens.map(lambda line: (int(line) % 7, int(line)))
    pairs.reduceByKey(max, 3).saveAsTextFile(str(folder / "maxima"))
    thirds = lines.map(stopping_at(folder, "second", "300")).filter(lambda line: int(line) % 3 == 0)
    thirds.map(lambda line: (line[-1], line)).reduceByKey(min, 3).saveAsTextFile(str(folder / "minima"))


@contextmanager
def striking(folder: Path, failure: Failure | None, broker: Broker | None) -> Iterator[None]:
    """Does to the broker what the failure says when the job is there, and lets it go on."""

    def strike() -> None:
        for name in ("first", "second"):
            act = getattr(failure, name, None)
            deadline = time.monotonic() + DEADLINE_S
            while act is not None and not (folder / name).exists():
                if time.monotonic() > deadline or is_over.wait(0.02):
                    return
            if act is not None:
                act(broker)
            if failure is not None and act is Broker.start:
                drain()
            (folder / f"go-{name}").touch()

    is_over = threading.Event()
    thread = threading.Thread(target=strike, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(DEADLINE_S)


def drain() -> None:
    """Wait until the driver's producer has found the broker again and has nothing left to send."""
    sender = process_sender.process_sender.sender
    assert sender is not None
    assert sender._producer.flush(DEADLINE_S) == 0


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """run(failure, broker, servers=..., **conf) -> Done; without a failure the job runs without lineage."""

    def run(
        failure: Failure | None = None, broker: Broker | None = None, servers: str = "", **conf: str
    ) -> Done:
        folder = tmp_path / uuid.uuid4().hex
        folder.mkdir()
        (folder / "in.txt").write_text("".join(f"{number}\n" for number in range(20_000)))
        done = Done()
        settings = {
            "spark.master": f"local[{SLOTS}]",
            "spark.app.name": "failing",
            "spark.ui.enabled": "false",
            "spark.lineage.enabled": str(failure is not None).lower(),
            "spark.lineage.onError": "silent",
            "spark.lineage.spool.maxBytes": "0",
            **{name.replace("_", "."): value for name, value in conf.items()},
        }
        if failure is not None:
            unique = uuid.uuid4().hex[:10]
            done.topics = {"node": f"{failure.node}node-{unique}", "flow": f"{failure.flow}flow-{unique}"}
            settings["spark.lineage.kafka.bootstrap.servers"] = servers or failure.servers(_known(broker))
            settings |= {f"spark.lineage.topic.{name}": topic for name, topic in done.topics.items()}
            for topic in done.topics.values():
                if topic.startswith(("small-", NO_WRITE)):
                    config = {"max.message.bytes": "200"} if topic.startswith("small-") else {}
                    _known(broker).create_topic(topic, 6, config)
        emit = EventPublisher.emit

        def noting(self: Any, event_type: str, **fields: object) -> None:
            if event_type == contract.RUN_COMMITTED:
                done.manifests.append(dict(fields))
            emit(self, event_type, **fields)

        monkeypatch.setattr(EventPublisher, "emit", noting)
        begin = time.monotonic()
        context = SparkContext(conf=SparkConf().setAll(list(settings.items())))
        context.setLogLevel("OFF")
        done.application_id, running = context.applicationId, agent.active()
        try:
            with striking(folder, failure, broker):
                job(context, folder)
        except Exception as error:  # noqa: BLE001 - whatever the user of the job would read
            done.error = str(error)
        finally:
            context.stop()
        done.seconds = time.monotonic() - begin
        done.rows = {
            str(part.relative_to(folder)): part.read_text().splitlines() for part in folder.glob("*/part-*")
        }
        if running is not None:
            done.counters = running.session.events.counters
        return done

    return run


def _known(broker: Broker | None) -> Broker:
    assert broker is not None
    return broker


@pytest.fixture(scope="module")
def stock_runs() -> list[Done]:
    """Runs without lineage, of which the first test makes one."""
    return []


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(failure, marks=() if failure.name in IN_SHORT else pytest.mark.thorough)
        for failure in FAILURES
    ],
    ids=lambda failure: failure.name,
)
def test_a_job_beside_a_broker_that(
    failure: Failure, broker: Broker, run: Callable[..., Done], stock_runs: list[Done], tmp_path: Path
) -> None:
    if not stock_runs:
        stock_runs.append(run())
    stock, done = stock_runs[0], run(failure, broker)
    print(f"{failure.name}: {done.seconds - stock.seconds:+.1f} s, {done.counters}")
    assert (done.error, stock.error) == ("", "")
    assert done.rows == stock.rows
    assert len(done.rows) == 6
    # Each process waits in vain at most once, and what it waits in all is what may be waited.
    in_vain = [manifest for manifest in done.manifests if manifest["waited_ms"] >= 900 * TIMEOUT_S]
    assert len(in_vain) <= SLOTS, in_vain
    assert done.counters["dropped"] == sum(manifest["dropped"] for manifest in done.manifests)
    broker.revive()
    check_what_is_told(failure, broker, done, tmp_path)


def check_what_is_told(failure: Failure, broker: Broker, done: Done, tmp_path: Path) -> None:
    """The application says exactly then that it is complete when it is, counted in another way."""
    events = [] if failure.node == NO_WRITE else messages_of(broker.servers, done.topics["node"])
    blocks = [] if failure.flow == NO_CREATE else messages_of(broker.servers, done.topics["flow"])
    if not events:  # nothing is known of it: it cannot claim anything
        assert failure.node == NO_WRITE or failure.name == "is slow"
        return
    application = application_of(events, blocks, tmp_path / "store")
    answer = Client(create_app(application.questions)).get(f"/api/applications/{done.application_id}").json()
    stored = {(block.run, block.seq) for block in application.blocks}
    wanted = {(manifest["run"], seq) for manifest in done.manifests for seq in range(manifest["blocks"])}
    types = [event["type"] for event in application.events]
    is_complete = wanted <= stored and contract.APPLICATION_ENDED in types
    assert wanted, "the job has made no blocks"
    assert answer["complete"] is is_complete, (answer, len(wanted - stored))
    assert (answer["missing"] == "") is is_complete
    if contract.APPLICATION_ENDED not in types:
        assert "its end has not arrived" in answer["missing"]
        return
    assert answer["missing_blocks"] == len(wanted - stored)
    assert (answer["counters"]["missing_runs"], answer["counters"]["missing_events"]) == (0, 0)
    if failure.flow != "flow-":  # nothing of it could arrive, and the events say so and why
        assert answer["counters"]["dropped"] == len(wanted)
        assert re.search(failure.told, answer["missing"]), answer["missing"]


@pytest.mark.thorough
@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.name)
def test_with_on_error_fail_a_job_says_which_broker_and_what_to_do_if_it(
    failure: Failure, broker: Broker, run: Callable[..., Done]
) -> None:
    done = run(failure, broker, spark_lineage_onError="fail")
    check_error(failure, failure.servers(broker), done)


def test_with_on_error_fail_a_broker_that_never_says_a_word_fails_the_job(run: Callable[..., Done]) -> None:
    with silent_listener() as servers:
        failure = Failure(name="is silent", told=SILENT)
        check_error(failure, servers, run(failure, servers=servers, spark_lineage_onError="fail"))


def check_error(failure: Failure, servers: str, done: Done) -> None:
    print(done.error[-1500:])
    assert re.search(r"lineage of \S+( \d+)? is incomplete, and spark\.lineage\.onError=fail", done.error)
    assert servers in done.error
    assert re.search(failure.told, done.error), done.error[-3000:]


def test_a_process_for_each_task_does_not_mean_a_wait_for_each(
    broker: Broker, run: Callable[..., Done]
) -> None:
    (failure,) = [failure for failure in FAILURES if failure.name == "hangs"]
    done = run(failure, broker, spark_python_worker_reuse="false")
    assert done.error == ""
    in_vain = [manifest for manifest in done.manifests if manifest["waited_ms"] >= 900 * TIMEOUT_S]
    assert 1 <= len(in_vain) <= SLOTS, in_vain
    assert sum(manifest["dropped"] > 0 for manifest in done.manifests) > SLOTS

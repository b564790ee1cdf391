"""Messages to Kafka from any process of a Spark application, within bounded time and memory.

Promises that no call raises, that waits for a broker stay within the process's `WaitBudget`, and that
undelivered messages take at most `QUEUE_KBYTES`. Messages that nobody waits for still leave when the broker
takes them again. What was not delivered is counted, with the reason. Knows nothing of what it sends.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from spark_agent.delivery import kafka_client, kafka_errors
from spark_agent.delivery.settings import AgentSettings
from spark_agent.delivery.wait_budget import WaitBudget

logger = logging.getLogger("spark_agent")
logger.addHandler(logging.NullHandler())  # a job's own output stays its own

#: Memory that undelivered messages may take in one process: their bytes, and how many there are, since each
#: takes about a kilobyte beside its bytes.
QUEUE_KBYTES = 16_384
QUEUE_MESSAGES = 10_000
#: How often a wait looks whether another process has given up.
STEP_S = 0.1


class DeliveryError(RuntimeError):
    """Lineage could not be delivered and spark.lineage.onError=fail."""


class Delivery:
    """Counts what became of the messages of one run. `problem` says why the last of `failed` did."""

    __slots__ = ("failed", "pending", "problem", "waited_s")

    def __init__(self) -> None:
        self.pending = 0
        self.failed = 0
        self.problem = ""
        self.waited_s = 0.0

    def fail(self, problem: str) -> None:
        """One more message is lost."""
        self.failed += 1
        self.problem = problem


class Sender:
    """The Kafka producer of one process. `ProcessSender` makes it after the process was forked."""

    def __init__(self, settings: AgentSettings, wait_budget: WaitBudget, problem: str = "") -> None:
        """`problem` is why delivery will fail, as far as it is clear before anything was sent."""
        self.wait_budget = wait_budget
        self._servers = settings.bootstrap_servers
        self._heard_at = 0.0
        self._problem = problem
        noticed = self._noticed = [""]  # the last trouble with connections; no cycle through the client

        def note(error: Any) -> None:
            noticed[0] = kafka_errors.of_connection(error, noticed[0])

        self._producer: Any = kafka_client.producer(
            {
                **dict(settings.client),
                "bootstrap.servers": settings.bootstrap_servers,
                "client.id": f"lineage-agent-{os.getpid()}",
                # Keeps the order of events where one is sent again. Idempotence would too, but then each
                # process waits half a second for its number, and consumers must put up with doubles anyway.
                "max.in.flight.requests.per.connection": 1,
                "compression.type": "zstd",
                "compression.level": 1,
                "linger.ms": 50,
                "batch.size": 1_000_000,
                "queue.buffering.max.kbytes": QUEUE_KBYTES,
                "queue.buffering.max.messages": QUEUE_MESSAGES,
                # A broker that is away for shorter gets all that the queue holds.
                "message.timeout.ms": 300_000,
                # A topic that was just made is known everywhere within seconds, also where brokers are busy.
                "topic.metadata.propagation.max.ms": 10_000,
                "socket.connection.setup.timeout.ms": 2_000,
                # After a restart of the broker the next attempt comes soon.
                "reconnect.backoff.max.ms": 2_000,
                "log_level": 0,
                "error_cb": note,
            }
        )

    def send(self, topic: str, partition: int, key: bytes, message: bytes, delivery: Delivery) -> None:
        """Queue one message; a partition of -1 leaves the choice to the key."""
        place = {} if partition < 0 else {"partition": partition}
        begin = deadline = 0.0
        while True:
            try:
                self._producer.produce(
                    topic, value=message, key=key, on_delivery=partial(self._report, delivery, topic), **place
                )
            except BufferError:  # the queue is full: the broker is slower than the job, or gone
                if not begin:
                    begin = time.monotonic()
                    deadline = begin + self.wait_budget.allowed_s()
                if time.monotonic() >= deadline or self.wait_budget.is_paused:
                    self._end_wait(begin, delivery, is_answered=False)
                    delivery.fail(self._why(begin))
                    return
                self._producer.poll(STEP_S)
            except Exception as error:  # noqa: BLE001 - too large, unknown partition: drop, count, go on
                logger.warning("lineage message to %s dropped: %s", topic, error)
                cause = error.args[0] if error.args else error
                delivery.fail(kafka_errors.explain(cause, topic, self._servers))
                return
            else:
                delivery.pending += 1
                if begin:
                    self._end_wait(begin, delivery, is_answered=True)
                self._producer.poll(0)
                return

    def flush(self, delivery: Delivery, at_least_s: float = 0.0) -> int:
        """Wait, within the wait budget, until each message of `delivery` was delivered or failed.

        Returns how many were not delivered; `delivery.pending` of them may still be. With `at_least_s` it
        waits for so long even if the budget is spent.
        """
        if delivery.pending:
            self._producer.poll(0)
        if delivery.pending:
            begin = time.monotonic()
            allowed_s = max(self.wait_budget.allowed_s(), at_least_s)
            until, sure = begin + allowed_s, begin + at_least_s
            while delivery.pending and (now := time.monotonic()) < until:
                if now >= sure and self.wait_budget.is_paused:
                    break  # another process has waited in vain
                self._producer.flush(min(until - now, STEP_S))
            if allowed_s:
                self._end_wait(begin, delivery, is_answered=not delivery.pending)
            if delivery.pending:
                delivery.problem = delivery.problem or self._why(begin)
        return delivery.failed + delivery.pending

    def _end_wait(self, begin: float, delivery: Delivery, *, is_answered: bool) -> None:
        delivery.waited_s += time.monotonic() - begin
        self.wait_budget.charge(begin, is_answered=is_answered)

    def _report(self, delivery: Delivery, topic: str, error: Any, _message: object) -> None:
        """librdkafka's delivery report: called once for each message, from `poll` or `flush`."""
        delivery.pending -= 1
        if error is None:
            self._heard_at, self._problem, self._noticed[0] = time.monotonic(), "", ""
            self.wait_budget.answered()
        else:
            delivery.fail(kafka_errors.explain(error, topic, self._servers))

    def _why(self, since: float) -> str:
        """Why messages are still here: nothing was taken since then, or too little."""
        if self._heard_at >= since:
            return kafka_errors.slow(self._servers)
        return self._problem or kafka_errors.silent(self._servers, self._noticed[0])

    def pause_reason(self) -> str:
        """Why nothing waits for the broker now; empty when something would."""
        return self._why(time.monotonic()) if self.wait_budget.is_paused else ""

    def close(self) -> None:
        """Let go of what was not delivered."""
        self._producer.purge()
        self._producer.poll(0)


class ProcessSender:
    """The sender of one process, made when it is first needed.

    Module state, since Spark reuses a Python worker for many tasks: a producer for each task would connect
    again, and lose what its queue still holds.
    """

    def __init__(self) -> None:
        self.sender: Sender | None = None
        #: Why there is no sender; empty when there is one.
        self.unavailable = ""
        self._owner: tuple[int, AgentSettings] | None = None  # set when `sender` is, also to None
        self._lock = threading.Lock()

    def get(
        self, settings: AgentSettings, shared: Callable[[], str] | None = None, problem: str = ""
    ) -> Sender | None:
        """The sender of this process, or None where there can be none: `unavailable` says why.

        `shared` gives the file by which processes share their wait budget. With a `problem`, which is why
        nothing will be delivered, a new sender begins with a pause.
        """
        owner = (os.getpid(), settings)
        if self._owner != owner:
            # Two threads of the driver may come at once; a second producer would lose its messages.
            with self._lock:
                if self._owner != owner:
                    self._replace(owner, shared, problem)
        return self.sender

    def _replace(
        self, owner: tuple[int, AgentSettings], shared: Callable[[], str] | None, problem: str
    ) -> None:
        process, settings = owner
        if self.sender is not None and self._owner is not None and self._owner[0] == process:
            self.sender.close()
        self.sender, self.unavailable = None, ""
        try:
            self.sender = _new_sender(settings, shared, problem)
        except ImportError:
            self.unavailable = kafka_errors.missing_client()
        except Exception as error:  # noqa: BLE001 - a bad address must not fail the job
            self.unavailable = f"no Kafka producer for {settings.bootstrap_servers}: {error}"
        if self.unavailable:
            logger.warning("no lineage leaves this process: %s", self.unavailable)
        self._owner = owner


def _new_sender(settings: AgentSettings, shared: Callable[[], str] | None, problem: str) -> Sender:
    wait_budget = WaitBudget(
        settings.delivery_timeout_s,
        shared() if shared is not None else None,
        forgives_answers=settings.on_error == "fail",
    )
    if problem:
        wait_budget.pause()
    return Sender(settings, wait_budget, problem)


process_sender: Final = ProcessSender()


def sender_for(settings: AgentSettings) -> Sender | None:
    """The sender of this process; None where there can be none: `process_sender.unavailable` says why."""
    return process_sender.get(settings)


def sender_in_worker(settings: AgentSettings, application_id: str, problem: str) -> Sender | None:
    """`sender_for`, whose waits count together with those of the executor's other worker processes."""

    def shared() -> str:
        from pyspark import SparkFiles

        # A folder of this application alone, which goes with it.
        return os.path.join(SparkFiles.getRootDirectory(), f".lineage-waits-{application_id}")

    return process_sender.get(settings, shared, problem)

"""Messages to Kafka from any process of a Spark application, within bounded time and memory.

Promises that no call raises and that an unreachable broker costs one wait of `delivery_timeout_s` per
process: after a wait that did not help, messages are dropped at once until a pause is over. What was not
delivered is counted, so that the manifest can say so. Knows nothing of what it sends.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from typing import Any

from spark_agent.settings import AgentSettings

logger = logging.getLogger("spark_agent")
logger.addHandler(logging.NullHandler())  # a job's own output stays its own

#: After a wait that failed, the next attempt to deliver is made this many seconds later; then twice as many.
PAUSE_S = 20.0
MAX_PAUSE_S = 600.0
#: Memory that undelivered messages may take in one process.
QUEUE_KBYTES = 32_768


class Delivery:
    """Counts what became of the messages of one run."""

    __slots__ = ("failed", "pending")

    def __init__(self) -> None:
        self.pending = 0
        self.failed = 0

    def report(self, error: object, _message: object) -> None:
        """librdkafka's delivery report: called once for each message, from `poll` or `flush`."""
        self.pending -= 1
        if error is not None:
            self.failed += 1


class Sender:
    """The Kafka producer of one process. `sender_for` makes it after the process was forked."""

    def __init__(self, settings: AgentSettings) -> None:
        from confluent_kafka import Producer  # a C extension: never imported before it is needed

        self._timeout_s = settings.delivery_timeout_s
        self._paused_until = 0.0
        self._pause_s = PAUSE_S
        self._producer: Any = Producer(
            {
                "bootstrap.servers": settings.bootstrap_servers,
                "client.id": f"lineage-agent-{os.getpid()}",
                "enable.idempotence": True,
                "compression.type": "zstd",
                "compression.level": 1,
                "linger.ms": 50,
                "batch.size": 1_000_000,
                "queue.buffering.max.kbytes": QUEUE_KBYTES,
                "message.timeout.ms": 30_000,
                "socket.connection.setup.timeout.ms": 2_000,
                "log_level": 0,
                "error_cb": lambda _error: None,
            }
        )

    @property
    def is_paused(self) -> bool:
        return time.monotonic() < self._paused_until

    def send(self, topic: str, partition: int, key: bytes, message: bytes, delivery: Delivery) -> None:
        """Queue one message; a partition of -1 leaves the choice to the key."""
        delivery.pending += 1
        if self.is_paused:
            delivery.report("paused", None)
            return
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                if partition < 0:
                    self._producer.produce(topic, value=message, key=key, on_delivery=delivery.report)
                else:
                    self._producer.produce(
                        topic, value=message, key=key, partition=partition, on_delivery=delivery.report
                    )
            except BufferError:  # the queue is full: the broker is slower than the job, or gone
                self._producer.poll(0.05)
                if time.monotonic() > deadline:
                    self._pause()
                    delivery.report("full", None)
                    return
            except Exception as error:  # noqa: BLE001 - too large, unknown partition: drop, count, go on
                logger.warning("lineage message to %s dropped: %s", topic, error)
                delivery.report(error, None)
                return
            else:
                self._producer.poll(0)
                return

    def settle(self, delivery: Delivery) -> int:
        """Wait until each message of `delivery` arrived or failed; the number that did not arrive."""
        if delivery.pending and not self.is_paused:
            deadline = time.monotonic() + self._timeout_s
            while delivery.pending and (left := deadline - time.monotonic()) > 0:
                self._producer.flush(min(left, 0.2))
            if delivery.pending:
                self._pause()
            else:
                self._pause_s = PAUSE_S
        return delivery.failed + delivery.pending

    def _pause(self) -> None:
        logger.warning("lineage is dropped for %.0f s: the Kafka broker does not take it", self._pause_s)
        self._paused_until = time.monotonic() + self._pause_s
        self._pause_s = min(2 * self._pause_s, MAX_PAUSE_S)

    def partitions(self, topic: str, timeout_s: float) -> int:
        """Number of partitions of `topic`, 0 when the broker or the topic is not there."""
        try:
            metadata = self._producer.list_topics(topic, timeout=timeout_s)
        except Exception as error:  # noqa: BLE001 - any client error means: not reachable now
            logger.warning("Kafka does not answer: %s", error)
            return 0
        found = metadata.topics.get(topic)
        return 0 if found is None or found.error is not None else len(found.partitions)


_sender: Sender | None = None
_sender_of: tuple[int, AgentSettings] | None = None  # set when `_sender` is, also to None
_making = threading.Lock()
#: Why this process has no sender; empty when it has one.
unavailable = ""


def sender_for(settings: AgentSettings) -> Sender | None:
    """This process's sender, or None where there can be none: `unavailable` says why."""
    global _sender, _sender_of, unavailable
    owner = (os.getpid(), settings)
    if _sender_of == owner:
        return _sender
    with _making:  # two threads of the driver may come at once; a second producer would lose its messages
        if _sender_of != owner:
            _sender, unavailable = None, ""
            try:
                _sender = Sender(settings)
            except ImportError:
                unavailable = (
                    f"confluent-kafka is not installed for {sys.executable}; "
                    "install it with `pip install confluent-kafka`"
                )
            except Exception as error:  # noqa: BLE001 - a bad address must not fail the job
                unavailable = f"no Kafka producer for {settings.bootstrap_servers}: {error}"
            if unavailable:
                logger.warning("no lineage leaves this process: %s", unavailable)
            _sender_of = owner
    return _sender


def create_topics(settings: AgentSettings, wanted: dict[str, int], timeout_s: float) -> bool:
    """Create missing topics with their partition counts where the broker allows it; False: no broker."""
    is_there = False
    try:
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient(
            {"bootstrap.servers": settings.bootstrap_servers, "log_level": 0, "error_cb": lambda _error: None}
        )
        existing = admin.list_topics(timeout=timeout_s).topics
        is_there = True
        missing = [NewTopic(name, count) for name, count in wanted.items() if name not in existing]
        for future in admin.create_topics(missing).values() if missing else ():
            future.result(timeout_s)
    except Exception as error:  # noqa: BLE001 - another agent may have made them, or the broker forbids it
        logger.info("topics were not created: %s", error)
    return is_there

"""Messages to Kafka from any process of a Spark application, within bounded time and memory.

Promises that no call raises and that an unreachable broker costs one wait of `delivery_timeout_s` per
process: after a wait that did not help, messages are dropped at once until a pause is over. What was not
delivered is counted, so that the manifest can say so. Knows nothing of what it sends.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from typing import Any

from spark_agent.settings import AgentSettings

logger = logging.getLogger("spark_agent")
logger.addHandler(logging.NullHandler())  # a job's own output stays its own

#: After a wait that failed, the next attempt to deliver is made this many seconds later.
PAUSE_S = 20.0
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
        return delivery.failed + delivery.pending

    def _pause(self) -> None:
        logger.warning("lineage is dropped for %.0f s: the Kafka broker does not take it", PAUSE_S)
        self._paused_until = time.monotonic() + PAUSE_S

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
_sender_of: tuple[int, AgentSettings] | None = None
_is_unavailable = False


def sender_for(settings: AgentSettings) -> Sender | None:
    """This process's sender, or None where confluent-kafka is not installed (one warning a process)."""
    global _sender, _sender_of, _is_unavailable
    if _is_unavailable:
        return None
    owner = (os.getpid(), settings)
    if _sender is None or _sender_of != owner:
        try:
            _sender, _sender_of = Sender(settings), owner
        except ImportError:
            _is_unavailable = True
            logger.warning(
                "confluent-kafka is not installed for %s: no lineage leaves this process; "
                "install it with `pip install confluent-kafka`",
                sys.executable,
            )
            return None
        except Exception as error:  # noqa: BLE001 - a bad address must not fail the job
            _is_unavailable = True
            logger.warning("no Kafka producer for %s: %s", settings.bootstrap_servers, error)
            return None
    return _sender


def create_topics(settings: AgentSettings, wanted: dict[str, int], timeout_s: float) -> None:
    """Create missing topics with their partition counts where the broker allows it; never raises."""
    try:
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient(
            {"bootstrap.servers": settings.bootstrap_servers, "log_level": 0, "error_cb": lambda _error: None}
        )
        existing = admin.list_topics(timeout=timeout_s).topics
        missing = [NewTopic(name, count) for name, count in wanted.items() if name not in existing]
        for future in admin.create_topics(missing).values() if missing else ():
            future.result(timeout_s)
    except Exception as error:  # noqa: BLE001 - another agent may have made them, or the broker forbids it
        logger.info("topics were not created: %s", error)

"""Messages to Kafka from any process of a Spark application, within bounded time and memory.

Promises that no call raises, that waits for a broker stay within the process's `WaitBudget`, and that
undelivered messages take at most `QUEUE_KBYTES`. What the broker does not take in time goes into the spool,
and from there to the broker. What has no room there is lost, and counted, with the reason. Knows nothing of
what it sends.
"""

from __future__ import annotations

import os
import threading
import time
from functools import partial
from typing import Any, NamedTuple

from spark_agent.contract.spool_files import SpooledMessage
from spark_agent.delivery import kafka_client, kafka_errors
from spark_agent.delivery.log import logger
from spark_agent.delivery.settings import AgentSettings
from spark_agent.delivery.spool import Spool
from spark_agent.delivery.spool_delivery import SpoolDelivery
from spark_agent.delivery.wait_budget import WaitBudget

#: Memory that undelivered messages may take in one process: their bytes, and how many there are, since each
#: takes about a kilobyte beside its bytes.
QUEUE_KBYTES = 16_384
QUEUE_MESSAGES = 10_000
#: How often a wait looks whether another process has given up.
STEP_S = 0.1
#: How long one process waits in all for the client to give back what it was asked for. It does so at once,
#: unless its thread gets no turn on a busy machine: what it holds by then would be lost with the process.
GIVEN_BACK_S = 5.0


class DeliveryError(RuntimeError):
    """Lineage could not be delivered and spark.lineage.onError=fail."""


class Delivery:
    """Counts what became of the messages of one run.

    `problem` says why the last of `failed` or `spooled` did not arrive.
    """

    __slots__ = ("failed", "pending", "problem", "spooled", "waited_s")

    def __init__(self) -> None:
        self.pending = 0
        self.failed = 0
        self.spooled = 0
        self.problem = ""
        self.waited_s = 0.0

    def fail(self, problem: str) -> None:
        """One more message is lost."""
        self.failed += 1
        self.problem = problem


class Sender:
    """The Kafka producer of one process. `ProcessSender` makes it after the process was forked."""

    def __init__(
        self, settings: AgentSettings, wait_budget: WaitBudget, problem: str = "", spool: Spool | None = None
    ) -> None:
        """`problem` is why delivery will fail, as far as it is clear before anything was sent."""
        self.wait_budget = wait_budget
        self.spool = spool
        self.spool_delivery = None if spool is None else SpoolDelivery(spool, settings, wait_budget.answered)
        self._servers = settings.bootstrap_servers
        self._heard_at = self._empty_at = 0.0
        self._given_back_s = GIVEN_BACK_S
        self._problem = problem
        self._returned: list[_Returned] = []
        self._lock = threading.RLock()
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
        report = partial(self._report, delivery, topic, partition)
        begin = deadline = 0.0
        while True:
            try:
                self._producer.produce(topic, value=message, key=key, on_delivery=report, **place)
            except BufferError:  # the queue is full: the broker is slower than the job, or gone
                if not begin:
                    begin = time.monotonic()
                    deadline = begin + self.wait_budget.allowed_s()
                if time.monotonic() < deadline and not self.wait_budget.is_paused:
                    self._producer.poll(STEP_S)
                    continue
                self._end_wait(begin, delivery, is_answered=False)
                reason = self._why(begin)
                if not self.spool_pending(reason):
                    delivery.fail(reason)
                    return
                begin = 0.0  # now there is room
            except Exception as error:  # noqa: BLE001 - too large, unknown partition: go on without it
                self._refused(SpooledMessage(topic, partition, key, message), error, delivery)
                return
            else:
                delivery.pending += 1
                if begin:
                    self._end_wait(begin, delivery, is_answered=True)
                self._producer.poll(0)
                if self._returned:
                    self._spool_returned()
                return

    def _refused(self, message: SpooledMessage, error: Exception, delivery: Delivery) -> None:
        """The client did not even queue it."""
        cause = error.args[0] if error.args else error
        reason = kafka_errors.explain(cause, message.topic, self._servers)
        if kafka_errors.is_of_message(cause) or self.spool is None:
            logger.warning("lineage message to %s dropped: %s", message.topic, error)
            delivery.fail(reason)
        else:
            self._set_aside([_Returned(message, delivery, reason)])

    def flush(self, delivery: Delivery, at_least_s: float = 0.0) -> int:
        """Wait, within the wait budget, until each message of `delivery` was delivered or failed.

        What was not is put into the spool. Returns how many have no place there either; `delivery.pending`
        of them may still be delivered. With `at_least_s` it waits for so long even if the budget is spent.
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
                self.spool_pending(delivery.problem)
        self._spool_returned()
        return delivery.failed + delivery.pending

    def _end_wait(self, begin: float, delivery: Delivery, *, is_answered: bool) -> None:
        delivery.waited_s += time.monotonic() - begin
        self.wait_budget.charge(begin, is_answered=is_answered)

    def _report(self, delivery: Delivery, topic: str, partition: int, error: Any, message: Any) -> None:
        """librdkafka's delivery report: called once for each message, from `poll`, `flush` or `purge`."""
        with self._lock:
            delivery.pending -= 1
            if error is None:
                self._heard_at, self._problem, self._noticed[0] = time.monotonic(), "", ""
                self.wait_budget.answered()
                return
            reason = (
                self._why(time.monotonic())
                if kafka_errors.is_purge(error)
                else kafka_errors.explain(error, topic, self._servers)
            )
            if self.spool is None or kafka_errors.is_of_message(error):
                delivery.fail(reason)
                return
            spooled = SpooledMessage(topic, partition, message.key() or b"", message.value() or b"")
            self._returned.append(_Returned(spooled, delivery, reason))

    def _why(self, since: float) -> str:
        """Why messages are still here: nothing was taken since then, or too little."""
        if self._heard_at >= since:
            return kafka_errors.slow(self._servers)
        return self._problem or kafka_errors.silent(self._servers, self._noticed[0])

    def pause_reason(self) -> str:
        """Why nothing waits for the broker now; empty when something would."""
        return self._why(time.monotonic()) if self.wait_budget.is_paused else ""

    # -- the spool -----------------------------------------------------------------------------------

    def set_aside(
        self, topic: str, partition: int, key: bytes, message: bytes, delivery: Delivery, reason: str
    ) -> None:
        """Put one message into the spool at once, since there is no use in sending it now."""
        self._set_aside([_Returned(SpooledMessage(topic, partition, key, message), delivery, reason)])

    def spool_pending(self, reason: str) -> bool:
        """Move what the client has not delivered into the spool. False where the spool takes nothing."""
        if self.spool is None or self.spool.problem():
            return False
        with self._lock:
            self._producer.purge()
            begin = time.monotonic()
            self._producer.poll(0)
            while len(self._producer) and time.monotonic() - begin < self._given_back_s:
                self._producer.poll(STEP_S / 10)  # requests that are under way
            self._given_back_s = max(STEP_S, self._given_back_s - (time.monotonic() - begin))
            self._spool_returned(reason)
        return True

    def spool_stale(self, after_s: float) -> None:
        """Put into the spool what waits for longer than this, though nobody waits for it. Never raises."""
        now = time.monotonic()
        self._producer.poll(0)
        if not len(self._producer):
            self._empty_at = now
        elif now - max(self._empty_at, self._heard_at) > after_s:
            self.spool_pending(self._why(now))
        self._spool_returned()

    def _spool_returned(self, reason: str = "") -> None:
        """Put what the client has given back into the spool. `reason`: why it was taken from the client."""
        if not self._returned:
            return
        with self._lock:
            returned, self._returned = self._returned, []
        self._set_aside([entry._replace(reason=reason or entry.reason) for entry in returned])

    def _set_aside(self, returned: list[_Returned]) -> None:
        problem = (
            "there is no spool" if self.spool is None else self.spool.write([e.message for e in returned])
        )
        for entry in returned:
            if problem:
                entry.delivery.fail(f"{entry.reason}; {problem}")
            else:
                entry.delivery.spooled += 1
                entry.delivery.problem = entry.reason
        if self.spool_delivery is not None and not problem:
            self.spool_delivery.start()

    def close(self) -> None:
        """Let go of what was not delivered; it goes into the spool, if there is one."""
        if not self.spool_pending("its process has ended"):
            self._producer.purge()
            self._producer.poll(0)
        if self.spool is not None:
            self.spool.close()


class _Returned(NamedTuple):
    """A message that the client did not deliver, and why."""

    message: SpooledMessage
    delivery: Delivery
    reason: str

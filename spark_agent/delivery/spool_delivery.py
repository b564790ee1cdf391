"""Sends what waits in a spool, in a thread of its own, for as long as there is something.

It takes the files of its own process and those whose process has ended, if they are for the same brokers.
Promises at least once: a file is removed when the broker has acknowledged all of its messages. Promises that
nobody waits for it but who asks to, that its memory is bounded, and that nothing is raised.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from spark_agent import contract
from spark_agent.contract import kafka_config, spool_files
from spark_agent.contract.spool_files import ClaimedFile, SpooledMessage
from spark_agent.delivery import kafka_client, topics
from spark_agent.delivery.settings import AgentSettings
from spark_agent.delivery.spool import Spool

#: Between attempts while the broker does not take anything.
PAUSE_S, MAX_PAUSE_S = 0.5, 15.0
#: So many bytes of messages are under way at most, of so many files.
WINDOW_BYTES = 8_000_000
GROUP_BYTES, GROUP_FILES = 16_000_000, 200
#: How long a broker may take for an answer. Nobody waits for it here.
ANSWER_S = 120.0
#: So long the first attempt to make topics may take; each further one twice as long. A request that came
#: while the broker stood still may never be answered, and one that is merely late answers a longer attempt.
TOPICS_S, MAX_TOPICS_S = 10.0, 240.0


class SpoolDelivery:
    """The deliverer of one process. `answered` is called when the broker has taken something."""

    def __init__(self, spool: Spool, settings: AgentSettings, answered: Callable[[], None]) -> None:
        self._spool, self._settings, self._answered = spool, settings, answered
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._producer: Any = None
        self._partitions: dict[str, int] = {}
        self._topics_s = TOPICS_S

    def start(self) -> None:
        """Send what waits, beside whoever calls. Does nothing while it does so already."""
        with self._lock:
            if self._thread is None and self._spool.waiting():
                self._thread = threading.Thread(target=self._run, name="lineage-spool", daemon=True)
                self._thread.start()

    def finish(self, within_s: float) -> bool:
        """Wait until nothing waits any longer that this process may send. False where something does."""
        self._wake.set()
        self.start()
        thread = self._thread
        if thread is not None:
            thread.join(within_s)
        return self._thread is None

    def _run(self) -> None:
        pause_s = PAUSE_S
        while True:
            try:
                is_left, is_sent = self._send_files()
            except Exception:  # noqa: BLE001 - an agent bug, or a disk that fails: the files stay
                is_left, is_sent = True, False
            if not is_left:
                with self._lock:
                    if not self._own_files():
                        self._thread, self._producer = None, None
                        return
            if is_sent:
                pause_s = PAUSE_S
                continue
            pause_s = min(2 * pause_s, MAX_PAUSE_S)
            self._wake.wait(pause_s)
            self._wake.clear()

    def _own_files(self) -> list[str]:
        return [path for path in self._spool.waiting() if path in spool_files.own_files.paths]

    def _send_files(self) -> tuple[bool, bool]:
        """(is something left that this process may send?, was something sent?)"""
        self._spool.close()
        with ExitStack() as claims:
            files = self._claimed(claims)
            if not files:
                return False, False
            if not self._sent(files):
                return True, False
            for claimed in files:
                claimed.remove()
        return True, True  # there may be more

    def _claimed(self, claims: ExitStack) -> list[ClaimedFile]:
        """Files that this process may send, as many as go together: a slow broker answers once for all."""
        files: list[ClaimedFile] = []
        size = 0
        for path in self._spool.waiting():
            try:
                claimed = spool_files.claim(path)
            except OSError:  # of another user, on a shared folder
                continue
            if claimed is None:
                continue
            if claimed.head is not None and claimed.head.servers != self._spool.servers:
                claimed.__exit__()  # for those who send to these brokers
                continue
            files.append(claims.enter_context(claimed))
            size += os.path.getsize(path)
            if size >= GROUP_BYTES or len(files) >= GROUP_FILES:
                break
        return files

    def _sent(self, files: list[ClaimedFile]) -> bool:
        """Send all messages of these files. True when all of them were acknowledged."""
        batch = _Batch()
        for claimed in files:
            for message in claimed.messages():
                if not self._send(message, batch):
                    return False
                if batch.bytes >= WINDOW_BYTES and not self._acknowledged(batch):
                    return False
        return self._acknowledged(batch)

    def _send(self, message: SpooledMessage, batch: _Batch) -> bool:
        count = self._partitions_of(message)
        if not count:
            return False
        place = {} if message.partition < 0 else {"partition": message.partition % count}
        producer = self._connected()
        while True:
            try:
                producer.produce(
                    message.topic, value=message.value, key=message.key, on_delivery=batch.report, **place
                )
            except BufferError:
                producer.poll(0.1)
                continue
            except Exception:  # noqa: BLE001 - the topic has other partitions by now, say
                self._partitions.clear()
                return False
            batch.pending += 1
            batch.bytes += len(message.value)
            producer.poll(0)
            return True

    def _acknowledged(self, batch: _Batch) -> bool:
        """Wait for the acknowledgements of what is under way, however long they take."""
        producer = self._connected()
        until = time.monotonic() + 4 * ANSWER_S
        while batch.pending and not batch.failed and time.monotonic() < until:
            producer.poll(0.5)
        if batch.pending or batch.failed:
            producer.purge()
            producer.poll(0)
            self._producer = None  # what is purged may be purged a moment later
            return False
        batch.bytes = 0
        self._answered()
        return True

    def _partitions_of(self, message: SpooledMessage) -> int:
        """How many partitions the topic of a message has; 0 where it is not there and cannot be made."""
        topic = message.topic
        if topic not in self._partitions:
            count = contract.NODE_PARTITIONS if message.partition < 0 else contract.FLOW_PARTITIONS
            existing, _problem = topics.create_missing_topics(self._settings, {topic: count}, self._topics_s)
            self._partitions.update(existing)
            self._topics_s = TOPICS_S if existing else min(2 * self._topics_s, MAX_TOPICS_S)
        return self._partitions.get(topic, 0)

    def _connected(self) -> Any:
        """A producer of its own: the process's other one gives up early, and this one does not."""
        if self._producer is None:
            self._producer = kafka_client.producer(
                {
                    **dict(self._settings.client),
                    **kafka_config.patience(ANSWER_S),
                    "bootstrap.servers": self._settings.bootstrap_servers,
                    "client.id": f"lineage-spool-{os.getpid()}",
                    "compression.type": "zstd",
                    "compression.level": 1,
                    "linger.ms": 5,
                    "request.timeout.ms": int(1000 * ANSWER_S),
                    "message.timeout.ms": int(4000 * ANSWER_S),
                    "reconnect.backoff.max.ms": 2_000,
                    "log_level": 0,
                }
            )
        return self._producer


class _Batch:
    """Messages of a file that are under way."""

    def __init__(self) -> None:
        self.pending = self.bytes = self.failed = 0

    def report(self, error: Any, _message: object) -> None:
        """librdkafka's delivery report of one message."""
        self.pending -= 1
        self.failed += error is not None

"""The two topics of an application, created beside the start of its job.

A message that comes before its topic would make Kafka create that topic with too few partitions. So events
wait until `prepare` has called back. Promises that no wait is longer than `spark.lineage.delivery.timeout`.
A broker that is slower than that is asked again and again, for as long as the application runs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from spark_agent import contract
from spark_agent.delivery import process_sender, producer, topics
from spark_agent.delivery.settings import AgentSettings

#: Between attempts, and how long the first later attempt may take, and the longest: nobody waits for them.
RETRY_S, LATER_S, MAX_LATER_S = 2.0, 10.0, 240.0


class Topics:
    """What is known of the topics. `problem` says why one or both are missing; empty where neither is."""

    def __init__(self, settings: AgentSettings) -> None:
        self._settings = settings
        self._thread: threading.Thread | None = None
        self._ready_by = 0.0
        self._was_asked, self._is_over = threading.Event(), threading.Event()
        self.flow_partitions: int = contract.FLOW_PARTITIONS
        self.problem = ""
        self.flow_problem = ""  # why the flow topic is missing although the node topic is not

    def prepare(self, on_answer: Callable[[bool], None]) -> None:
        """Create missing topics in a thread. Calls `on_answer` once or twice: is at least one topic there?

        With False within the delivery timeout, if no broker has answered by then; with True when one has.
        """
        self._thread = threading.Thread(
            target=self._prepare, args=(on_answer,), name="lineage-topics", daemon=True
        )
        self._ready_by = time.monotonic() + self._settings.delivery_timeout_s
        self._thread.start()

    def stop(self) -> None:
        """Ask no longer."""
        self._is_over.set()

    def _prepare(self, on_answer: Callable[[bool], None]) -> None:
        is_there = self._ask(None)
        on_answer(is_there)
        self._was_asked.set()
        later_s = LATER_S
        while not is_there and not self._is_over.wait(RETRY_S):
            is_there = self._ask(later_s)
            later_s = min(2 * later_s, MAX_LATER_S)
            if is_there:
                on_answer(True)

    def _ask(self, within_s: float | None) -> bool:
        node_topic, flow_topic = self._settings.node_topic, self._settings.flow_topic
        counts = {node_topic: contract.NODE_PARTITIONS, flow_topic: contract.FLOW_PARTITIONS}
        partitions, self.problem = topics.create_missing_topics(self._settings, counts, within_s)
        self.flow_problem = self.problem if partitions and flow_topic not in partitions else ""
        self.flow_partitions = partitions.get(flow_topic) or contract.FLOW_PARTITIONS
        return bool(partitions)

    def wait(self) -> float:
        """Wait until the topics are prepared. Returns the seconds that it took.

        The job's own start has taken a part of the time already.
        """
        if self._thread is None or self._was_asked.is_set():
            return 0.0
        begin = time.monotonic()
        self._was_asked.wait(max(0.0, self._ready_by + producer.STEP_S - begin))
        waited_s = time.monotonic() - begin
        sender = process_sender.sender_for(self._settings)
        if sender is not None:
            sender.wait_budget.charge(begin, is_answered=True)
        return waited_s

"""The two topics of an application, created beside the start of its job.

A message that comes before its topic would make Kafka create that topic with too few partitions. So events
wait until `prepare` has called back. Promises that no wait is longer than `spark.lineage.delivery.timeout`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from spark_agent import contract
from spark_agent.delivery import producer, topics
from spark_agent.delivery.settings import AgentSettings


class Topics:
    """What is known of the topics. `problem` says why one or both are missing; empty where neither is."""

    def __init__(self, settings: AgentSettings) -> None:
        self._settings = settings
        self._thread: threading.Thread | None = None
        self._ready_by = 0.0
        self.flow_partitions: int = contract.FLOW_PARTITIONS
        self.problem = ""
        self.flow_problem = ""  # why the flow topic is missing although the node topic is not

    def prepare(self, on_ready: Callable[[bool], None]) -> None:
        """Create missing topics in a thread, then call `on_ready`: is at least one topic there?"""
        self._thread = threading.Thread(
            target=self._prepare, args=(on_ready,), name="lineage-topics", daemon=True
        )
        self._ready_by = time.monotonic() + self._settings.delivery_timeout_s
        self._thread.start()

    def _prepare(self, on_ready: Callable[[bool], None]) -> None:
        node_topic, flow_topic = self._settings.node_topic, self._settings.flow_topic
        partitions, self.problem = topics.create_missing_topics(
            self._settings, {node_topic: contract.NODE_PARTITIONS, flow_topic: contract.FLOW_PARTITIONS}
        )
        if partitions and flow_topic not in partitions:
            self.flow_problem = self.problem
        self.flow_partitions = partitions.get(flow_topic) or contract.FLOW_PARTITIONS
        on_ready(bool(partitions))

    def wait(self) -> float:
        """Wait until the topics are prepared. Returns the seconds that it took.

        The job's own start has taken a part of the time already.
        """
        if self._thread is None or not self._thread.is_alive():
            return 0.0
        begin = time.monotonic()
        self._thread.join(max(0.0, self._ready_by + producer.STEP_S - begin))
        waited_s = time.monotonic() - begin
        sender = producer.sender_for(self._settings)
        if sender is not None:
            sender.wait_budget.charge(begin, is_answered=True)
        return waited_s

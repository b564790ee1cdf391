"""Publishes the nodes of one application, and what their partitions are made of.

Promises that a node is published once, after all that it comes from, and described once, after a job has
computed it. Where the user wants lost lineage to fail the job (`spark.lineage.onError=fail`), `publish` and
`describe` raise DeliveryError. Thread-safe: user threads may start jobs at the same time.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any

from spark_agent import contract
from spark_agent.driver.event_publisher import EventPublisher
from spark_agent.driver.nodes import Node

#: A `partitions` event holds at most this many, to stay far below a broker's message limit.
PARTITIONS_IN_EVENT = 2_000


class NodePublisher:
    """Makes events of nodes."""

    def __init__(self, events: EventPublisher, *, describes: bool = True) -> None:
        """`describes`: is anybody to learn what partitions are made of?"""
        self._events, self._describes = events, describes
        self._lock = threading.RLock()

    def publish(self, node: Node) -> None:
        """Publish `node` and what it comes from, once. Raises DeliveryError where events were lost."""
        self.register(node)
        self._events.raise_if_lost()

    def register(self, node: Node) -> None:
        """Publish `node` and what it comes from, once, whatever becomes of the events."""
        with self._lock:
            fresh = [
                (ancestor, ancestor.parents)
                for ancestor in node.ancestry(lambda ancestor: ancestor.is_published)
            ]
            for ancestor, _ in fresh:
                ancestor.is_published = True
        for ancestor, parents in fresh:  # the parents of then: another thread may seal the node meanwhile
            self._events.emit(contract.NODE_REGISTERED, **ancestor.event())
            for port, parent in enumerate(parents):
                self._events.emit(contract.LINK, source=parent.number, target=ancestor.number, port=port)

    def describe(self, node: Node) -> None:
        """Publish the partitions of `node` and of what it comes from, once, after a job has computed them."""
        for ancestor in self._undescribed(node):
            with self._lock:
                describe = ancestor.seal()
            if describe is None:
                continue
            try:
                partitions = describe()
            except Exception as error:  # noqa: BLE001 - an unusual input format, or the JVM has gone
                problem = str(error).partition("\n")[0]
                self._events.gap(
                    f"what the partitions of {ancestor.name} are made of is not known ({problem})",
                    ancestor.number,
                )
                continue
            self._publish_partitions(ancestor, partitions)
        self._events.raise_if_lost()
        self._events.log_problems()

    def describe_static(self, node: Node) -> None:
        """After a job that failed, publish what sources, unions and coalesces are made of.

        Tasks that had ended may have left their records to others, and a task that failed names its record.
        Whatever else there is to publish may still change.
        """
        for ancestor in self._undescribed(node):
            describe = ancestor.describe
            if ancestor.relation in (contract.STATIC, contract.SOURCE) and describe is not None:
                with contextlib.suppress(Exception):  # what it is made of is missing, or the JVM has gone
                    self._publish_partitions(ancestor, describe())
                    ancestor.describe = None

    def _undescribed(self, node: Node) -> list[Node]:
        if not self._describes:
            return []
        with self._lock:
            return node.ancestry(lambda ancestor: ancestor.is_described)

    def _publish_partitions(self, node: Node, partitions: list[Any]) -> None:
        for start_at in range(0, len(partitions), PARTITIONS_IN_EVENT):
            batch = partitions[start_at : start_at + PARTITIONS_IN_EVENT]
            self._events.emit(contract.PARTITIONS, node=node.number, partitions=batch)

"""The events of a replay of which nothing is captured: the replay itself sees them, and nobody else."""

from __future__ import annotations

from typing import Any

from spark_agent.driver.event_publisher import EventPublisher
from spark_agent.worker.task_run import TaskRun


class SilentEvents(EventPublisher):
    """Makes no producer, and waits for no broker."""

    def begin(self) -> None:
        """Nothing is sent."""

    def prepare_end(self) -> None:
        """There are no signs of life."""

    def application_ended(self, error: BaseException | None) -> None:
        """Nobody is told."""

    def correct_end(self, error: BaseException | None) -> None:
        """Nobody is told."""

    def emit(self, event_type: str, **fields: object) -> None:
        """Show the event to the replay."""
        if self.observe is not None:
            self.observe(event_type, fields)

    def publish_manifest(self, fields: dict[str, Any]) -> None:
        """No task run has one."""

    def commit(self, run: TaskRun, action: int) -> None:
        """No task run of the driver is published."""

    def flow_partitions(self) -> int:
        """Of a topic that nothing is sent to."""
        return 1

    def raise_if_lost(self) -> None:
        """Nothing can be lost."""

    def log_problems(self) -> None:
        """There are none."""

    def block_problem(self) -> str:
        """There are no blocks."""
        return ""

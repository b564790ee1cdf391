"""What a stream of positions or texts needs of the task run that it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from spark_agent.worker.plan import Plan


@dataclass
class Tally:
    """What one run could not send as it was; its manifest says it."""

    cut: int = 0
    failed_redactions: int = 0
    problem: str = ""  # says nothing of any value


class StreamObserver(Protocol):
    """Observes streams of positions: how outputs are made of inputs."""

    def opened(self, stream: Any, relation: str) -> None:
        """An operator opened `stream`."""

    def flushing(self, stream: Any) -> None:
        """The buffers of `stream` are about to be emptied."""


class BlockSink(Protocol):
    """Where the blocks of one task run go."""

    plan: Plan
    tally: Tally
    #: (application, node) whose texts nearly all differ, as far as this process has seen.
    distinct_texts: set[tuple[str, int]]

    @property
    def observer(self) -> StreamObserver | None:
        """Who observes the run's streams of positions."""

    def emit(self, node: int, relation: str, base_in: int, base_out: int, columns: dict[str, Any]) -> None:
        """Send one block. Never raises."""

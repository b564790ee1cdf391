"""The records that a task run was at for long: what looks at it, a few dozen a second, have booked.

Promises to hold few of them, whatever comes. Knows nothing of threads and clocks.
"""

from __future__ import annotations

from spark_agent import contract
from spark_agent.worker.record_at_hand import AtHand

__all__ = ["SlowRecords"]

#: So many are held before all but the slowest are let go of.
_MOST_HELD = 1_000
#: What took less is not worth a line.
_LEAST_MS = 10


class SlowRecords:
    """Those of one task run."""

    def __init__(self) -> None:
        self._seconds: dict[AtHand, float] = {}

    def book(self, at_hand: AtHand, seconds: float) -> None:
        """The run was at this record for so long, or longer."""
        self._seconds[at_hand] = self._seconds.get(at_hand, 0.0) + seconds
        if len(self._seconds) > _MOST_HELD:
            slowest = dict(self._slowest())
            slowest[at_hand] = self._seconds[at_hand]  # it may take much longer yet
            self._seconds = slowest

    def listed(self) -> list[list[int]]:
        """`[[node, position, ms], ...]` for a manifest, the slowest first."""
        rounded = ([*at_hand, round(1000 * seconds)] for at_hand, seconds in self._slowest())
        return [record for record in rounded if record[-1] >= _LEAST_MS]

    def _slowest(self) -> list[tuple[AtHand, float]]:
        booked = list(self._seconds.items())  # at once: another thread may book meanwhile
        return sorted(booked, key=lambda item: (-item[1], item[0]))[: contract.MAX_SLOW_RECORDS]

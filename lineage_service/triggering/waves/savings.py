"""What skipping saved and what deciding cost, in seconds. What is not known is counted, and never guessed.

A skip saved what the last execution before it took: from its start to its end, as its application told them.
What an execution would have taken then is not known. Every answer cost the time that it took to give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from lineage_service.outcomes import outcome_of
from lineage_service.store.application_cache import EventReader
from spark_agent import contract

__all__ = ["Answered", "Durations", "Savings", "savings_of"]

#: Applications whose ends are read together.
_AT_ONCE = 200
_TYPES = (contract.APPLICATION_STARTED, contract.APPLICATION_ENDED)


class Answered(Protocol):
    """What is needed of an answer, as in `Wave`."""

    @property
    def decision(self) -> str: ...

    @property
    def application_id(self) -> str | None: ...

    @property
    def seconds(self) -> float | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Savings:
    """`saved_unknown` skips and `spent_unknown` answers are not in the sums: their times are not known."""

    saved_seconds: float
    saved_unknown: int
    spent_seconds: float
    spent_unknown: int


def savings_of(waves: Iterable[Answered], seconds: Mapping[str, float]) -> Savings:
    """Of the answers of a job; `seconds` are those of its executions, by application."""
    waves = list(waves)
    skips = [wave.application_id for wave in waves if wave.decision == "skip"]
    saved = [seconds[name] for name in skips if name is not None and name in seconds]
    spent = [wave.seconds for wave in waves if wave.seconds is not None]
    return Savings(
        saved_seconds=round(sum(saved), 3),
        saved_unknown=len(skips) - len(saved),
        spent_seconds=round(sum(spent), 3),
        spent_unknown=len(waves) - len(spent),
    )


class Durations:
    """How long executions took. Of one flow store; what is known is not read again."""

    def __init__(self, store: EventReader) -> None:
        self._store = store
        self._seconds: dict[str, float] = {}

    def of(self, waves: Iterable[Answered]) -> Mapping[str, float]:
        """Of the executions before skips, by application. Those that the store does not have are left out.

        Raises StoreUnavailableError.
        """
        seconds = self.within(waves, lambda: True)
        assert seconds is not None
        return seconds

    def within(self, waves: Iterable[Answered], has_time: Callable[[], bool]) -> Mapping[str, float] | None:
        """The same; None if the time was up before all was read. The next call goes on."""
        skipped = (wave.application_id for wave in waves if wave.decision == "skip")
        unread = [name for name in dict.fromkeys(skipped) if name is not None and name not in self._seconds]
        for first in range(0, len(unread), _AT_ONCE):
            if not has_time():
                return None
            chunk = unread[first : first + _AT_ONCE]
            for application_id, events in self._store.events_of(chunk, _TYPES).items():
                began = [event["time"] for event in events if event["type"] == contract.APPLICATION_STARTED]
                ended = outcome_of(events).ended
                if began and ended is not None:
                    self._seconds[application_id] = max(0, ended - min(began)) / 1000
        return self._seconds

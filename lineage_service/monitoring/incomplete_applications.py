"""Which applications are incomplete, and what they wait for: as the flow store has it.

Promises to read an application again only when something of it was written, and never again once it is
complete, so that a look at a store of many applications costs little. A look has a time budget; what it does
not get to keeps its older result and is the first of the next look. However many ask, a fifth of the time at
most goes into reading: others get what the last look found. Knows nothing of Kafka.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Protocol

from lineage_service.completeness import Completeness, Receipt, completeness_of
from lineage_service.errors import UnavailableError
from lineage_service.lineage import ApplicationLag
from lineage_service.outcomes import Outcome, outcome_of
from spark_agent import contract

__all__ = ["IncompleteApplications", "IncompleteWatch", "StoreReader"]

#: Looks are so many seconds apart, and at least so many times as long as one took.
_APART_S, _APART_TIMES = 0.5, 4


class StoreReader(Protocol):
    """What is read of a `flow_store.FlowStore`."""

    def version(self) -> object: ...

    def version_of(self, application_id: str) -> object: ...

    def applications(self) -> Sequence[str]: ...

    def events(self, application_id: str) -> Sequence[Mapping[str, Any]]: ...

    def blocks(self, application_id: str) -> Collection[Receipt]: ...

    def rows(self, application_id: str) -> Mapping[str, int]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class IncompleteApplications:
    """`applications`, by their ids, and how many others there was no time to look at.

    `failed`: how many of all applications that were looked at have failed, complete or not.
    """

    applications: tuple[ApplicationLag, ...]
    unread: int
    failed: int = 0


@dataclass(slots=True)
class _Reading:
    """What was read of an application. `lag` is None once it is complete, `since` when nothing waits."""

    store_version: object
    version: object
    lag: ApplicationLag | None
    since: int | None  # Unix ms
    outcome: Outcome | None = None


class IncompleteWatch:
    """Looks at the applications of a store. Threads may share it."""

    def __init__(
        self,
        open_store: Callable[[], StoreReader],
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`open_store` is called at the first look. `now` is Unix time in seconds."""
        self._open_store = open_store
        self._clock = clock
        self._now = now
        self._lock = Lock()
        self._store: StoreReader | None = None
        self._listed: object = None
        self._readings: dict[str, _Reading | None] = {}  # None: not read yet
        self._unread = 0
        self._look_at = -math.inf

    def look(self, budget_s: float) -> IncompleteApplications:
        """Raises UnavailableError."""
        with self._lock:
            begun = self._clock()
            if begun >= self._look_at:
                self._unread = self._update(begun + budget_s)
                ended = self._clock()
                self._look_at = ended + max(_APART_S, _APART_TIMES * (ended - begun))
            readings = {name: reading for name, reading in self._readings.items() if reading is not None}
            return IncompleteApplications(
                applications=tuple(
                    lag for _, reading in sorted(readings.items()) if (lag := self._aged(reading)) is not None
                ),
                unread=self._unread,
                failed=sum(
                    reading.outcome is not None and reading.outcome.state == "failed"
                    for reading in readings.values()
                ),
            )

    def _update(self, deadline: float) -> int:
        """Read what has changed, at least one application, until the deadline; how many are left."""
        if self._store is None:
            self._store = self._open_store()
        version = self._store.version()
        if version != self._listed:
            stored = dict.fromkeys(self._store.applications())
            # What was deleted waits for nothing; the others keep their turn.
            self._readings = {name: reading for name, reading in self._readings.items() if name in stored}
            for application_id in stored:
                self._readings.setdefault(application_id, None)
            self._listed = version
        changed = [name for name, reading in self._readings.items() if _may_have_changed(reading, version)]
        for done, application_id in enumerate(changed, start=1):
            self._read(self._store, application_id, version)
            if self._clock() >= deadline:
                return len(changed) - done
        return 0

    def _read(self, store: StoreReader, application_id: str, store_version: object) -> None:
        # Taken out and put in at the end: who was read last is the last in the next look.
        before = self._readings.pop(application_id)
        self._readings[application_id] = before
        version = store.version_of(application_id)
        if before is not None and before.version == version:
            before.store_version = store_version
            return
        try:
            events = store.events(application_id)
            completeness = completeness_of(store, application_id, events)
        except UnavailableError as error:  # one that is damaged keeps nobody from the others
            unreadable = _unreadable(application_id, str(error))
            self._readings[application_id] = _Reading(store_version, None, unreadable, None)
            return
        outcome = outcome_of(events) if events else None
        lag = None if completeness.is_complete else _lag(application_id, events, completeness, outcome)
        since = _since(events, completeness) if lag is not None else None
        self._readings[application_id] = _Reading(store_version, version, lag, since, outcome)

    def _aged(self, reading: _Reading) -> ApplicationLag | None:
        lag = reading.lag
        if lag is None:
            return None
        if reading.outcome is not None:
            lag = replace(lag, state=reading.outcome.at(1000 * self._now()).state)
        if reading.since is None:
            return lag
        return replace(lag, seconds=max(self._now() - reading.since / 1000, 0.0))


def _may_have_changed(reading: _Reading | None, store_version: object) -> bool:
    return reading is None or (reading.lag is not None and reading.store_version != store_version)


def _lag(
    application_id: str,
    events: Sequence[Mapping[str, Any]],
    completeness: Completeness,
    outcome: Outcome | None,
) -> ApplicationLag:
    started = [event for event in events if event["type"] == contract.APPLICATION_STARTED]
    coming = sum(max(run.missing - run.dropped, 0) for run in completeness.runs)
    return ApplicationLag(
        application_id=application_id,
        name=str(started[0]["name"]) if started else application_id,
        state="running" if outcome is None else outcome.state,
        messages=coming + completeness.missing_runs + completeness.missing_events,
        seconds=0.0,
        incomplete_runs=sum(not run.is_complete for run in completeness.runs),
        missing_blocks=completeness.missing_blocks,
        missing_runs=completeness.missing_runs,
        missing_events=completeness.missing_events,
        dropped=completeness.dropped,
        gaps=len(completeness.gaps),
        missing=completeness.describe(),
    )


def _unreadable(application_id: str, why: str) -> ApplicationLag:
    return ApplicationLag(
        application_id=application_id,
        name=application_id,
        state="running",
        messages=0,
        seconds=0.0,
        incomplete_runs=0,
        missing_blocks=0,
        missing_runs=0,
        missing_events=0,
        dropped=0,
        gaps=0,
        missing=why,
    )


def _since(events: Iterable[Mapping[str, Any]], completeness: Completeness) -> int | None:
    """When the first of what may still come was announced: by a manifest, or by the application's end."""
    waiting = {run.run for run in completeness.runs if run.missing > run.dropped}
    lacks_events = completeness.missing_runs or completeness.missing_events
    announced = [
        event["time"]
        for event in events
        if (event["type"] == contract.RUN_COMMITTED and event["run"] in waiting)
        or (event["type"] == contract.APPLICATION_ENDED and lacks_events)
    ]
    return min(announced, default=None)

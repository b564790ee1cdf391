"""Which applications are not complete, and what they wait for: as the flow store has it.

Promises to read an application again only when something of it was written, and never again once it is
complete, so that a look at a store of many applications costs little. A look has a time budget; what it does
not get to keeps its older answer and is the first of the next look. However many ask, a fifth of the time at
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

__all__ = ["StoreReader", "Unfinished", "UnfinishedApplications"]

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
class UnfinishedApplications:
    """`applications`, by their ids, and how many others there was no time to look at.

    `failed`: how many of all applications that were looked at have failed, complete or not.
    """

    applications: tuple[ApplicationLag, ...]
    unread: int
    failed: int = 0


@dataclass(slots=True)
class _Seen:
    """What was read of an application. `lag` is None once it is complete, `since` when nothing waits."""

    store_version: object
    version: object
    lag: ApplicationLag | None
    since: int | None  # Unix ms
    outcome: Outcome | None = None


class Unfinished:
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
        self._seen: dict[str, _Seen | None] = {}  # None: not read yet
        self._unread = 0
        self._look_at = -math.inf

    def look(self, budget_s: float) -> UnfinishedApplications:
        """Raises UnavailableError."""
        with self._lock:
            begun = self._clock()
            if begun >= self._look_at:
                self._unread = self._update(begun + budget_s)
                ended = self._clock()
                self._look_at = ended + max(_APART_S, _APART_TIMES * (ended - begun))
            waiting = {name: seen for name, seen in self._seen.items() if seen is not None}
            return UnfinishedApplications(
                applications=tuple(
                    lag for _, seen in sorted(waiting.items()) if (lag := self._aged(seen)) is not None
                ),
                unread=self._unread,
                failed=sum(
                    seen.outcome is not None and seen.outcome.state == "failed" for seen in waiting.values()
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
            self._seen = {name: seen for name, seen in self._seen.items() if name in stored}
            for application_id in stored:
                self._seen.setdefault(application_id, None)
            self._listed = version
        changed = [name for name, seen in self._seen.items() if _may_have_changed(seen, version)]
        for done, application_id in enumerate(changed, start=1):
            self._read(self._store, application_id, version)
            if self._clock() >= deadline:
                return len(changed) - done
        return 0

    def _read(self, store: StoreReader, application_id: str, store_version: object) -> None:
        # Taken out and put in at the end: who was read last is the last in the next look.
        before = self._seen.pop(application_id)
        self._seen[application_id] = before
        version = store.version_of(application_id)
        if before is not None and before.version == version:
            before.store_version = store_version
            return
        try:
            events = store.events(application_id)
            found = completeness_of(store, application_id, events)
        except UnavailableError as error:  # one that is damaged keeps nobody from the others
            unreadable = _unreadable(application_id, str(error))
            self._seen[application_id] = _Seen(store_version, None, unreadable, None)
            return
        outcome = outcome_of(events) if events else None
        lag = None if found.is_complete else _lag(application_id, events, found, outcome)
        since = _since(events, found) if lag is not None else None
        self._seen[application_id] = _Seen(store_version, version, lag, since, outcome)

    def _aged(self, seen: _Seen) -> ApplicationLag | None:
        lag = seen.lag
        if lag is None:
            return None
        if seen.outcome is not None:
            lag = replace(lag, state=seen.outcome.at(1000 * self._now()).state)
        if seen.since is None:
            return lag
        return replace(lag, seconds=max(self._now() - seen.since / 1000, 0.0))


def _may_have_changed(seen: _Seen | None, store_version: object) -> bool:
    return seen is None or (seen.lag is not None and seen.store_version != store_version)


def _lag(
    application_id: str,
    events: Sequence[Mapping[str, Any]],
    found: Completeness,
    outcome: Outcome | None,
) -> ApplicationLag:
    started = [event for event in events if event["type"] == contract.APPLICATION_STARTED]
    coming = sum(max(run.missing - run.dropped, 0) for run in found.runs)
    return ApplicationLag(
        application_id=application_id,
        name=str(started[0]["name"]) if started else application_id,
        state="running" if outcome is None else outcome.state,
        messages=coming + found.missing_runs + found.missing_events,
        seconds=0.0,
        incomplete_runs=sum(not run.is_complete for run in found.runs),
        missing_blocks=found.missing_blocks,
        missing_runs=found.missing_runs,
        missing_events=found.missing_events,
        dropped=found.dropped,
        gaps=len(found.gaps),
        missing=found.describe(),
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


def _since(events: Iterable[Mapping[str, Any]], found: Completeness) -> int | None:
    """When the first of what may still come was announced: by a manifest, or by the application's end."""
    waiting = {run.run for run in found.runs if run.missing > run.dropped}
    is_untold = found.missing_runs or found.missing_events
    announced = [
        event["time"]
        for event in events
        if (event["type"] == contract.RUN_COMMITTED and event["run"] in waiting)
        or (event["type"] == contract.APPLICATION_ENDED and is_untold)
    ]
    return min(announced, default=None)

"""Executions of a job: which applications they are, how they ended, and what was stored of them.

A job is known by the name that its application gave it, or else by that of the application. Replays are no
executions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from typing import Any, Protocol

from lineage_service.completeness import Completeness, StoreReader, completeness_of
from lineage_service.lineage import ApplicationState
from lineage_service.outcomes import outcome_of
from lineage_service.store.application_cache import ApplicationCache, EventReader
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.model.event_log import read_events
from spark_agent import contract

__all__ = ["Execution", "JobStore", "LastStarts", "executions_of", "job_of"]

#: Applications whose starts are read together.
_AT_ONCE = 200
_STARTS = (contract.APPLICATION_STARTED,)

Event = Mapping[str, Any]


class JobStore(EventReader, StoreReader, Protocol):
    """What is read of a flow store."""

    def latest(self) -> Mapping[str, int | None]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One run of a job. Times are Unix ms; `ended` is None while it runs.

    `datasets` are what the registrations of nodes say of theirs.
    """

    application_id: str
    wave: str | None
    code: str | None
    code_files: tuple[str, ...]
    began: int
    ended: int | None
    state: ApplicationState
    completeness: Completeness
    nodes: Mapping[int, TopologyNode]
    datasets: Mapping[int, Mapping[str, Any]]

    def of_kind(self, kind: str) -> list[TopologyNode]:
        """Its sources or its sinks, in order."""
        return [node for _, node in sorted(self.nodes.items()) if node.kind == kind]


def job_of(started: Event) -> str:
    return str(started.get("job") or started["name"])


def executions_of(store: JobStore, job: str, most: int, now_ms: float) -> list[Execution]:
    """The latest of a job, the last one first. Raises StoreUnavailableError."""
    starts: list[Event] = []
    for chunk in _newest_first(store):
        ids = [application_id for application_id, _ in chunk]
        starts += [started for started in _starts(store, ids) if job_of(started) == job]
        starts.sort(key=lambda started: (started["time"], started["application_id"]), reverse=True)
        oldest = chunk[-1][1]
        if len(starts) >= most and oldest is not None and starts[most - 1]["time"] >= oldest:
            break  # what is left was silent before these began
    return [_execution(store, started, now_ms) for started in starts[:most]]


class LastStarts:
    """When every job last began. Applications of which nothing came are not read again. Threads may look."""

    def __init__(self, store: EventReader) -> None:
        self._cache = ApplicationCache(store, lambda _, events: _first_start(events), _STARTS)
        self._lock = Lock()

    def look(self) -> tuple[dict[str, Event], int]:
        """The start of the last execution of each job, the newest first; and how many applications cannot be
        read now. Raises StoreUnavailableError.
        """
        with self._lock:
            self._cache.refresh()
            starts, unread = self._cache.values.values(), len(self._cache.unread)
        last: dict[str, Event] = {}
        for started in starts:
            if started is not None:
                job = job_of(started)
                if job not in last or last[job]["time"] < started["time"]:
                    last[job] = started
        return dict(sorted(last.items(), key=lambda entry: (-int(entry[1]["time"]), entry[0]))), unread


def _newest_first(store: JobStore) -> list[list[tuple[str, int | None]]]:
    """(application, time of its last event) in pieces; those without a known time are among the first."""
    latest = store.latest()
    unknown = [(name, None) for name, time in latest.items() if time is None]
    timed = sorted(
        ((name, time) for name, time in latest.items() if time is not None), key=lambda pair: -pair[1]
    )
    rest = iter([*unknown, *timed])
    chunks = []
    while chunk := list(islice(rest, _AT_ONCE)):
        chunks.append(chunk)
    return chunks


def _starts(store: JobStore, application_ids: Sequence[str]) -> list[Event]:
    """Of each of these that is no replay, its first start."""
    starts = [_first_start(events) for events in store.events_of(application_ids, _STARTS).values()]
    return [started for started in starts if started is not None]


def _first_start(events: Sequence[Event]) -> Event | None:
    """None of a replay."""
    starts = (event for event in events if event["type"] in _STARTS)
    first = min(starts, key=lambda event: int(event["time"]), default=None)
    return None if first is None or first.get("replay") else first


def _execution(store: JobStore, started: Event, now_ms: float) -> Execution:
    application_id = str(started["application_id"])
    events = store.events(application_id)
    outcome = outcome_of(events).at(now_ms)
    log = read_events(events)
    return Execution(
        application_id=application_id,
        wave=started.get("wave"),
        code=started.get("code"),
        code_files=tuple(started.get("code_files") or ()),
        began=int(started["time"]),
        ended=outcome.ended,
        state=outcome.state,
        completeness=completeness_of(store, application_id, events),
        nodes=log.nodes(),
        datasets={
            number: event["dataset"]
            for number, event in log.registered.items()
            if isinstance(event.get("dataset"), Mapping)
        },
    )

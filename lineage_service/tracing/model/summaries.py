"""What is said of an application as a whole: its name, state, counters, and whether it is complete.

From its events, the receipts of its blocks and the log of the store: its flows are not opened, its task runs
not assembled.
So a list of many applications costs little, and costs next to nothing while nothing more of them is stored.
It is read as it is taken: the newest ones first, many together.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from threading import Lock
from typing import Any, Protocol

from lineage_service.completeness import Receipt, completeness_of_contents
from lineage_service.errors import UnknownApplicationError
from lineage_service.lineage import Application
from lineage_service.outcomes import LOST_AFTER_MS, Outcome, outcome_of
from lineage_service.store.errors import StoreUnavailableError
from lineage_service.store.receipts import read_receipts
from spark_agent import contract

#: What is missing of an application that is lost.
LOST = (
    f"its driver has sent nothing for {LOST_AFTER_MS // 60_000} minutes: it died without a word, "
    "or `lineage consume` is behind"
)

#: Applications that are read together: at first few, so that a page is there soon.
_FIRST, _MOST = 128, 2_048

__all__ = ["LOST", "Receipts", "Summaries", "SummaryReader", "summary"]


class SummaryReader(Protocol):
    """What is read of a flow store."""

    def version(self) -> object: ...

    def versions(self, table: str) -> Mapping[str, object]: ...

    def events(self, application_id: str) -> Sequence[Mapping[str, Any]]: ...

    def events_of(
        self, application_ids: Sequence[str], types: Collection[str] | None = None
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]: ...

    def blocks_of(self, application_ids: Sequence[str]) -> Mapping[str, Collection[Receipt]]: ...

    def latest(self) -> Mapping[str, int | None]: ...

    def rows(self, application_id: str) -> Mapping[str, int]: ...

    def files(self, table: str, application_id: str) -> Sequence[str]: ...


class Summaries:
    """The applications of a flow store. Threads may share it."""

    def __init__(
        self,
        store: SummaryReader,
        receipts: Receipts | None = None,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`now` is Unix time in seconds."""
        self._store = store
        self._now = now
        self._receipts = receipts or Receipts()
        self._lock = Lock()
        self._versions: tuple[object, Mapping[str, object]] = (None, {})  # with the store's
        #: With the application's version, and what became of it by its events.
        self._cached: dict[str, tuple[object, Application, Outcome]] = {}

    def newest_first(self) -> Iterator[Application]:
        """Those of which an event is stored, newest first; last those whose files cannot be read.

        They are read in the order of their last events. None began behind its last event, so those that began
        later than the last event of all that were not read yet are the newest.
        """
        stored, latest = self._stored(), self._store.latest()
        ends = {name: math.inf if (end := latest.get(name)) is None else end for name in stored}
        order = sorted(stored, key=lambda name: -ends[name])
        read: list[tuple[int, str, Application]] = []
        at, size = 0, _FIRST
        while at < len(order):
            some = order[at : at + size]
            at, size = at + len(some), min(2 * size, _MOST)
            for application in self._read_together({name: stored[name] for name in some}):
                heappush(read, (-application.started, application.application_id, application))
            bound = ends[order[at]] if at < len(order) else -math.inf
            while read and -read[0][0] > bound:
                yield heappop(read)[2]

    def _read_together(self, versions: Mapping[str, object]) -> Iterator[Application]:
        """Those of them of which an event is stored."""
        with self._lock:
            cached = {name: self._cached.get(name) for name in versions}
        unread = [name for name, entry in cached.items() if entry is None or entry[0] != versions[name]]
        if len(unread) > 1:
            try:
                receipts = self._store.blocks_of(unread)
                for name, events in self._store.events_of(unread).items():
                    self._keep(name, versions[name], events, receipts.get(name, ()))
            except StoreUnavailableError:
                pass  # of one of them: each is read by itself
        for name, version in versions.items():
            application = self._readable(name, version)
            if application is not None:
                yield application

    def of(self, application_id: str) -> Application:
        """Raises UnknownApplicationError."""
        version = self._stored().get(application_id)
        application = None if version is None else self._read(application_id, version)
        if application is None:
            raise UnknownApplicationError(application_id)
        return application

    def _stored(self) -> Mapping[str, object]:
        """The applications that have events, with their versions."""
        version = self._store.version()
        with self._lock:
            if self._versions[0] == version:
                return self._versions[1]
        blocks = self._store.versions("blocks")
        versions = {name: (at, blocks.get(name)) for name, at in self._store.versions("events").items()}
        with self._lock:
            self._versions = version, versions
            for name in self._cached.keys() - versions.keys():
                del self._cached[name]
        return versions

    def _readable(self, application_id: str, version: object) -> Application | None:
        """Where one application is damaged, the others can still be read."""
        try:
            return self._read(application_id, version)
        except StoreUnavailableError as error:
            return Application(
                application_id=application_id,
                name=application_id,
                state="running",
                started=0,
                ended=None,
                complete=False,
                missing_blocks=0,
                missing=str(error),
                counters={},
            )

    def _read(self, application_id: str, version: object) -> Application | None:
        """None where no event of it is stored."""
        with self._lock:
            cached = self._cached.get(application_id)
        if cached is not None and cached[0] == version:
            return self._at_this_moment(cached[1], cached[2])
        receipts = self._receipts.of(self._store.files("blocks", application_id))
        events = self._store.events(application_id)
        if not events:
            return None
        return self._at_this_moment(*self._keep(application_id, version, events, receipts))

    def _keep(
        self,
        application_id: str,
        version: object,
        events: Sequence[Mapping[str, Any]],
        receipts: Collection[Receipt],
    ) -> tuple[Application, Outcome]:
        application = summary(application_id, events, receipts, self._store.rows(application_id))
        outcome = outcome_of(events)
        with self._lock:
            self._cached[application_id] = (version, application, outcome)
        return application, outcome

    def _at_this_moment(self, application: Application, outcome: Outcome) -> Application:
        """Nothing needs to come for an application to be lost."""
        if outcome.at(1000 * self._now()).state != "lost":
            return application
        return replace(application, state="lost", missing=f"{LOST}; {application.missing}")


def summary(
    application_id: str,
    events: Sequence[Mapping[str, Any]],
    receipts: Collection[Receipt],
    rows: Mapping[str, int] | None,
) -> Application:
    """Of an application with at least one event; see `completeness.completeness_of_contents`."""
    complete = completeness_of_contents(events, receipts, rows)
    outcome = outcome_of(events)
    started = [event for event in events if event["type"] == contract.APPLICATION_STARTED]
    ended = [event for event in events if event["type"] == contract.APPLICATION_ENDED]
    committed = {event["run"]: event for event in events if event["type"] == contract.RUN_COMMITTED}
    failed = {event["run"] for event in events if event["type"] == contract.RUN_FAILED} - committed.keys()
    flows = {
        (receipt.run, receipt.seq): receipt.rows
        for receipt in receipts
        if receipt.relation in contract.FLOW_BLOCKS
    }
    return Application(
        application_id=application_id,
        name=str(started[0]["name"]) if started else application_id,
        job=(started[0].get("job") or None) if started else None,
        state=outcome.state,
        started=started[0]["time"] if started else min(event["time"] for event in events),
        ended=outcome.ended,
        error=outcome.error,
        complete=complete.is_complete,
        missing_blocks=complete.missing_blocks,
        missing=complete.describe(),
        replay_of=_replayed(started),
        counters={
            **(_reported(ended[-1]) if ended else {}),
            "runs": len(complete.runs),
            "failed_runs": len(failed),
            "blocks": len({(receipt.run, receipt.seq) for receipt in receipts}),
            "flows": sum(flows.values()),
            "events": complete.events,
            "dropped": complete.dropped,
            "spooled": complete.waiting_blocks,
            "missing_runs": complete.missing_runs,
            "missing_events": complete.missing_events,
            "gaps": len(complete.gaps),
            "lost_rows": sum(complete.lost_rows.values()),
            **{name: sum(run.get(name, 0) for run in committed.values()) for name in ("cut", "withheld")},
        },
    )


def _replayed(started: Sequence[Mapping[str, Any]]) -> str | None:
    """The application that a replay ran again; None of what is no replay."""
    replay = started[0].get("replay") if started else None
    return str(replay["of"]) if isinstance(replay, Mapping) and "of" in replay else None


def _reported(ended: Mapping[str, Any]) -> dict[str, int]:
    """What the agent counted itself."""
    counters = ended["counters"].items()
    return {name: value for name, value in counters if type(value) is int and abs(value) < contract.MAX_RUN}


class Receipts:
    """Of the `blocks` table: who looks at an application opens it next. Threads may share it."""

    def __init__(self) -> None:
        self._last: tuple[Sequence[str], Sequence[Receipt]] = (), ()

    def of(self, files: Sequence[str]) -> Sequence[Receipt]:
        """Of these files, on this machine. The last ones are cached: files of a Delta table never change."""
        paths, (cached_paths, receipts) = sorted(files), self._last
        if paths != cached_paths:
            receipts = read_receipts(paths)
            self._last = paths, receipts
        return receipts

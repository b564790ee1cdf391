"""What of an application was not followed at all: its holes, each published once, in their order.

A hole makes an application incomplete, for as long as it is stored: no result may pass over it. An upper
bound (the records that took part, with others beside them) is none. Promises that there are few, whatever a
job does. Thread-safe.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

#: So many different reasons are published. One more says that there are others.
MOST = 50
#: Of a text: a reason is a sentence, and what it quotes (an error, a class) may be long.
_MOST_CHARACTERS = 500
#: Different sets of nodes of task runs that wait to be claimed. One alone is a hole.
_MOST_WAITING = 1_000
_MORE = f"more than {MOST} different things were not followed: the others are not named"


class Gaps:
    """The holes of one application. `publish(reason, node)` is called once for each."""

    def __init__(self, publish: Callable[[str, int | None], None]) -> None:
        self._publish = publish
        self._lock = threading.Lock()
        self.reasons: list[str] = []

    def add(self, reason: str, node: int | None = None) -> None:
        """`node` is the number of the node that stands for what was not followed, if there is one."""
        reason = reason[:_MOST_CHARACTERS]
        with self._lock:
            if reason in self.reasons or len(self.reasons) > MOST:
                return
            if len(self.reasons) == MOST:
                reason, node = _MORE, None
            self.reasons.append(reason)
        self._publish(reason, node)


class UnclaimedRuns:
    """Task runs whose nodes no action has published so far: the last word on them is spoken at the end.

    A transformation may run a job for itself (sortByKey samples), which computes a shuffle before any action
    asks for it. So such a run is no hole while a job of that kind is under way, nor once an action has
    published one of its nodes. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._published: set[object] = set()
        self._waiting: set[frozenset[int]] = set()
        self._inner_jobs = 0

    def publish(self, node: object) -> None:
        """An action, or what stands for one, has published a node."""
        with self._lock:
            self._published.add(node)

    def begin_inner_job(self) -> None:
        with self._lock:
            self._inner_jobs += 1

    def end_inner_job(self) -> None:
        with self._lock:
            self._inner_jobs -= 1

    def add(self, nodes: Iterable[int]) -> None:
        """Spark accepted a task run of these nodes."""
        with self._lock:
            run = frozenset(nodes)
            if (
                not self._inner_jobs
                and len(self._waiting) < _MOST_WAITING
                and run.isdisjoint(self._published)
            ):
                self._waiting.add(run)

    def has_any(self) -> bool:
        """Is there a task run that no action has claimed by now?"""
        with self._lock:
            return any(run.isdisjoint(self._published) for run in self._waiting)

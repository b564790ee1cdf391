"""Waits until the store has the lineage of a replay."""

from __future__ import annotations

import time
from collections.abc import Callable

from lineage_service.errors import UnknownApplicationError
from lineage_service.queries import Queries

__all__ = ["Arrival"]

_PAUSE_S = 0.5


class Arrival:
    """Waits at most `wait_s` for each application."""

    def __init__(
        self, queries: Queries, *, wait_s: float, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._queries, self._wait_s, self._sleep = queries, wait_s, sleep

    def why_not(self, replayed: str) -> str:
        """Why its lineage is not there in time; empty if it is."""
        until = time.monotonic() + self._wait_s
        missing = "nothing of it has come"
        while True:
            try:
                application = self._queries.application(replayed)
                if application.complete:
                    return ""
                missing = application.missing or "it is not complete"
            except UnknownApplicationError:
                pass
            if time.monotonic() >= until:
                return (
                    f"the lineage of the replay was not in the store after {self._wait_s:g} s ({missing}): "
                    "is `lineage consume` running? --trace-seconds waits for longer"
                )
            self._sleep(_PAUSE_S)

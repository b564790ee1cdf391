"""The catalogue of a flow store at its newest version. Threads may share it."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

from lineage_service.datasets.application_uses import uses_of
from lineage_service.datasets.catalogue import Catalogue
from lineage_service.datasets.neighbours import Neighbours
from lineage_service.datasets.pages import CatalogueState
from lineage_service.datasets.summaries import IsComplete
from lineage_service.store.application_cache import ApplicationCache, EventReader

__all__ = ["StoredDatasets"]


class StoredDatasets:
    """The datasets that the applications of a flow store wrote and read."""

    def __init__(
        self, store: EventReader, is_complete: IsComplete, *, now: Callable[[], float] = time.time
    ) -> None:
        """`now` is Unix time in seconds."""
        self._uses = ApplicationCache(store, uses_of)
        self._is_complete, self._now = is_complete, now
        self._lock = Lock()
        self._made: tuple[Catalogue, Neighbours] | None = None

    def state(self) -> CatalogueState:
        """As of now. Only what came since is read. Raises StoreUnavailableError."""
        with self._lock:
            if self._uses.refresh() or self._made is None:
                catalogue = Catalogue(self._uses.values.values())
                self._made = catalogue, Neighbours(catalogue)
            catalogue, neighbours = self._made
            return CatalogueState(
                catalogue=catalogue,
                neighbours=neighbours,
                is_complete=self._is_complete,
                now_ms=1000 * self._now(),
                unread_applications=len(self._uses.unread),
            )

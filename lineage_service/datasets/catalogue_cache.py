"""The catalogue of a flow store at its newest version. Threads may share it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from threading import Lock

from lineage_service.datasets.application_details import details_of
from lineage_service.datasets.application_uses import EVENT_TYPES, uses_of
from lineage_service.datasets.catalogue import Catalogue
from lineage_service.datasets.neighbours import Neighbours
from lineage_service.datasets.pages import CatalogueState
from lineage_service.datasets.uses import ApplicationDetails
from lineage_service.errors import NotFoundError
from lineage_service.store.application_cache import ApplicationCache, EventReader
from lineage_service.store.errors import StoreUnavailableError

__all__ = ["StoredDatasets"]


class StoredDatasets:
    """The datasets that the applications of a flow store wrote and read."""

    def __init__(
        self, store: EventReader, is_complete: Callable[[str], bool], *, now: Callable[[], float] = time.time
    ) -> None:
        """`is_complete` says whether the lineage of an application is. `now` is Unix time in seconds."""
        self._store = store
        self._uses = ApplicationCache(store, uses_of, EVENT_TYPES)
        self._details: dict[str, tuple[object, ApplicationDetails]] = {}  # with the version of the events
        self._is_complete, self._now = is_complete, now
        self._lock = Lock()
        self._made: tuple[Catalogue, Neighbours] | None = None

    def state(self) -> CatalogueState:
        """As of now. Only what came since is read. Raises StoreUnavailableError."""
        with self._lock:
            if self._uses.refresh() or self._made is None:
                catalogue = Catalogue(self._uses.values.values())
                self._made = catalogue, Neighbours(catalogue)
                for application_id in self._details.keys() - self._uses.values.keys():
                    del self._details[application_id]
            catalogue, neighbours = self._made
            return CatalogueState(
                catalogue=catalogue,
                neighbours=neighbours,
                details_of=self._details_of,
                now_ms=1000 * self._now(),
                unread_applications=len(self._uses.unread),
            )

    def _details_of(self, application_id: str) -> ApplicationDetails:
        """One that cannot be read now, or was deleted meanwhile, stops none of the others."""
        try:
            return self._read_details(application_id)
        except (StoreUnavailableError, NotFoundError):
            return ApplicationDetails(complete=False, uses={})

    def _read_details(self, application_id: str) -> ApplicationDetails:
        version, complete = self._uses.version_of(application_id), self._is_complete(application_id)
        cached = self._details.get(application_id)
        if cached is None or cached[0] != version:
            uses, events = self._uses.of(application_id), self._store.events(application_id)
            numbers = [] if uses is None else [use.node for use in uses.uses]
            cached = version, ApplicationDetails(complete, details_of(events, numbers))
            self._details[application_id] = cached
        return replace(cached[1], complete=complete)

"""The applications that queries have opened last, each at its newest version. Threads may share them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import monotonic

from lineage_service.errors import UnknownApplicationError
from lineage_service.store.errors import translated_read_errors
from lineage_service.store.location import KEEP_COPIES_S
from lineage_service.tracing.columns.application import (
    OpenedApplication,
    StoreReader,
    open_application,
    stored_files,
)
from lineage_service.tracing.columns.snapshot import CachedRows, Snapshot
from lineage_service.tracing.model.summaries import Receipts

__all__ = ["OpenApplications", "Opened"]

_CACHED_SNAPSHOTS = 8
#: The files of a cached one are listed again so often: copies from an object store go where they are not.
_FILES_LISTED_S = KEEP_COPIES_S / 24

Opened = OpenedApplication[Snapshot]


@dataclass(frozen=True, slots=True)
class _Cached:
    """An open application, the files that it was read from, and a version of the store that has these.

    They were listed last at `listed_at`, by the monotonic clock.
    """

    opened: Opened
    files: Mapping[str, tuple[str, ...]]
    version: object
    listed_at: float

    def is_current(self, version: object, now: float) -> bool:
        return self.version == version and now < self.listed_at + _FILES_LISTED_S


class OpenApplications:
    """Those of one flow store."""

    def __init__(self, store: StoreReader, receipts: Receipts, rows: CachedRows | None = None) -> None:
        self._store, self._receipts, self._rows = store, receipts, rows or CachedRows()
        self._lock = threading.Lock()
        self._cached: OrderedDict[tuple[str, bool], _Cached] = OrderedDict()

    def open(self, application_id: str, *, has_failed: bool = False) -> Opened:
        """The application as it is stored now. It is read again only if something of it was written.

        `has_failed`: with the task runs that an error has ended. Raises UnknownApplicationError.
        """
        key = application_id, has_failed
        version, now = self._store.version(), monotonic()
        with self._lock:
            cached = self._cached.get(key)
            if cached is not None and cached.is_current(version, now):
                self._cached.move_to_end(key)
                return cached.opened
        files = stored_files(self._store, application_id)
        if cached is not None and cached.files == files:
            cached = replace(cached, version=version, listed_at=now)
        else:
            cached = _Cached(self._read(application_id, files, has_failed=has_failed), files, version, now)
        with self._lock:
            self._cached[key] = cached
            self._cached.move_to_end(key)
            while len(self._cached) > _CACHED_SNAPSHOTS:
                self._cached.popitem(last=False)
        return cached.opened

    def _read(self, application_id: str, files: Mapping[str, tuple[str, ...]], *, has_failed: bool) -> Opened:
        events = self._store.events(application_id)
        if not events:
            raise UnknownApplicationError(application_id)
        with translated_read_errors():
            return open_application(
                files,
                application_id,
                events,
                self._rows,
                self._receipts,
                self._store.rows(application_id),
                self._store.bounds(application_id),
                has_failed=has_failed,
            )

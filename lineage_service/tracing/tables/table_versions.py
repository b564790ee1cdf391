"""The versions of tables that queries ask for, each within the time of its query.

A version never changes, so one that is asked for by its number is kept for a while, as its next pages ask for
it again. The state of its commit in the log tells it from that of another table in the same folder.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from threading import Lock

from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_systems import FileState, FileSystems, UnreadableError
from lineage_service.tracing.tables.delta_log import commit_path
from lineage_service.tracing.tables.delta_version import delta_version
from lineage_service.tracing.tables.native_reads import awaited
from lineage_service.tracing.tables.table_version import TableVersion

__all__ = ["TableVersions"]

#: Versions that are kept, and data files that they have in all.
_MOST_KEPT, _MOST_FILES = 16, 200_000


class TableVersions:
    """Threads may share it."""

    def __init__(self, files: FileSystems) -> None:
        self._files = files
        self._lock = Lock()
        self._kept: OrderedDict[tuple[str, int], tuple[FileState, TableVersion]] = OrderedDict()

    def of(
        self, table: str, check: Check, *, version: int | None = None, at: int | None = None
    ) -> TableVersion:
        """The version of this number, or the newest one, or the newest until `at`, in Unix milliseconds.

        Raises NotFoundError, UnavailableError, and what `check` raises.
        """
        return awaited(partial(self._of, table, version, at), check)

    def _of(self, table: str, number: int | None, at: int | None) -> TableVersion:
        if number is not None:
            kept = self._kept_of(table, number)
            if kept is not None:
                return kept
        version = delta_version(self._files, table, number, at)
        self._keep(version)
        return version

    def _kept_of(self, table: str, number: int) -> TableVersion | None:
        with self._lock:
            state, version = self._kept.get((table, number), (None, None))
        if version is None or state != self._state(table, number):
            return None
        with self._lock:
            if (table, number) in self._kept:
                self._kept.move_to_end((table, number))
        return version

    def _keep(self, version: TableVersion) -> None:
        state = self._state(version.table, version.number)
        if state is None or len(version.files) > _MOST_FILES:
            return
        with self._lock:
            self._kept[version.table, version.number] = state, version
            self._kept.move_to_end((version.table, version.number))
            while (
                len(self._kept) > _MOST_KEPT
                or sum(len(kept.files) for _, kept in self._kept.values()) > _MOST_FILES
            ):
                self._kept.popitem(last=False)

    def _state(self, table: str, number: int) -> FileState | None:
        """None where the commit cannot be seen, as it was cleaned up."""
        try:
            return self._files.state(commit_path(table, number))
        except UnreadableError:
            return None

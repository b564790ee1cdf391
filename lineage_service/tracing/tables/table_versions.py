"""The versions of tables that queries ask for, each within the time of its query.

A version never changes, so its files are kept for a while, as its next pages ask for it again. Of a table of
Delta Lake the state of the commit in the log tells it from that of another table in the same folder. Ids of
Iceberg's snapshots are different ones.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from threading import Lock

from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_systems import FileState, FileSystems, UnreadableError
from lineage_service.tracing.tables.delta_commits import commits_of
from lineage_service.tracing.tables.delta_log import commit_path
from lineage_service.tracing.tables.delta_version import delta_version
from lineage_service.tracing.tables.iceberg_log import iceberg_log
from lineage_service.tracing.tables.iceberg_version import iceberg_version
from lineage_service.tracing.tables.native_reads import awaited
from lineage_service.tracing.tables.table_log import TableLog
from lineage_service.tracing.tables.table_version import TableVersion, VersionAsked

__all__ = ["DELTA", "ICEBERG", "TableVersions"]

DELTA, ICEBERG = "delta", "iceberg"
#: Versions that are kept, and data files that they have in all.
_MOST_KEPT, _MOST_FILES = 16, 200_000
_Key = tuple[str, int, str]
_Kept = tuple[FileState | None, TableVersion]


_NEWEST = VersionAsked()


def _key(table: str, number: int, asked: VersionAsked) -> _Key:
    """Of Iceberg a snapshot has other columns where a branch is asked for, or what is the newest."""
    return table, number, repr(asked.number if isinstance(asked.number, str) else asked.is_newest)


class TableVersions:
    """Threads may share it."""

    def __init__(self, files: FileSystems) -> None:
        self._files = files
        self._lock = Lock()
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()

    def of(self, table: str, format: str, check: Check, asked: VersionAsked = _NEWEST) -> TableVersion:
        """Raises NotFoundError, UnavailableError, and what `check` raises."""
        return awaited(partial(self._of, table, format, check, asked), check)

    def log(self, version: TableVersion, format: str, check: Check) -> TableLog:
        """The versions of its table. Raises NotFoundError, UnavailableError, and what `check` raises."""
        if format == ICEBERG:
            return awaited(partial(iceberg_log, self._files, version, check), check)
        newest = self.of(version.table, format, check)
        read = {newest.number: newest, version.number: version}

        def of_number(number: int) -> TableVersion:
            if number not in read:
                read[number] = self.of(version.table, format, check, VersionAsked(number))
            return read[number]

        commits = commits_of(self._files, version.table, newest.number, newest.properties, check)
        is_whole = bool(commits) and commits[0].version == 0
        return TableLog(commits=commits, number=version.number, is_whole=is_whole, read=of_number)

    def _of(self, table: str, format: str, check: Check, asked: VersionAsked) -> TableVersion:
        number = asked.page_of if asked.page_of is not None else asked.number
        if isinstance(number, int):
            kept = self._kept_of(_key(table, number, asked), format)
            if kept is not None:
                return kept
        if format == DELTA:
            version = delta_version(self._files, table, asked)
        else:
            version = iceberg_version(self._files, table, check, asked)
        self._keep(_key(table, version.number, asked), format, version)
        return version

    def _kept_of(self, key: _Key, format: str) -> TableVersion | None:
        with self._lock:
            state, version = self._kept.get(key, (None, None))
        if version is None or state != self._state(key, format):
            return None
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
        return version

    def _keep(self, key: _Key, format: str, version: TableVersion) -> None:
        state = self._state(key, format)
        if (state is None and format == DELTA) or len(version.files) > _MOST_FILES:
            return
        with self._lock:
            self._kept[key] = state, version
            self._kept.move_to_end(key)
            while (
                len(self._kept) > _MOST_KEPT
                or sum(len(kept.files) for _, kept in self._kept.values()) > _MOST_FILES
            ):
                self._kept.popitem(last=False)

    def _state(self, key: _Key, format: str) -> FileState | None:
        """None where the commit cannot be seen, as it was cleaned up; and of Iceberg."""
        if format != DELTA:
            return None
        try:
            return self._files.state(commit_path(key[0], key[1]))
        except UnreadableError:
            return None

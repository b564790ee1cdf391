"""When each version of a Delta table was made, by Delta Lake's own rule: for `at`, and in histories.

A table that keeps times in its commits (`delta.enableInCommitTimestamps`) has them from some version on.
Before, and in other tables, it is when the file of the commit was last modified. Where these do not ascend,
a version is a millisecond later than the one before
(https://github.com/delta-io/delta/blob/master/PROTOCOL.md#in-commit-timestamps).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from lineage_service.errors import NotFoundError
from lineage_service.tracing.files.file_systems import FileSystems
from lineage_service.tracing.tables.delta_log import log_files, read_commit

__all__ = ["Actions", "CommitTimes", "version_at"]

Actions = Mapping[str, Sequence[Mapping[str, Any]]]
_COMMIT = re.compile(r"([0-9]{20})\.json")
_CHECKPOINT = re.compile(r"([0-9]{20})\.checkpoint(?:\.[0-9]{10}\.([0-9]{10})|\..+)?\.(?:parquet|json)")
_ENABLED = "delta.enableInCommitTimestamps"
_SINCE_VERSION = "delta.inCommitTimestampEnablementVersion"
_SINCE_TIME = "delta.inCommitTimestampEnablementTimestamp"


class CommitTimes:
    """Of a log as it was listed, in Unix milliseconds. `properties` are those of the newest version.

    Raises UnreadableError, ValueError.
    """

    def __init__(self, files: FileSystems, table: str, properties: Mapping[str, str]) -> None:
        self._files, self._table = files, table
        log = list(log_files(files, table))
        of_commits = ((_COMMIT.fullmatch(file.name), file.modified) for file in log)
        modified = {int(match[1]): at for match, at in of_commits if match is not None}
        first = _first_whole(modified, (file.name for file in log))
        #: The commits that are there, in order.
        self.commits = sorted(modified)
        self._modified = _ascending(modified, self.commits)
        self._whole = [version for version in self.commits if first is not None and version >= first]
        self._modified_of_whole = _ascending(modified, self._whole)
        is_enabled = properties.get(_ENABLED, "").lower() == "true"
        self._since_version = int(properties.get(_SINCE_VERSION, 0)) if is_enabled else None
        self._since_time = int(properties.get(_SINCE_TIME, 0))

    def of(self, version: int, commit: Actions) -> int | None:
        """Of a version, by what its commit says."""
        return _kept(commit) if self._is_kept(version) else self._modified.get(version)

    def newest_until(self, at: int) -> int | None:
        """None: the first that can be read is later."""
        versions = self._whole
        if self._since_version is not None:
            versions = [version for version in versions if self._is_kept(version) is (at >= self._since_time)]
        until = bisect_right(versions, at, key=self._of_whole)
        return versions[until - 1] if until else None

    def first(self) -> int | None:
        """When the first version was made that can be read."""
        return self._of_whole(self._whole[0]) if self._whole else None

    def _of_whole(self, version: int) -> int:
        if self._is_kept(version):
            return _kept(read_commit(self._files, self._table, version)) or 0
        return self._modified_of_whole[version]

    def _is_kept(self, version: int) -> bool:
        return self._since_version is not None and version >= self._since_version


def _kept(commit: Actions) -> int | None:
    time = (commit.get("commitInfo") or [{}])[0].get("inCommitTimestamp")
    return None if time is None else int(time)


def version_at(files: FileSystems, table: str, properties: Mapping[str, str], at: int) -> int:
    """The number of the newest version until `at`. Raises NotFoundError, UnreadableError, ValueError."""
    times = CommitTimes(files, table, properties)
    version = times.newest_until(at)
    if version is not None:
        return version
    first = times.first()
    began = "" if first is None else f": the first is of {_in_words(first)}"
    raise NotFoundError(f"the log of {table} has no version until then{began}")


def _in_words(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, timezone.utc).isoformat(" ", "seconds")


def _first_whole(commits: Iterable[int], names: Iterable[str]) -> int | None:
    """The first version that can be made: the very first, or that of a checkpoint with all its parts."""
    first = min(commits, default=None)
    if first is None or first == 0:
        return first
    parts: dict[tuple[int, int], int] = {}
    for name in names:
        match = _CHECKPOINT.fullmatch(name)
        if match is not None:
            key = int(match[1]), int(match[2] or 1)
            parts[key] = parts.get(key, 0) + 1
    whole = (version for (version, parts_in_all), seen in parts.items() if seen >= parts_in_all)
    return min((version for version in whole if version >= first - 1), default=None)


def _ascending(modified: Mapping[int, int], versions: Iterable[int]) -> dict[int, int]:
    times: dict[int, int] = {}
    last: int | None = None
    for version in versions:
        last = modified[version] if last is None else max(modified[version], last + 1)
        times[version] = last
    return times

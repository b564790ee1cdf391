"""How files below a path, or that fit a pattern, are now: sizes and times, and the version of a Delta table.

Never opens a file of data. Files that Spark takes for hidden do not count. Of a local file the time of its
inode counts, too: it moves when a file with an older time takes the place of another. What one look does not
see, a later one cannot miss: it may list more than a job reads, and never less.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from lineage_service.datasets.places import has_wildcards, matches, without_wildcards
from lineage_service.errors import LineageError
from lineage_service.tracing.files.file_parts import normal_path
from lineage_service.tracing.files.file_systems import FileSystems, is_local
from spark_agent.contract.dataset_names import DatasetName, remote_parts

__all__ = ["Commit", "FileLook", "FileLooks", "LookError"]

#: Of one path. More are not looked at: then it is not known whether they changed.
MAX_FILES = 100_000
#: A file whose time is so near to a look may still change without another time. Clocks of stores differ.
_LOCAL_S, _REMOTE_S = 2.0, 60.0
_DELTA_LOG = "_delta_log"
_PARENTS_OF_DELTA = 4
#: Operations of a commit that leave rows of before where they are, and those that leave none.
_ADDING = frozenset(("MERGE", "UPDATE", "DELETE", "STREAMING UPDATE", "COPY INTO"))
_REPLACING = frozenset(
    ("CREATE TABLE AS SELECT", "REPLACE TABLE AS SELECT", "CREATE OR REPLACE TABLE AS SELECT")
)


class LookError(LineageError):
    """It cannot be seen how the files are now: why."""


class Commit(NamedTuple):
    """Of a Delta table: its version, the time of its file in Unix nanoseconds, and that file's name."""

    version: int
    time_ns: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLook:
    """One path. `digest` is equal where files, sizes and times are, and differs where any of them does.

    `newest_ns` is the latest time of all, in Unix nanoseconds; None where one has none. `at_ns` is when the
    look began, and `files` are their sizes in bytes and times in Unix ms. `version` is that of a Delta table.
    `commit` is how that version was made, where `FileLooks.with_commit` has looked, and `replaces` whether
    nothing is left there of the versions before; None: that is not known.
    """

    path: str
    digest: str
    count: int
    bytes: int
    newest_ns: int | None
    newest: str | None
    at_ns: int
    is_local: bool
    version: int | None = None
    commit: str = ""
    replaces: bool | None = None
    files: dict[str, tuple[int, int]] = field(default_factory=dict)

    def is_older_than(self, unix_ns: float) -> bool:
        """Was all of it as it is for long enough before then?"""
        if self.newest_ns is None:
            return False
        return self.newest_ns + (_LOCAL_S if self.is_local else _REMOTE_S) * 1e9 < unix_ns

    @property
    def is_settled(self) -> bool:
        """Would a later change have another time?"""
        return not self.count or self.is_older_than(self.at_ns)


@dataclass(slots=True)
class _Listing:
    """Grows while files are listed. Raises LookError of too many, and where time is up."""

    path: str
    until: float
    states: list[tuple[str, int, int | None, int | None]] = field(default_factory=list)
    times: list[int | None] = field(default_factory=list)

    def add(self, path: str, size: int, modified_ns: int | None, changed_ns: int | None = None) -> None:
        self.states.append((path, size, modified_ns, changed_ns))
        if len(self.states) > MAX_FILES:
            raise LookError(f"{self.path} has more than {MAX_FILES:,} files")
        self.check()

    def check(self) -> None:
        if time.monotonic() > self.until:
            raise LookError(f"to list the files of {self.path} takes too long")

    def look(self, at_ns: int, *, is_local: bool, version: int | None) -> FileLook:
        self.states.sort()
        total = hashlib.sha256()
        for state in self.states:
            total.update(repr(state).encode("utf-8", "surrogateescape") + b"\n")
        latest = [
            (max(filter(None, (modified, changed)), default=None), path)
            for path, _, modified, changed in self.states
        ]
        times = [*(time for time, _ in latest), *self.times]
        newest = (
            None if not times or any(time is None for time in times) else max(filter(None, times), default=0)
        )
        return FileLook(
            path=self.path,
            digest=total.hexdigest(),
            count=len(self.states),
            bytes=sum(size for _, size, _, _ in self.states),
            newest_ns=newest,
            newest=next((path for time, path in latest if time == newest), None),
            at_ns=at_ns,
            is_local=is_local,
            version=version,
            files={
                path: (size, modified // 1_000_000)
                for path, size, modified, _ in self.states
                if modified is not None and version is None
            },
        )


class FileLooks:
    """Looks at paths and patterns, as `normal_path` gives them."""

    def __init__(self, systems: FileSystems, seconds: float) -> None:
        self._systems = systems
        self._until = time.monotonic() + seconds

    def at(self, path: str) -> FileLook:
        """Raises LookError."""
        if "\\" in path:
            raise LookError(f"the pattern {path} has characters that are escaped: it is not understood here")
        listing, at_ns = _Listing(path, self._until), time.time_ns()
        try:
            local = is_local(path)
            version = self._local(listing, path) if local else self._remote(listing, path)
        except LookError:
            raise
        except (LineageError, OSError, ValueError) as error:
            raise LookError(f"{path} cannot be looked at: {_first_line(error)}") from None
        return listing.look(at_ns, is_local=local, version=version)

    def with_commit(self, look: FileLook) -> FileLook:
        """With how the version of a Delta table was made. Raises nothing: then it is not known."""
        if look.version is None:
            return look
        try:
            operation, replaces = _operation(self._commit_text(look.path, f"{look.version:020}.json"))
        except (LineageError, OSError, ValueError):
            return look
        return replace(look, commit=operation, replaces=replaces)

    def _commit_text(self, path: str, name: str) -> str:
        if is_local(path):
            log = _delta_log_of(path) or f"{path}/{_DELTA_LOG}"
            return Path(log, name).read_text(encoding="utf-8")
        with (
            self._systems.connected(path) as (system, place),
            system.open_input_stream(f"{place.rstrip('/')}/{_DELTA_LOG}/{name}") as stream,
        ):
            return bytes(stream.read()).decode()

    def commits(self, path: str) -> list[Commit]:
        """Those that are still in the log of a Delta table, the oldest first. Raises LookError."""
        try:
            if is_local(path):
                log = _delta_log_of(path) or f"{path}/{_DELTA_LOG}"
                with os.scandir(log) as entries:
                    files = [(entry.name, entry.stat().st_mtime_ns) for entry in entries]
            else:
                files = self._remote_log(path)
        except (LineageError, OSError, ValueError) as error:
            raise LookError(f"the commits of {path} cannot be listed: {_first_line(error)}") from None
        return sorted(
            Commit(int(name.partition(".")[0]), time_ns, name) for name, time_ns in files if _is_commit(name)
        )

    # -- this machine --------------------------------------------------------------------------------

    def _local(self, listing: _Listing, path: str) -> int | None:
        """The version of the table that it is of."""
        log = _delta_log_of(path)
        if log is not None:
            return _newest_commit(listing, log)
        base = path
        if has_wildcards(DatasetName("file", path)):
            base = without_wildcards(DatasetName("file", path)).name
        for link in _links(base):
            listing.times.append(os.lstat(link).st_ctime_ns)
        for file, status in _walk(listing, base, is_root=True):
            if base == path or matches(DatasetName("file", path), DatasetName("file", file)):
                listing.add(file, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        return None

    # -- other file systems --------------------------------------------------------------------------

    def _remote(self, listing: _Listing, path: str) -> int | None:
        parts = remote_parts(path)
        assert parts is not None, path
        scheme, authority, _ = parts
        namespace = f"{scheme}://{authority}"
        pattern = DatasetName(namespace, "/" + parts[2])
        base = without_wildcards(pattern).name if has_wildcards(pattern) else pattern.name
        with self._systems.connected(f"{namespace}{base}") as (system, place):
            from pyarrow.fs import FileSelector, FileType

            log = system.get_file_info(
                FileSelector(f"{place.rstrip('/')}/{_DELTA_LOG}", recursive=False, allow_not_found=True)
            )
            commits = [info for info in log if _is_commit(info.base_name)]
            if commits:
                newest = max(commits, key=lambda info: str(info.base_name))
                listing.add(str(newest.base_name), int(newest.size), newest.mtime_ns)
                return int(newest.base_name.partition(".")[0])
            root = system.get_file_info([place])[0]
            infos = [root] if root.type == FileType.File else []
            if not infos:
                infos = system.get_file_info(FileSelector(place, recursive=True, allow_not_found=True))
            for info in infos:
                within = str(info.path)[len(place.rstrip("/")) :]
                if info.type != FileType.File or any(map(_is_hidden, within.strip("/").split("/"))):
                    continue
                file = DatasetName(namespace, f"{base.rstrip('/')}{within}")
                if base == pattern.name or matches(pattern, file):
                    listing.add(normal_path(f"{namespace}{file.name}"), int(info.size), info.mtime_ns)
        return None

    def _remote_log(self, path: str) -> list[tuple[str, int]]:
        with self._systems.connected(path) as (system, place):
            from pyarrow.fs import FileSelector

            log = FileSelector(f"{place.rstrip('/')}/{_DELTA_LOG}", recursive=False)
            infos = system.get_file_info(log)
        return [(str(info.base_name), info.mtime_ns) for info in infos if info.mtime_ns is not None]


def _walk(listing: _Listing, path: str, *, is_root: bool = False) -> Iterator[tuple[str, os.stat_result]]:
    """The files below a folder, or the file itself. Links are followed; their own times count, too."""
    listing.check()
    try:
        status = os.stat(path)  # noqa: PTH116
    except FileNotFoundError:
        if is_root:
            return
        status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode):
        yield path, status
        return
    with os.scandir(path) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if _is_hidden(entry.name):
                continue
            if entry.is_symlink():
                listing.times.append(entry.stat(follow_symlinks=False).st_ctime_ns)
            yield from _walk(listing, entry.path)


def _is_hidden(name: str) -> bool:
    """As Spark takes it (`HadoopFSUtils.shouldFilterOutPathName`)."""
    if name.startswith(("_common_metadata", "_metadata")):
        return False
    return name.startswith(".") or name.endswith("._COPYING_") or (name.startswith("_") and "=" not in name)


def _links(path: str) -> Iterator[str]:
    """Those of a path and its folders that are symbolic links."""
    while True:
        if os.path.islink(path):  # noqa: PTH114
            yield path
        folder = os.path.dirname(path)  # noqa: PTH120
        if folder == path:
            return
        path = folder


def _delta_log_of(path: str) -> str | None:
    """The log of the Delta table that a folder is, or is a partition of."""
    for _ in range(_PARENTS_OF_DELTA):
        log = f"{path.rstrip('/')}/{_DELTA_LOG}"
        if os.path.isdir(log):  # noqa: PTH112
            return log
        folder = os.path.dirname(path)  # noqa: PTH120
        if folder == path:
            return None
        path = folder
    return None


def _newest_commit(listing: _Listing, log: str) -> int | None:
    names = [name for name in os.listdir(log) if _is_commit(name)]  # noqa: PTH208
    if not names:
        raise LookError(f"the Delta log {log} has no commits")
    newest = max(names)
    status = os.stat(f"{log}/{newest}")  # noqa: PTH116
    listing.add(f"{log}/{newest}", status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return int(newest.partition(".")[0])


def _operation(commit: str) -> tuple[str, bool | None]:
    """What a commit says that it did, and whether that replaced all of the table. Raises ValueError."""
    lines = [json.loads(line) for line in commit.splitlines() if '"commitInfo"' in line]
    infos = [line.get("commitInfo") for line in lines if isinstance(line, dict)]
    info = next((info for info in infos if isinstance(info, dict)), {})
    operation, said = str(info.get("operation", "")), info.get("operationParameters")
    parameters = said if isinstance(said, dict) else {}
    mode = str(parameters.get("mode", "")).strip('"')
    described = f"{operation} {mode}".strip()
    if operation in _ADDING or (operation == "WRITE" and mode == "Append"):
        return described, False
    if operation in _REPLACING:
        return described, True
    if operation != "WRITE" or mode != "Overwrite":
        return described, None
    if parameters.get("predicate"):
        return f"{described} where {parameters['predicate']}", False
    # Of a table with partitions, only those that are written again may have been replaced.
    is_dynamic = str(parameters.get("isDynamicPartitionOverwrite", "")).lower()
    has_partitions = str(parameters.get("partitionBy", "[]")) != "[]"
    return described, True if is_dynamic == "false" or not (is_dynamic or has_partitions) else None


def _is_commit(name: Any) -> bool:
    number, _, kind = str(name).partition(".")
    return kind == "json" and len(number) == 20 and number.isdigit()


def _first_line(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return (text.splitlines() or [type(error).__name__])[0][:200]

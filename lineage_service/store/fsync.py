"""Brings what commits of a Delta table wrote onto the disk: the files, the entry in the log, their folders.

Delta's library leaves that to the operating system, which writes within half a minute and in any order: of a
machine that loses its power meanwhile a later commit may be there and an earlier one be an empty file, which
reads as a commit of nothing. Where each commit is on the disk before the next begins, only what was under way
can be lost, and that is read from Kafka again. For folders of this machine; knows nothing of what is stored.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

__all__ = ["entry_of", "sync_commit", "sync_recent"]

#: What is older was written by the operating system (Linux: after 30 s, looked for each 5 s).
WRITTEN_BACK_S = 60.0
_AT_ONCE = 8
#: Some file systems (of networks, in user space) have no such thing, for folders mostly.
_NOT_DONE_HERE = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)


def entry_of(table: Path, version: int) -> Path:
    """The file of a commit in the log."""
    return table / "_delta_log" / f"{version:020}.json"


def sync_commit(table: Path, version: int) -> None:
    """1. The files that it added. 2. Their folders. 3. Its entry, and the checkpoint that it made, if any.
    4. The log's folder. What is gone meanwhile nobody needs. Raises OSError.
    """
    entry = entry_of(table, version)
    with suppress(FileNotFoundError):
        added = _added(table, entry)
        _sync_all(added)
        _sync_all({file.parent for file in added})
        _sync(table)
        for path in (entry, entry.with_suffix(".checkpoint.parquet"), entry.with_name("_last_checkpoint")):
            _sync(path)
        _sync(entry.parent)


def sync_recent(table: Path, newest: int, synced: int) -> None:
    """The commits after `synced` up to `newest`, whoever made them, that may not be on the disk yet."""
    since = time.time() - WRITTEN_BACK_S
    for version in range(newest, synced, -1):
        try:
            if entry_of(table, version).stat().st_mtime < since:
                return
        except FileNotFoundError:
            return  # a checkpoint stands for it, so it is old
        sync_commit(table, version)


def _added(table: Path, entry: Path) -> list[Path]:
    # Most lines say what was added, with statistics; only these are read.
    lines = (line for line in entry.read_bytes().splitlines() if line.startswith(b'{"add"'))
    return [table / unquote(json.loads(line)["add"]["path"]) for line in lines]


def _sync_all(paths: Collection[Path]) -> None:
    """Several at a time: a file system brings what is asked for together onto the disk at once."""
    if len(paths) < _AT_ONCE:
        for path in paths:
            _sync(path)
        return
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(_sync, paths))


def _sync(path: Path) -> None:
    with suppress(FileNotFoundError):
        opened = os.open(path, os.O_RDONLY)
        try:
            os.fsync(opened)
        except OSError as error:
            if error.errno not in _NOT_DONE_HERE:
                raise
        finally:
            os.close(opened)

"""What the files and folders look like that a replay must not change: taken before it, and compared after it.

Size, time, mode, owner and inode of each, and the names in each folder; contents are not read. Symbolic links
are looked at themselves and followed once. Looks at this machine's files only: others have no such state.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

__all__ = ["Snapshot", "changes", "snapshot"]


class _State(NamedTuple):
    kind: int
    mode: int
    size: int
    time: int
    owner: tuple[int, int]
    inode: tuple[int, int]


#: How a sentence names what differs.
_NAMES = {"mode": "mode", "size": "size", "time": "time of change", "owner": "owner", "inode": "inode"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state of each path by its name; None for one that is not there."""

    states: Mapping[str, _State | None]


def snapshot(paths: Iterable[str]) -> Snapshot:
    """The state of these files and folders, and of all that is below them."""
    states: dict[str, _State | None] = {}
    for path in filter(None, map(_local, paths)):
        for name in (path, os.path.realpath(path)):
            if name not in states:
                states.update(_below(name))
    return Snapshot(states=states)


def changes(before: Snapshot, after: Snapshot) -> list[str]:
    """A sentence for each path that differs; none where nothing does."""
    return [
        f"{path} {difference}"
        for path in sorted({**before.states, **after.states})
        if (difference := _difference(before.states.get(path), after.states.get(path)))
    ]


def _difference(before: _State | None, after: _State | None) -> str:
    if before == after:
        return ""
    if before is None or after is None:
        return "is new" if before is None else "is gone"
    if before.kind != after.kind:
        return "is another kind of file now"
    differing = [text for field, text in _NAMES.items() if getattr(before, field) != getattr(after, field)]
    return f"has another {' and '.join(differing)}"


def _local(path: str) -> str:
    """The absolute path of this machine that a path or a URI names; empty of another file system's."""
    if path.startswith("file:"):
        return unquote(urlsplit(path).path)
    return path if path.startswith("/") else ""


def _below(path: str) -> Iterator[tuple[str, _State | None]]:
    """Each file and folder with its state; a folder that cannot be listed is itself all that is seen."""
    pending = [path]
    while pending:
        name = pending.pop()
        state = _state(name)
        yield name, state
        if state is not None and state.kind == stat.S_IFDIR:
            try:
                pending += [entry.path for entry in os.scandir(name)]
            except OSError:
                continue


def _state(path: str) -> _State | None:
    try:
        state = os.lstat(path)
    except OSError:
        return None
    return _State(
        kind=stat.S_IFMT(state.st_mode),
        mode=stat.S_IMODE(state.st_mode),
        size=state.st_size,
        time=state.st_mtime_ns,
        owner=(state.st_uid, state.st_gid),
        inode=(state.st_dev, state.st_ino),
    )

"""Which file a call means: paths and file descriptors resolved as the kernel resolves them.

Promises to use no function that a script can replace later: what this needs of `posix` is taken at import.
Knows nothing of what is allowed.
"""

from __future__ import annotations

from posix import fstat, getcwd, lstat, readlink
from stat import S_ISLNK

__all__ = ["Unresolved", "descriptor_path", "exists", "resolved", "text_of"]

#: As the kernel, and then one more.
_MOST_LINKS = 41


class Unresolved(OSError):
    """It cannot be told which file is meant."""


def text_of(path: object) -> str:
    """A path as text, as the file system has it."""
    if isinstance(path, bytes):
        return path.decode("utf-8", "surrogateescape")
    if isinstance(path, str):
        return path
    raise Unresolved(f"{path!r} is no path")


def descriptor_path(descriptor: int) -> str | None:
    """The file that a descriptor is open on; None for what has no name: a pipe, a socket, a removed file."""
    target = readlink(f"/proc/self/fd/{descriptor}")
    if not target.startswith("/") or target.startswith("/memfd:"):
        return None
    if target.endswith(" (deleted)") and fstat(descriptor).st_nlink == 0:
        return None
    return target


def resolved(path: object, folder: object = -1, *, follows: bool = True) -> str:
    """The absolute path without symbolic links and dots.

    `folder` is a descriptor that relative paths begin at, -1 for the current folder. With `follows` the last
    part is followed, too. Parts that do not exist stay as they are. Raises Unresolved.
    """
    text = text_of(path)
    at = "" if text.startswith("/") else _base(folder)
    pending = [part for part in reversed(text.split("/")) if part not in ("", ".")]
    follows = follows or text.endswith("/") or text.rpartition("/")[2] in (".", "..")
    links = 0
    while pending:
        part = pending.pop()
        if part == "..":
            at = at.rpartition("/")[0]
            continue
        target = _link_target(f"{at}/{part}") if pending or follows else None
        if target is None:
            at = f"{at}/{part}"
            continue
        links += 1
        if links >= _MOST_LINKS:
            raise Unresolved(f"{text} has too many symbolic links")
        if _is_unnamed(target):
            return target
        at = "" if target.startswith("/") else at
        pending += [piece for piece in reversed(target.split("/")) if piece not in ("", ".")]
    return at or "/"


def exists(path: str) -> bool:
    """Is there something, be it a broken link? True where that cannot be known."""
    try:
        lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _base(folder: object) -> str:
    if folder is None or folder == -1 or not isinstance(folder, int):
        return getcwd().rstrip("/")
    base = descriptor_path(folder)
    if base is None:
        raise Unresolved(f"the folder of descriptor {folder} has no name")
    return base.rstrip("/")


def _link_target(path: str) -> str | None:
    """None where it is no link, or is not there."""
    try:
        return readlink(path) if S_ISLNK(lstat(path).st_mode) else None
    except OSError:
        return None


def _is_unnamed(target: str) -> bool:
    """Does a link of /proc lead to a pipe, a socket or the like?"""
    return target.startswith(("pipe:[", "socket:[", "anon_inode:", "/memfd:"))

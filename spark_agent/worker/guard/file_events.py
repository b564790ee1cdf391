"""Judges the events of Python that change files: opening for writing, removing, renaming, and so on.

What is judged is the file that would change. Of a call that may follow a link both the link and its target
are judged; of a hard link also what it leads to, since that is one file with two names. Where nothing is
there to be removed or changed, or a folder is there already, Python's own error says so.
"""

from __future__ import annotations

import os
from _socket import AF_UNIX
from collections.abc import Callable, Mapping
from typing import Any

from spark_agent.worker.guard.paths import Unresolved, descriptor_path, exists, resolved, text_of
from spark_agent.worker.guard.refusals import ADVICE, Refusals
from spark_agent.worker.guard.territory import Territory

__all__ = ["WRITING", "FileEvents"]

Judge = Callable[..., None]
#: Flags of an open file that may be changed, or made.
WRITING = (
    os.O_WRONLY
    | os.O_RDWR
    | os.O_CREAT
    | os.O_TRUNC
    | os.O_APPEND
    | (getattr(os, "O_TMPFILE", 0) & ~os.O_DIRECTORY)
)
#: Requests of ioctl that change the flags of a file, which a descriptor for reading may.
_FLAGS_OF_FILES = (0x40086602, 0x40046602, 0x401C5820)


class FileEvents:
    """Judges by a territory."""

    def __init__(self, territory: Territory, refusals: Refusals) -> None:
        self._territory = territory
        self._refusals = refusals
        #: Hears which files and folders are read.
        self.on_read: Callable[[str], None] | None = None

    def judges(self) -> Mapping[str, Judge]:
        """By the event's name, each takes its arguments and raises ReplayRefused, or does nothing."""
        return {
            "open": self._open,
            "os.listdir": self._read,
            "os.scandir": self._read,
            "os.remove": lambda path, folder=-1: self.existing("remove", path, folder),
            "os.rmdir": lambda path, folder=-1: self.existing("remove the folder", path, folder),
            "shutil.rmtree": lambda path, folder=-1: self.existing("remove the folder", path, folder),
            "os.rename": self._rename,
            "os.link": self._link,
            "os.symlink": lambda _, path, folder=-1: self.named("make the symbolic link", path, folder),
            "os.mkdir": self._make_folder,
            "os.truncate": lambda path, _: self.attributes("truncate", path),
            "os.chmod": lambda path, _, folder=-1: self.attributes("change the mode of", path, folder),
            "os.chown": lambda path, user, group, folder=-1: self.attributes(
                "change the owner of", path, folder
            ),
            "os.chflags": lambda path, *_: self.attributes("change the flags of", path),
            "os.utime": lambda path, times, ns, folder=-1: self.attributes(
                "change the times of", path, folder
            ),
            "os.setxattr": lambda path, *_: self.attributes("change the attributes of", path),
            "os.removexattr": lambda path, *_: self.attributes("change the attributes of", path),
            "fcntl.ioctl": self._control,
            "socket.bind": self._bind,
        }

    # -- what is judged -----------------------------------------------------------------------------

    def followed(self, what: str, path: object, folder: object = -1, advice: str = ADVICE) -> None:
        """A call that follows links, and may make what is not there."""
        self._judge(what, path, self._resolve(what, path, folder, follows=True), advice)

    def named(self, what: str, path: object, folder: object = -1) -> None:
        """A call that means the name itself, be it that of a link."""
        self._judge(what, path, self._resolve(what, path, folder, follows=False))

    def existing(self, what: str, path: object, folder: object = -1) -> None:
        """The same of a name that has to be there."""
        name = self._resolve(what, path, folder, follows=False)
        if exists(name):
            self._judge(what, path, name)

    def attributes(self, what: str, path: object, folder: object = -1) -> None:
        """A call that may follow links or not, of a path or an open file."""
        if isinstance(path, int):
            target = descriptor_path(path)
            if target is not None:
                self._judge(what, target, target)
            return
        for follows in (True, False):
            name = self._resolve(what, path, folder, follows=follows)
            if exists(name):
                self._judge(what, path, name)

    def _resolve(self, what: str, path: object, folder: object, *, follows: bool) -> str:
        try:
            return resolved(path, folder, follows=follows)
        except (Unresolved, OSError) as error:
            self._refusals.refuse(what, str(path), f"it cannot be told which file is meant: {error}")
            raise

    def _judge(self, what: str, path: object, name: str, advice: str = ADVICE) -> None:
        if not self._territory.has(name):
            named = text_of(path)
            self._refusals.refuse(what, named if named == name else f"{named} ({name})", advice)

    # -- events whose arguments need a look ---------------------------------------------------------

    def _open(self, path: object, mode: object, flags: object) -> None:
        is_writing = bool(flags & WRITING) if isinstance(flags, int) else True
        if not is_writing and isinstance(mode, str):
            is_writing = any(letter in mode for letter in "wax+")
        if isinstance(path, int):
            return  # what is open was judged when it was opened
        if is_writing:
            self.followed("open for writing", path)
        else:
            self._read(path)

    def _read(self, path: object = ".") -> None:
        if self.on_read is not None and isinstance(path, str):
            self.on_read(path)

    def _rename(self, source: object, target: object, folder: object = -1, to: object = -1) -> None:
        self.existing("rename", source, folder)
        self.named("rename to", target, to)

    def _link(self, source: object, target: object, folder: object = -1, to: object = -1) -> None:
        self.attributes("link to", source, folder)
        self.named("make the hard link", target, to)

    def _make_folder(self, path: object, mode: object = 0, folder: object = -1) -> None:
        name = self._resolve("make the folder", path, folder, follows=False)
        if not exists(name):
            self._judge("make the folder", path, name)

    def _control(self, descriptor: object, request: object, *_: object) -> None:
        if request in _FLAGS_OF_FILES and isinstance(descriptor, int):
            self.attributes("change the flags of", descriptor)

    def _bind(self, own: Any, address: object) -> None:
        if own.family == AF_UNIX and isinstance(address, (str, bytes)):
            path = text_of(address)
            if path and not path.startswith("\0"):
                self.named("make the socket", path)

"""Where the sinks of a replay write: below `out/` in its sandbox, and never to where the job asked for.

A job may read what it has written. So the paths of redirected outputs mean their copies from then on. Before
that, a path may mean what the replay of an earlier application wrote: its stand-in, which is only read. Paths
are compared as texts: absolute ones of this machine, and URIs as they are. Spark gets the sandbox's paths as
URIs, since its own may mean another file system.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from spark_agent.driver.partitions import absolute

#: What of a sink's name is in the name of its folder.
_PLAIN = re.compile(r"[^A-Za-z0-9_.-]+")
#: A path with one of these is a pattern, for Hadoop.
_PATTERN = re.compile(r"[*?\[{]")


class Outputs:
    """The redirected outputs of one replay. Thread-safe."""

    def __init__(
        self, folder: str, differs: Callable[[str], None], stand_ins: Mapping[str, str] | None = None
    ) -> None:
        """`folder`: that of all outputs. `differs` takes a sentence on what may differ from the original.

        `stand_ins`: folders that are read in the place of paths.
        """
        self._folder, self._differs = folder, differs
        self._stand_ins = {_plain(path): place.rstrip("/") for path, place in (stand_ins or {}).items()}
        self._lock = threading.Lock()
        self._copies: dict[str, str] = {}

    def folder_for(self, path: str, name: str, *, is_more: bool = False) -> str:
        """Where a sink of this `name` writes what it was to write to `path`; later reads of that find it.

        `is_more`: what was written there before may stay.
        """
        asked = _plain(path)
        if self.holds(asked):
            return path
        with self._lock:
            if is_more and asked in self._copies:
                return self._copies[asked]
            folder = os.path.join(self._folder, _PLAIN.sub("_", name) or "sink")
            taken = set(self._copies.values())
            number, free = 2, folder
            while free in taken or os.path.exists(free):
                free, number = f"{folder}.{number}", number + 1
            self._copies[asked] = free
        return free

    def holds(self, path: str) -> bool:
        """Is it a path of the outputs already?"""
        return f"{_plain(path)}/".startswith(f"{self._folder}/")

    def copy_of(self, path: str) -> str | None:
        """Where what this replay wrote to `path`, or to a folder above it, really is. None: it wrote none."""
        with self._lock:
            copies = dict(self._copies)
        return self._place_in(copies, path)

    def _place_in(self, copies: Mapping[str, str], path: str) -> str | None:
        asked = _plain(path)
        for original, copy in sorted(copies.items(), key=lambda item: -len(item[0])):
            if asked == original or asked.startswith(f"{original}/"):
                return copy + asked[len(original) :]
            if _PATTERN.search(asked) and _matches(asked, original):
                self._differs(
                    f"the job reads {path}, a pattern that names {original}, too: what a replay wrote "
                    "there is elsewhere, so what is read is not what it wrote"
                )
        return None

    def with_copies(self, paths: Any) -> Any:
        """An argument that names what is to be read, with copies and stand-ins in place of what was written.

        A text, which may name several paths with commas between, or a list of them. Anything else stays.
        """
        if isinstance(paths, str):
            parts = [self.copy_of(part) or self._place_in(self._stand_ins, part) for part in paths.split(",")]
            if not any(parts):
                return paths
            return ",".join(
                part if copy is None else uri(copy)
                for copy, part in zip(parts, paths.split(","), strict=True)
            )
        if isinstance(paths, (list, tuple)):
            return type(paths)([self.with_copies(path) for path in paths])
        return paths


def uri(path: str) -> str:
    """A path of this machine, as Hadoop reads it wherever its own paths are."""
    return f"file:{path}"


def _plain(path: str) -> str:
    return absolute(path).rstrip("/") or "/"


def _matches(pattern: str, path: str) -> bool:
    """Does a pattern name a path, or something below it?"""
    steps, names = pattern.split("/"), path.split("/")
    return len(steps) >= len(names) and all(
        step == name or "{" in step or fnmatchcase(name, step)
        for step, name in zip(steps, names, strict=False)
    )

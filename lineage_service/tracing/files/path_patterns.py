"""Names of several files: a folder means all below it, and a glob all that fit. Pure.

`*` and `?` stand for characters of one name, `**` for any folders, `[ab]` for one of several characters. A
glob without a folder fits the names of files wherever they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from lineage_service.tracing.files.file_parts import normal_path

__all__ = ["PathPattern", "is_glob"]

_GLOB = re.compile(r"[*?]|\[[^]]+\]")
_FOLDERS = "**"


def is_glob(path: str) -> bool:
    return _GLOB.search(path) is not None


class PathPattern:
    """A path as it was given: of a file, of a folder, or a glob of either."""

    def __init__(self, path: str) -> None:
        self.is_glob = is_glob(path)
        is_name = self.is_glob and "/" not in path
        self.path = path if is_name else normal_path(path).rstrip("/") or "/"
        self._names = [*([_FOLDERS] if is_name else []), *self.path.split("/")]

    def fits(self, path: str) -> bool:
        """`path` is that of a file, as `normal_path` gives it."""
        if self.path == "/" or path == self.path or path.startswith(f"{self.path}/"):
            return True  # a name with brackets may be no glob
        return self.is_glob and _fits(self._names, path.split("/"))


def _fits(patterns: Sequence[str], names: Sequence[str]) -> bool:
    """Do the first names fit all patterns? `places` are how many patterns may have been used up."""
    places = _with_folders(patterns, {0})
    for name in names:
        places = _with_folders(
            patterns,
            {
                place if patterns[place] == _FOLDERS else place + 1
                for place in places
                if patterns[place] == _FOLDERS or fnmatchcase(name, patterns[place])
            },
        )
        if len(patterns) in places:
            return True
    return False


def _with_folders(patterns: Sequence[str], places: Iterable[int]) -> set[int]:
    """`**` may stand for no folder."""
    every = set(places)
    for place in sorted(every):
        while place < len(patterns) and patterns[place] == _FOLDERS:
            place += 1
            every.add(place)
    return every

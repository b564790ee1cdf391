"""Where copies of input files go below a folder: by the shape that the job has read. Pure.

A file that was read alone keeps its name. A folder keeps its name and what is below it, folders of partitions
too. Two of one name get numbers. No copy is outside of the folder, whatever a path holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from lineage_service.tracing.files.file_parts import normal_path
from lineage_service.tracing.model.elements import is_below

__all__ = ["CopyPlaces"]

_NO_NAMES = ("", ".", "..")


class CopyPlaces:
    """Places of one set of copies."""

    def __init__(self) -> None:
        self._tops: dict[str, str] = {}  # of what was read -> its name in the folder
        self._places: dict[str, PurePosixPath] = {}

    def add(self, location: str | None, paths: Iterable[str]) -> None:
        """A source that read these files, of this file, folder or glob."""
        paths = list(paths)
        if not paths:
            return
        root = _root(location, paths)
        top = self._top(root)
        for path in paths:
            below = _parts(normal_path(path))[len(_parts(root)) :]
            self._places.setdefault(path, PurePosixPath(top, *map(_safe, below)))

    def of(self, path: str) -> PurePosixPath:
        return self._places[path]

    def _top(self, root: str) -> str:
        if root not in self._tops:
            name = _safe((_parts(root) or [""])[-1])
            taken = set(self._tops.values())
            stem, dot, ending = name.partition(".")
            self._tops[root] = next(
                choice
                for number in range(1, len(taken) + 2)
                if (choice := name if number == 1 else f"{stem}-{number}{dot}{ending}") not in taken
            )
        return self._tops[root]


def _root(location: str | None, paths: Sequence[str]) -> str:
    """What was read as one: a file, or the folder of a table."""
    names = list(map(normal_path, paths))
    root = None if location is None else normal_path(location).rstrip("/")
    if root is None or not all(is_below(name, root) for name in names):
        if len(names) == 1:
            return names[0]
        root = _common(names)
    while names != [root] and "=" in root.rpartition("/")[2] and root.rpartition("/")[0]:
        root = root.rpartition("/")[0]
    return root


def _common(names: Sequence[str]) -> str:
    """The innermost folder of all files."""
    folders = [name.split("/")[:-1] for name in names]
    shortest = min(folders, key=len)
    count = next(
        (at for at, part in enumerate(shortest) if any(folder[at] != part for folder in folders)),
        len(shortest),
    )
    return "/".join(shortest[:count])


def _parts(path: str) -> list[str]:
    return path.strip("/").split("/") if path.strip("/") else []


def _safe(name: str) -> str:
    return "data" if name in _NO_NAMES else name.replace("\0", "_")

"""Writes input rows into files of the names that they had, for a test or a colleague."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Protocol

from spark_agent.client.http import TraceError

__all__ = ["save"]


class Row(Protocol):
    """A line of a text file. Rows count from 0."""

    @property
    def path(self) -> str | None: ...
    @property
    def row(self) -> int | None: ...
    @property
    def text(self) -> str | None: ...
    @property
    def warning(self) -> str | None: ...


def save(rows: Iterable[Row], folder: str) -> list[str]:
    """The files, in a folder that is new. Raises TraceError, before anything is written."""
    lines: dict[str, dict[int, str]] = {}
    for row in rows:
        if row.path is None or row.row is None or row.text is None:
            raise TraceError(
                "some of these rows are no lines of files that can be read: `collect()` has them"
            )
        if row.warning:
            raise TraceError(f"{row.path}:{row.row + 1}: {row.warning}")
        lines.setdefault(row.path, {})[row.row] = row.text
    names = _names(lines)
    try:
        os.makedirs(folder, mode=0o700)
        for path, of_path in lines.items():
            with open(os.path.join(folder, names[path]), "x", encoding="utf-8", newline="") as file:
                file.writelines(f"{of_path[number]}\n" for number in sorted(of_path))
    except FileExistsError:
        raise TraceError(f"{folder} is there already: name a new folder") from None
    except OSError as error:
        raise TraceError(f"{folder} cannot be written: {error.strerror or error}") from None
    return [os.path.join(folder, names[path]) for path in lines]


def _names(paths: Iterable[str]) -> dict[str, str]:
    """The name of each file, with a number where another one has it."""
    names: dict[str, str] = {}
    for path in paths:
        stem, ending = os.path.splitext(os.path.basename(path))
        name, number = stem + ending, 2
        while name in names.values():
            name, number = f"{stem}-{number}{ending}", number + 1
        names[path] = name
    return names

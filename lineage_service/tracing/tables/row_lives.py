"""In which versions of a table a row of a data file is a row of the table, by the table's commits.

A row comes with its file, goes with it or by a deletion vector, and may come back with a `RESTORE`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lineage_service.tracing.tables.table_log import Commit

__all__ = ["FileLife", "Span", "files_of", "spans_of"]


@dataclass(frozen=True, slots=True)
class Span:
    """From the version `first` on, to before the version `end`; None: up to the last commit."""

    first: int
    end: int | None


@dataclass(slots=True)
class FileLife:
    """A data file. `states` are (version, its deletion vector, None where it is not there), in order."""

    path: str
    rows: int | None = None
    first_row_id: int | None = None
    states: list[tuple[int, str | None]] = field(default_factory=list)


def files_of(commits: Iterable[Commit]) -> dict[str, FileLife]:
    """All that these commits added, by path."""
    lives: dict[str, FileLife] = {}
    for commit in commits:
        for path in commit.removed - commit.added.keys():
            if path in lives:
                lives[path].states.append((commit.version, None))
        for path, added in commit.added.items():
            life = lives.setdefault(path, FileLife(path))
            life.states.append((commit.version, added.vector))
            life.rows = life.rows if added.rows is None else added.rows
            if added.first_row_id is not None:
                life.first_row_id = added.first_row_id
    return lives


def spans_of(life: FileLife, row: int, is_removed: Callable[[int, str, int], bool]) -> Sequence[Span]:
    """When a row of the file was one of the table. `is_removed(version, path, row)`: by a vector."""
    return list(_spans(life.states, lambda version: is_removed(version, life.path, row)))


def _spans(states: Sequence[tuple[int, str | None]], is_removed: Callable[[int], bool]) -> Iterator[Span]:
    first: int | None = None
    decided: Mapping[str, bool] = {}
    for version, vector in states:
        if vector:
            decided = {**decided, vector: decided[vector] if vector in decided else is_removed(version)}
        is_there = vector is not None and not (vector and decided[vector])
        if is_there and first is None:
            first = version
        elif not is_there and first is not None:
            yield Span(first, version)
            first = None
    if first is not None:
        yield Span(first, None)

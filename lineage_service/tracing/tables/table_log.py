"""The versions of a table, in order, by what each changed. Values, whatever the format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from lineage_service.tracing.tables.table_version import TableVersion

__all__ = ["AddedFile", "Commit", "TableLog"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedFile:
    """A data file of a version. `vector` tells its deleted rows from others, and is empty without any.

    `first_row_id` and `rows` are None where the log does not say them.
    """

    path: str
    rows: int | None = None
    first_row_id: int | None = None
    vector: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One version, by what it changed. `time` is Unix milliseconds; `operation` is the format's name of it.

    `version` orders it among the others; `name` is what a query calls it. A file of which more rows were
    deleted is removed and added.
    """

    version: int
    name: str
    time: int | None
    operation: str
    engine: str
    added: Mapping[str, AddedFile] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLog:
    """`number` orders the version that was asked for; `read` gives the version of a commit.

    `is_whole`: the first commit is the first of the table.
    """

    commits: Sequence[Commit]
    number: int
    is_whole: bool
    read: Callable[[int], TableVersion]
    warnings: Sequence[str] = ()

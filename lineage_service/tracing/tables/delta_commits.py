"""The commits of a Delta table as its log has them: which files each adds and removes, and who made it.

`delta_version` asks Delta's library what a version is. How one came from the one before stands in the files
of the log alone. Commits that were cleaned up are gone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from lineage_service.errors import UnavailableError
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import normal_path
from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError, is_local

__all__ = ["AddedFile", "Commit", "commit_path", "commits_of", "data_path"]

_NAME = re.compile(r"([0-9]{20})\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedFile:
    """A data file of a version. `vector` tells its deletion vector from others, and is empty without one.

    `first_row_id` and `rows` are None where the log does not say them.
    """

    path: str
    rows: int | None = None
    first_row_id: int | None = None
    vector: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One version, by what it changed. `time` is Unix milliseconds; `operation` is Delta's name of it."""

    version: int
    time: int | None
    operation: str
    engine: str
    added: Mapping[str, AddedFile] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()


def commits_of(files: FileSystems, table: str, last: int, check: Check) -> list[Commit]:
    """Those up to the version `last` that the log still has, without gaps, in order.

    Raises UnavailableError.
    """
    try:
        names = sorted(
            name for name in _listed(files, f"{table.rstrip('/')}/_delta_log") if _NAME.fullmatch(name)
        )
        commits: list[Commit] = []
        for name in reversed(names):
            version = int(name.partition(".")[0])
            if version > last:
                continue
            if commits and version != commits[-1].version - 1:
                break
            check()
            with files.opened(commit_path(table, version), at_length=True) as file:
                commits.append(_commit(version, table, file.read().decode()))
    except (UnreadableError, ValueError, KeyError, TypeError) as error:
        raise UnavailableError(f"the log of {table} cannot be read: {error}") from error
    return commits[::-1]


def commit_path(table: str, version: int) -> str:
    """Of the file of a commit."""
    return f"{table.rstrip('/')}/_delta_log/{version:020d}.json"


def data_path(table: str, path: str) -> str:
    """Of a data file as the log has it: below the table, but for a shallow clone's."""
    path = unquote(path)
    is_below = "://" not in path and not path.startswith(("/", "file:"))
    return normal_path(f"{table.rstrip('/')}/{path}" if is_below else path)


def _listed(files: FileSystems, folder: str) -> Iterator[str]:
    if is_local(folder):
        try:
            yield from (path.name for path in Path(folder).iterdir())
        except OSError as error:
            raise UnreadableError(f"{folder} cannot be listed ({error.strerror})") from error
        return
    with files.connected(folder) as (system, place):
        from pyarrow.fs import FileSelector

        yield from (info.base_name for info in system.get_file_info(FileSelector(place)))


def _commit(version: int, table: str, text: str) -> Commit:
    actions = [json.loads(line) for line in text.splitlines() if line.strip()]
    by_kind: dict[str, list[Mapping[str, Any]]] = {}
    for action in actions:
        for kind, content in action.items():
            by_kind.setdefault(kind, []).append(content)
    info = (by_kind.get("commitInfo") or [{}])[0]
    added = {file.path: file for file in (_added(table, add) for add in by_kind.get("add", ()))}
    removed = {data_path(table, str(remove["path"])) for remove in by_kind.get("remove", ())}
    return Commit(
        version=version,
        time=info.get("inCommitTimestamp", info.get("timestamp")),
        operation=str(info.get("operation") or ""),
        engine=str(info.get("engineInfo") or ""),
        added=added,
        removed=frozenset(removed),
    )


def _added(table: str, add: Mapping[str, Any]) -> AddedFile:
    stats = json.loads(add.get("stats") or "{}")
    vector = add.get("deletionVector")
    return AddedFile(
        path=data_path(table, str(add["path"])),
        rows=stats.get("numRecords"),
        first_row_id=add.get("baseRowId"),
        vector="" if vector is None else json.dumps(vector, sort_keys=True),
    )

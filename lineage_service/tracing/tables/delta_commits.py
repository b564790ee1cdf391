"""The commits of a Delta table as its log has them: which files each adds and removes, and who made it.

`delta_version` asks Delta's library what a version is. How one came from the one before stands in the files
of the log alone. Commits that were cleaned up are gone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lineage_service.errors import UnavailableError
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError
from lineage_service.tracing.tables.delta_log import data_path, read_commit
from lineage_service.tracing.tables.delta_times import Actions, CommitTimes
from lineage_service.tracing.tables.table_log import AddedFile, Commit

__all__ = ["commits_of"]


def commits_of(
    files: FileSystems, table: str, last: int, properties: Mapping[str, str], check: Check
) -> list[Commit]:
    """Those up to the version `last` that the log still has, without gaps, in order.

    `properties` are those of the newest version. Raises UnavailableError.
    """
    try:
        times = CommitTimes(files, table, properties)
        commits: list[Commit] = []
        for version in reversed(times.commits):
            if version > last:
                continue
            if commits and version != commits[-1].version - 1:
                break
            check()
            commits.append(_commit(version, table, read_commit(files, table, version), times))
    except (UnreadableError, ValueError, KeyError, TypeError) as error:
        raise UnavailableError(f"the log of {table} cannot be read: {error}") from error
    return commits[::-1]


def _commit(version: int, table: str, actions: Actions, times: CommitTimes) -> Commit:
    info = (actions.get("commitInfo") or [{}])[0]
    added = {file.path: file for file in (_added(table, add) for add in actions.get("add", ()))}
    removed = {data_path(table, str(remove["path"])) for remove in actions.get("remove", ())}
    return Commit(
        version=version,
        name=str(version),
        time=times.of(version, actions),
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

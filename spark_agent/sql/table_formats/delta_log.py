"""What transactions committed, from the log of a Delta table: JSON, one file for each version.

The log is the only place that says which files are a transaction's: names of files hold random ids. Reads no
checkpoint and no data. The format is that of Delta's transaction log protocol.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

#: Reads a file as text; None where there is none.
ReadText = Callable[[str], "str | None"]
#: As the log names the operation.
TRUNCATE = "TRUNCATE"


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A data file that a version has, and the one before has not. `rows` None: the log does not say.

    `path` is below the table, or absolute; `modified` in Unix milliseconds; `first_row_id` of a table that
    tracks rows. `partition` has the values of the columns of partitions, by their names in the log.
    """

    path: str
    size: int | None
    modified: int | None
    rows: int | None
    first_row_id: int | None = None
    partition: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RemovedFile:
    """A data file that the version before has, and this one has not. `rows` None: the log does not say.

    `path` is as that of an `AddedFile`. `rows` counts those too that `vector` deleted before: a deletion
    vector as the log describes it.
    """

    path: str
    size: int | None
    rows: int | None
    vector: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    """What a transaction made of its table: a version with new files, and without some that there were.

    `changes` are files of its change data feed. The log does not say how many rows these have.
    """

    version: int
    files: tuple[AddedFile, ...]
    removed: tuple[RemovedFile, ...] = ()
    changes: tuple[AddedFile, ...] = ()


@dataclass(frozen=True, slots=True)
class CommitMark:
    """What tells a commit from those of other transactions: its id, or a file that only it removes.

    `transaction` is empty where the id is not known: a rewrite of files (OPTIMIZE) works in other threads.
    A TRUNCATE is known by the `metrics` of its command, which its commit repeats: they say how long it took.
    """

    transaction: str = ""
    removed: str = ""  # as the log has it: below the table, with `%20` and the like
    metrics: Mapping[str, str] = field(default_factory=dict)

    def is_of(self, text: str) -> bool:
        """Is that the text of its commit?"""
        if (self.transaction or self.removed or TRUNCATE) not in text:
            return False
        if self.removed and not self.transaction:
            return any(action.get("remove", {}).get("path") == self.removed for action in _actions(text))
        return any(self._is_said_by(action.get("commitInfo", {})) for action in _actions(text))

    def _is_said_by(self, info: Mapping[str, Any]) -> bool:
        if self.transaction:
            return bool(info.get("txnId") == self.transaction)
        said = info.get("operationMetrics") or {}
        is_known = info.get("operation") == TRUNCATE and bool(said)
        return is_known and all(self.metrics.get(name) == value for name, value in said.items())


def commit_of(table: str, mark: CommitMark, after: int, read: ReadText) -> tuple[Commit | None, int]:
    """The commit with this mark behind the version `after`; None where there is none (yet).

    And the last version that was looked at: the next look begins behind it. Other transactions may have
    committed meanwhile.
    """
    version = after
    while (text := read(f"{table}/_delta_log/{version + 1:020d}.json")) is not None:
        version += 1
        if mark.is_of(text):
            actions = list(_actions(text))
            changes = tuple(_changes(actions))
            return Commit(version, tuple(_added(actions)), tuple(_removed(actions)), changes), version
    return None, version


def data_path(table: str, path: str) -> str:
    """Of a file of the log: those of a shallow clone are elsewhere."""
    return path if "://" in path or path.startswith("/") else f"{table}/{path}"


def _actions(text: str) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in text.splitlines() if line.strip())


def _added(actions: list[dict[str, Any]]) -> Iterator[AddedFile]:
    """Files with new rows. One that gets another deletion vector is removed and added in one commit."""
    removed = {action["remove"]["path"] for action in actions if "remove" in action}
    for action in actions:
        add = action.get("add")
        if add is not None and add["path"] not in removed:
            yield AddedFile(
                unquote(add["path"]),
                add.get("size"),
                add.get("modificationTime"),
                _rows(add),
                add.get("baseRowId"),
                add.get("partitionValues") or {},
            )


def _removed(actions: list[dict[str, Any]]) -> Iterator[RemovedFile]:
    """Files that are gone as a whole."""
    added = {action["add"]["path"] for action in actions if "add" in action}
    for action in actions:
        remove = action.get("remove")
        if remove is not None and remove["path"] not in added:
            yield RemovedFile(
                unquote(remove["path"]), remove.get("size"), _rows(remove), remove.get("deletionVector")
            )


def _changes(actions: list[dict[str, Any]]) -> Iterator[AddedFile]:
    for action in actions:
        if (change := action.get("cdc")) is not None:
            partition = change.get("partitionValues") or {}
            yield AddedFile(unquote(change["path"]), change.get("size"), None, None, partition=partition)


def _rows(action: Mapping[str, Any]) -> int | None:
    rows = json.loads(action.get("stats") or "{}").get("numRecords")
    return None if rows is None else int(rows)

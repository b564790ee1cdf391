"""What transactions committed, from the log of a Delta table: JSON, one file for each version.

The log is the only place that says which files are a transaction's: names of files hold random ids. Reads no
checkpoint and no data. The format is that of Delta's transaction log protocol.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

#: Reads a file as text; None where there is none.
ReadText = Callable[[str], "str | None"]


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A data file that a version has, and the one before has not. `rows` None: the log does not say.

    `path` is below the table, or absolute; `modified` in Unix milliseconds; `first_row_id` of a table that
    tracks rows.
    """

    path: str
    size: int | None
    modified: int | None
    rows: int | None
    first_row_id: int | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    """What a transaction made of its table: a version, and these new files."""

    version: int
    files: tuple[AddedFile, ...]


@dataclass(frozen=True, slots=True)
class CommitMark:
    """What tells a commit from those of other transactions: its id, or a file that only it removes.

    `transaction` is empty where the id is not known: a rewrite of files (OPTIMIZE) works in other threads.
    """

    transaction: str = ""
    removed: str = ""  # as the log has it: below the table, with `%20` and the like

    def is_of(self, text: str) -> bool:
        """Is that the text of its commit?"""
        if not self.transaction:
            return any(action.get("remove", {}).get("path") == self.removed for action in _actions(text))
        return any(action.get("commitInfo", {}).get("txnId") == self.transaction for action in _actions(text))


def commit_of(table: str, mark: CommitMark, after: int, read: ReadText) -> tuple[Commit | None, int]:
    """The commit with this mark behind the version `after`; None where there is none (yet).

    And the last version that was looked at: the next look begins behind it. Other transactions may have
    committed meanwhile.
    """
    version = after
    while (text := read(f"{table}/_delta_log/{version + 1:020d}.json")) is not None:
        version += 1
        if (mark.transaction or mark.removed) in text and mark.is_of(text):
            return Commit(version, tuple(_added(list(_actions(text))))), version
    return None, version


def _actions(text: str) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in text.splitlines() if line.strip())


def _added(actions: list[dict[str, Any]]) -> Iterator[AddedFile]:
    """Files with new rows. One that gets another deletion vector is removed and added in one commit."""
    removed = {action["remove"]["path"] for action in actions if "remove" in action}
    for action in actions:
        add = action.get("add")
        if add is not None and add["path"] not in removed:
            rows = json.loads(add.get("stats") or "{}").get("numRecords")
            modified = add.get("modificationTime")
            yield AddedFile(unquote(add["path"]), add.get("size"), modified, rows, add.get("baseRowId"))

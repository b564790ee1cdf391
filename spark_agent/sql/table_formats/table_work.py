"""What a library of tables does while it has a plan made: Delta Lake, Iceberg.

Most of these plans read the table's own log and its statistics. They are no part of the user's program, so
nothing is captured of them. A few are of rows: what a statement writes, and the source of a MERGE, which
Delta Lake materializes first. Known by the methods of the library on the stack of the planner.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_DELETE = "DELETE"
#: Classes of Delta Lake that run a statement -> its name. Of others (`save`, `saveAsTable`, an INSERT) the
#: name is that of the user's action.
_STATEMENTS = {
    "MergeIntoCommand": "MERGE",
    "UpdateCommand": "UPDATE",
    "DeleteCommand": _DELETE,
    "OptimizeExecutor": "OPTIMIZE",
}
#: (class, method) of Delta Lake that has a plan of rows made.
_WRITING = ("TransactionalWrite", "writeFiles")
_MATERIALIZING = ("MergeIntoMaterializeSource", "prepareMergeSource")
#: The same of Iceberg: its procedure that writes data files anew. Its other work reads metadata, or deletes.
_REWRITING = re.compile(r"Spark\w*(?:FileRewriteRunner|DataRewriter)")
_REWRITE = "rewrite_data_files"
_GATHERING = ("DeletionVectorBitmapGenerator", "computeResult")
#: Statements that may delete rows while they write files anew; one that only inserts has a class of its own.
_DELETING = ("MERGE", _DELETE)
_INSERTING = "InsertOnlyMergeExecutor"


@dataclass(frozen=True, slots=True)
class Transaction:
    """An open transaction of Delta Lake. `table` is its folder, `version` the one that it reads, -1: none.

    `partition_columns` are those of the table, `names_in_log` what its log calls them: something else in a
    table that maps columns. `catalog_name` is empty of a table that is only a folder.
    """

    id: str
    table: str
    version: int
    partition_columns: Sequence[str] = ()
    catalog_name: str = ""
    names_in_log: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class TableWork:
    """`method` of the library asked for the plan, of the first of `classes`; its callers are behind that."""

    method: str
    classes: Sequence[str]
    transaction: Transaction | None = None

    @classmethod
    def parse(cls, text: str) -> TableWork:
        """`text` is the JSON of `lineagemaster.plan.TableWork`."""
        said: dict[str, Any] = json.loads(text)
        transaction = None
        if "transaction" in said:
            transaction = Transaction(
                said["transaction"],
                said["table"],
                int(said["version"]),
                tuple(said["partitions"]),
                next(iter(said["catalog"]), ""),
                tuple(said["names_in_log"]),
            )
        return cls(_without_lambda(said["method"]), tuple(said["classes"]), transaction)

    @property
    def is_writing(self) -> bool:
        """Are the rows of the plan what a statement of Delta Lake writes into data files?"""
        return (self.classes[0], self.method) == _WRITING

    @property
    def is_materializing(self) -> bool:
        """Are they the source of a MERGE of Delta Lake, which is kept for its later steps?"""
        return (self.classes[0], self.method) == _MATERIALIZING

    @property
    def is_rewriting(self) -> bool:
        """Are they rows of data files of Iceberg that a procedure writes into other files?"""
        return self.method == "doRewrite" and _REWRITING.fullmatch(self.classes[0]) is not None

    @property
    def is_deleting(self) -> bool:
        """Are they those that a DELETE marks as deleted, and writes no files of?

        An UPDATE and a MERGE gather such rows too, and read them again for what they write.
        """
        return (self.classes[0], self.method) == _GATHERING and self.statement == _DELETE

    @property
    def is_of_delete(self) -> bool:
        """Does a DELETE have the plan made, for whatever purpose?

        Not of files that are compacted once it is committed.
        """
        return self.statement == _DELETE

    @property
    def may_leave_out(self) -> bool:
        """Is it a plan of a statement that leaves out the rows which are deleted?"""
        return self.is_writing and self.statement in _DELETING and _INSERTING not in self.classes

    @property
    def written_as(self) -> str | None:
        """What the statement does with all rows that it writes, if that is one thing."""
        if self.is_rewriting:
            return "copy"
        if not self.is_writing:
            return None
        if self.statement == "MERGE" and _INSERTING in self.classes:
            return "insert"
        return "copy" if self.statement == "OPTIMIZE" else None

    @property
    def is_of_rows(self) -> bool:
        """Is the plan one of the user's statement, and none of the library's own?"""
        is_kept = self.is_materializing or self.is_deleting
        return self.is_writing or self.is_rewriting or is_kept

    @property
    def statement(self) -> str | None:
        """The name of the statement, where it is not the user's action."""
        if self.is_rewriting:
            return _REWRITE
        return next((_STATEMENTS[name] for name in self.classes if name in _STATEMENTS), None)


def _without_lambda(method: str) -> str:
    """Of `$anonfun$writeFiles$1`, which is a part of it, the method."""
    parts = method.split("$")
    return parts[2] if len(parts) > 2 and parts[1] == "anonfun" else method

"""The versions of one row of a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from lineage_service.lineage.results import Result, doc

RowChange = Literal["inserted", "changed", "rewritten", "deleted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowVersion(Result):
    """What one version of the table did with the row."""

    version: int = field(
        metadata=doc("The version of the table; of Iceberg the sequence number of the snapshot.")
    )
    version_name: str = field(
        metadata=doc("What a query calls it: the same number, or of Iceberg the id of the snapshot.")
    )
    time: int | None = field(metadata=doc("Unix time in milliseconds; null if the log does not say it."))
    change: RowChange = field(
        metadata=doc(
            "`inserted`: new, or restored. `changed`: with other values than before. `rewritten`: into "
            "another file, with the same values. `deleted`."
        )
    )
    operation: str = field(metadata=doc("As the log calls it, for example `MERGE`."))
    engine: str = field(metadata=doc("What has written the version, by the log; else empty."))
    path: str | None = field(metadata=doc("Path of the file that has the row; null if it is deleted."))
    row: int | None = field(metadata=doc("Counted from 0; null if it is deleted."))
    line: int | None = field(metadata=doc("`row` + 1, for people."))
    columns: dict[str, Any] | None = field(
        metadata=doc("The row by its columns in that version; null if it is deleted or cannot be read.")
    )
    application_id: str | None = field(
        metadata=doc("The application that wrote the file; null if none is known that did.")
    )
    application_name: str | None = field(metadata=doc("Its name."))
    node_id: str | None = field(metadata=doc("The operation that wrote the file."))
    record_id: str | None = field(metadata=doc("The record that the row is: a trace can start there."))
    warning: str | None = field(default=None, metadata=doc("What is not known of it, and why; else null."))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowHistory(Result):
    """The versions of a table that changed one row, the oldest first."""

    dataset: str = field(metadata=doc("Path of the table."))
    where: str | None = field(metadata=doc("As requested."))
    version: int = field(metadata=doc("The version in which the row was looked for."))
    version_name: str = field(metadata=doc("What a query calls it."))
    row_id: int | None = field(metadata=doc("Its id; null if the table tracks no rows."))
    by: Literal["row_id", "links"] = field(
        metadata=doc(
            "What tells that rows of several files are one row: ids that the table keeps (`row_id`), or "
            "which rows statements made of which, as they were captured (`links`)."
        )
    )
    complete: bool = field(metadata=doc("False: the row may have older or later versions; see `warnings`."))
    versions: tuple[RowVersion, ...] = field(metadata=doc("Those that inserted, changed or deleted it."))
    warnings: tuple[str, ...] = field(default=(), metadata=doc("What is not known, and why."))

"""Reads from files of the `blocks` table which blocks are stored. Knows nothing of the log of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow.dataset

from lineage_service.completeness import Receipt
from lineage_service.store.errors import translated_read_errors
from lineage_service.store.tables import TABLES

__all__ = ["read_receipts", "read_receipts_of"]

_COLUMNS = ["run", "seq", "node", "relation", "rows"]
#: What Arrow calls the file that a row is in.
_FILE = "__filename"


def read_receipts(files: Sequence[str]) -> Sequence[Receipt]:
    """Of these files of the `blocks` table, on this machine."""
    if not files:
        return ()
    # The files do not hold the column that the table is partitioned by.
    with translated_read_errors():
        stored = pyarrow.dataset.dataset(list(files), schema=TABLES["blocks"], format="parquet")
        read = stored.to_table(_COLUMNS)
    return tuple(
        Receipt(*row) for row in set(zip(*(read[name].to_pylist() for name in _COLUMNS), strict=True))
    )


def read_receipts_of(application_of: Mapping[str, str]) -> dict[str, Sequence[Receipt]]:
    """The same by application, of files of several: (file -> application)."""
    if not application_of:
        return {}
    with translated_read_errors():
        stored = pyarrow.dataset.dataset(list(application_of), schema=TABLES["blocks"], format="parquet")
        read = stored.to_table([*_COLUMNS, _FILE])
    rows = set(zip(*(read[name].to_pylist() for name in (_FILE, *_COLUMNS)), strict=True))
    receipts: dict[str, dict[Receipt, None]] = {}
    for file, *values in rows:
        receipts.setdefault(application_of[file], {})[Receipt(*values)] = None
    return {application_id: tuple(chosen) for application_id, chosen in receipts.items()}

"""Reads from files of the `blocks` table which blocks are stored. Knows nothing of the log of the table."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.dataset

from lineage_service.completeness import Receipt
from lineage_service.store.errors import translated_read_errors
from lineage_service.store.tables import TABLES

__all__ = ["read_receipts"]


def read_receipts(files: Sequence[str]) -> Sequence[Receipt]:
    """Of these files of the `blocks` table, on this machine."""
    if not files:
        return ()
    columns = ["run", "seq", "node", "relation", "rows"]
    # The files do not hold the column that the table is partitioned by.
    with translated_read_errors():
        stored = pyarrow.dataset.dataset(list(files), schema=TABLES["blocks"], format="parquet")
        read = stored.to_table(columns)
    return tuple(
        Receipt(*row) for row in set(zip(*(read[name].to_pylist() for name in columns), strict=True))
    )

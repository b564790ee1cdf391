"""The rows of one output as a table of texts, for verification and differences."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import duckdb
import numpy as np
import pyarrow as pa

from lineage_service.comparison.differences import Differences, differences
from lineage_service.comparison.row_table import TEXT_TYPE, Place, RowTable

__all__ = ["TextTable"]

_SOURCE, _COLUMN = "read_texts", "value"


class TextTable:
    """Its rows are in one part, numbered in the order in which they came."""

    def __init__(
        self, database: duckdb.DuckDBPyConnection, name: str, batches: Iterable[Sequence[str]]
    ) -> None:
        self._database, self._table = database, RowTable(database, name)
        self._table.add_column(_COLUMN, TEXT_TYPE)
        self.rows = 0
        for texts in batches:
            self._insert(texts)

    def _insert(self, texts: Sequence[str]) -> None:
        numbers = pa.array(np.arange(self.rows, self.rows + len(texts), dtype=np.int64))
        self._database.register(
            _SOURCE, pa.table([numbers, pa.array(texts, pa.string())], names=["number", _COLUMN])
        )
        try:
            self._database.execute(
                f"INSERT INTO {self._table.name} (part, number, {self._table.sql_of(_COLUMN)}) "
                f"SELECT 0, number, {_COLUMN} FROM {_SOURCE}"
            )
        finally:
            self._database.unregister(_SOURCE)
        self.rows += len(texts)

    def counts(self, texts: Collection[str]) -> dict[str, int]:
        """How many rows have each of these texts."""
        rows = self._database.execute(
            f"SELECT c0, count(*) FROM {self._table.name} WHERE c0 IN (SELECT unnest(?)) GROUP BY c0",
            [list(set(texts))],
        ).fetchall()
        return dict.fromkeys(texts, 0) | {text: int(count) for text, count in rows}

    def others(self, texts: Collection[str], limit: int) -> list[str]:
        """Rows that have none of these texts, in order, at most so many."""
        rows = self._database.execute(
            f"SELECT c0 FROM {self._table.name} WHERE c0 NOT IN (SELECT unnest(?)) ORDER BY number LIMIT ?",
            [list(set(texts)), limit],
        ).fetchall()
        return [text for (text,) in rows]

    def at(self, places: Sequence[Place]) -> list[str]:
        """The texts of these rows, in their order."""
        rows = self._database.execute(
            f"SELECT number, c0 FROM {self._table.name} WHERE number IN (SELECT unnest(?))",
            [[place.number for place in places]],
        ).fetchall()
        texts = dict(rows)
        return [texts[place.number] for place in places]

    def differences(self, now: TextTable, limit: int) -> Differences:
        """As multisets. At most so many rows of each kind are placed."""
        return differences(self._table, now._table, (), limit, ("the original", "the replay"))

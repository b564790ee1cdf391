"""A cursor of DuckDB over the records of a snapshot, which is made when a query asks something of it.

Most walks and texts need none, and to make the database takes longer than many a walk.
"""

from __future__ import annotations

from collections.abc import Callable

import duckdb

__all__ = ["StoreCursor"]


class StoreCursor:
    """For one query. Another thread may interrupt it."""

    def __init__(self, make: Callable[[], duckdb.DuckDBPyConnection]) -> None:
        self._make = make
        self._cursor: duckdb.DuckDBPyConnection | None = None

    def execute(self, query: str, parameters: object = None) -> duckdb.DuckDBPyConnection:
        """Raises StoreUnavailableError when a file is gone or damaged."""
        cursor = self._cursor
        if cursor is None:
            cursor = self._cursor = self._make()
        return cursor.execute(query, parameters)

    def interrupt(self) -> None:
        """As of a cursor: between two statements it is lost."""
        if self._cursor is not None:
            self._cursor.interrupt()

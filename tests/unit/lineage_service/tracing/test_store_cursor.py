"""The cursor of a query, which is made when it is used."""

from __future__ import annotations

import duckdb

from lineage_service.tracing.columns.store_cursor import StoreCursor


def test_a_cursor_is_made_once_and_only_when_something_is_asked() -> None:
    with duckdb.connect(":memory:") as database:
        made: list[duckdb.DuckDBPyConnection] = []

        def make() -> duckdb.DuckDBPyConnection:
            made.append(database.cursor())
            return made[-1]

        cursor = StoreCursor(make)
        cursor.interrupt()
        assert not made
        assert cursor.execute("SELECT 1 + $one", {"one": 1}).fetchall() == [(2,)]
        assert cursor.execute("SELECT 3").fetchall() == [(3,)]
        cursor.interrupt()
        assert len(made) == 1

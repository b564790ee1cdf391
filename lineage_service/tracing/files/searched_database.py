"""A DuckDB that can read the files that are searched, and nothing else.

What a condition says becomes parameters and quoted columns (`conditions`). Should that ever fail, there is
still nothing here that a query could reach: no other file, no network, no extension, no setting.
"""

from __future__ import annotations

from collections.abc import Iterable

import duckdb

__all__ = ["searched_database"]


def searched_database(paths: Iterable[str]) -> duckdb.DuckDBPyConnection:
    """In memory. `paths` are files of this machine that it may read."""
    database = duckdb.connect(
        ":memory:",
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
            "python_enable_replacements": "false",
        },
    )
    listed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    for setting in (
        "threads = 2",
        "TimeZone = 'UTC'",
        f"allowed_paths = [{listed}]",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        database.execute(f"SET {setting}")
    return database

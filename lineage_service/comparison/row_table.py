"""The rows of one output as a table of DuckDB, that a comparison reads.

Beside its values each row has a place: `part`, which file it is in, and `number`, which row of that. Columns
are called `c0`, `c1` and so on in the table, whatever stands in their names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import duckdb

__all__ = ["TEXT_TYPE", "Place", "RowTable"]

TEXT_TYPE = "VARCHAR"


class Place(NamedTuple):
    """A row: which part of its output it is in, and its number there."""

    part: int
    number: int


@dataclass(slots=True)
class RowTable:
    """Grows while files are read. `columns` are the types of DuckDB by name."""

    database: duckdb.DuckDBPyConnection
    name: str
    columns: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.database.execute(f"CREATE TABLE {self.name} (part INTEGER, number BIGINT)")

    def sql_of(self, column: str) -> str:
        """What a column is called in the table."""
        return f"c{list(self.columns).index(column)}"

    def add_column(self, column: str, type: str) -> None:
        """One that is there with another type becomes a text."""
        if type.startswith("ENUM") or type == '"NULL"':
            type = TEXT_TYPE
        if column not in self.columns:
            self.columns[column] = type
            self.database.execute(f"ALTER TABLE {self.name} ADD COLUMN {self.sql_of(column)} {type}")
        elif self.columns[column] != type:
            self.columns[column] = TEXT_TYPE
            self.database.execute(f"ALTER TABLE {self.name} ALTER {self.sql_of(column)} TYPE {TEXT_TYPE}")

    @property
    def rows(self) -> int:
        row = self.database.execute(f"SELECT count(*) FROM {self.name}").fetchone()
        return 0 if row is None else int(row[0])

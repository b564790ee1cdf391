"""A table that is made with its first rows.

A store of an earlier version lacks it, and whoever reads that store may not be allowed to write there. Until
the table is made, it is as one without rows; each look notices when another process has made it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

import pyarrow as pa

from lineage_service.store.delta_table import ANY_OFFSET, Contents, Table
from lineage_service.store.errors import translated_errors
from lineage_service.store.location import StoreLocation
from lineage_service.store.tables import Bounds

__all__ = ["LateTable"]


class LateTable:
    """What `Table` does, of one that may not be there yet."""

    def __init__(
        self,
        location: StoreLocation,
        name: str,
        schema: pa.Schema | None = None,
        key: str = "application_id",
        later: Collection[str] = (),
    ) -> None:
        """As `Table`. Raises StoreUnavailableError if it is there and damaged, or of another version."""
        self._location, self._name, self._schema, self._key, self._later = location, name, schema, key, later
        self._table: Table | None = None
        self._existing()

    def _existing(self) -> Table | None:
        if self._table is None:
            with translated_errors(self._location.table(self._name)):
                exists = self._location.has(self._name)
            if exists:
                self._table = self._opened()
        return self._table

    def _opened(self) -> Table:
        return Table(self._location, self._name, self._schema, self._key, self._later)

    def exists(self) -> bool:
        return self._existing() is not None

    def offset(self, source: str) -> int | None:
        table = self._existing()
        return None if table is None else table.offset(source)

    def append(
        self,
        source: str,
        next_offset: int,
        rows: Callable[[int], Iterator[pa.RecordBatch]],
        at: object = ANY_OFFSET,
    ) -> int:
        """As `Table.append`. Without rows, no table is made."""
        table = self._existing()
        if table is None:
            if next(rows(0), None) is None:
                return 0
            table = self._table = self._opened()
        return table.append(source, next_offset, rows, at)

    def join_files(self, application_id: str) -> None:
        table = self._existing()
        if table is not None:
            table.join_files(application_id)

    def delete(self, application_id: str) -> None:
        table = self._existing()
        if table is not None:
            table.delete(application_id)

    def delete_rows(self, application_id: str, condition: str) -> int:
        table = self._existing()
        return 0 if table is None else table.delete_rows(application_id, condition)

    def files(self, application_id: str, node: int | None) -> list[str]:
        table = self._existing()
        return [] if table is None else table.files(application_id, node)

    def bounds(self, application_id: str) -> dict[str, Bounds]:
        table = self._existing()
        return {} if table is None else table.bounds(application_id)

    def contents(self) -> Mapping[str, Contents]:
        table = self._existing()
        return {} if table is None else table.contents()

    def version(self) -> int:
        """-1 as long as it is not there."""
        table = self._existing()
        return -1 if table is None else table.version()

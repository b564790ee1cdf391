"""The ids of rows in a table that tracks them, by Delta's protocol (row tracking).

The id of a row is what its file says in a column of its own, else the first id of the file plus its number.
A file that takes over rows of others has the ids of these, which are below its own first id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lineage_service.conditions.columns import quoted
from lineage_service.conditions.filters import Filter
from lineage_service.tracing.files import columnar_rows
from lineage_service.tracing.files.columnar_search import ColumnarSearch
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import PARQUET
from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError, is_local
from lineage_service.tracing.files.searched_database import searched_database
from lineage_service.tracing.tables.row_lives import FileLife

__all__ = ["row_id_of", "rows_with_id"]


def row_id_of(files: FileSystems, life: FileLife, row: int, column: str, check: Check) -> int | None:
    """None where the log does not say the first id of the file. Raises UnreadableError."""
    said = columnar_rows.read_rows(
        files, PARQUET, life.path, [row], check, lambda values, _: values, [column]
    )
    in_file = said.get(row, {}).get(column)
    if in_file is not None:
        return int(in_file)
    return None if life.first_row_id is None else life.first_row_id + row


def rows_with_id(
    files: FileSystems,
    lives: Iterable[FileLife],
    row_id: int,
    column: str,
    check: Check,
    warnings: dict[str, None],
) -> Iterator[tuple[FileLife, int]]:
    """(file, number of the row) of all rows with this id. `warnings`: what could not be read."""
    may_have = [life for life in lives if _may_have(life, row_id)]
    database = searched_database(life.path for life in may_have if is_local(life.path))
    search = ColumnarSearch(files, database)
    try:
        for life in may_have:
            check()
            try:
                yield from ((life, row) for row in _rows(files, search, life, row_id, column, check))
            except UnreadableError as error:
                warnings[f"{life.path} was not searched: {error}"] = None
    finally:
        database.close()


def _may_have(life: FileLife, row_id: int) -> bool:
    if life.first_row_id is None:
        return False
    return row_id < life.first_row_id + (life.rows or 0) or life.rows is None


def _rows(
    files: FileSystems, search: ColumnarSearch, life: FileLife, row_id: int, column: str, check: Check
) -> list[int]:
    assert life.first_row_id is not None
    types = search.types(PARQUET, life.path)
    at = row_id - life.first_row_id
    if column not in types:
        return [at] if at >= 0 else []
    if at >= 0:
        return [at] if row_id_of(files, life, at, column, check) == row_id else []
    is_it = Filter(f"{quoted(column)} = ?", (row_id,))
    return [int(row) for row in search.matching(PARQUET, life.path, types, is_it, [column], check)]

"""Which rows of two tables are gone, new, changed or the same.

With a key, rows of one key are one row, and a key must be unique. Without, tables are multisets: equal rows
are paired, and all others are gone or new. Null equals null, and NaN equals NaN. A column whose types differ
is compared as text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import duckdb

from lineage_service.comparison.row_table import TEXT_TYPE, Place, RowTable
from lineage_service.errors import InvalidQueryError

__all__ = ["Differences", "differences"]

_LISTED_COLUMNS = 12


@dataclass(frozen=True, slots=True)
class Differences:
    """At most so many places of each kind as were asked for; the totals count all."""

    gone: Sequence[Place]
    new: Sequence[Place]
    changed: Sequence[tuple[Place, Place]]
    gone_total: int
    new_total: int
    changed_total: int
    same: int


def differences(
    was: RowTable, now: RowTable, key: Sequence[str], limit: int, names: tuple[str, str]
) -> Differences:
    """Both tables are of one database; `names` are those of the two runs, for people.

    Only columns that both have are compared. Raises InvalidQueryError: no such column, a key that is not
    unique.
    """
    if not was.rows or not now.rows:
        key = ()
    shared = [column for column in was.columns if column in now.columns]
    for column in key:
        _check_column(column, was, now, names)
    pairs = {column: _operands(was, now, column) for column in shared}
    if not shared and was.rows and now.rows:
        raise InvalidQueryError(
            f"the rows of {names[0]} and {names[1]} have no column in common: {_some(was.columns)}; "
            f"{_some(now.columns)}"
        )
    _drop(was.database)
    if key:
        for table, name in ((was, names[0]), (now, names[1])):
            _check_unique(table, key, name)
        _by_key(was, now, key, pairs)
    else:
        _as_multisets(was, now, pairs)
    try:
        return _read(was, now, limit)
    finally:
        _drop(was.database)


def _check_column(column: str, was: RowTable, now: RowTable, names: tuple[str, str]) -> None:
    for table, name in ((was, names[0]), (now, names[1])):
        if column in table.columns:
            continue
        near = get_close_matches(column, table.columns, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {_some(table.columns)}"
        raise InvalidQueryError(f"the rows of {name} have no column {column} to be a key: {hint}")


def _some(columns: Mapping[str, str]) -> str:
    names = list(columns)
    more = f" and {len(names) - _LISTED_COLUMNS:,} more" if len(names) > _LISTED_COLUMNS else ""
    return (", ".join(names[:_LISTED_COLUMNS]) or "none") + more


def _operands(was: RowTable, now: RowTable, column: str) -> tuple[str, str]:
    """What is compared of a column: of `w` and of `n`."""
    before, after = f"w.{was.sql_of(column)}", f"n.{now.sql_of(column)}"
    if was.columns[column] == now.columns[column]:
        return before, after
    return f"CAST({before} AS {TEXT_TYPE})", f"CAST({after} AS {TEXT_TYPE})"


def _check_unique(table: RowTable, key: Sequence[str], name: str) -> None:
    columns = ", ".join(map(table.sql_of, key))
    texts = ", ".join(f"CAST({table.sql_of(column)} AS {TEXT_TYPE})" for column in key)
    row = table.database.execute(
        f"SELECT {texts}, total FROM (SELECT {columns}, count(*) AS total FROM {table.name} "
        f"GROUP BY {columns} HAVING count(*) > 1) ORDER BY ALL LIMIT 1"
    ).fetchone()
    if row is None:
        return
    *values, total = row
    named = ", ".join(
        f"{column} = {'null' if value is None else repr(value)}"
        for column, value in zip(key, values, strict=True)
    )
    raise InvalidQueryError(
        f"the key {', '.join(key)} does not name one row: {total:,} rows of {name} have {named}. Give more "
        "columns, or none: then equal rows are paired"
    )


def _by_key(was: RowTable, now: RowTable, key: Sequence[str], pairs: Mapping[str, tuple[str, str]]) -> None:
    on = " AND ".join(f"{pairs[column][0]} IS NOT DISTINCT FROM {pairs[column][1]}" for column in key)
    others = [
        f"{before} IS DISTINCT FROM {after}" for column, (before, after) in pairs.items() if column not in key
    ]
    differs = " OR ".join(others) or "FALSE"
    was.database.execute(
        "CREATE TEMP TABLE differing AS SELECT w.part AS was_part, w.number AS was_number, "
        f"n.part AS now_part, n.number AS now_number FROM {was.name} w FULL OUTER JOIN {now.name} n ON {on} "
        f"WHERE w.part IS NULL OR n.part IS NULL OR {differs}"
    )


def _as_multisets(was: RowTable, now: RowTable, pairs: Mapping[str, tuple[str, str]]) -> None:
    """Of each row that one table has more often, that many of its last are gone or new."""
    before = "".join(f", {operand} AS v{at}" for at, (operand, _) in enumerate(pairs.values()))
    after = "".join(f", {operand} AS v{at}" for at, (_, operand) in enumerate(pairs.values()))
    values = [f"v{at}" for at in range(len(pairs))]
    database = was.database
    database.execute(
        "CREATE TEMP TABLE unequal AS SELECT "
        + "".join(f"{value}, " for value in values)
        + "CAST(sum(side) AS BIGINT) AS balance FROM ("
        f"SELECT 1 AS side{before} FROM {was.name} w UNION ALL SELECT -1{after} FROM {now.name} n)"
        + (f" GROUP BY {', '.join(values)}" if values else "")
        + " HAVING sum(side) <> 0"
    )
    on = " AND ".join(f"r.{value} IS NOT DISTINCT FROM u.{value}" for value in values) or "TRUE"
    window = (f"PARTITION BY {', '.join(f'r.{value}' for value in values)} " if values else "") + (
        "ORDER BY r.part DESC, r.number DESC"
    )
    parts = [
        f"SELECT part, number, {is_gone} AS is_gone FROM (SELECT r.part, r.number, "
        f"row_number() OVER ({window}) AS place, u.balance FROM "
        f"(SELECT {alias}.part, {alias}.number{operands} FROM {table.name} {alias}) r "
        f"JOIN unequal u ON {on}) "
        f"WHERE place <= {sign} * balance"
        for table, alias, operands, is_gone, sign in (
            (was, "w", before, "TRUE", 1),
            (now, "n", after, "FALSE", -1),
        )
    ]
    database.execute(
        "CREATE TEMP TABLE differing AS SELECT "
        "CASE WHEN is_gone THEN part END AS was_part, CASE WHEN is_gone THEN number END AS was_number, "
        "CASE WHEN NOT is_gone THEN part END AS now_part, "
        "CASE WHEN NOT is_gone THEN number END AS now_number "
        f"FROM ({parts[0]} UNION ALL {parts[1]})"
    )


def _read(was: RowTable, now: RowTable, limit: int) -> Differences:
    database = was.database
    counts = database.execute(
        "SELECT count(*) FILTER (now_part IS NULL), count(*) FILTER (was_part IS NULL), "
        "count(*) FILTER (was_part IS NOT NULL AND now_part IS NOT NULL) FROM differing"
    ).fetchone()
    assert counts is not None
    gone_total, new_total, changed_total = map(int, counts)

    def listed(condition: str) -> list[tuple[int, int, int, int]]:
        return database.execute(
            f"SELECT was_part, was_number, now_part, now_number FROM differing WHERE {condition} "
            "ORDER BY coalesce(was_part, now_part), coalesce(was_number, now_number) LIMIT ?",
            [limit],
        ).fetchall()

    return Differences(
        gone=[Place(part, number) for part, number, _, _ in listed("now_part IS NULL")],
        new=[Place(part, number) for _, _, part, number in listed("was_part IS NULL")],
        changed=[
            (Place(*row[:2]), Place(*row[2:]))
            for row in listed("was_part IS NOT NULL AND now_part IS NOT NULL")
        ],
        gone_total=gone_total,
        new_total=new_total,
        changed_total=changed_total,
        same=was.rows - gone_total - changed_total,
    )


def _drop(database: duckdb.DuckDBPyConnection) -> None:
    for table in ("differing", "unequal"):
        database.execute(f"DROP TABLE IF EXISTS {table}")

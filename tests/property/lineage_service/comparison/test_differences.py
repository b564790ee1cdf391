"""Two random tables differ as plain Python says, with a key and without."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineage_service.comparison.differences import Differences, differences
from lineage_service.comparison.row_table import Place, RowTable
from lineage_service.errors import InvalidQueryError

COLUMNS = {"k": "INTEGER", 'a "name"': "VARCHAR", "x": "DOUBLE"}
Row = tuple[Any, ...]
FLOATS = st.sampled_from([0.5, 1.0, -1.0, math.nan, math.inf])
VALUES = st.tuples(
    st.none() | st.integers(0, 3), st.none() | st.sampled_from(["", "a", "'"]), st.none() | FLOATS
)
ROWS = st.lists(VALUES, max_size=10)
NAMES = "before", "after"


def table(database: duckdb.DuckDBPyConnection, name: str, rows: Sequence[Row]) -> RowTable:
    """Three rows are a part."""
    row_table = RowTable(database, name)
    for column, type in COLUMNS.items():
        row_table.add_column(column, type)
    for number, row in enumerate(rows):
        database.execute(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?)", [number // 3, number % 3, *row])
    return row_table


def compared(was: Sequence[Row], now: Sequence[Row], key: Sequence[str], limit: int = 100) -> Differences:
    with duckdb.connect() as database:
        return differences(table(database, "w0", was), table(database, "n0", now), key, limit, NAMES)


def at(rows: Sequence[Row], place: Place) -> Row:
    return plain(rows[place.part * 3 + place.number])


def plain(row: Row) -> Row:
    """NaN equals NaN."""
    return tuple("NaN" if isinstance(value, float) and math.isnan(value) else value for value in row)


@given(was=ROWS, now=ROWS)
def test_without_a_key_tables_are_multisets(was: list[Row], now: list[Row]) -> None:
    result = compared(was, now, ())
    before, after = Counter(map(plain, was)), Counter(map(plain, now))
    assert Counter(at(was, place) for place in result.gone) == before - after
    assert Counter(at(now, place) for place in result.new) == after - before
    assert result.changed == []
    assert result.same == (before & after).total()
    assert (result.gone_total, result.new_total) == (len(result.gone), len(result.new))
    assert len(set(result.gone)) == len(result.gone)


@given(was=ROWS, now=ROWS, size=st.integers(1, 2))
def test_with_a_key_rows_of_one_key_are_one_row(was: list[Row], now: list[Row], size: int) -> None:
    key = list(COLUMNS)[:size]
    before, after = ({plain(row)[:size]: plain(row) for row in rows} for rows in (was, now))
    if was and now and (len(before) < len(was) or len(after) < len(now)):
        with pytest.raises(InvalidQueryError, match="does not name one row"):
            compared(was, now, key)
        return
    result = compared(was, now, key)
    if was and now:
        assert {at(was, place) for place in result.gone} == {
            row for name, row in before.items() if name not in after
        }
        assert {at(now, place) for place in result.new} == {
            row for name, row in after.items() if name not in before
        }
        assert {(at(was, old), at(now, new)) for old, new in result.changed} == {
            (row, after[name]) for name, row in before.items() if name in after and after[name] != row
        }
    assert result.gone_total + result.changed_total + result.same == len(was)
    assert result.new_total + result.changed_total + result.same == len(now)


@given(was=ROWS, now=ROWS, limit=st.integers(1, 3))
def test_fewer_are_listed_and_all_are_counted(was: list[Row], now: list[Row], limit: int) -> None:
    every, few = compared(was, now, ()), compared(was, now, (), limit)
    assert (few.gone, few.new) == (every.gone[:limit], every.new[:limit])
    assert (few.gone_total, few.new_total, few.same) == (every.gone_total, every.new_total, every.same)


@given(rows=ROWS)
def test_a_table_equals_itself_in_any_order(rows: list[Row]) -> None:
    result = compared(rows, rows[::-1], ())
    assert (result.gone, result.new, result.changed, result.same) == ([], [], [], len(rows))

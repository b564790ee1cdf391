"""The table that a comparison reads."""

from __future__ import annotations

import duckdb
import pytest

from lineage_service.comparison.differences import differences
from lineage_service.comparison.row_table import Place, RowTable
from lineage_service.errors import InvalidQueryError

pytestmark = pytest.mark.unit


def test_a_column_of_two_types_becomes_a_text_and_is_compared_as_such() -> None:
    with duckdb.connect() as database:
        was, now = RowTable(database, "w0"), RowTable(database, "n0")
        was.add_column("n", "INTEGER")
        database.execute("INSERT INTO w0 VALUES (0, 0, 1), (0, 1, 2)")
        was.add_column("n", "VARCHAR")
        assert was.columns == {"n": "VARCHAR"}
        now.add_column("n", "BIGINT")
        database.execute("INSERT INTO n0 VALUES (0, 0, 1), (0, 1, 3)")
        result = differences(was, now, (), 9, ("a", "b"))
    assert (result.gone, result.new, result.same) == ([Place(0, 1)], [Place(0, 1)], 1)


def test_a_column_without_any_value_and_one_of_a_dictionary_are_texts() -> None:
    with duckdb.connect() as database:
        table = RowTable(database, "w0")
        table.add_column("a", '"NULL"')
        table.add_column("b", "ENUM('x')")
        assert table.columns == {"a": "VARCHAR", "b": "VARCHAR"}
        assert (table.sql_of("b"), table.rows) == ("c1", 0)


def test_tables_without_a_column_in_common_cannot_be_compared() -> None:
    with duckdb.connect() as database:
        was, now = RowTable(database, "w0"), RowTable(database, "n0")
        was.add_column("price", "INTEGER")
        now.add_column("prize", "INTEGER")
        database.execute("INSERT INTO w0 VALUES (0, 0, 1)")
        database.execute("INSERT INTO n0 VALUES (0, 0, 1)")
        with pytest.raises(InvalidQueryError, match="have no column in common: price; prize"):
            differences(was, now, (), 9, ("a", "b"))
        with pytest.raises(InvalidQueryError, match=r"rows of b have no column price .* did you mean prize"):
            differences(was, now, ("price",), 9, ("a", "b"))

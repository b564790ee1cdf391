"""Whatever is written as a condition: it is one, or one kind of error, and nothing else reaches DuckDB."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lineage_service.conditions.column_types import of_arrow
from lineage_service.conditions.columns import Columns, columnar, constants, delimited, json_lines
from lineage_service.conditions.errors import ConditionError
from lineage_service.conditions.filters import Filter, Where
from lineage_service.conditions.parser import parse
from lineage_service.conditions.tokens import MOST_CHARACTERS
from lineage_service.conditions.tree import Column, Condition, Literal, text_of
from lineage_service.tracing.files.searched_database import searched_database
from tests.support.conditions import NAMES, conditions, holds, literals

COLUMNS = st.builds(Column, st.lists(NAMES, min_size=1, max_size=3).map(tuple))

#: Pieces of SQL, of attacks, and of conditions.
PIECES = st.sampled_from(
    (
        *("a", "b", "big", "text", "s.x", '"a"', "`b`", "'x'", "''", "1", "-2.5", "1e400", "null", "true"),
        *("=", "!=", "<>", "<", ">=", "(", ")", ",", ".", "in", "not", "like", "between", "and", "or", "is"),
        *(
            ";",
            "--",
            "/*",
            "*/",
            "union select",
            "read_csv('/etc/passwd')",
            "copy",
            "attach",
            "'; drop table x",
        ),
        *(
            "'",
            '"',
            "`",
            "\\",
            "\0",
            "\n",
            "$1",
            "?",
            "::",
            "||",
            "date '2013-02-28'",
            "timestamp '1'",
            "é",
            "名",
        ),
        *("select * from read_text('/etc/passwd')", "sql_auto_complete('a')", "getenv('HOME')", "\ud800"),
    )
)
TYPED = columnar(
    {
        "a": of_arrow(pa.int32()),
        "b": of_arrow(pa.float64()),
        "big": of_arrow(pa.decimal128(20, 3)),
        "text": of_arrow(pa.string()),
        "s": of_arrow(pa.struct([("x", pa.date32())])),
    }
)
#: All that may stand in a filter beside quoted columns and the numbers of types.
SAFE = re.compile(
    r"(?:\s|[()<>=!?,.]|c\d+|[0-9]+"
    r"|'\[\+-\]\?\[0-9\]\{1,20\}'|'\[\+-\]\?\[0-9\]\+'|'true'|'false'|'\\'"
    r"|AND|OR|NOT|IS|NULL|LIKE|ILIKE|ESCAPE|CASE|WHEN|THEN|ELSE|END|CAST|TRY_CAST|AS|TRUE|FALSE|lower|length|isnan"
    r"|regexp_full_match|json_extract_string|WITH|TIME|ZONE|[A-Z]+(?:\(\d+,\d+\))?"
    r")*"
)


@given(st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=12).map(" ".join)))
@example("a = 1; drop table x")
@example("a = read_csv('/etc/passwd')")
@example("'" * (MOST_CHARACTERS + 1))
@example("(" * MOST_CHARACTERS)
@example("not " * 1000 + "a = 1")
def test_a_text_is_a_condition_or_the_one_error(text: str) -> None:
    for columns in (
        TYPED,
        delimited({**TYPED.types()}),
        json_lines({**TYPED.types()}),
        constants({"a": ("1", TYPED.types()["a"])}),
    ):
        compiled = _compiled(text, columns)
        if compiled is None:
            continue
        unquoted = re.sub(r'"(?:[^"]|"")*"', "c0", compiled.sql)
        assert SAFE.fullmatch(unquoted), compiled.sql
        assert compiled.sql.count("?") - compiled.sql.count("]?[") == len(compiled.parameters)


def _compiled(text: str, columns: Columns) -> Filter | None:
    """None where there is the error that there may be."""
    with suppress(ConditionError):
        return Where(text).on(columns)
    with pytest.raises(ConditionError) as caught:
        Where(text).on(columns)
    assert 0 <= caught.value.at <= len(text)
    assert str(caught.value).count("\n") == 2
    return None


@given(conditions(COLUMNS, literals()))
def test_a_tree_is_read_from_its_text(condition: Condition) -> None:
    assert parse(text_of(condition)) == condition


ZONE = datetime.timezone.utc
TYPES = {
    "tiny": (pa.int8(), st.integers(-128, 127)),
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "money": (pa.decimal128(12, 2), st.decimals(places=2, min_value=-(10**9), max_value=10**9)),
    "real": (pa.float64(), st.floats()),
    "text": (pa.string(), st.text(st.sampled_from("abxé名%_'\""), max_size=4)),
    "flag": (pa.bool_(), st.booleans()),
    "day": (pa.date32(), st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1))),
    "at": (
        pa.timestamp("us", "UTC"),
        st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1), timezones=st.just(ZONE)),
    ),
    "local": (
        pa.timestamp("us"),
        st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1)),
    ),
    "part": (pa.struct([("x", pa.int32())]), st.fixed_dictionaries({"x": st.integers(-5, 5)})),
}


def _near(name: str) -> st.SearchStrategy[Literal]:
    """Values that compare with a column, and some that lie between two of its values, or beyond."""
    values = TYPES[name][1]
    if name in ("tiny", "long", "money", "real"):
        numbers = values.map(lambda value: Decimal(str(value)) if abs(value) < 1e300 else Decimal(1))
        near = st.builds(
            lambda number, more: number + Decimal(more), numbers, st.sampled_from(("0", "0.5", "-0.004"))
        )
        beyond = st.sampled_from((Decimal("1e30"), Decimal("-1e30"), Decimal("128"), Decimal(2**63)))
        return st.builds(Literal, st.one_of(numbers, near, beyond, st.integers(-3, 3).map(Decimal)))
    return st.builds(Literal, values)


@st.composite
def _of_rows(draw: st.DrawFn) -> tuple[list[dict[str, Any]], Condition]:
    rows = draw(
        st.lists(
            st.fixed_dictionaries({name: st.none() | values for name, (_, values) in TYPES.items()}),
            min_size=1,
            max_size=8,
        )
    )
    name = draw(st.sampled_from([name for name in TYPES if name != "part"]))
    other = draw(st.sampled_from(("tiny", "text")))
    simple = [conditions(st.just(Column((one,))), _near(one)) for one in (name, other)]
    one, two = (
        draw(condition.filter(_has_no_like if chosen != "text" else bool))
        for chosen, condition in zip((name, other), simple, strict=True)
    )
    return rows, draw(st.sampled_from((one, two, parse(f"({text_of(one)}) or not ({text_of(two)})"))))


def _has_no_like(condition: Condition) -> bool:
    return "like" not in text_of(condition)


@given(_of_rows())
def test_duckdb_and_plain_python_agree_on_typed_rows(drawn: tuple[list[dict[str, Any]], Condition]) -> None:
    rows, condition = drawn
    schema = pa.schema([(name, type) for name, (type, _) in TYPES.items()])
    assert _matching(pa.Table.from_pylist(rows, schema), condition) == _expected(rows, condition)


@given(
    st.lists(st.none() | st.builds(lambda x: {"x": x}, st.none() | st.integers(-5, 5)), min_size=1),
    st.integers(-5, 5),
)
def test_fields_of_structs_are_columns(parts: list[dict[str, int] | None], number: int) -> None:
    rows: list[dict[str, Any]] = [{"part": part} for part in parts]
    table = pa.Table.from_pylist(rows, pa.schema([("part", TYPES["part"][0])]))
    condition = parse(f"part.x >= {number}")
    assert _matching(table, condition) == _expected(rows, condition)


@pytest.mark.parametrize("name", ['a"b', "a.b", "select", "é 名", "c0; drop table rows"])
def test_columns_of_any_name_are_quoted(name: str) -> None:
    table = pa.table({name: [1, 2, 3]})
    text = '"' + name.replace('"', '""') + '" > 1'
    assert _matching(table, parse(text)) == [1, 2]


def _matching(table: pa.Table, condition: Condition) -> list[int]:
    columns: Columns = columnar({field.name: of_arrow(field.type) for field in table.schema})
    compiled = Where(text_of(condition)).on(columns)
    database = searched_database(())
    try:
        database.register("rows", table.append_column("number of the row", pa.array(range(table.num_rows))))
        query = f'SELECT "number of the row" FROM rows WHERE {compiled.sql} ORDER BY 1'
        return [number for (number,) in database.execute(query, list(compiled.parameters)).fetchall()]
    finally:
        database.close()


def _expected(rows: list[Mapping[str, Any]] | list[dict[str, Any]], condition: Condition) -> list[int]:
    return [number for number, row in enumerate(rows) if holds(condition, row)]

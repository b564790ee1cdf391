"""Elements of tables: keys, multisets, classes, and what is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lineage_service.errors import InvalidQueryError
from lineage_service.triggering.changes.changed_elements import difference, elements
from lineage_service.triggering.changes.output_error import class_error, row_error

pytestmark = pytest.mark.unit


def rows(**columns: list[object]) -> pa.Table:
    return pa.table(columns)


def test_a_key_is_its_value_whatever_the_type_of_its_column() -> None:
    narrow = rows(day=pa.array([1, None, -3], pa.int32()), value=[1, 2, 3])
    wide = rows(day=pa.chunked_array([[1], [None, -3]], pa.int64()), value=[1, 2, 3])
    assert len(difference(elements(narrow, ["day"], ["value"]), elements(wide, ["day"], ["value"]))) == 0


def test_rows_without_a_key_are_counted() -> None:
    before, now = (elements(rows(a=a, b=["x"] * len(a)), [], []) for a in ([1, 1, 2], [1, 2, 2, 3]))
    changes = difference(before, now)
    assert len(changes) == 3
    assert sorted(zip(changes.old[:, 0], changes.new[:, 0], strict=True)) == [(0, 1), (1, 2), (2, 1)]
    assert row_error(before, now) == 1


def test_classes_are_texts_that_differ() -> None:
    one, other = (elements(rows(k=[1, 2], c=["low", c]), ["k"], [], ["c"]) for c in ("low", "high"))
    assert class_error(one, one) == 0
    assert class_error(one, other) == 1


def test_a_list_is_no_key() -> None:
    with pytest.raises(InvalidQueryError, match="column 'k' is list<item: int64>, of which there is no key"):
        elements(rows(k=[[1], [2]]), [], [])


def test_a_container_may_be_empty() -> None:
    nothing = pa.table({"k": pa.array([], pa.string()), "v": pa.array([], pa.float64())})
    assert len(elements(nothing, ["k"], ["v"])) == 0
    assert len(difference(elements(nothing, [], []), elements(rows(k=["a"], v=[1.0]), [], []))) == 1


@pytest.mark.parametrize(
    ("keys", "values", "says"),
    [
        (["k"], ["nothing"], "no column 'nothing'; the columns are k, c"),
        (["k"], ["c"], "column 'c' is string and holds no numbers"),
        (["c"], ["k"], "the key c is not unique: rows 0 and 2 have {'c': 'a'}"),
    ],
)
def test_what_cannot_be_compared_is_said(keys: list[str], values: list[str], says: str) -> None:
    with pytest.raises(InvalidQueryError, match=says):
        elements(rows(k=[1, 2, 3], c=["a", "b", "a"]), keys, values)

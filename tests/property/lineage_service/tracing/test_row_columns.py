"""Columns of rows: what their JSON promises, whatever a file holds."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lineage_service.lineage import SourceRow
from lineage_service.result_json import json_bytes
from lineage_service.tracing.files.csv_columns import CsvColumns
from lineage_service.tracing.files.csv_dialect import CsvDialect
from lineage_service.tracing.files.json_values import bounded, exact_json, read_json
from lineage_service.tracing.files.partition_folders import folder_above, partition_values, short_place
from lineage_service.tracing.files.row_columns import typed
from lineage_service.tracing.query.remarks import remarks_on
from lineage_service.tracing.query.row_order import ordered

NUMBERS = st.one_of(
    st.integers(-(1 << 70), 1 << 70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(allow_nan=False),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def as_javascript_reads(text: str) -> Any:
    """Every number of JSON is a double there."""
    return json.loads(text, parse_int=float)


@given(NUMBERS)
def test_a_reader_that_knows_only_doubles_gets_every_number_whole(number: int | float | Decimal) -> None:
    read = as_javascript_reads(json.dumps(exact_json(number)))
    assert Decimal(read) == Decimal(number)


@given(st.dictionaries(st.text(min_size=1), JSON, max_size=6))
def test_a_row_of_json_becomes_a_result_whatever_it_holds(row: dict[str, Any]) -> None:
    columns = read_json(json.dumps(row))
    assert columns is not None
    assert set(columns) == {name.encode("utf-8", "replace").decode() for name in row}
    written(columns)


@given(st.text())
def test_a_text_that_may_be_json_never_fails(text: str) -> None:
    columns = read_json(text)
    if columns is not None:
        written(columns)


@given(st.lists(st.text()), st.lists(st.text()), st.booleans(), st.text())
def test_records_of_csv_never_fail(lines: list[str], schema: list[str], has_header: bool, type_: str) -> None:
    of_csv = CsvColumns(lines, schema, CsvDialect(), has_header=has_header)
    for line in lines:
        written({name: text and typed(text, type_) for name, text in of_csv.of(line).items()})


def written(columns: dict[str, Any]) -> None:
    listed, _ = bounded(columns)
    row = SourceRow(path="/f", row=0, line=1, text=None, warning=None, columns=listed)
    assert json.loads(json_bytes(row))["columns"] == listed


@given(st.text(alphabet="ab=/%2F", max_size=30))
def test_a_path_is_its_folder_and_its_place(path: str) -> None:
    assert f"{folder_above(path)}/{short_place(path)}".strip("/") == path.strip("/")
    assert len(partition_values(path)) <= short_place(path).count("/")


PLACES = st.dictionaries(
    st.tuples(st.integers(0, 3), st.integers(0, 9)), st.none() | st.booleans() | NUMBERS | st.text()
)


@given(PLACES, st.booleans())
def test_an_order_lists_every_row_once_numbers_by_value_and_missing_ones_last(
    values: dict[tuple[int, int], Any], desc: bool
) -> None:
    values = {place: exact_json(value) for place, value in values.items()}
    order = ordered(list(values), values, desc=desc)
    assert sorted(order) == sorted(values)
    kinds = [0 if is_number(values[place]) else 2 if values[place] is None else 1 for place in order]
    assert kinds == sorted(kinds)
    numbers = [Decimal(repr(v) if isinstance(v, float) else v) for p in order if is_number(v := values[p])]
    finite = [number for number in numbers if not number.is_nan()]
    assert finite == sorted(finite, reverse=desc)


def is_number(value: Any) -> bool:
    if isinstance(value, bool) or value is None:
        return False
    try:
        return not Decimal(value.strip() if isinstance(value, str) else value).is_snan()
    except ArithmeticError:
        return False


@given(st.lists(st.floats(-1e6, 1e6), max_size=40), st.randoms())
def test_what_stands_out_does_not_depend_on_the_order_of_the_rows(numbers: list[float], random: Any) -> None:
    def rows(of: list[float]) -> list[tuple[str, SourceRow]]:
        return [
            ("r", SourceRow(path="/f", row=at, line=at + 1, text=None, warning=None, columns={"n": number}))
            for at, number in enumerate(of)
        ]

    remarks = remarks_on(rows(numbers), {})
    assert len(remarks) <= 3
    for remark in remarks:
        others = [number for number in numbers if remark.low <= number <= remark.high]
        assert len(others) >= len(numbers) - 3
        assert not remark.low <= remark.value <= remark.high
        assert math.isfinite(remark.value)
    shuffled = list(numbers)
    random.shuffle(shuffled)
    again = remarks_on(rows(shuffled), {})
    assert {remark.value for remark in again} == {remark.value for remark in remarks}

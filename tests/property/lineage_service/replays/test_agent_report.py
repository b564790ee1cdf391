from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from lineage_service.errors import InvalidQueryError
from lineage_service.replays.agent_report import read_report
from lineage_service.replays.requested_rows import named_rows
from spark_agent.contract.row_alignment import are_close, corresponding_texts

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda values: (
        st.lists(values, max_size=3)
        | st.dictionaries(
            st.sampled_from(("node", "name", "path", "to", "values", "record", "value", "what", "total"))
            | st.text(),
            values,
            max_size=5,
        )
    ),
    max_leaves=12,
)
FIELDS = ("application", "sources", "sinks", "refused", "connections", "skipped", "differences", "inferred")


@given(JSON | st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_a_report_of_any_shape_is_read(report: object) -> None:
    read = read_report(report)
    assert read.is_there is isinstance(report, dict)
    for refusal in read.refused:
        json.dumps([refusal.what, refusal.path, refusal.where])


TEXTS = st.lists(st.text(alphabet="ab01.,-eE ", max_size=8), max_size=6)


@given(TEXTS, TEXTS)
def test_rows_correspond_one_to_one(was: list[str], now: list[str]) -> None:
    pairs = corresponding_texts(was, now)
    assert len({before for before, _, _ in pairs}) == len({after for _, after, _ in pairs}) == len(pairs)
    assert all(0 <= before < len(was) and 0 <= after < len(now) for before, after, _ in pairs)


@given(st.text(alphabet="ab01.,-+eE ", max_size=12), st.text(alphabet="ab01.,-+eE ", max_size=12))
def test_being_close_is_symmetric_and_holds_of_equal_texts(was: str, now: str) -> None:
    assert are_close(was, was)
    assert are_close(was, now) == are_close(now, was)


@given(st.text(alphabet="ab:,-=019", max_size=14))
def test_what_people_type_for_rows_is_read_or_refused_in_words(text: str) -> None:
    try:
        rows = named_rows(text)
    except InvalidQueryError:
        return
    assert rows
    assert all(path and row >= 0 for path, row in rows)

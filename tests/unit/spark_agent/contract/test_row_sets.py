"""Row sets and specs of replays: what a file may hold, and how ranges name rows."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_agent.contract.errors import ContractError
from spark_agent.contract.replay_spec import decode_spec
from spark_agent.contract.row_sets import count_rows, decode_row_set, ranges_of, rows_in

pytestmark = pytest.mark.unit

SOURCE = {
    "node": 0,
    "name": "textFile",
    "whole": False,
    "files": [{"path": "/data/a.csv", "rows": [[3, 2], [9, 1]]}],
    "splits": [{"split": 0, "positions": [[3, 2], [9, 1]]}],
}
ROW_SET = {"application": "local-1", "sources": [SOURCE], "asked": []}
SPEC = {
    "version": 1,
    "replay": "7",
    "of": "local-1",
    "mode": "only",
    "strategy": "rows",
    "round": 1,
    "sandbox": "/tmp/7",
    "sources": [SOURCE | {"texts": {"0": ["a", "b"]}}],
    "protected": ["/data/a.csv"],
}


@given(st.lists(st.integers(0, 60)))
def test_ranges_hold_the_numbers_in_order(numbers):
    ranges = ranges_of(numbers)
    assert list(rows_in(ranges)) == sorted(set(numbers))
    assert all(first + count < after for (first, count), (after, _) in itertools.pairwise(ranges))


def test_a_row_set_is_read_as_it_was_written():
    assert decode_row_set(json.dumps(ROW_SET)) == ROW_SET
    assert count_rows(SOURCE) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"application": 3}, "'application'"),
        ({"sources": [{**SOURCE, "whole": "yes"}]}, r"'sources\[0\].whole'"),
        ({"sources": [{**SOURCE, "splits": [{"split": 0, "positions": [[3, 0]]}]}]}, "positions"),
        ({"sources": [{**SOURCE, "splits": [{"split": 0, "positions": [[3, 2], [4, 1]]}]}]}, "not in order"),
    ],
)
def test_a_row_set_that_is_none_is_refused_by_field(change, message):
    with pytest.raises(ContractError, match=message):
        decode_row_set(json.dumps(ROW_SET | change))


def test_a_spec_is_read_as_it_was_written():
    assert decode_spec(json.dumps(SPEC)) == SPEC


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "'version'"),
        ({"mode": "some"}, "'mode'"),
        ({"sandbox": "here"}, "'sandbox'"),
        ({"sources": [SOURCE | {"texts": {"x": []}}]}, "texts"),
    ],
)
def test_a_spec_that_is_none_is_refused_by_field(change, message):
    with pytest.raises(ContractError, match=message):
        decode_spec(json.dumps(SPEC | change))
    with pytest.raises(ContractError, match="not JSON"):
        decode_spec("{")

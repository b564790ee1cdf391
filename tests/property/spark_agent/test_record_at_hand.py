"""A look from outside names the operation and the input that its function has, in whatever chain."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.observed_chains import ENDS, OPERATORS, Observed, chain_of, run_chain

RECORDS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 20)), max_size=12)


@settings(max_examples=60, deadline=None)
@given(
    RECORDS,
    st.lists(st.sampled_from(sorted(OPERATORS)), min_size=1, max_size=4),
    st.sampled_from(["", *sorted(ENDS)]),
)
def test_each_call_is_known(records: list[tuple[int, int]], steps: list[str], end: str) -> None:
    observed = Observed()
    run_chain(records, chain_of(observed, steps, end))
    assert all(said == so for said, so in observed.seen)

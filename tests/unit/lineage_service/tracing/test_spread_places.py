from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lineage_service.tracing.query.reached_rows import spread_places

OFFSETS = st.dictionaries(
    st.integers(0, 9), st.sets(st.integers(0, 60)).map(lambda chosen: np.array(sorted(chosen), np.int64))
)


def test_a_sample_is_spread_over_all_partitions() -> None:
    arrived = {1: np.arange(100), 0: np.arange(10, 910)}
    assert spread_places(arrived, 5) == [(0, 110), (0, 310), (0, 510), (0, 710), (1, 0)]
    assert spread_places({}, 5) == []


@given(OFFSETS, st.integers(1, 7))
def test_a_sample_is_of_records_that_were_reached_in_their_order(
    arrived: dict[int, np.ndarray], most: int
) -> None:
    every = [(partition, int(offset)) for partition in sorted(arrived) for offset in arrived[partition]]
    sample = spread_places(arrived, most)
    assert len(set(sample)) == len(sample) == min(most, len(every))
    assert sample == [place for place in every if place in set(sample)]

"""Winners and digests read by row group against a look-up of each position."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineage_service.store.errors import StoreUnavailableError
from lineage_service.store.tables import TABLES
from lineage_service.tracing.columns import record_row_groups
from lineage_service.tracing.columns.annotation_files import AnnotationCache, AnnotationFiles

_places = st.tuples(
    st.integers(0, 2), st.integers(10, 12), st.sampled_from(["digests", "winners"]), st.integers(0, 12)
)
_NONE = np.zeros(0, np.int64)
_values = st.integers(0, 9) | st.integers(0, (1 << 63) - 1)


@given(
    st.dictionaries(_places, _values, max_size=60),
    st.lists(st.integers(0, 60), max_size=2),
    st.integers(1, 9),
    st.randoms(use_true_random=False),
    st.lists(_places, min_size=1, max_size=6),
    st.sampled_from([0, 1 << 20]),
    st.sampled_from([1, 8]),
    st.booleans(),
)
def test_each_position_has_the_value_that_was_said_of_it(
    said: dict[tuple[int, int, str, int], int],
    cuts: list[int],
    row_group: int,
    random: object,
    asked: list[tuple[int, int, str, int]],
    cache_bytes: int,
    most_parts: int,
    has_bounds: bool,
) -> None:
    rows = [(*place, value) for place, value in sorted(said.items())]
    if cuts:  # files hold what came together; within one, a batch may stand before another
        random.shuffle(rows)  # type: ignore[attr-defined]
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(record_row_groups, "_MOST_PARTS", most_parts)  # beyond, rows are put in order
        paths, logged = [], {}
        for number, (first, last) in enumerate(pairwise(bounds)):
            columns = [list(column) for column in zip(*rows[first:last], strict=True)] or [[]] * 5
            schema = TABLES["annotations"].remove(0)
            paths.append(str(Path(folder, f"{number}.parquet")))
            pq.write_table(pa.table(columns, schema=schema), paths[-1], row_group_size=row_group)
            of_file = zip(("node", "run", "pos"), (columns[0], columns[1], columns[3]), strict=True)
            logged[paths[-1]] = {name: (min(column), max(column)) for name, column in of_file if column}
        files = AnnotationFiles(paths, AnnotationCache(cache_bytes), bounds=logged if has_bounds else None)
        for node, run, relation, _ in asked:
            positions = np.arange(14)
            known = {
                at: said[node, run, relation, at] for at in range(14) if (node, run, relation, at) in said
            }
            is_known, values = files.at(node, run, relation, positions)
            assert np.flatnonzero(is_known).tolist() == list(known)
            assert values.tolist() == list(known.values())
            of_node = [said[place] for place in said if (place[0], place[2]) == (node, relation)]
            assert sorted(np.concatenate([*files.every(node, relation), _NONE]).tolist()) == sorted(of_node)
            values = np.arange(-1, 11)
            occur = files.occur(node, relation, values, lambda: None)
            assert values[occur].tolist() == sorted({value for value in of_node if value < 11})
            repeated = np.repeat(positions, 2)
            assert files.at(node, run, relation, repeated)[1].tolist() == [
                value for value in known.values() for _ in range(2)
            ]


def test_a_file_that_cannot_hold_what_is_asked_for_is_not_opened() -> None:
    files = AnnotationFiles(["gone.parquet"], bounds={"gone.parquet": {"node": (3, 4), "pos": (10, 19)}})
    for node, position in ((2, 10), (3, 9), (4, 20)):
        assert not files.at(node, 1, "digests", np.array([position]))[0].any()
    assert not list(files.every(5, "digests"))
    with pytest.raises(StoreUnavailableError, match=r"gone\.parquet"):
        files.at(4, 1, "digests", np.array([9, 19]))

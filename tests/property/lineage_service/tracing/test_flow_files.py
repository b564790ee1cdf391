"""Rows of `flows` read by row group against a loop over the rows: every step, in whatever order they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from lineage_service.store.tables import TABLES
from lineage_service.tracing.columns.column_cache import NO_RUN, ColumnCache, compact, part
from lineage_service.tracing.columns.flow_files import FlowFiles
from lineage_service.tracing.columns.interval_join import (
    count_outputs,
    distinct,
    inputs_of_outputs,
    inputs_of_ranges,
    inputs_of_spans,
    outputs_of_inputs,
    outputs_of_ranges,
)

Row = tuple[int, int, int, int, int, int, int | None]
"""(node, run, out_pos, out_count, in_pos, in_step, in_run)."""

NODE, RUN = 1, 10
_positions = st.lists(st.integers(0, 40), min_size=1, max_size=12).map(lambda found: sorted(set(found)))


def _rows(kind: str) -> st.SearchStrategy[list[Row]]:
    writers = st.sampled_from([None, 20, 21])
    if kind == "repeated":  # such outputs are kept as runs
        row = st.tuples(
            *map(st.just, (NODE, RUN)), st.sampled_from([3, 4, 20]), st.just(1), st.integers(0, 40)
        )
        return st.lists(
            row.map(lambda each: (*each, 0, 20 if each[2] == 20 else None)), min_size=16, max_size=60
        )
    if kind == "single":
        row = st.tuples(
            st.just(NODE),
            st.just(RUN),
            st.integers(0, 30),
            st.just(1),
            st.integers(0, 40),
            st.just(0),
            writers,
        )
        return st.lists(row, min_size=1, max_size=60)
    if kind == "ranges":
        row = st.tuples(
            st.just(NODE),
            st.just(RUN),
            st.integers(0, 30),
            st.integers(1, 12),
            st.integers(0, 40),
            st.just(0),
            st.none(),
        )
        return st.lists(row, min_size=1, max_size=40)
    sizes = st.tuples(
        st.integers(0, 2), st.integers(1, 6), st.integers(0, 35), st.sampled_from([0, 1]), writers
    )

    def side_by_side(drawn: Sequence[tuple[int, int, int, int, int | None]], first: int | None) -> list[Row]:
        rows, at = [], 0
        for number, (gap, count, start, step, writer) in enumerate(drawn):
            at += gap
            rows.append((NODE, RUN, at, count, start if first is None else first + number, step, writer))
            at += count
        return rows

    # With a first input, each row names the one after the row before it: such columns are kept as ranges.
    return st.builds(side_by_side, st.lists(sizes, min_size=1, max_size=20), st.none() | st.integers(0, 5))


@st.composite
def _stored(draw: st.DrawFn, kind: str) -> tuple[list[list[Row]], int]:
    """Files of rows: of this stream and of two others, cut into batches that may change places."""
    mine = sorted(draw(_rows(kind)), key=lambda row: row[2])
    others = [(2, RUN, 3, 1, 4, 0, None), (NODE, 11, 5, 1, 5, 0, None)]
    batches = []
    while mine:
        cut = draw(st.integers(1, len(mine)))
        batches.append(mine[:cut])
        mine = mine[cut:]
    batches = draw(st.permutations(batches))
    files = [
        [row for batch in batches[::2] for row in batch],
        [row for batch in batches[1::2] for row in batch],
    ]
    files[0] = [others[0], *files[0], others[1]]
    return [rows for rows in files if rows], draw(st.integers(1, 60))


def _opened(folder: str, files: list[list[Row]], row_group: int) -> FlowFiles:
    paths = []
    schema = pa.schema(list(TABLES["flows"])[1:])
    for number, rows in enumerate(files):
        path = Path(folder) / f"{number}.parquet"
        columns = [
            pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), schema.types, strict=True)
        ]
        pq.write_table(pa.table(columns, schema=schema), path, row_group_size=row_group)
        paths.append(str(path))
    return FlowFiles(paths, ColumnCache(max_bytes=200))


def _inputs(row: Row, output: int) -> int | None:
    _, _, out, count, start, step, _ = row
    return start + (output - out) * step if out <= output < out + count else None


def _mine(files: list[list[Row]]) -> list[Row]:
    return [row for rows in files for row in rows if row[:2] == (NODE, RUN)]


@given(_stored("single") | _stored("repeated"), _positions)
def test_inputs_of_single_outputs(stored: tuple[list[list[Row]], int], positions: list[int]) -> None:
    files, row_group = stored
    with TemporaryDirectory() as folder:
        read = _opened(folder, files, row_group)
        found = {
            (writer, positions[at], into)
            for writer, index, inputs in inputs_of_outputs(read.slices(NODE, RUN), np.array(positions))
            if index is not None
            for at, into in zip(index.tolist(), inputs.tolist(), strict=True)
        }
    expected = {
        (NO_RUN if row[6] is None else row[6], row[2], row[4]) for row in _mine(files) if row[2] in positions
    }
    assert found == expected


@given(_stored("spans"), _positions)
def test_inputs_of_spans(stored: tuple[list[list[Row]], int], positions: list[int]) -> None:
    files, row_group = stored
    with TemporaryDirectory() as folder:
        read = _opened(folder, files, row_group)
        parts = list(inputs_of_spans(read.slices(NODE, RUN), np.array(positions)))
        assert read.outputs(NODE, RUN) == max(row[2] + row[3] for row in _mine(files))
    found = {(writer, into) for writer, _, inputs in parts for into in inputs.tolist()}
    expected = {
        (NO_RUN if row[6] is None else row[6], into)
        for row in _mine(files)
        for position in positions
        if (into := _inputs(row, position)) is not None
    }
    assert found == expected
    for writer, index, inputs in parts:
        if index is not None:
            for at, into in zip(index.tolist(), inputs.tolist(), strict=True):
                known = [row for row in _mine(files) if _inputs(row, positions[at]) == into]
                assert any((NO_RUN if row[6] is None else row[6]) == writer for row in known)


@given(_stored("ranges"), _positions, st.booleans())
def test_inputs_of_ranges(
    stored: tuple[list[list[Row]], int], positions: list[int], with_indices: bool
) -> None:
    files, row_group = stored
    found, announced = set[tuple[int, int]](), list[int]()
    with TemporaryDirectory() as folder:
        slices = _opened(folder, files, row_group).slices(NODE, RUN)
        parts = inputs_of_ranges(slices, np.array(positions), announced.append, with_indices=with_indices)
        for writer, index, inputs in parts:
            assert writer == NO_RUN
            assert (index is not None) is with_indices
            at = [0] * len(inputs) if index is None else index.tolist()
            found.update(zip(at, inputs.tolist(), strict=True))
    assert found == {
        (at if with_indices else 0, row[4])
        for row in _mine(files)
        for at, position in enumerate(positions)
        if row[2] <= position < row[2] + row[3]
    }
    assert not with_indices or sum(announced) >= len(found)


@given(
    _stored("ranges"),
    st.lists(st.integers(0, 40), min_size=1, max_size=12).map(sorted),
    st.none() | _positions,
    st.booleans(),
)
def test_outputs_of_ranges(
    stored: tuple[list[list[Row]], int], positions: list[int], wanted: list[int] | None, with_indices: bool
) -> None:
    files, row_group = stored
    found, announced = set[tuple[int, int]](), list[int]()
    among = None if wanted is None else np.array(wanted)
    with TemporaryDirectory() as folder:
        for each in _opened(folder, files, row_group).slices(NODE, RUN):
            index, outputs = outputs_of_ranges(
                each, np.array(positions), among, announced.append, with_indices=with_indices
            )
            assert with_indices or outputs.tolist() == sorted(set(outputs.tolist()))
            found.update(zip(index.tolist(), outputs.tolist(), strict=True))
    assert found == {
        (at if with_indices else 0, output)
        for row in _mine(files)
        for output in range(row[2], row[2] + row[3])
        for at, position in enumerate(positions)
        if row[4] == position and (wanted is None or output in wanted)
    }


@given(
    st.one_of(_stored("single"), _stored("repeated"), _stored("spans")),
    st.lists(st.integers(0, 40), min_size=1, max_size=12).map(sorted),
    st.sampled_from([NO_RUN, 20, 21]),
    st.none() | _positions,
)
def test_outputs_of_inputs(
    stored: tuple[list[list[Row]], int], positions: list[int], writer: int, wanted: list[int] | None
) -> None:
    files, row_group = stored
    with TemporaryDirectory() as folder:
        read = _opened(folder, files, row_group)
        found: list[tuple[int, int]] = []
        for each in read.slices(NODE, RUN):
            among = None if wanted is None else np.array(wanted)
            index, outputs = outputs_of_inputs(each, np.array(positions), writer, among)
            found += zip(index.tolist(), outputs.tolist(), strict=True)
    expected = sorted(
        (at, output)
        for row in _mine(files)
        if (NO_RUN if row[6] is None else row[6]) == writer
        for output in range(row[2], row[2] + row[3])
        for at, position in enumerate(positions)
        if _inputs(row, output) == position
    )
    if wanted is None:
        assert sorted(found) == expected
    else:
        chosen = [pair for pair in expected if pair[1] in wanted]
        assert sorted(pair for pair in found if pair[1] in wanted) == chosen
        assert set(found) <= set(expected)


@given(
    st.one_of(*map(_stored, ("single", "repeated", "ranges", "spans"))),
    _positions,
    st.sampled_from([NO_RUN, 20, 21]),
)
def test_number_of_outputs_of_inputs(
    stored: tuple[list[list[Row]], int], positions: list[int], writer: int
) -> None:
    files, row_group = stored
    counts = np.zeros(len(positions), np.int64)
    with TemporaryDirectory() as folder:
        for rows in _opened(folder, files, row_group).slices(NODE, RUN):
            counts += count_outputs(rows, np.array(positions), writer)
    assert counts.tolist() == [
        sum(
            _inputs(row, output) == position
            for row in _mine(files)
            if (NO_RUN if row[6] is None else row[6]) == writer
            for output in range(row[2], row[2] + row[3])
        )
        for position in positions
    ]


@given(st.lists(st.one_of(st.integers(0, 60), st.integers(0, 1 << 40)), min_size=1, max_size=80))
def test_distinct_is_a_sorted_set(values: list[int]) -> None:
    assert distinct(np.array(values, np.int64)).tolist() == sorted(set(values))


def test_a_row_reaches_inputs_beyond_the_ones_that_rows_begin_with(tmp_path: Path) -> None:
    read = _opened(str(tmp_path), [[(NODE, RUN, 0, 5, 0, 1, 20), (NODE, RUN, 5, 7, 4, 1, 20)]], 100)
    (each,) = read.slices(NODE, RUN)
    index, outputs = outputs_of_inputs(each, np.array([9]), 20)
    assert (index.tolist(), outputs.tolist()) == ([0], [10])


def test_only_row_groups_that_can_hold_it_are_read(tmp_path: Path) -> None:
    rows: list[Row] = [(NODE, RUN, at // 4, 1, at, 0, None) for at in range(4_000)]
    read = _opened(str(tmp_path), [rows], 100)
    cache = ColumnCache()
    read = FlowFiles([str(tmp_path / "0.parquet")], cache)
    found = list(inputs_of_outputs(read.slices(NODE, RUN), np.array([500])))
    assert [inputs.tolist() for _, _, inputs in found] == [[2_000, 2_001, 2_002, 2_003]]
    assert {(group, name) for _, group, name in cache.cached_keys()} == {(20, "out_pos"), (20, "in_pos")}


_kept_columns = st.one_of(
    st.lists(st.integers(0, 3), max_size=40).map(sorted),  # as runs
    st.tuples(st.integers(0, 9), st.integers(0, 40)).map(lambda drawn: [*range(drawn[0], sum(drawn))]),
    st.lists(st.integers(0, 1 << 40), max_size=40),
)


@given(_kept_columns, st.sampled_from(["out_pos", "in_pos"]), st.data())
def test_a_part_of_a_column_is_that_part_of_all_of_it(
    values: list[int], name: str, data: st.DataObject
) -> None:
    kept = compact(name, pa.chunked_array([pa.array(values, pa.int64())]))
    start = data.draw(st.integers(0, len(values)))
    stop = data.draw(st.integers(start, len(values)))
    assert part(kept, start, stop).tolist() == values[start:stop]

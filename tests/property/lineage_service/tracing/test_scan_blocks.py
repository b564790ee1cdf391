"""The blocks of a scan name exactly the positions that are meant, whichever blocks a partition has."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineage_service.tracing.files.scan_blocks import UnknownBlockError, blocks_of
from spark_agent.contract.row_sets import ranges_of, rows_in

#: How many records each block of each partition has.
SIZES = st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=4), min_size=1, max_size=4)


def partitions_of(sizes: list[list[int]]) -> dict[int, dict[str, Any]]:
    partitions = {}
    for split, of_split in enumerate(sizes):
        firsts = [sum(of_split[:at]) for at in range(len(of_split))]
        parts = [
            {"path": f"/in/{split}", "start": at * 10, "length": 10, "first": first, "row": 100 * at}
            for at, first in enumerate(firsts)
        ]
        partitions[split] = {"split": split, "parts": parts}
    return partitions


@given(sizes=SIZES, data=st.data())
def test_blocks_name_the_positions(sizes: list[list[int]], data: st.DataObject) -> None:
    chosen = {
        split: data.draw(st.sets(st.integers(0, max(sum(of_split) - 1, 0)), max_size=8))
        for split, of_split in enumerate(sizes)
        if sum(of_split)
    }
    blocks = blocks_of(
        partitions_of(sizes), {split: ranges_of(sorted(rows)) for split, rows in chosen.items()}
    )
    assert len(blocks) == sum(map(len, sizes))
    named: dict[int, set[int]] = {split: set() for split in chosen}
    for block in blocks:
        split, at = int(block["path"].removeprefix("/in/")), block["start"] // 10
        rows = list(rows_in(block["rows"]))
        assert block["row"] == 100 * at
        assert all(row < sizes[split][at] for row in rows)
        if rows:
            named[split] |= {sum(sizes[split][:at]) + row for row in rows}
    assert named == chosen


def test_a_block_without_an_end_is_not_known() -> None:
    part = {"path": "/in/a", "start": 0, "first": 0}
    with pytest.raises(UnknownBlockError, match="where its block of /in/a ends is not known"):
        blocks_of({0: {"parts": [part]}}, {0: [[0, 1]]})


def test_rows_of_no_file_are_not_known() -> None:
    with pytest.raises(UnknownBlockError, match="which files its partition 0 read is not known"):
        blocks_of({0: {}}, {0: [[0, 1]]})


def test_rows_of_a_file_that_is_read_twice_are_not_known() -> None:
    part = {"path": "/in/a", "start": 0, "length": 9, "first": 0}
    with pytest.raises(UnknownBlockError, match="it read a file twice"):
        blocks_of({0: {"parts": [part]}, 1: {"parts": [part]}}, {0: [[0, 1]]})


def test_rows_before_the_first_block_are_not_known() -> None:
    part = {"path": "/in/a", "start": 0, "length": 9, "first": 2}
    with pytest.raises(UnknownBlockError, match="which files some of its rows are of is not known"):
        blocks_of({0: {"parts": [part]}}, {0: [[1, 2]]})

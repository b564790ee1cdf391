"""Laws of what a replay keeps of a source: the records at its positions, and which rows these are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_agent.contract.row_sets import ranges_of
from spark_agent.driver.replay.kept_rows import partitions_of
from spark_agent.worker.operators import kept_positions
from spark_agent.worker.operators.kept_positions import Keep, KeptChain

POSITIONS = st.sets(st.integers(0, 30))


@given(st.integers(0, 30), st.dictionaries(st.integers(0, 3), POSITIONS), st.integers(0, 3))
def test_the_records_at_the_positions_are_kept_or_left_out(
    size: int, positions: dict[int, set[int]], partition: int
) -> None:
    ranges = {split: ranges_of(places) for split, places in positions.items()}
    records, meant = range(100, 100 + size), positions.get(partition, set())
    kept = list(Keep(ranges)(partition, iter(records)))
    assert kept == [100 + at for at in range(size) if at in meant]
    others = list(Keep(ranges, is_without=True)(partition, iter(records)))
    assert others == [100 + at for at in range(size) if at not in meant]


@given(st.integers(0, 30), st.dictionaries(st.integers(0, 35), st.text()))
def test_texts_are_replaced_in_their_places(size: int, texts: dict[int, str]) -> None:
    keep = Keep({}, is_without=True, replaced={2: texts})
    assert list(keep(2, map(str, range(size)))) == [texts.get(at, str(at)) for at in range(size)]
    assert list(keep(1, map(str, range(size)))) == [str(at) for at in range(size)]


@given(POSITIONS)
def test_nothing_is_read_far_behind_the_last_record_that_is_kept(positions: set[int]) -> None:
    read: list[int] = []
    keep = Keep({0: ranges_of(positions)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept_positions, "MORE", 3)
        list(keep(0, (read.append(at) or at for at in range(1_000))))
    assert len(read) <= max(positions, default=-1) + 5


@given(st.integers(0, 30), POSITIONS)
def test_a_chain_keeps_behind_the_functions_that_make_the_records(size: int, positions: set[int]) -> None:
    keep = Keep({1: ranges_of(positions)})
    made = KeptChain([lambda split, _: range(size), lambda split, rows: (row * split for row in rows)], keep)
    assert list(made(1, iter(()))) == [at for at in range(size) if at in positions]


FILES = st.lists(st.lists(st.integers(1, 12), min_size=1, max_size=4), min_size=1, max_size=3)


@given(FILES, st.data())
def test_each_kept_record_is_known_as_the_row_that_it_is(files: list[list[int]], data: Any) -> None:
    """Files of partitions of so many rows: the rows that are kept are found by their new positions."""
    split, listed, rows_of, splits, expected = 0, [], {}, [], {}
    for number, sizes in enumerate(files):
        path, start = f"/data/{number}.txt", 0
        rows_of[path] = []
        for size in sizes:
            kept = sorted(data.draw(st.sets(st.integers(0, size - 1))))
            listed.append({"split": split, "path": path, "start": start, "length": size})
            if kept:
                splits.append({"split": split, "positions": ranges_of(kept)})
            rows_of[path] += [start + at for at in kept]
            expected |= {(split, at): (path, start + row) for at, row in enumerate(kept)}
            split, start = split + 1, start + size
    source = {
        "partitions": split,
        "files": [
            {"path": path, "rows": ranges_of(rows), "size": 7, "modified": 8}
            for path, rows in rows_of.items()
            if rows
        ],
        "splits": splits,
    }
    infos = partitions_of(source, listed if len(source["files"]) > 1 else None)
    assert [info["split"] for info in infos] == list(range(split))
    assert {place: row_at(infos, *place) for place in expected} == expected


def row_at(infos: list[dict[str, Any]], split: int, position: int) -> tuple[str, int]:
    part = [part for part in infos[split]["parts"] if part["first"] <= position][-1]
    return part["path"], part["row"] + position - part["first"]


@given(st.integers(0, 3))
def test_rows_that_do_not_belong_to_the_positions_are_none(count: int) -> None:
    source = {
        "partitions": 2,
        "files": [{"path": "/data/a.txt", "rows": [[0, count]] if count else []}],
        "splits": [{"split": 0, "positions": [[0, count + 1]]}],
    }
    assert partitions_of(source, None) == [{"split": 0}, {"split": 1}]


@given(st.lists(st.lists(st.text(), max_size=5), max_size=4), st.data())
def test_of_whole_files_those_that_are_kept_are_listed(splits: list[list[str]], data: Any) -> None:
    kept = [
        sorted(data.draw(st.sets(st.sampled_from(range(len(files)))))) if files else [] for files in splits
    ]
    listed = [{"split": at, "files": [{"path": path} for path in files]} for at, files in enumerate(splits)]
    source = {
        "partitions": len(splits),
        "splits": [{"split": at, "positions": ranges_of(of)} for at, of in enumerate(kept) if of],
    }
    expected = [[splits[at][position] for position in of] for at, of in enumerate(kept)]
    infos = partitions_of(source, listed)
    assert [[file["path"] for file in info["files"]] for info in infos if "files" in info] == expected

from __future__ import annotations

import base64
import random
import struct
import zlib

import pytest

from spark_agent.sql.rerun import row_index
from spark_agent.sql.rerun.row_index import RowIndex, RowIndexes, Wanted

SCAN = (7, 8)


def told(bitmaps: list[int]) -> str:
    return base64.b64encode(zlib.compress(struct.pack(f">{len(bitmaps)}q", *bitmaps))).decode()


def index_of(parts: list[dict[str, object]], bitmaps: dict[int, list[int]]) -> RowIndex:
    index = RowIndex({SCAN: 3})
    index.read(3, ["in.txt|0|10"])
    for split, each in bitmaps.items():
        index.take(split, told(each))
    index.written(parts)
    return index


def bitmap(index: RowIndex, path: str, row: int) -> int | None:
    wanted = index.wanted(path, row)
    return wanted[SCAN].bitmap if wanted else None


def test_a_row_has_the_bitmap_of_its_place_in_its_task() -> None:
    parts: list[dict[str, object]] = [
        {"split": 0, "path": "/out/a"},
        {
            "split": 1,
            "parts": [
                {"path": "/out/b", "first": 0, "row": 0},
                {"path": "/out/c", "first": 2, "row": 0},
                {"path": "/out/b", "first": 3, "row": 2},
            ],
        },
    ]
    index = index_of(parts, {0: [1, -(1 << 63)], 1: [4, 8, 16, 32, -1]})
    assert [bitmap(index, "/out/a", row) for row in range(3)] == [1, -(1 << 63), None]
    assert [bitmap(index, "/out/b", row) for row in range(5)] == [4, 8, 32, -1, None]
    assert bitmap(index, "/out/c", 0) == 16
    assert index.wanted("/out/a", 0) == {SCAN: Wanted(3, 1, frozenset({"in.txt|0|10"}))}


def test_of_a_file_or_a_task_that_was_not_told_nothing_is_known() -> None:
    index = index_of([{"split": 0, "path": "/out/a"}, {"split": 1, "path": "/out/b"}], {0: [1]})
    index.take(1, "")  # too many rows
    assert [bitmap(index, path, 0) for path in ("/out/a", "/out/b", "/out/d")] == [1, None, None]


def test_a_scan_of_too_many_parts_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    index = index_of([{"split": 0, "path": "/out/a"}], {0: [1]})
    index.read(3, ["in.txt|10|10"])
    index.read(4, ["of another scan"])
    monkeypatch.setattr(row_index, "_MOST_PARTS", 2)
    assert bitmap(index, "/out/a", 0) == 1
    index.read(3, ["in.txt|20|10"])
    assert bitmap(index, "/out/a", 0) is None


def test_the_bitmaps_of_the_oldest_query_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    indexes, rows = RowIndexes(), random.Random(1).choices(range(1 << 60), k=100)
    one = len(told(rows))
    monkeypatch.setattr(row_index, "MOST_BYTES", 2 * one)
    for node in (1, 2, 3):
        index = RowIndex({SCAN: node})
        indexes.begin(node, index)
        indexes.take(node, 0, told(rows))
        index.written([{"split": 0, "path": "/out/a"}])
    found = {node: indexes.of(node) for node in (1, 2, 3)}
    assert [each is not None and bool(each.wanted("/out/a", 0)) for each in found.values()] == [
        False,
        True,
        True,
    ]
    indexes.forget(3)
    assert indexes.of(3) is None
    indexes.take(3, 0, told(rows))  # of a query that nobody remembers

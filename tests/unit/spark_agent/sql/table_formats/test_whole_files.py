from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from spark_agent.sql.table_formats.delta_log import RemovedFile
from spark_agent.sql.table_formats.whole_files import Runs, UnknownRowsError, parse_runs, partitions_of

VECTOR = {"storageType": "u", "pathOrInlineDv": "ab", "offset": 1, "sizeInBytes": 36, "cardinality": 3}


def none_deleted(file: RemovedFile) -> Runs:
    raise AssertionError(f"{file.path} has no deletion vector")


def described(file: RemovedFile) -> Mapping[str, Any]:
    return {"path": f"/t/{file.path}", "size": file.size}


def test_all_rows_of_a_file_are_told() -> None:
    files = [RemovedFile("a", 10, 3), RemovedFile("b", 20, 2)]
    [partition] = partitions_of(files, none_deleted, described)
    assert partition.rows == 5
    assert partition.parts == [
        {"path": "/t/a", "size": 10, "first": 0, "row": 0},
        {"path": "/t/b", "size": 20, "first": 3, "row": 0},
    ]


@pytest.mark.parametrize(
    ("runs", "pieces", "count"),
    [
        ("0-2,5-6", [(0, 2), (3, 6)], 7),
        ("3-4", [(0, 0), (3, 4)], 9),
        ("8-10", [(0, 0)], 8),
        ("0-10", [], 0),
        ("", [(0, 0)], 10),
    ],
)
def test_rows_that_were_deleted_before_are_left_out(
    runs: str, pieces: list[tuple[int, int]], count: int
) -> None:
    partitions = partitions_of([RemovedFile("a", 1, 10, VECTOR)], lambda _: parse_runs(runs), described)
    assert [(part["first"], part["row"]) for one in partitions for part in one.parts] == pieces
    assert sum(one.rows for one in partitions) == count


def test_a_file_of_which_no_row_is_counted_makes_the_rows_unknown() -> None:
    files = [RemovedFile("a", 10, 3), RemovedFile("b", 10, None)]
    with pytest.raises(UnknownRowsError, match="how many rows b had"):
        partitions_of(files, none_deleted, described)


def test_many_files_make_several_partitions_and_too_many_none() -> None:
    files = [RemovedFile(str(number), 1, 2) for number in range(2_500)]
    partitions = partitions_of(files, none_deleted, described)
    assert [(one.rows, len(one.parts)) for one in partitions] == [
        (2_000, 1_000),
        (2_000, 1_000),
        (1_000, 500),
    ]
    with pytest.raises(UnknownRowsError, match="100,000 pieces"):
        partitions_of(files * 41, none_deleted, described)

from __future__ import annotations

import pytest

from spark_agent.sql.table_formats.iceberg_files import DataFile, Piece, files_of_tasks, parts_of, pieces_of

WRITE = "9eae2a64-6e23-42f3-8c0e-b08d4ae2b84a"


def name(split: int, counter: int, attempt: int = 7, write: str = WRITE, folder: str = "/t/data") -> str:
    return f"{folder}/{split:05d}-{attempt}-{write}-0-{counter:05d}.parquet"


def file(counter: int, rows: int, partition: str = "", split: int = 0) -> DataFile:
    return DataFile(name(split, counter), rows, 10, partition)


def test_files_are_those_of_their_tasks_in_the_order_of_their_counters() -> None:
    ours = [file(2, 1), file(1, 5), file(1, 3, split=4)]
    others = [
        DataFile(name(0, 9, write=WRITE.replace("9", "8")), 1, 10),
        DataFile(name(0, 9).replace(".parquet", "-deletes.parquet"), 1, 10),
    ]
    assert files_of_tasks([*others, *ours], WRITE) == {0: [ours[1], ours[0]], 4: [ours[2]]}


def test_files_without_an_epoch_in_their_names_are_found_too() -> None:
    of_deltas = DataFile(f"/t/00003-5-{WRITE}-00001.parquet", 1, 10)
    assert files_of_tasks([of_deltas], WRITE) == {3: [of_deltas]}


def test_a_task_of_several_attempts_is_not_known() -> None:
    files = [DataFile(name(0, 1), 1, 10), DataFile(name(0, 1, attempt=8), 1, 10)]
    assert files_of_tasks(files, WRITE) == {}


def test_a_full_file_is_followed_by_another_one() -> None:
    files = [file(1, 3), file(2, 2)]
    assert pieces_of(5, [(0, 0)], files) == [(0, files[0], 0), (3, files[1], 0)]


def test_rows_of_a_partition_go_on_in_its_open_file() -> None:
    files = [file(1, 3, "p=1"), file(2, 2, "p=2")]
    assert pieces_of(5, [(0, 0), (2, 1), (4, 0)], files) == [
        (0, files[0], 0),
        (2, files[1], 0),
        (4, files[0], 2),
    ]


def test_a_full_file_may_be_followed_before_the_next_partition_begins() -> None:
    first, second, other = file(1, 2, "p=1"), file(2, 1, "p=1"), file(3, 1, "p=2")
    assert pieces_of(4, [(0, 0), (2, 1), (3, 0)], [first, second, other]) == [
        (0, first, 0),
        (2, other, 0),
        (3, second, 0),
    ]


@pytest.mark.parametrize(
    ("rows", "runs", "files"),
    [
        (3, [(0, 0)], []),  # none
        (3, [(0, 0)], [file(1, 2)]),  # too few rows
        (3, [(0, 0)], [file(1, 4)]),  # too many
        (3, [(0, 0)], [file(1, 3), file(2, 1)]),  # a file too many
        (3, [(0, 0)], [file(1, 2, "p=1"), file(2, 1, "p=2")]),  # of another partition
        (3, [(0, 0), (2, 1)], [file(1, 2, "p=1"), file(2, 1, "p=1")]),  # of the same one
    ],
)
def test_files_that_do_not_fit_are_not_told(
    rows: int, runs: list[tuple[int, int]], files: list[DataFile]
) -> None:
    assert pieces_of(rows, runs, files) is None


def test_more_pieces_than_an_event_holds_are_not_told() -> None:
    files = [file(1, 2000, "p=1"), file(2, 2000, "p=2")]
    assert pieces_of(4000, [(row, row % 2) for row in range(4000)], files) is None


def test_pieces_are_told_with_the_states_of_their_files_and_the_numbers_of_their_rows() -> None:
    numbered = DataFile("/t/a.parquet", 5, 10, row_id=100)
    [part] = parts_of([Piece(4, numbered, 2)], {"/t/a.parquet": {"size": 10, "modified": None}})
    assert part == {
        "path": "/t/a.parquet",
        "size": 10,
        "modified": None,
        "first": 4,
        "row": 2,
        "row_id_first": 102,
    }

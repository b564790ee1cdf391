"""The rows of a task's files, against a writer that is played row by row."""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from spark_agent.sql.files import written_files

PLACES = [("p=a", -1), ("p=a", 0), ("p=b/q=ü", 0), ("p=b/q=ü", 2)]


def report_of(rows: list[tuple[str, int]]) -> dict[str, object]:
    """As the tap reports it: where the place of a row is another than that of the one before."""
    runs, at = [], 0
    for place, same in groupby(rows):
        runs += [at, PLACES.index(place)]
        at += len(list(same))
    return {"of": [list(place) for place in PLACES], "runs": runs}


def played(rows: list[tuple[str, int]], most: int) -> list[tuple[str, written_files.File, int]]:
    """(folder, file, row of it) of each row, where a place has a file open until it is full."""
    states: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0])
    written = []
    for folder, bucket in rows:
        state = states[folder, bucket]
        if most and state[1] == most:
            state[:] = [state[0] + 1, 0]
        written.append((folder, written_files.File(7, bucket, state[0]), state[1]))
        state[1] += 1
    return written


@given(rows=st.lists(st.sampled_from(PLACES), max_size=60), most=st.integers(0, 7))
def test_every_row_is_in_the_piece_that_a_writer_puts_it_into(rows: list[tuple[str, int]], most: int) -> None:
    pieces = written_files.pieces(7, len(rows), report_of(rows), most)
    assert pieces is not None
    ends = [*(piece.first for piece in pieces[1:]), len(rows)]
    assert played(rows, most) == [
        (piece.folder, piece.file, piece.row + row - piece.first)
        for piece, end in zip(pieces, ends, strict=bool(pieces))
        for row in range(piece.first, end)
    ]


@given(rows=st.integers(0, 50), most=st.integers(0, 9))
def test_a_task_of_one_folder_needs_no_places(rows: int, most: int) -> None:
    with_report = written_files.pieces(7, rows, {"of": [["", -1]], "runs": [0, 0] if rows else []}, most)
    assert written_files.pieces(7, rows, None, most) == with_report

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spark_agent.sql.table_formats.iceberg_files import DataFile, pieces_of


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.integers(1, 7), st.integers(1, 20))
def test_each_row_is_where_a_writer_puts_it(codes: list[int], full: int, block: int) -> None:
    """The writer: it begins another file of a partition at once when one is full, and drops empty ones."""
    written: list[list[int]] = []  # rows of each file, by counter
    current: dict[int, int] = {}
    partition_of: dict[int, int] = {}
    for row, code in enumerate(codes):
        if code not in current:
            current[code] = len(written)
            written.append([])
            partition_of[current[code]] = code
        written[current[code]].append(row)
        if len(written[current[code]]) == full:
            current[code] = len(written)
            written.append([])
            partition_of[current[code]] = code
    files = {
        counter: DataFile(f"/t/{counter}.parquet", len(rows), 10, f"p={partition_of[counter]}")
        for counter, rows in enumerate(written)
        if rows
    }
    # The tap sorts the rows of a block by partitions.
    names = {code: at for at, code in enumerate(dict.fromkeys(codes))}
    order = [
        row
        for first in range(0, len(codes), block)
        for row in sorted(range(first, min(first + block, len(codes))), key=lambda row: names[codes[row]])
    ]
    of_records = [names[codes[row]] for row in order]
    runs = [(at, code) for at, code in enumerate(of_records) if not at or of_records[at - 1] != code]
    pieces = pieces_of(len(codes), runs, list(files.values()))
    assert pieces is not None
    ends = [*(piece.first for piece in pieces[1:]), len(codes)]
    told = {
        order[at]: (piece.file.path, piece.row + at - piece.first)
        for piece, end in zip(pieces, ends, strict=True)
        for at in range(piece.first, end)
    }
    assert told == {
        row: (files[counter].path, at) for counter, rows in enumerate(written) for at, row in enumerate(rows)
    }

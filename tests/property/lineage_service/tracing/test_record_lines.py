"""Which lines are records, against a loop over all lines."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineage_service.tracing.files.file_systems import UnreadableError
from lineage_service.tracing.files.record_lines import RecordLines
from lineage_service.tracing.files.row_index import RowIndex

_LINES = {
    b"": 0,
    b"\t \x00": 0,
    b'{"n":1}': 1,
    b"[": 1,
    b"[1]": 1,
    b'[{"n":1},2]': 1,
    b"[]": 0,
    b' [{"n":1}]': 1,
    b'[{},{"n":1}]': 2,
    b"[{},{},{}]": 3,
    b'[{"n":1}] [{"n":2},{"n":3}]': 1,
}
_lines = st.lists(st.sampled_from([b"", b" ", b"\t \x00", b"a", b"  b", b"\xc2\xa0", b"c" * 9]), max_size=30)


@given(_lines, st.booleans(), st.booleans(), st.lists(st.integers(0, 31), max_size=8), st.integers(1, 9))
def test_lines_and_records_are_found_from_each_other(
    lines: list[bytes], has_header: bool, is_ended: bool, asked: list[int], chunk: int
) -> None:
    data = b"\n".join(lines) + (b"\n" if is_ended and lines else b"")
    # A last line of nothing is none.
    lines = data.split(b"\n")[:-1] if data.endswith(b"\n") or not data else data.split(b"\n")
    records = [at for at, line in enumerate(lines) if line.strip(bytes(range(33)))][has_header:]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "lines"
        path.write_bytes(data)
        found = RecordLines(RowIndex(str(path), chunk_bytes=chunk), has_header=has_header)
        for number in asked:
            assert found.line_of(number) == (records[number] if number < len(records) else None)
            assert list(found.records_of(number)) == ([records.index(number)] if number in records else [])
            assert found.records_before(number) == sum(record < number for record in records)


@given(
    st.lists(st.sampled_from([*_LINES]), max_size=20),
    st.lists(st.integers(0, 40), max_size=8),
    st.integers(1, 9),
)
def test_a_line_that_is_an_array_is_a_record_for_each_object(
    lines: list[bytes], asked: list[int], chunk: int
) -> None:
    records = [at for at, line in enumerate(lines) for _ in range(_LINES[line])]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "lines"
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        index = RowIndex(str(path), chunk_bytes=chunk)
        found = RecordLines(index, has_header=False, has_arrays=True)
        for number in asked:
            assert found.line_of(number) == (records[number] if number < len(records) else None)
            here = [record for record, line in enumerate(records) if line == number]
            assert list(found.records_of(number)) == here
            assert found.records_before(number) == sum(line < number for line in records)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("[" + ",".join(['{"n":12345678}'] * 10_000) + "]", "long JSON array"),
        ("[{'n':1},{'n':2}]", "may be several records"),
    ],
)
def test_records_that_cannot_be_counted_are_not_guessed(line: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text(f'{{"n":1}}\n{line}\n')
    found = RecordLines(RowIndex(str(path)), has_header=False, has_arrays=True)
    assert found.line_of(0) == 0
    with pytest.raises(UnreadableError, match=why):
        found.line_of(1)
    assert RecordLines(RowIndex(str(path)), has_header=False).line_of(1) == 1

"""Which lines are records, against a loop over all lines."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from lineage_service.tracing.record_lines import RecordLines
from lineage_service.tracing.text_files import RowIndex

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
            assert found.record_of(number) == (records.index(number) if number in records else None)
            assert found.records_before(number) == sum(record < number for record in records)

import re
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lineage_service.tracing.text_files import RowIndex, split_rows

pieces = st.lists(
    st.sampled_from([b"a", b"bc", b"\n", b"\r", b"\r\n", b"\r\r", b"\n\n", "é".encode()]), max_size=30
)


def naive(data: bytes) -> list[tuple[int, bytes]]:
    """(offset, row) by one regular expression."""
    rows = []
    for found in re.finditer(rb"([^\r\n]*)(\r\n|\r|\n|\Z)", data):
        if found.group(2) or found.group(1):
            rows.append((found.start(), found.group(1)))
    return rows


@given(pieces, st.integers(1, 9))
def test_rows_and_offsets_are_those_of_a_regular_expression(parts: list[bytes], chunk: int) -> None:
    data = b"".join(parts)
    expected = naive(data)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.txt"
        path.write_bytes(data)
        index = RowIndex(str(path), chunk)
        assert index.count == len(expected)
        for row, (_, text) in enumerate(expected):
            assert index.read(row) == text.decode()
        assert index.read(len(expected)) is None
        some = range(0, len(expected) + 3, 2)
        assert index.read_many(some) == {
            row: expected[row][1].decode() for row in some if row < len(expected)
        }
        for offset in range(len(data) + 2):
            assert index.rows_starting_up_to(offset) == sum(start <= offset for start, _ in expected)
        with path.open("rb") as file:
            assert list(split_rows(file, chunk)) == [text.decode() for _, text in expected]

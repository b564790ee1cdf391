import tempfile
from pathlib import Path
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from lineage_service.tracing.files import row_index
from lineage_service.tracing.files.row_index import RowIndex
from tests.support.lines import naive

pieces = st.lists(
    st.sampled_from([b"a", b"bc", b"\n", b"\r", b"\r\n", b"\r\r", b"\n\n", "é".encode()]), max_size=30
)


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


rows_of_lengths = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 3, 50, 511, 1022, 1023, 1024, 2500]), st.sampled_from(["\n", "\r", "\r\n"])
    ),
    max_size=40,
)


@given(rows_of_lengths, st.sampled_from([1 << 10, 3_000, 1 << 16]), st.booleans())
def test_rows_are_found_from_those_that_were_counted_by_steps(
    rows: list[tuple[int, str]], chunk: int, has_cr: bool
) -> None:
    data = "".join(f"{'x' * length}{end if has_cr else chr(10)}" for length, end in rows).encode()
    expected = naive(data)
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(row_index, "_SPACING", 1 << 10):
        path = Path(folder) / "rows.txt"
        path.write_bytes(data)
        index = RowIndex(str(path), chunk)
        assert index.count == len(expected)
        for row, (offset, text) in enumerate(expected):
            assert index.offset_of(row) == offset
            assert index.read(row) == text.decode()


def test_a_text_is_looked_for_in_the_encoding_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "towns"
    path.write_bytes("Bonn\nKöln\n".encode("latin-1"))
    rows = RowIndex(str(path)).matching("KÖLN", 0, 2, encoding="latin-1")
    assert [row for row, is_match in rows if is_match] == [1]

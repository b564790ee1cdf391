from __future__ import annotations

import io
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.serializers import CPickleSerializer, UTF8Deserializer

from spark_agent.worker.text_reader import TextRows, in_place_of

END, NULL, END_OF_STREAM = -1, -5, -4


def written(rows: list[bytes | None], *, ends: bool = True) -> bytes:
    """What the JVM writes for these rows, and the mark that a worker reads after them."""
    pieces = [struct.pack("!i", NULL) if row is None else struct.pack("!i", len(row)) + row for row in rows]
    return b"".join(pieces) + (struct.pack("!ii", END, END_OF_STREAM) if ends else b"")


def stream_of(data: bytes, buffer_size: int) -> io.BufferedReader:
    return io.BufferedReader(io.BytesIO(data), buffer_size)  # type: ignore[arg-type] # as good as a raw one


def outcome(reader: Any, data: bytes, buffer_size: int) -> tuple[list[Any], str, bytes]:
    """(rows, how it ended, what is left in the stream)."""
    stream, rows, ended = stream_of(data, buffer_size), [], "at the end"
    try:
        for row in reader.load_stream(stream):
            rows.append(row)
    except UnicodeDecodeError as error:
        ended = f"{error}"
    return rows, ended, stream.read()


ROWS = st.lists(
    st.one_of(st.none(), st.text(max_size=40).map(lambda text: text.encode()), st.binary(max_size=9))
)


@given(rows=ROWS, buffer_size=st.integers(1, 64), ends=st.booleans())
def test_rows_errors_and_the_rest_of_the_stream_are_those_of_pyspark(
    rows: list[bytes | None], buffer_size: int, ends: bool
) -> None:
    data, stock = written(rows, ends=ends), UTF8Deserializer(True)
    assert outcome(TextRows(stock), data, buffer_size) == outcome(stock, data, buffer_size)


@given(rows=ROWS, cut=st.integers(1, 12))
def test_a_stream_that_breaks_off_ends_as_with_pyspark(rows: list[bytes | None], cut: int) -> None:
    data, stock = written(rows)[:-cut], UTF8Deserializer(True)
    assert outcome(TextRows(stock), data, 16) == outcome(stock, data, 16)


def test_a_row_longer_than_the_buffer_is_read_whole() -> None:
    rows = [b"a" * 100_000, b"b", b"", b"c" * 70_000]
    assert [
        row.encode() for row in TextRows(UTF8Deserializer()).load_stream(stream_of(written(rows), 65_536))
    ] == rows


def test_bytes_and_streams_that_cannot_be_looked_into_are_left_to_pyspark() -> None:
    data = written([b"a", b"b"])
    assert list(TextRows(UTF8Deserializer(False)).load_stream(stream_of(data, 64))) == [b"a", b"b"]
    assert list(TextRows(UTF8Deserializer(True)).load_stream(io.BytesIO(data))) == ["a", "b"]


def test_only_pysparks_own_reader_of_text_is_replaced() -> None:
    class Special(UTF8Deserializer):  # type: ignore[misc] # PySpark's is not typed
        pass

    for other in (CPickleSerializer(), Special()):
        assert in_place_of(other) is other
    assert isinstance(in_place_of(UTF8Deserializer()), TextRows)


def test_rows_are_decoded_only_when_they_are_asked_for() -> None:
    rows = TextRows(UTF8Deserializer()).load_stream(stream_of(written([b"a", b"\xff"]), 64))
    assert next(rows) == "a"
    with pytest.raises(UnicodeDecodeError):
        next(rows)

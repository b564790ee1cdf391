"""Rows of Avro files, which the test writes itself, byte by byte as the specification says."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lineage_service.tracing.files.avro_blocks import read_rows
from lineage_service.tracing.files.decompression import unlimited
from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError

SCHEMA = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["string", "null"]},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 2}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "of", "type": {"type": "map", "values": "double"}},
        {"name": "next", "type": ["null", "Order"]},
    ],
}
SYNC = bytes(range(16))
CODECS: dict[str, Any] = {
    "null": lambda data: data,
    "deflate": lambda data: zlib.compress(data)[2:-4],
    "snappy": lambda data: pa.Codec("snappy").compress(data).to_pybytes() + b"\0\0\0\0",
    "zstandard": lambda data: pa.Codec("zstd").compress(data).to_pybytes(),
}
MANY = 10**31 + 7


def number(value: int) -> bytes:
    bits = value << 1 if value >= 0 else (-value << 1) - 1
    encoded = bytearray()
    while bits > 0x7F:
        encoded.append(bits & 0x7F | 0x80)
        bits >>= 7
    return bytes(encoded) + bytes([bits])


def text(value: str) -> bytes:
    return number(len(value.encode())) + value.encode()


def order(at: int, *, has_next: bool = True) -> bytes:
    name = number(1) if at % 3 == 0 else number(0) + text(f"é {at}")
    price = (MANY * 100 + at).to_bytes(16, "big", signed=True)
    parts = [
        *(number(at), name, number(len(price)), price, number(-at), number(at * 1_000_001)),
        *(number(2), text("a"), text("b"), number(-1), number(2), text("c"), number(0)),
        *(number(1), text("x"), struct.pack("<d", at / 8), number(0)),
        number(1) + order(at + 1000, has_next=False) if has_next else number(0),
    ]
    return b"".join(parts)


def values(at: int, *, has_next: bool = True) -> dict[str, Any]:
    return {
        "id": at,
        "name": None if at % 3 == 0 else f"é {at}",
        "price": Decimal(f"{MANY * 100 + at}E-2"),
        "day": date.fromordinal(date(1970, 1, 1).toordinal() - at),
        "at": datetime(1970, 1, 1, 0, 0, 0, tzinfo=timezone.utc) + timedelta(microseconds=at * 1_000_001),
        "tags": ["a", "b", "c"],
        "of": {"x": at / 8},
        "next": values(at + 1000, has_next=False) if has_next else None,
    }


def write(path: Path, blocks: Sequence[Sequence[int]], codec: str = "null") -> None:
    meta = {"avro.schema": json.dumps(SCHEMA).encode(), "avro.codec": codec.encode()}
    head = number(len(meta)) + b"".join(
        text(name) + number(len(value)) + value for name, value in meta.items()
    )
    content = b"Obj\x01" + head + number(0) + SYNC
    for block in blocks:
        data = CODECS[codec](b"".join(map(order, block)))
        content += number(len(block)) + number(len(data)) + data + SYNC
    path.write_bytes(content)


def read(path: Path, rows: Sequence[int]) -> dict[int, tuple[dict[str, Any], dict[str, str]]]:
    return read_rows(FileSystems(), str(path), rows, unlimited, lambda row, types: (row, dict(types)))


@pytest.mark.parametrize("codec", CODECS)
def test_rows_have_their_numbers_whatever_block_they_are_in(tmp_path: Path, codec: str) -> None:
    write(tmp_path / "orders.avro", [range(5), range(5, 6), [], range(6, 40)], codec)
    rows = read(tmp_path / "orders.avro", [0, 4, 5, 6, 39, 40])
    assert {row: read_values for row, (read_values, _) in rows.items()} == {
        row: values(row) for row in (0, 4, 5, 6, 39)
    }


def test_columns_have_types_by_the_names_of_spark(tmp_path: Path) -> None:
    write(tmp_path / "orders.avro", [range(2)])
    [(_, types)] = read(tmp_path / "orders.avro", [1]).values()
    named = {"id": "bigint", "name": "string", "price": "decimal(40,2)", "day": "date", "at": "timestamp"}
    assert {name: types[name] for name in named} == named


@pytest.mark.parametrize("end", [3, 30, -1, -40])
def test_a_file_that_was_cut_is_said_to_be_damaged(tmp_path: Path, end: int) -> None:
    path = tmp_path / "orders.avro"
    write(path, [range(20), range(20, 40)])
    path.write_bytes(path.read_bytes()[:end])
    with pytest.raises(UnreadableError, match="cannot be read as Avro"):
        read(path, [39])


def test_a_byte_that_was_changed_ends_in_no_other_error(tmp_path: Path) -> None:
    path = tmp_path / "orders.avro"
    write(path, [range(20)], "deflate")
    content = path.read_bytes()
    for at in range(0, len(content), 3):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
        try:
            read(path, [0, 19])
        except UnreadableError:
            continue

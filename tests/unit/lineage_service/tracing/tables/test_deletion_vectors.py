"""Deletion vectors of Iceberg, as another library writes their bitmaps; which deletes are of which file."""

from __future__ import annotations

import random
import struct
import zlib
from pathlib import Path

import pytest
from pyroaring import BitMap64

from lineage_service.tracing.files.decompression import unlimited
from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError
from lineage_service.tracing.tables.deletion_vectors import rows_of_vector
from lineage_service.tracing.tables.iceberg_deletes import PositionDeletes
from lineage_service.tracing.tables.iceberg_manifests import DATA, POSITION_DELETES, ManifestFile


def blob(bitmap: bytes) -> bytes:
    checked = b"\xd1\xd3\x39\x64" + bitmap
    return struct.pack(">I", len(checked)) + checked + struct.pack(">I", zlib.crc32(checked))


def vector(rows: object, *, has_runs: bool = False) -> bytes:
    bitmap = BitMap64(rows)
    if has_runs:
        bitmap.run_optimize()
    return blob(bitmap.serialize())


some = random.Random(7).sample


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [0],
        [3, 7, 8, 65_535, 65_536, 2**32 - 1, 2**32, 2**40 + 5],
        range(100_000),
        [*range(10, 5_000), *range(70_000, 70_010), 400_000],
        some(range(200_000), 60_000),
        [number << 16 for number in range(10)],
    ],
    ids=["none", "one", "far apart", "all", "runs", "many", "containers"],
)
@pytest.mark.parametrize("has_runs", [False, True])
def test_the_rows_are_those_that_were_written(rows: list[int], has_runs: bool) -> None:
    assert rows_of_vector(vector(rows, has_runs=has_runs)).tolist() == sorted(rows)


def test_a_damaged_vector_is_none() -> None:
    data = vector([1, 2, 3])
    broken = [b"", data[:-1], b"\0" * len(data), data[:20] + b"\1" + data[21:], blob(b"\1"), blob(b"\1" * 40)]
    for piece in broken:
        with pytest.raises(ValueError, match="deletion vector"):
            rows_of_vector(piece)


def data_file(path: str, sequence: int, *partition: object, spec: int = 0) -> ManifestFile:
    return ManifestFile(DATA, path, "parquet", 10, sequence, spec, partition, (), ())


def test_a_vector_is_of_one_file_and_takes_the_place_of_other_deletes(tmp_path: Path) -> None:
    path, piece = tmp_path / "deletes.puffin", vector([2, 5])
    path.write_bytes(b"PFA1" + piece)

    def deletes(referenced: str, sequence: int) -> ManifestFile:
        place = {"referenced": referenced, "offset": 4, "size": len(piece)}
        return ManifestFile(
            POSITION_DELETES,
            str(path),
            "puffin",
            2,
            sequence,
            0,
            (),
            (),
            (),
            None,
            **place,  # type: ignore[arg-type]
        )

    gone = ManifestFile(POSITION_DELETES, "/gone.parquet", "parquet", 1, 9, 0, (), (), ())
    of = PositionDeletes(FileSystems(), [deletes("/a", 3), deletes("/b", 3), gone])
    assert of.of(data_file("/a", 3), unlimited).tolist() == [2, 5]
    with pytest.raises(UnreadableError, match=r"rows are deleted is not known: /gone\.parquet"):
        of.of(data_file("/a", 4), unlimited)


def test_deletes_are_of_files_of_their_partition_that_are_not_newer() -> None:
    def deletes(sequence: int, *partition: object, spec: int = 0, low: bytes = b"") -> ManifestFile:
        lows = [{"key": 2147483546, "value": low}] if low else []
        return ManifestFile(POSITION_DELETES, "/d", "parquet", 1, sequence, spec, partition, lows, ())

    nan = float("nan")
    every = [
        deletes(2, 1),
        deletes(5, 1),
        deletes(5, 2),
        deletes(5, 1, spec=1),
        deletes(5, nan),
        deletes(6, 1, low=b"/b"),
    ]
    of = PositionDeletes(FileSystems(), every)
    assert of.that_may_be_of(data_file("/a", 3, 1)) == [every[1]]
    assert of.that_may_be_of(data_file("/a", 2, 1)) == every[:2]
    assert of.that_may_be_of(data_file("/c", 6, 1)) == [every[5]]
    assert of.that_may_be_of(data_file("/c", 3, float("nan"))) == [every[4]]

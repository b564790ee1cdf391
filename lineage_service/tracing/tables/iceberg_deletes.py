"""Which rows of data files of an Iceberg table are deleted in a snapshot, by position.

A file with a deletion vector has no other deletes by position. Deletes by equal values are not followed: `of`
says nothing of them. https://iceberg.apache.org/spec/#scan-planning
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from lineage_service.tracing.files.avro_blocks import read_all
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import normal_path
from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError
from lineage_service.tracing.tables.deletion_vectors import rows_of_vector
from lineage_service.tracing.tables.iceberg_manifests import ManifestFile

__all__ = ["PositionDeletes"]

Numbers = npt.NDArray[np.int64]
#: The columns of a file of deletes, by their numbers in Iceberg's specification.
_PATH_ID = 2147483546


class PositionDeletes:
    """Of one snapshot. Each file of deletes is read once."""

    def __init__(self, files: FileSystems, deletes: Iterable[ManifestFile]) -> None:
        self._files = files
        self._vectors: dict[str, list[ManifestFile]] = {}
        self._others: dict[tuple[int, str], list[ManifestFile]] = {}
        self._read: dict[str, dict[str, Numbers]] = {}
        for file in deletes:
            if file.is_vector:
                self._vectors.setdefault(str(file.referenced), []).append(file)
            else:
                self._others.setdefault(_partition(file), []).append(file)

    def that_may_be_of(self, file: ManifestFile) -> list[ManifestFile]:
        """The deletes that may remove rows of a data file."""
        vectors = [vector for vector in self._vectors.get(file.path, ()) if vector.sequence >= file.sequence]
        return vectors or [
            other
            for other in self._others.get(_partition(file), ())
            if other.sequence >= file.sequence
            and other.referenced in (None, file.path)
            and _may_name(other, file.path)
        ]

    def of(self, file: ManifestFile, check: Check) -> Numbers:
        """The numbers of its rows that are deleted, ascending. Raises UnreadableError."""
        deleted = [self._rows(deletes, file.path, check) for deletes in self.that_may_be_of(file)]
        return np.unique(np.concatenate(deleted)) if deleted else np.empty(0, np.int64)

    def _rows(self, deletes: ManifestFile, path: str, check: Check) -> Numbers:
        try:
            return self._vector(deletes) if deletes.is_vector else self._positions(deletes, path, check)
        except UnreadableError as error:
            raise UnreadableError(
                f"which of its rows are deleted is not known: {deletes.path}: {error}"
            ) from None
        except (pa.ArrowException, ValueError, KeyError, TypeError) as error:
            said = " ".join(str(error).split())[:160]
            raise UnreadableError(
                f"which of its rows are deleted is not known: {deletes.path}: {said}"
            ) from None

    def _vector(self, vector: ManifestFile) -> Numbers:
        if vector.offset is None or vector.size is None:
            raise ValueError("a deletion vector without a place")
        with self._files.opened(normal_path(vector.path), at_length=False) as file:
            file.seek(vector.offset)
            return rows_of_vector(file.read(vector.size))

    def _positions(self, deletes: ManifestFile, path: str, check: Check) -> Numbers:
        if deletes.path not in self._read:
            self._read[deletes.path] = self._all_positions(deletes, check)
        return self._read[deletes.path].get(path, np.empty(0, np.int64))

    def _all_positions(self, deletes: ManifestFile, check: Check) -> dict[str, Numbers]:
        path = normal_path(deletes.path)
        if deletes.format == "avro":
            rows = list(read_all(self._files, path, check))
            table = pa.table(
                {name: [row[name] for row in rows] for name in ("file_path", "pos")},
                pa.schema([("file_path", pa.string()), ("pos", pa.int64())]),
            )
        elif deletes.format == "parquet":
            check()
            with self._files.opened(path, at_length=True) as file:
                table = pq.read_table(pa.PythonFile(file, "r"), columns=["file_path", "pos"])
        else:
            raise ValueError(f"files of {deletes.format} are not read")
        names = table.column("file_path").combine_chunks().dictionary_encode()
        codes = names.indices.to_numpy(zero_copy_only=False)
        positions = table.column("pos").to_numpy()
        return {name: positions[codes == code] for code, name in enumerate(names.dictionary.to_pylist())}


def _partition(file: ManifestFile) -> tuple[int, str]:
    """A text, since one NaN is not equal to another."""
    return file.spec, repr(file.partition)


def _may_name(deletes: ManifestFile, path: str) -> bool:
    """Bounds of paths may be cut off, the upper one upwards."""
    low, high = (
        next((bytes(bound["value"]) for bound in bounds if bound["key"] == _PATH_ID), None)
        for bounds in (deletes.lows, deletes.highs)
    )
    name = path.encode()
    return not ((low is not None and name < low) or (high is not None and name > high))

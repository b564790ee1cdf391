"""The data files and the delete files of a snapshot of an Iceberg table, by its manifests.

https://iceberg.apache.org/spec/#manifests. Names of files are as the manifests have them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lineage_service.tracing.files.avro_blocks import read_all
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import normal_path
from lineage_service.tracing.files.file_systems import FileSystems

__all__ = ["DATA", "EQUALITY_DELETES", "POSITION_DELETES", "ManifestFile", "Manifests"]

DATA, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2
_EXISTING, _ADDED, _DELETED = 0, 1, 2


@dataclass(frozen=True, slots=True, eq=False)
class ManifestFile:
    """A file that a manifest lists. `sequence` orders it among the commits.

    `partition` are its values, in the order of the fields of the partitioning `spec`. `referenced`, `offset`
    and `size` are those of a deletion vector: of which data file it is, and where it begins.
    """

    content: int
    path: str
    format: str
    rows: int
    sequence: int
    spec: int
    partition: tuple[Any, ...]
    lows: Sequence[Mapping[str, Any]]
    highs: Sequence[Mapping[str, Any]]
    first_row_id: int | None = None
    referenced: str | None = None
    offset: int | None = None
    size: int | None = None

    @property
    def is_vector(self) -> bool:
        return self.format == "puffin"


class Manifests:
    """Of one query. Each manifest is read once."""

    def __init__(self, files: FileSystems, check: Check) -> None:
        self._files, self._check = files, check
        self._read: dict[str, list[ManifestFile]] = {}

    def files_of(self, manifest_list: str) -> Iterator[ManifestFile]:
        """Those of a snapshot. Raises UnreadableError, KeyError, TypeError, ValueError."""
        if not manifest_list:
            raise ValueError("a snapshot without a list of manifests")
        for manifest in read_all(self._files, normal_path(manifest_list), self._check):
            path = str(manifest["manifest_path"])
            if path not in self._read:
                self._read[path] = list(self._entries(path, manifest))
            yield from self._read[path]

    def _entries(self, path: str, manifest: Mapping[str, Any]) -> Iterator[ManifestFile]:
        row_id = manifest.get("first_row_id")
        for entry in read_all(self._files, normal_path(path), self._check):
            if entry["status"] == _DELETED:
                continue
            said = entry["data_file"]
            sequence = entry.get("sequence_number")
            if sequence is None:
                sequence = manifest.get("sequence_number") or 0
            first_row_id = said.get("first_row_id")
            content = said.get("content") or DATA
            if first_row_id is None and row_id is not None and content == DATA:
                first_row_id, row_id = row_id, row_id + said["record_count"]
            yield ManifestFile(
                content,
                str(said["file_path"]),
                str(said["file_format"]).lower(),
                int(said["record_count"]),
                int(sequence),
                int(manifest["partition_spec_id"]),
                tuple((said.get("partition") or {}).values()),
                said.get("lower_bounds") or (),
                said.get("upper_bounds") or (),
                first_row_id,
                said.get("referenced_data_file"),
                said.get("content_offset"),
                said.get("content_size_in_bytes"),
            )

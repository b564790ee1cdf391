"""The metadata of an Iceberg table as its newest file has it: snapshots, branches, schemas, partitionings.

The file is found in the table's folder. No catalog is asked, so a table whose metadata is elsewhere
(`write.metadata.path`) is not found.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lineage_service.errors import NotFoundError
from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError
from lineage_service.tracing.tables.folder_files import files_in

__all__ = ["IcebergMetadata", "Snapshot", "read_metadata"]

_NAME = re.compile(r"(?:v([0-9]+)|([0-9]+)-[^/]+?)(?:\.gz)?\.metadata\.json(?:\.gz)?")
_GZIP = b"\x1f\x8b"
#: Formats whose metadata can be read.
_NEWEST_FORMAT = 3


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A version of the table. `time` is Unix milliseconds; `schema` None of a table of format 1."""

    id: int
    parent: int | None
    time: int
    sequence: int
    manifests: str
    schema: int | None
    summary: Mapping[str, str]


class IcebergMetadata:
    """Of one file of metadata. `warnings` say what makes it doubtful.

    Raises KeyError, TypeError, ValueError of what is none.
    """

    def __init__(self, content: Mapping[str, Any], warnings: Sequence[str] = ()) -> None:
        self._content, self.warnings = content, tuple(warnings)
        if content["format-version"] > _NEWEST_FORMAT:
            raise ValueError(f"a table of format {content['format-version']}")
        self.snapshots = {
            snapshot.id: snapshot for snapshot in map(_snapshot, content.get("snapshots") or ())
        }
        self.format: int = content["format-version"]
        self.properties: Mapping[str, str] = content.get("properties") or {}
        self.schemas = {
            schema.get("schema-id", 0): schema for schema in content.get("schemas") or [content["schema"]]
        }
        self.current_schema: int = content.get("current-schema-id", 0)
        #: Number of a partitioning -> its fields, in order.
        self.partitionings: Mapping[int, Sequence[Mapping[str, Any]]] = {
            spec["spec-id"]: spec["fields"] for spec in content.get("partition-specs") or ()
        } or {0: content.get("partition-spec") or ()}
        #: Branch or tag -> the snapshot.
        self.refs = {name: int(ref["snapshot-id"]) for name, ref in (content.get("refs") or {}).items()}
        self.branches = [name for name, ref in (content.get("refs") or {}).items() if ref["type"] == "branch"]

    @property
    def newest(self) -> Snapshot | None:
        """None of a table that nobody has written to."""
        return self.snapshots.get(self._content.get("current-snapshot-id") or -1)

    def until(self, at: int) -> Snapshot | None:
        """The one that was the newest then, as Iceberg finds it: by the log of what was the newest."""
        log = self._content.get("snapshot-log") or ()
        ids = [entry["snapshot-id"] for entry in log if entry["timestamp-ms"] <= at]
        return self.snapshots.get(ids[-1]) if ids else None

    def first_time(self) -> int | None:
        """When the first snapshot became the newest of which that is known."""
        return min((entry["timestamp-ms"] for entry in self._content.get("snapshot-log") or ()), default=None)

    def ancestors(self, snapshot: Snapshot) -> Iterator[Snapshot]:
        """It, its parent, and so on, as far as they are not expired."""
        at: Snapshot | None = snapshot
        while at is not None:
            yield at
            at = None if at.parent is None else self.snapshots.get(at.parent)


def _snapshot(said: Mapping[str, Any]) -> Snapshot:
    return Snapshot(
        int(said["snapshot-id"]),
        said.get("parent-snapshot-id"),
        int(said["timestamp-ms"]),
        int(said.get("sequence-number") or 0),
        str(said.get("manifest-list") or ""),
        said.get("schema-id"),
        said.get("summary") or {},
    )


def read_metadata(files: FileSystems, table: str) -> IcebergMetadata:
    """Raises NotFoundError, UnreadableError, and ValueError, KeyError, TypeError of what is damaged."""
    folder = f"{table.rstrip('/')}/metadata"
    try:
        numbers = {
            file.name: int(match[1] or match[2])
            for file in files_in(files, folder)
            if (match := _NAME.fullmatch(file.name)) is not None
        }
    except UnreadableError as error:
        raise _not_there(table, str(error)) from error
    if not numbers:
        raise _not_there(table, f"{folder} has none")
    last = max(numbers.values())
    newest = [_read(files, f"{folder}/{name}") for name, number in numbers.items() if number == last]
    newest.sort(key=lambda content: int(content.get("last-updated-ms") or 0))
    warnings = []
    if len(newest) > 1:
        warnings.append(
            f"{table} has {len(newest)} files of metadata with the number {last}: the one that was changed "
            "last was read, and its catalog may say another one"
        )
    return IcebergMetadata(newest[-1], warnings)


def _not_there(table: str, said: str) -> NotFoundError:
    return NotFoundError(
        f"there is no metadata of an Iceberg table in {table} ({said}): to search the files that one "
        "application wrote, name it"
    )


def _read(files: FileSystems, path: str) -> dict[str, Any]:
    with files.opened(path, at_length=True) as file:
        data = file.read()
    content = json.loads(gzip.decompress(data) if data.startswith(_GZIP) else data)
    if not isinstance(content, dict):
        raise ValueError(f"{path} is no metadata of Iceberg")
    return content

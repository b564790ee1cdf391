"""Is a row of a data file a row of the version of its table that a source has read?

A deletion vector may have deleted it, or the version is without its file. Such a row ended before any
operator.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lineage_service.errors import InvalidQueryError, NotFoundError, UnavailableError
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import normal_path, paths_of
from lineage_service.tracing.files.file_systems import UnreadableError
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.tracing.tables.table_version import TableVersion, VersionAsked
from lineage_service.tracing.tables.table_versions import DELTA, ICEBERG, TableVersions

__all__ = ["Belonging", "RowsOfVersions"]

_UNKNOWN_VERSION = "which version of the table was read is not known"


class Belonging(NamedTuple):
    """`why`: why the row is none of the version. `doubt`: why that is not known. Else both are empty."""

    why: str = ""
    doubt: str = ""


class RowsOfVersions:
    """For one query. What takes a check raises what it raises."""

    def __init__(self, versions: TableVersions, check: Check) -> None:
        self._versions, self._check = versions, check

    def of(self, source: TopologyNode, path: str | None, row: int | None) -> Belonging:
        """Of a row of a file that is in the table of a source. `row` counts from 0."""
        dataset = source.dataset
        if (
            source.kind != "source"
            or dataset is None
            or source.location is None
            or path is None
            or row is None
        ):
            return Belonging()
        format = dataset.format.partition("+")[0]
        if format not in (DELTA, ICEBERG):
            return Belonging()
        number = dataset.version or ""
        if not number.isdigit():
            return Belonging("", f"{_UNKNOWN_VERSION}, nor whether it has the row")
        try:
            version = self._versions.of(source.location, format, self._check, VersionAsked(int(number)))
            return self._of_version(source, version, normal_path(path), row)
        except (NotFoundError, UnavailableError, InvalidQueryError, UnreadableError) as error:
            said = " ".join(str(error).split())
            return Belonging(
                "", f"whether the version that was read, {number}, has the row is not known ({said})"
            )

    def _of_version(self, source: TopologyNode, version: TableVersion, path: str, row: int) -> Belonging:
        if any(file.path == path for file in version.files):
            removed = version.removed(path, self._check)
            at = int(np.searchsorted(removed, row))
            if at == len(removed) or int(removed[at]) != row:
                return Belonging("", "; ".join(version.warnings))
        elif any(normal_path(read) == path for info in source.partitions.values() for read in paths_of(info)):
            return Belonging(
                "", f"{version.name}, which was read, no longer names the file: it is another table now"
            )
        return Belonging(f"{version.name}, which was read, does not have it")

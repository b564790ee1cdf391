"""The files that are in a folder of a table's log or metadata, wherever that is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError, is_local

__all__ = ["ListedFile", "files_in"]


class ListedFile(NamedTuple):
    """`modified` is in Unix milliseconds."""

    name: str
    modified: int


def files_in(files: FileSystems, folder: str) -> Iterator[ListedFile]:
    """In no order. Raises UnreadableError."""
    if is_local(folder):
        try:
            for path in Path(folder).iterdir():
                with suppress(FileNotFoundError):  # of a writer that is at work
                    yield ListedFile(path.name, path.stat().st_mtime_ns // 1_000_000)
        except OSError as error:
            raise UnreadableError(f"{folder} cannot be listed ({error.strerror})") from error
        return
    with files.connected(folder) as (system, place):
        from pyarrow.fs import FileSelector

        for info in system.get_file_info(FileSelector(place)):
            yield ListedFile(info.base_name, (info.mtime_ns or 0) // 1_000_000)

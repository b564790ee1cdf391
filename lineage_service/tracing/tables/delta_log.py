"""The files of a Delta table's log: which there are, and what a commit says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from lineage_service.tracing.files.file_parts import normal_path
from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError, is_local

__all__ = ["LogFile", "commit_path", "data_path", "log_files", "read_commit"]


class LogFile(NamedTuple):
    """`modified` is in Unix milliseconds."""

    name: str
    modified: int


def log_files(files: FileSystems, table: str) -> Iterator[LogFile]:
    """In no order. Raises UnreadableError."""
    folder = _folder(table)
    if is_local(folder):
        try:
            for path in Path(folder).iterdir():
                with suppress(FileNotFoundError):  # of a writer that is at work
                    yield LogFile(path.name, path.stat().st_mtime_ns // 1_000_000)
        except OSError as error:
            raise UnreadableError(f"{folder} cannot be listed ({error.strerror})") from error
        return
    with files.connected(folder) as (system, place):
        from pyarrow.fs import FileSelector

        for info in system.get_file_info(FileSelector(place)):
            yield LogFile(info.base_name, (info.mtime_ns or 0) // 1_000_000)


def commit_path(table: str, version: int) -> str:
    """Of the file of a commit."""
    return f"{_folder(table)}/{version:020d}.json"


def read_commit(files: FileSystems, table: str, version: int) -> dict[str, list[Mapping[str, Any]]]:
    """The actions of a commit, by their kind. Raises UnreadableError, ValueError."""
    with files.opened(commit_path(table, version), at_length=True) as file:
        text = file.read().decode()
    by_kind: dict[str, list[Mapping[str, Any]]] = {}
    for line in text.splitlines():
        if line.strip():
            for kind, content in json.loads(line).items():
                by_kind.setdefault(kind, []).append(content)
    return by_kind


def data_path(table: str, path: str) -> str:
    """Of a data file as the log has it: below the table, but for a shallow clone's."""
    path = unquote(path)
    is_below = "://" not in path and not path.startswith(("/", "file:"))
    return normal_path(f"{table.rstrip('/')}/{path}" if is_below else path)


def _folder(table: str) -> str:
    return f"{table.rstrip('/')}/_delta_log"

"""The files of a Delta table's log: which there are, and what a commit says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from lineage_service.tracing.files.file_parts import normal_path
from lineage_service.tracing.files.file_systems import FileSystems
from lineage_service.tracing.tables.folder_files import ListedFile, files_in

__all__ = ["commit_path", "data_path", "log_files", "read_commit"]


def log_files(files: FileSystems, table: str) -> Iterator[ListedFile]:
    """In no order. Raises UnreadableError."""
    return files_in(files, _folder(table))


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

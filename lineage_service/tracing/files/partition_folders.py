"""Partition columns: what the folders of a file say of its rows, as `origin=EWR` does. Pure."""

from __future__ import annotations

from urllib.parse import unquote

__all__ = ["partition_values", "short_place"]

_NULL = "__HIVE_DEFAULT_PARTITION__"


def partition_values(path: str) -> dict[str, str | None]:
    """Column -> value, of the folders directly above the file that have the form `name=value`."""
    values: dict[str, str | None] = {}
    for folder in _folders(path):
        name, _, value = folder.partition("=")
        values[unquote(name)] = None if value == _NULL else unquote(value)
    return values


def short_place(path: str) -> str:
    """The file below its partition folders: `origin=EWR/part-00000.parquet`."""
    return "/".join((*_folders(path), path.rstrip("/").rpartition("/")[2]))


def _folders(path: str) -> list[str]:
    """The partition folders, the outermost first."""
    folders: list[str] = []
    for folder in reversed(path.rstrip("/").split("/")[:-1]):
        name, sign, _ = folder.partition("=")
        if not (name and sign):
            break
        folders.insert(0, folder)
    return folders

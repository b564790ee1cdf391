"""Partition columns: what the folders of a file say of its rows, as `origin=EWR` does. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from urllib.parse import unquote

__all__ = ["folder_above", "partition_values", "short_place"]

_NULL = "__HIVE_DEFAULT_PARTITION__"


@lru_cache(maxsize=1_024)
def partition_values(path: str) -> Mapping[str, str | None]:
    """Column -> value, of the folders directly above the file that have the form `name=value`."""
    values: dict[str, str | None] = {}
    for folder in _folders(path):
        name, _, value = folder.partition("=")
        values[unquote(name)] = None if value == _NULL else unquote(value)
    return MappingProxyType(values)


def short_place(path: str) -> str:
    """The file below its partition folders: `origin=EWR/part-00000.parquet`."""
    return "/".join((*_folders(path), path.rstrip("/").rpartition("/")[2]))


def folder_above(path: str) -> str:
    """What `short_place` leaves out: the folder that the partition folders are in."""
    return path.rstrip("/")[: -len(short_place(path)) - 1]


def _folders(path: str) -> list[str]:
    """The partition folders, the outermost first."""
    folders: list[str] = []
    for folder in reversed(path.rstrip("/").split("/")[:-1]):
        name, sign, _ = folder.partition("=")
        if not (name and sign):
            break
        folders.insert(0, folder)
    return folders

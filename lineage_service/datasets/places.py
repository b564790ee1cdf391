"""Where datasets are: folders in folders, and patterns of paths. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spark_agent.contract.dataset_names import DatasetName

__all__ = ["folder_of", "has_wildcards", "in_folder", "is_in", "matches", "with_folders", "without_wildcards"]

_WILDCARDS = re.compile(r"[*?\[{]")


def folder_of(place: DatasetName) -> DatasetName | None:
    """The folder that a file or folder is in; None at the top."""
    folder, slash, _ = place.name.rpartition("/")
    return DatasetName(place.namespace, folder) if slash and folder else None


def in_folder(folder: DatasetName, file: str) -> DatasetName:
    """The file of that name in a folder."""
    within = "" if folder.name == "/" else folder.name
    is_key = not folder.name.startswith("/")
    return DatasetName(folder.namespace, f"{within}/{file}" if within or not is_key else file)


def with_folders(place: DatasetName) -> Iterator[DatasetName]:
    """A file or folder, and each folder that it is in, from the inside out."""
    at: DatasetName | None = place
    while at is not None:
        yield at
        at = folder_of(at)


def is_in(place: DatasetName, folder: DatasetName) -> bool:
    """Is it in the folder, or in a folder of it?"""
    return place.namespace == folder.namespace and place.name.startswith(f"{folder.name.rstrip('/')}/")


def has_wildcards(place: DatasetName) -> bool:
    """Is it a pattern of paths?"""
    return bool(_WILDCARDS.search(place.name))


def without_wildcards(pattern: DatasetName) -> DatasetName:
    """The innermost folder that all matches of a pattern are in."""
    name = pattern.name
    while _WILDCARDS.search(name):
        name = name.rpartition("/")[0]
    return DatasetName(pattern.namespace, name or "/")


def matches(pattern: DatasetName, place: DatasetName) -> bool:
    """Does the pattern match it, or a folder that it is in? By Hadoop's rules, but for what is in `{}`."""
    if pattern.namespace != place.namespace:
        return False
    patterns, parts = pattern.name.split("/"), place.name.split("/")
    return len(parts) >= len(patterns) and all(map(_matches, patterns, parts))


def _matches(pattern: str, part: str) -> bool:
    regex = "".join(
        {"*": ".*", "?": ".", "{": "(?:", "}": ")", ",": "|"}.get(character, re.escape(character))
        for character in re.sub(r"\[[^\]]*\]", "?", pattern)
    )
    try:
        return re.fullmatch(regex, part) is not None
    except re.error:  # braces that do not match
        return True

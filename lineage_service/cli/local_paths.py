"""Is what somebody typed the name of a file or folder here? Any text may be asked about."""

from __future__ import annotations

import os.path

__all__ = ["is_file", "is_there"]


def is_there(text: str) -> bool:
    """False of a text that no file can be called, such as a long list of rows."""
    return os.path.exists(text)  # noqa: PTH110 - a Path raises on a name that is too long


def is_file(text: str) -> bool:
    return os.path.isfile(text)  # noqa: PTH113

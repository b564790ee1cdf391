"""What a replay may change: its sandbox, and devices that keep nothing.

Deny by default: whatever is not listed here is somebody's, whether lineage knows of it or not.
"""

from __future__ import annotations

from spark_agent.worker.guard.paths import resolved

__all__ = ["Territory", "is_below"]

_DEVICES = frozenset(
    f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "console")
)


class Territory:
    """Of one replay."""

    def __init__(self, sandbox: str) -> None:
        self.sandbox = resolved(sandbox)

    def has(self, path: str) -> bool:
        """May a resolved path be changed?"""
        if not path.startswith("/") or path in _DEVICES or path.startswith(("/dev/pts/", "/memfd:")):
            return True
        return is_below(path, self.sandbox)


def is_below(path: str, folder: str) -> bool:
    """Is a resolved path this folder, or below it?"""
    return path == folder or path.startswith(folder.rstrip("/") + "/")

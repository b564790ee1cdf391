"""Whether processes of others have ended."""

from __future__ import annotations

from collections.abc import Iterable

import psutil


def still_running(pids: Iterable[int]) -> list[int]:
    """Those that run. One that has ended, and that its parent has not collected yet, does not."""
    return [pid for pid in pids if _runs(pid)]


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False

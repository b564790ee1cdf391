"""Arrow in a process that is asked one thing: imported before anything else that needs Arrow.

Two habits cost such a process more than its answer:
- With its first array, Arrow looks whether pandas is there, and imports it. Here that first look finds none.
  Whoever converts to pandas later makes Arrow look again, and everybody else imports pandas as ever.
- What was freed goes back to the system, and its next use faults each page in again: 260 MB for a million
  rows. Here it stays with the process, until it has its answer.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from types import ModuleType

__all__ = ["release_memory"]

_PANDAS = "pandas"
#: Of `mallopt`: free memory at the end of the heap that is kept, the least that is taken at once, and from
#: which size on memory is taken beside the heap, at most half of one of glibc's.
_TRIM, _PAD, _BESIDE = (-1, 1 << 30), (-2, 1 << 26), (-3, 1 << 25)


class _Absent:
    """A finder by which pandas is not installed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        if name == _PANDAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _look_without_pandas() -> None:
    if _PANDAS in sys.modules:
        return
    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        import pyarrow as pa

        pa.scalar(0)
    finally:
        sys.meta_path.remove(absent)


def release_memory() -> None:
    """What was freed until now goes back to the system."""
    if (release := _of_c("malloc_trim")) is not None:
        release(0)


def _of_c(name: str) -> Callable[..., int] | None:
    """A function of the C library; None: it is not glibc."""
    try:
        function: Callable[..., int] = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):
        return None
    return function


def _keep_memory() -> None:
    keep = _of_c("mallopt")
    if keep is None:
        return
    for option, size in (_TRIM, _PAD, _BESIDE):
        keep(option, size)
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())


_keep_memory()
_look_without_pandas()

"""Arrow without pandas: imported before anything else that needs Arrow, in a process that is asked one thing.

With its first array, Arrow looks whether pandas is there, and imports it: half of the CPU that the start of
such a process takes. Here that first look finds none. Whoever converts to pandas later makes Arrow look
again, and everybody else imports pandas as ever.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

_PANDAS = "pandas"


class _Absent:
    """A finder by which pandas is not installed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        if name == _PANDAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _look_without() -> None:
    if _PANDAS in sys.modules:
        return
    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        import pyarrow as pa

        pa.scalar(0)
    finally:
        sys.meta_path.remove(absent)


_look_without()

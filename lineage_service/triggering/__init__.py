"""Triggering: run a job only when its output would change by more than is tolerated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lineage_service.triggering.python_door import decide

__all__ = ["decide"]


def __getattr__(name: str) -> Any:
    """`decide` needs the store's libraries; to import a module of this package needs none."""
    if name == "decide":
        from lineage_service.triggering.python_door import decide

        return decide
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""Triggering: run a job only when its output would change by more than is tolerated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lineage_service.triggering.python_door import decide

__all__ = ["decide"]


def __getattr__(name: str) -> Any:
    """`decide` needs the store's libraries; to import a module of this package needs none."""
    if name == "decide":
        try:
            from lineage_service.triggering.python_door import decide
        except ModuleNotFoundError as error:
            raise ImportError(
                f"lineage_service.triggering.decide needs the module {error.name}: install lineage-master "
                "with its extra, as lineage-master[service]",
                name=error.name,
            ) from None
        return decide
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

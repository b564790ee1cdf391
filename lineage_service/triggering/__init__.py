"""Triggering: run a job only when its output would change by more than is tolerated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lineage_service.triggering.python_door import decide, learn

__all__ = ["decide", "learn"]


def __getattr__(name: str) -> Any:
    """Both need the store's libraries; to import a module of this package needs none."""
    if name in __all__:
        try:
            from lineage_service.triggering import python_door
        except ModuleNotFoundError as error:
            raise ImportError(
                f"lineage_service.triggering.{name} needs the module {error.name}: install lineage-master "
                "with its extra, as lineage-master[service]",
                name=error.name,
            ) from None
        return getattr(python_door, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

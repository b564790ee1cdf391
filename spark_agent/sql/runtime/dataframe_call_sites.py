"""Tells the JVM where the user's program made each DataFrame, so that operators of plans know their lines.

Costs a round trip for each DataFrame, and changes neither its plan nor what Spark says of it. Whatever goes
wrong leaves operators with the line of their action.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spark_agent.delivery.log import logger
from spark_agent.driver.call_sites import call_site
from spark_agent.driver.monkeypatch import frame_class, like

if TYPE_CHECKING:
    from spark_agent.driver.monkeypatch import Patches


def install(patches: Patches, java: Any) -> None:
    """Patch what makes DataFrames; `java` is the agent's class CallSites."""
    frame = frame_class()
    patches.replace(frame, "__init__", _noting(frame.__init__, java.note))


def _noting(original: Callable[..., None], note: Callable[[Any, str], None]) -> Callable[..., None]:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        try:
            if place := call_site():
                note(self._jdf, place)
        except Exception:  # noqa: BLE001 - a line of code is not worth the user's query
            logger.debug("a DataFrame has no place", exc_info=True)

    return like(original, __init__)

"""Tracebacks without the agent's own frames: users read where their code failed, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def hide_agent(error: BaseException) -> None:
    """Take the agent's frames out of the tracebacks of `error` and of what led to it: its user reads them."""
    seen: set[int] = set()
    chained: BaseException | None = error
    while chained is not None and id(chained) not in seen:
        seen.add(id(chained))
        entry, entries = chained.__traceback__, []
        while entry is not None:
            if not entry.tb_frame.f_globals.get("__name__", "").startswith("spark_agent."):
                entries.append(entry)
            entry = entry.tb_next
        for index, entry in enumerate(entries):
            entry.tb_next = entries[index + 1] if index + 1 < len(entries) else None
        chained.__traceback__ = entries[0] if entries else None
        chained = chained.__cause__ or chained.__context__


def hiding(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, of whose errors nobody sees that the agent stands around them."""

    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            hide_agent(error)
            raise

    return called

"""Which operations' values are captured: the filters by name and by call site, decided on the driver."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from spark_agent.delivery.settings import AgentSettings
from spark_agent.driver.nodes import Node

#: A cell of a notebook in a pattern for places.
_CELL = re.compile(r"^(!?)In \[([0-9*?]+)\]")


def filtered_operations(settings: AgentSettings, nodes: Iterable[Node]) -> tuple[int, ...]:
    """The public operations whose values the filters let through. Decided on the driver, once for a chain."""
    return tuple(
        node.number
        for node in nodes
        if node.kind == "operator"
        and node.operation is None
        and _matches(settings.values_nodes, node.name)
        and _matches(
            _cells_literally(settings.values_call_sites), node.call_site, os.path.basename(node.call_site)
        )
    )


def _cells_literally(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """With the brackets of cells as they are: in a pattern `[12]` would be one of these characters."""
    return tuple(_CELL.sub(r"\1In [[]\2]", pattern) for pattern in patterns)


def _matches(patterns: tuple[str, ...], *names: str) -> bool:
    """Some name matches one of the patterns, or there are only those with `!`; and none of these matches."""
    included = [pattern for pattern in patterns if not pattern.startswith("!")] or ["*"]
    excluded = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    return _match(included, names) and not _match(excluded, names)


def _match(patterns: list[str], names: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in names)

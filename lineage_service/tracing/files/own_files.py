"""The files that an application itself wrote before it read them: running it again makes them anew. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from lineage_service.tracing.files.file_parts import normal_path
from lineage_service.tracing.files.partition_states import file_states
from lineage_service.tracing.model.elements import TopologyNode

__all__ = ["own_files"]

States = dict[str, list[tuple[int, Mapping[str, Any]]]]
"""By file: nodes, and the state in which each knows it."""


def own_files(nodes: Mapping[int, TopologyNode], ended: int | None) -> set[str]:
    """Those that were written before each source that read them was made, by their normal paths.

    Nodes are numbered as they came. What a source read is what a sink before it wrote, by all that is known.
    """
    written, read = _states(nodes, "sink", ended), _states(nodes, "source", ended)
    return {
        path
        for path, readers in read.items()
        if all(
            any(sink < source and _may_be_same(left, state) for sink, left in written.get(path, ()))
            for source, state in readers
        )
    }


def _states(nodes: Mapping[int, TopologyNode], kind: str, ended: int | None) -> States:
    states: States = defaultdict(list)
    for number, node in nodes.items():
        if node.kind == kind:
            for path, state in file_states(node, ended):
                states[normal_path(path)].append((number, state))
    return states


def _may_be_same(state: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    pairs = ((state.get(name), other.get(name)) for name in ("size", "modified"))
    return all(one is None or another is None or one == another for one, another in pairs)

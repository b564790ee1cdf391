"""What is known of the files of a partition as they were when the job read or wrote them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lineage_service.tracing.files.file_parts import parts_of, plain_path
from lineage_service.tracing.model.elements import PartitionInfo, TopologyNode

__all__ = ["as_it_was", "file_states", "sizes_of"]


def sizes_of(node: TopologyNode) -> dict[str, int]:
    """The sizes of a source's files by what its partitions say, where the driver could not see the files."""
    sizes: dict[str, int] = {}
    for info in node.partitions.values():
        if node.kind == "source" and info.get("size") is None and info.get("length") is not None:
            path = str(info["path"])
            sizes[path] = max(sizes.get(path, 0), int(info["start"]) + int(info["length"]))
    return sizes


def as_it_was(info: PartitionInfo, sizes: Mapping[str, int], ended: int | None) -> PartitionInfo:
    """With what is known of a file without its state then: its size, and that it was there at the end."""
    if info.get("size") is not None:
        return info
    return {**info, "size": sizes.get(str(info.get("path"))), "ended": ended}


def file_states(node: TopologyNode, ended: int | None) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(path, its `size`, `modified` and `ended` as far as they are known) of the files of a node.

    Of a file of several partitions several times, in the order of these.
    """
    sizes = sizes_of(node)
    for _, info in sorted(node.partitions.items()):
        if "files" in info:
            for file in info["files"]:
                yield plain_path(str(file["path"])), {"ended": ended, **file}
            continue
        state = as_it_was(info, sizes, ended)
        parts = parts_of(node, state)
        for part in parts:
            yield part.path, part.as_partition(ended if part.size is None else None)
        if not parts and "path" in state:
            yield plain_path(str(state["path"])), state

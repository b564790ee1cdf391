"""What to say of a file that no source or sink of an application has: why, and what to ask instead. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from lineage_service.errors import InvalidQueryError, NotFoundError
from lineage_service.tracing.files.file_parts import normal_path, paths_of
from lineage_service.tracing.files.path_patterns import PathPattern
from lineage_service.tracing.model.elements import TopologyNode, is_below
from lineage_service.tracing.model.topology import Topology
from spark_agent import contract

__all__ = ["only_file_below"]


def only_file_below(topology: Topology, path: str) -> str:
    """The one file of the application in a folder, or that fits a glob.

    Raises NotFoundError, InvalidQueryError where there is none, or several.
    """
    pattern = PathPattern(path)
    if why := _not_captured(topology, pattern.path):
        raise NotFoundError(f"{pattern.path}: its records are not known. {why}")
    every = _files(topology)
    fitting = [file for file in every if pattern.fits(file)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        what = "fits" if pattern.is_glob else "is a folder with"
        raise InvalidQueryError(
            f"{pattern.path} {what} {len(fitting):,} files: name one of them, or a condition (where): "
            f"{_named(fitting)}"
        )
    has = _without_files(topology, pattern.path) or (f"; it has {_named(every)}" if every else "")
    raise NotFoundError(f"no source or sink of this application has the file {pattern.path}{has}")


def _files(topology: Topology) -> list[str]:
    """The files of sources and sinks, in order."""
    return sorted(
        {
            normal_path(path)
            for node in topology.nodes.values()
            for info in node.partitions.values()
            for path in paths_of(info)
        }
    )


def _named(files: Sequence[str]) -> str:
    more = f" and {len(files) - _LISTED:,} more" if len(files) > _LISTED else ""
    return ", ".join(files[:_LISTED]) + more


#: So many files are named in a message.
_LISTED = 3


def _not_captured(topology: Topology, path: str) -> str:
    """Why the records of a file are not known to an operation that read it or wrote it; "" if all are.

    Who wrote it last says so before who read it.
    """
    nodes = [
        node
        for node in topology.nodes.values()
        if node.relation == contract.CARRIED and not node.exact and _has_place(node, path)
    ]
    last = max(nodes, key=lambda node: (node.kind == "sink", node.number), default=None)
    return "" if last is None else last.reason


def _without_files(topology: Topology, path: str) -> str:
    """What to ask instead where operations have records below a folder, in files that are not known."""
    nodes = [
        f"{node.number} ({node.name})"
        for node in topology.nodes.values()
        if node.relation != contract.CARRIED and _has_place(node, path) and not _has_files(node)
    ]
    if not nodes:
        return ""
    return (
        f"; records of node {', '.join(nodes)} are there, but which file holds which is not known: "
        "give node, partition and offset"
    )


def _has_files(node: TopologyNode) -> bool:
    return any(True for info in node.partitions.values() for _ in paths_of(info))


def _has_place(node: TopologyNode, path: str) -> bool:
    """Is a file, or a folder, below what a node read or wrote?"""
    return node.location is not None and is_below(path, node.location)

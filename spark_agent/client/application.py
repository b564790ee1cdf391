"""An application as its graph shows it: its operations, what leads from one to the next, and their files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from spark_agent.client.http import ApiClient, TraceError
from spark_agent.contract.dataset_names import location_of, one_path
from spark_agent.contract.whole_groups import Operation
from spark_agent.sql.rerun.rerun import NOT_CAPTURED

_OF_NODES = ("node_id", "kind", "name", "description", "call_site", "exact")


@dataclass(frozen=True)
class Application:
    """What the API answers for `id`."""

    client: ApiClient
    id: str
    nodes: Mapping[str, Mapping[str, Any]]  # by node id
    edges: list[Mapping[str, Any]]

    @classmethod
    def load(cls, client: ApiClient, application_id: str) -> Application:
        graph = client.get("applications", application_id, "graph")
        return cls(client, application_id, {node["node_id"]: node for node in graph["nodes"]}, graph["edges"])

    def nodes_at(self, path: str) -> frozenset[str]:
        """The sinks that write to `path`, else the sources that read it.

        Raises TraceError where records that stand there were not captured.
        """
        holders = [node for node in self.nodes.values() if path in _paths(node)]
        is_written = any(node["kind"] == "sink" and not _is_uncaptured(node) for node in holders)
        for node in () if is_written else filter(_is_uncaptured, self.nodes.values()):
            if any(f"{path}/".startswith(f"{folder}/") for folder in _paths(node)):
                raise TraceError(f"{path}: {node['reason']}")
        sinks = frozenset(node["node_id"] for node in holders if node["kind"] == "sink")
        return sinks or frozenset(node["node_id"] for node in holders)

    def node_of_file(self, path: str) -> str:
        """The operation whose records are the rows of the file."""
        pages = self.client.trace(self.id, direction="backward", path=path, row=0, depth=1, limit=1)
        return str(next(pages)["start_node"])

    def neighbours(self, node_ids: frozenset[str], direction: str, steps: int = 1) -> frozenset[str]:
        """The operations steps before (`backward`) or after them (`forward`). Those at an end stay."""
        near, far = ("target", "source") if direction == "backward" else ("source", "target")
        for _ in range(steps):
            further: set[str] = set()
            for node_id in node_ids:
                further |= {edge[far] for edge in self.edges if edge[near] == node_id} or {node_id}
            if further == node_ids:
                break
            node_ids = frozenset(further)
        return node_ids

    def all_before(self, node_ids: frozenset[str]) -> frozenset[str]:
        """These operations, and all that lead to them."""
        seen, new = set(node_ids), set(node_ids)
        while new:
            new = {edge["source"] for edge in self.edges if edge["target"] in new} - seen
            seen |= new
        return frozenset(seen)

    def way_to(self, node_id: str) -> list[str]:
        """An operation and all that lead to it, in the order in which the program made them."""
        before = self.all_before(frozenset({node_id}))
        return sorted(before, key=lambda one: int(one.rpartition("#")[2]))

    def operations_to(self, node_id: str) -> list[Operation]:
        """The same with what is known of them."""
        parents: dict[str, list[str]] = {}
        for edge in self.edges:
            parents.setdefault(edge["target"], []).append(edge["source"])
        return [
            Operation(
                **{name: self.nodes[one][name] for name in _OF_NODES}, parents=tuple(parents.get(one, ()))
            )
            for one in self.way_to(node_id)
        ]


def normal_path(path: str) -> str:
    """A local path, absolute and without `file:`; other URIs by one name."""
    local = re.match("file:(?://[^/]*)?", path)
    if local is not None:  # no name ends at its # or ?
        path = unquote(path[local.end() :])
    elif "://" in path:
        return one_path(path).rstrip("/")
    return os.path.abspath(path)


def _paths(node: Mapping[str, Any]) -> set[str]:
    """The paths by which a source or sink can be named."""
    if node["kind"] == "operator":
        return set()
    dataset = node["dataset"]
    texts = [node["description"], location_of(dataset) if dataset else ""]
    return {normal_path(text) for text in texts if text}


def _is_uncaptured(node: Mapping[str, Any]) -> bool:
    """An input or output of the level lazy. Those that ran again are not all that there were."""
    return str(node["reason"]).startswith(NOT_CAPTURED)

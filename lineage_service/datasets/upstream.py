"""What stands before the operations of one application. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from spark_agent import contract

__all__ = ["Upstream"]

Event = Mapping[str, Any]


class Upstream:
    """The operations by who reads whom. `nodes` are registrations, by their numbers."""

    def __init__(self, nodes: Mapping[int, Event], links: Iterable[Event]) -> None:
        """`links` are those of nodes, and of values that an action returned to the program."""
        self._nodes = nodes
        ports: dict[int, dict[int, int]] = defaultdict(dict)
        self._before: dict[int, set[int]] = defaultdict(set)
        for link in links:
            self._before[link["target"]].add(link["source"])
            if link["type"] == contract.LINK and not link.get("ids"):
                ports[link["target"]][link["port"]] = link["source"]
        #: Node -> the nodes that it reads, by port.
        self.parents = {node: [by_port[port] for port in sorted(by_port)] for node, by_port in ports.items()}

    def sources(self, node: int) -> dict[int, bool]:
        """The sources before a node, each with whether it is certain that rows came from there.

        Rows of a list that the program made may have come from what an action had given it.
        """
        certain = self.behind({node})
        sources = {number: True for number in certain if self._nodes[number]["kind"] == "source"}
        lists = [number for number in sources if self._is_in_memory(number)]
        if lists:
            earlier = {action for action in self._collecting_actions() if action < max(lists)}
            for number in self.behind(earlier):
                if self._nodes[number]["kind"] == "source":
                    sources.setdefault(number, False)
        return sources

    def behind(self, nodes: Iterable[int]) -> set[int]:
        """These and all before them, of those that are registered."""
        reached: set[int] = set()
        stack = list(nodes)
        while stack:
            number = stack.pop()
            if number in self._nodes and number not in reached:
                reached.add(number)
                stack.extend(self._before.get(number, ()))
        return reached

    def _is_in_memory(self, number: int) -> bool:
        node = self._nodes[number]
        return not node.get("dataset") and node["relation"] != contract.CARRIED

    def _collecting_actions(self) -> list[int]:
        """Those that write nowhere: what they return is in the memory of the program."""
        return [
            number
            for number, node in self._nodes.items()
            if node["kind"] == "sink" and not node.get("dataset")
        ]

"""How many rows a source or a sink has, by commit manifests alone. Pure.

None where only flows would say it: the catalogue opens no flows. Of several runs of a partition those count
that docs/contract.md says (`Ids`); of an RDD the first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spark_agent import contract

__all__ = ["RowCounts", "is_beside_version"]

Event = Mapping[str, Any]


def is_beside_version(node: Event) -> bool:
    """Are the records of a sink no rows of the version: deleted by a statement, or of a change data feed?"""
    return (node.get("dataset") or {}).get("operation") in ("delete", "change")


class RowCounts:
    """Those of one application."""

    def __init__(self, nodes: Mapping[int, Event], parents: Mapping[int, Sequence[int]]) -> None:
        """`nodes` are registrations, by their numbers."""
        self._nodes, self._parents = nodes, parents
        self._runs: dict[int, dict[int, Event]] = defaultdict(dict)  # node -> runs that say something of it
        self._numbers: set[int] = set()

    def add(self, run: Event) -> None:
        """A committed run; it may come twice."""
        if run["run"] in self._numbers:
            return
        self._numbers.add(run["run"])
        for node in {run["input"], *run["nodes"], run["action"]} - {None}:
            self._runs[node][run["run"]] = run

    def of(self, node: int) -> int | None:
        """None where they are not counted."""
        registered = self._nodes[node]
        if is_beside_version(registered):
            return 0  # no version has these rows
        if registered["relation"] == contract.CARRIED:
            return None
        runs = list(self._runs.get(node, {}).values())
        counts = self._of_ids(node, runs) if registered.get("by_id") else self._of_positions(node, runs)
        if counts is None:
            return None
        limit = registered.get("limit")
        return min(sum(counts), limit) if isinstance(limit, int) else sum(counts)

    def _of_ids(self, node: int, runs: Iterable[Event]) -> list[int]:
        """Of each partition the run with the most rows, of a sink in its latest execution."""
        own = [run for run in runs if run["input"] == node and not run["nodes"]]
        latest = max((run.get("execution", 0) for run in own), default=0)
        is_sink = self._nodes[node]["kind"] == "sink"
        most: dict[int, int] = {}
        for run in own:
            if not is_sink or run.get("execution", 0) == latest:
                most[run["split"]] = max(most.get(run["split"], 0), run["outputs"])
        return list(most.values())

    def _of_positions(self, node: int, runs: Iterable[Event]) -> list[int] | None:
        first: dict[int, int] = {}
        for run in sorted(runs, key=lambda run: int(run["run"])):
            if run["split"] not in first and self._is_of(node, run):
                count = self._count(node, run)
                if count is None:
                    return None
                first[run["split"]] = count
        return list(first.values())

    def _is_of(self, node: int, run: Event) -> bool:
        """Has the run records of the node? One of the jobs of an action may hold none of its own."""
        if node == run["input"] or node in run["nodes"]:
            return True
        parents = self._parents.get(node, ())
        return bool(parents) and parents[0] in (run["input"], *run["nodes"])

    def _count(self, node: int, run: Event) -> int | None:
        if node == run["input"]:
            return int(run["inputs"])
        if node not in run["nodes"]:  # the sink of an action has what it is made of
            return self._count(self._parents[node][0], run)
        counts, overridden = run.get("counts") or {}, run.get("overridden") or ()
        if str(node) in counts:
            return int(counts[str(node)])
        if node in overridden:
            return None
        nodes = run["nodes"]
        at = nodes.index(node)
        if self._keep_count(nodes[at + 1 :], overridden):
            return int(run["outputs"])
        return int(run["inputs"]) if self._keep_count(nodes[: at + 1], overridden) else None

    def _keep_count(self, nodes: Iterable[int], overridden: Iterable[int]) -> bool:
        """Does none of these change how many records there are? What was never registered adds none."""
        return all(
            node not in self._nodes
            or (self._nodes[node]["relation"] == contract.IDENTITY and node not in overridden)
            for node in nodes
        )

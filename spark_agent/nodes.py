"""The lineage graph of one application as the driver builds it: a node for each RDD.

Nodes are numbered from 0 in the order in which RDDs are made. They are published when an action needs
them, so that RDDs which only a library's inner job used (the sample inside sortBy) never appear. A node
holds no RDD: it does not keep one from being collected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from spark_agent import contract


@dataclass(eq=False)
class Node:
    """One RDD. `parents` are in the order of their ports. `describe` gives its partitions after a job."""

    number: int
    name: str
    call_site: str = ""
    description: str = ""
    kind: str = "operator"
    relation: str = contract.DATASET
    exact: bool = True
    reason: str = ""
    operation: int | None = None
    dataset: dict[str, str] | None = None
    parents: list[Node] = field(default_factory=list)
    describe: Callable[[], list[Any]] | None = None
    is_published: bool = False
    is_piped: bool = False  # a Python worker gives its records, so that they have runs and are counted
    is_shuffle: bool = False  # its batches are tagged with the runs that wrote them
    has_sides: bool = False  # its records are pairs (key, (side, value)) of a join
    sides: tuple[int, ...] = ()  # of a cartesian product: the nodes that stand for its two sides

    def event(self) -> dict[str, Any]:
        """The fields of its `node_registered` event."""
        return {
            "node": self.number,
            "name": self.name,
            "description": self.description,
            "kind": self.kind,
            "relation": self.relation,
            "exact": self.exact,
            "reason": self.reason,
            "call_site": self.call_site,
            "operation": self.operation,
            "dataset": self.dataset,
        }

    def ancestry(self) -> Iterator[Node]:
        """This node and all that it comes from, parents before children."""
        done: set[int] = set()
        stack: list[tuple[Node, bool]] = [(self, False)]
        while stack:
            node, are_parents_done = stack.pop()
            if are_parents_done:
                yield node
            elif node.number not in done:
                done.add(node.number)
                stack.append((node, True))
                stack.extend((parent, False) for parent in reversed(node.parents))

    def ends(self, *relations: str) -> Iterator[Node]:
        """Where the records last were in Python or came into Spark: what the JVM did since is passed through.

        With `relations`, only nodes of these are passed through.
        """
        seen, stack = {self.number}, [self]
        while stack:
            node = stack.pop()
            is_passed = not relations or node.relation in relations
            if node.is_piped or node.kind == "source" or not node.parents or not is_passed:
                yield node
                continue
            for parent in node.parents:
                if parent.number not in seen:
                    seen.add(parent.number)
                    stack.append(parent)


@dataclass
class Frame:
    """One call of a public operation by the user; RDDs that are made inside of it are its steps."""

    name: str
    call_site: str
    inputs: list[Node]
    made: list[Node] = field(default_factory=list)
    #: Wraps what a stock operation gives to mapPartitions while it runs (Sort in sortByKey).
    adapter: Callable[[Any], Any] | None = None
    #: The same for mapPartitionsWithIndex (LastRead in sample).
    indexed_adapter: Callable[[Any], Any] | None = None
    #: Set while saveAsTextFile runs: the next RDD is the sink, and its job is about to start.
    sink: Callable[[Node], None] | None = None


def inexact(name: str, relation: str) -> str:
    """Why the answers through an operation that is not captured are bounds."""
    bound = (
        "any record of the same partition" if relation == contract.PARTITION else "any record of its inputs"
    )
    return f"{name} is not captured record by record; an output may come from {bound}"

"""The lineage graph of one application as the driver builds it: a node for each RDD.

Nodes are numbered from 0 in the order in which RDDs are made. They are published when an action needs
them, so that RDDs which only a library's inner job used (the sample inside sortBy) never appear. A node
holds no RDD: it does not keep one from being collected. One that has been published and described holds no
other node either, so a job that goes on for ever costs the driver what is new at each action.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from spark_agent import contract


@dataclass(frozen=True)
class Ends:
    """Where the records of an RDD last were in Python or came into Spark: what holds of all these places."""

    are_counted: bool  # only unions and coalesces since: runs say how many records each split has
    are_plain: bool  # any Python can unpickle the records


_IN_PYTHON = Ends(are_counted=True, are_plain=True)


#: Of a node, what its `node_registered` event has beside the number.
NODE_FIELDS = (
    "name",
    "description",
    "kind",
    "relation",
    "exact",
    "reason",
    "call_site",
    "operation",
    "dataset",
)


def failed(name: str) -> str:
    """Why records of an action that failed are no result of it."""
    return f"{name} failed: these are records of tasks that had ended before"


@dataclass(eq=False)
class Node:
    """One RDD. `parents` are in the order of their ports, and forgotten when they are no longer needed.

    `describe` gives its partitions after a job.
    """

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
    is_published: bool = False  # with all that it comes from
    is_described: bool = False  # with all that it comes from
    is_plain: bool = False  # a source whose records any Python can unpickle
    is_piped: bool = False  # a Python worker gives its records, so that they have runs and are counted
    is_unread: bool = False  # though the worker gives only on what it gets, and need not know the records
    is_shuffle: bool = False  # its batches are tagged with the runs that wrote them
    has_sides: bool = False  # its records are pairs (key, (side, value)) of a join
    is_kept: bool = False  # it was persisted or checkpointed, and the driver has told
    by_id: bool = False  # a DataFrame was made of it, whose rows name its records by ids
    sides: tuple[int, ...] = ()  # of a cartesian product: the nodes that stand for its two sides
    _ends: Ends | None = None  # known once it was asked for

    def event(self) -> dict[str, Any]:
        """The fields of its `node_registered` event."""
        told = {name: getattr(self, name) for name in NODE_FIELDS} | {"node": self.number}
        return told | {"by_id": True} if self.by_id else told

    def ancestry(self, is_done: Callable[[Node], bool]) -> list[Node]:
        """This node and all that it comes from, parents before children, without what is done.

        Nothing above a node that is done is looked at: who says done says it of all that the node comes from.
        """
        found: list[Node] = []
        seen: set[int] = set()
        stack: list[tuple[Node, bool]] = [(self, False)]
        while stack:
            node, are_parents_found = stack.pop()
            if are_parents_found:
                found.append(node)
            elif node.number not in seen and not is_done(node):
                seen.add(node.number)
                stack.append((node, True))
                stack.extend((parent, False) for parent in reversed(node.parents))
        return found

    @property
    def ends(self) -> Ends:
        """What the JVM did since the records were in Python, or came into Spark, is passed through."""
        for node in self.ancestry(
            lambda each: (each.is_piped and not each.is_unread) or each._ends is not None
        ):
            found = node._look_at_parents()
            if node._ends is None:  # else another thread sealed the node: its parents may be gone
                node._ends = found
        return self._ends or _IN_PYTHON

    def _look_at_parents(self) -> Ends:
        """The ends, from those of the parents, which are known."""
        if self.kind == "source" or not self.parents:
            return Ends(are_counted=False, are_plain=self.is_plain)
        ends = [parent._ends or _IN_PYTHON for parent in self.parents]
        return Ends(
            are_counted=self.is_piped
            or (self.relation == contract.STATIC and all(each.are_counted for each in ends)),
            are_plain=all(each.are_plain for each in ends),
        )

    def seal(self) -> Callable[[], list[Any]] | None:
        """Take `describe`, for who will call it. All that the node comes from must have been sealed."""
        describe, self.describe = self.describe, None
        self.is_described = True
        if self.is_published and self.ends:  # which are asked for before the parents go
            self.parents = []
        return describe


def inexact(name: str, relation: str) -> str:
    """Why the answers through an operation that is not captured are bounds."""
    bound = (
        "any record of the same partition" if relation == contract.PARTITION else "any record of its inputs"
    )
    return f"{name} is not captured record by record; an output may come from {bound}"

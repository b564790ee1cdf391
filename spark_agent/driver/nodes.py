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
from spark_agent.driver.sites import Site


@dataclass(frozen=True)
class Origins:
    """Where the records of an RDD last were in Python or came into Spark: what holds of all these places."""

    are_counted: bool  # only unions and coalesces since: task runs say how many records each partition has
    are_plain: bool  # any Python can unpickle the records


_IN_PYTHON = Origins(are_counted=True, are_plain=True)
#: `operation` of an internal node, until its operation says which node it gave.
UNNAMED_OPERATION = -1
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
    dataset: dict[str, Any] | None = None
    parents: list[Node] = field(default_factory=list)
    describe: Callable[[], list[Any]] | None = None
    is_published: bool = False  # with all that it comes from
    is_described: bool = False  # with all that it comes from
    is_plain: bool = False  # a source whose records any Python can unpickle
    is_in_python: bool = False  # a Python worker gives its records, so that they have runs and are counted
    is_passthrough: bool = False  # though the worker hands on what it gets, and need not know the records
    is_shuffle: bool = False  # its batches have headers, which name the runs that wrote them
    has_sides: bool = False  # its records are pairs (key, (side, value)) of a join
    is_persisted: bool = False  # it was persisted or checkpointed, and the event of that was published
    by_id: bool = False  # a DataFrame was made of it, whose rows name its records by ids
    is_left_out: bool = False  # of a replay in the session, which is no part of the job: never published
    sides: tuple[int, ...] = ()  # of a cartesian product: the nodes that stand for its two sides
    site: Site | None = None  # where it was called; of a public one
    digests_left: int = 0  # so many more chains that have its records take digests of them
    _origins: Origins | None = None  # once they were asked for

    # -- what an operation says of its node ----------------------------------------------------------

    def make_source(self, *, is_plain: bool) -> None:
        """Its records come from outside of the application."""
        self.kind, self.relation, self.parents = "source", contract.SOURCE, []
        self.make_exact()
        self.is_plain = is_plain

    def make_sink(self, name: str) -> None:
        """An action of this name gives its records to the outside."""
        self.kind, self.name, self.operation = "sink", name, None

    def make_internal(self, operation: int, name: str) -> None:
        """It is a part of the operation `name`, whose result is the node `operation`."""
        self.kind, self.operation = "step", operation
        self.name = f"{name}: {self.name}"

    def make_public(self, name: str, call_site: str, site: Site | None = None) -> None:
        """It is the result of the operation `name`."""
        self.operation, self.name, self.call_site, self.site = None, name, call_site, site

    def refine(self, name: str, relation: str, parents: list[Node]) -> None:
        """Say what it is exactly made of. An RDD of the JVM begins with an upper bound on its inputs."""
        self.name, self.relation, self.parents = name, relation, parents
        self.make_exact()

    def make_shuffle(self, written: Node) -> None:
        """It reads the batches that `written` leaves to the JVM, with headers."""
        self.refine("shuffle", contract.FLOWS, [written])
        self.is_shuffle = True

    def make_exact(self) -> None:
        """Traces through it name the records that took part, and no others."""
        self.exact, self.reason = True, ""

    def make_inexact(self, reason: str) -> None:
        """Traces through it are upper bounds, for this reason."""
        self.exact, self.reason = False, reason

    # -- what is published ---------------------------------------------------------------------------

    def event(self) -> dict[str, Any]:
        """The fields of its `node_registered` event."""
        fields = {name: getattr(self, name) for name in NODE_FIELDS} | {"node": self.number}
        if self.by_id:
            fields["by_id"] = True
        if self.site is not None:
            fields["site"] = self.site.event_field()
        return fields

    def seal(self) -> Callable[[], list[Any]] | None:
        """Take `describe`, for who will call it. All that the node comes from must have been sealed."""
        describe, self.describe = self.describe, None
        self.is_described = True
        if self.is_published and self.origins:  # which are asked for before the parents go
            self.parents = []
        return describe

    # -- where records come from ---------------------------------------------------------------------

    def ancestry(self, is_done: Callable[[Node], bool]) -> list[Node]:
        """This node and all that it comes from, parents before children, without what is done.

        Nothing above a node that is done is looked at: who says done says it of all that the node comes from.
        """
        ordered: list[Node] = []
        seen: set[int] = set()
        stack: list[tuple[Node, bool]] = [(self, False)]
        while stack:
            node, has_parents_before = stack.pop()
            if has_parents_before:
                ordered.append(node)
            elif node.number not in seen and not is_done(node):
                seen.add(node.number)
                stack.append((node, True))
                stack.extend((parent, False) for parent in reversed(node.parents))
        return ordered

    @property
    def origins(self) -> Origins:
        """What the JVM did since the records were in Python, or came into Spark, is passed through."""
        for node in self.ancestry(Node._has_origins):
            origins = node._origins_from_parents()
            if node._origins is None:  # else another thread sealed the node: its parents may be gone
                node._origins = origins
        return self._origins or _IN_PYTHON

    def _has_origins(self) -> bool:
        return (self.is_in_python and not self.is_passthrough) or self._origins is not None

    def _origins_from_parents(self) -> Origins:
        if self.kind == "source" or not self.parents:
            return Origins(are_counted=False, are_plain=self.is_plain)
        parents = [parent._origins or _IN_PYTHON for parent in self.parents]
        is_static = self.relation == contract.STATIC
        return Origins(
            are_counted=self.is_in_python or (is_static and all(origins.are_counted for origins in parents)),
            are_plain=all(origins.are_plain for origins in parents),
        )


def failure_reason(name: str) -> str:
    """Why records of an action that failed are no result of it."""
    return f"{name} failed: these are records of tasks that had ended before"


def bound_reason(name: str, relation: str) -> str:
    """Why traces through an operation that is not captured are upper bounds."""
    bound = (
        "any record of the same partition" if relation == contract.PARTITION else "any record of its inputs"
    )
    return f"{name} is not captured record by record; an output may come from {bound}"

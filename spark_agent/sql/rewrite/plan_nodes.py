"""The nodes of one rewritten plan: its operators as people see them, and the internal nodes of groups.

Pure. Nodes are numbered from the sources to the output: whoever reads has the larger number. They are
published together once the whole plan is rewritten, so that a plan that could not be leaves none behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from spark_agent import contract
from spark_agent.driver.call_sites import merged_sites
from spark_agent.driver.nodes import NODE_FIELDS
from spark_agent.driver.sites import Site
from spark_agent.sql.schemas import Schema


class UncoveredError(Exception):
    """The plan holds an operator that cannot be followed; the text names it."""


class AnotherPartError(Exception):
    """A part of the plan that seemed equal to an earlier one is another one."""


@dataclass(eq=False)
class PlanNode:
    """One node as its events describe it. `parents` are in the order of their ports."""

    number: int
    name: str
    description: str = ""
    kind: str = "operator"
    relation: str = contract.CARRIED
    exact: bool = True
    reason: str = ""
    call_site: str = ""
    operation: int | None = None
    dataset: dict[str, Any] | None = None
    by_id: bool = False
    limit: int | None = None
    frame: dict[str, int | str | None] | None = None  # of a window
    schema: Schema | None = None  # of a source or sink
    expressions: dict[str, Any] | None = None  # what it computes of a row
    site: Site | None = None  # of what is persisted: where in the program that was asked for
    decided_by: str | None = None  # which rows give the record of a group, see contract.DECISIONS
    is_prefiltered: bool = False  # of a scan: may a condition on a row fail before it is counted
    parents: list[int] = field(default_factory=list)
    id_parents: list[int] = field(default_factory=list)

    def event(self) -> dict[str, Any]:
        """The fields of its `node_registered` event."""
        fields = {name: getattr(self, name) for name in NODE_FIELDS} | {"node": self.number}
        if self.by_id:
            fields["by_id"] = True
        if self.limit is not None:
            fields["limit"] = self.limit
        if self.frame is not None:
            fields["frame"] = self.frame
        if self.expressions is not None:
            fields["expressions"] = self.expressions
        if self.site is not None:
            fields["site"] = self.site.event_field()
        if self.decided_by is not None:
            fields["decided_by"] = self.decided_by
        return fields if self.schema is None else fields | self.schema.event_fields()


def publish(emit: Callable[..., None], nodes: Sequence[PlanNode]) -> None:
    """Publish nodes, and what each comes from."""
    for node in nodes:
        emit(contract.NODE_REGISTERED, **node.event())
        for port, parent in enumerate(node.parents):
            emit(contract.LINK, source=parent, target=node.number, port=port)
        for port, parent in enumerate(node.id_parents):
            emit(contract.LINK, source=parent, target=node.number, port=port, ids=True)


class PlanNodes:
    """The nodes of one plan, in the order of their numbers."""

    def __init__(self, next_number: Callable[[], int], call_site: str) -> None:
        self._next_number = next_number
        self._call_site = call_site
        self.nodes: list[PlanNode] = []
        self.used: list[PlanNode] = []  # in the order in which handlers got them, reused ones again
        self._replay: Iterator[PlanNode] | None = None

    @contextmanager
    def replaying(self, nodes: Sequence[PlanNode]) -> Iterator[None]:
        """Give these nodes, in their order, to who rewrites an equal part of the plan.

        Raises AnotherPartError, inside of it too, where it turns out not to be equal.
        """
        self._replay = iter(nodes)
        try:
            yield
            if next(self._replay, None) is not None:
                raise AnotherPartError
        finally:
            self._replay = None

    @property
    def is_replaying(self) -> bool:
        return self._replay is not None

    def parents(self) -> set[int]:
        """All nodes that some node of the plan reads."""
        return {parent for node in self.nodes for parent in node.parents}

    def operator(
        self, name: str, description: str, parents: list[int], made_at: Sequence[str] = (), **fields: Any
    ) -> PlanNode:
        """One that was made at these lines of the user's program; where none is known, at its action's."""
        if self._replay is not None:
            earlier = next(self._replay, None)
            if earlier is None or (earlier.name, earlier.parents) != (name, parents):
                raise AnotherPartError
            self.used.append(earlier)
            return earlier
        call_site = merged_sites(made_at) or self._call_site
        node = PlanNode(
            self._next_number(), name, description, call_site=call_site, parents=parents, **fields
        )
        self.nodes.append(node)
        self.used.append(node)
        return node

    def group_provenance(
        self, operation: PlanNode, sources: list[int], codes_name: str = "codes"
    ) -> tuple[PlanNode, PlanNode, PlanNode, PlanNode]:
        """The internal nodes of an operation that groups rows by keys: (rows, codes, keys, groups).

        Of a window, the codes are the frames of its rows.
        """

        id_parents = list(dict.fromkeys(sources))
        rows = self._step(operation, "rows", contract.FLOWS, [], by_id=True, id_parents=id_parents)
        codes = self._step(operation, codes_name, contract.FLOWS, [rows.number])
        keys = self._step(operation, "keys", contract.FLOWS, [codes.number])
        return rows, codes, keys, self._step(operation, "groups", contract.KEYED, [keys.number])

    def winners(self, operation: PlanNode, source: int) -> PlanNode:
        """The internal node of the rows that decide groups, by their ids at the node `source`."""
        return self._step(operation, "winners", contract.FLOWS, [], by_id=True, id_parents=[source])

    def _step(
        self, operation: PlanNode, name: str, relation: str, parents: list[int], **fields: Any
    ) -> PlanNode:
        name, fields["made_at"] = f"{operation.name}: {name}", [operation.call_site]
        node = self.operator(name, "", parents, kind="step", relation=relation, **fields)
        node.operation = operation.number
        return node

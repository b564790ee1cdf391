"""The nodes of one rewritten plan: its operators as people see them, and the steps behind those with keys.

Pure. Nodes are numbered from the sources to the output: whoever reads has the larger number. They are told to
the session together once the whole plan is rewritten, so that a plan that could not be leaves none behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from spark_agent import contract
from spark_agent.driver.call_sites import merged_sites
from spark_agent.driver.nodes import NODE_FIELDS


class UncoveredError(Exception):
    """The plan holds an operator that cannot be followed; the text names it."""


class AnotherPartError(Exception):
    """What looked like a part of the plan that had been rewritten before is another one."""


@dataclass(eq=False)
class PlanNode:
    """One node as its events tell it. `parents` are in the order of their ports."""

    number: int
    name: str
    description: str = ""
    kind: str = "operator"
    relation: str = contract.CARRIED
    exact: bool = True
    reason: str = ""
    call_site: str = ""
    operation: int | None = None
    dataset: dict[str, str] | None = None
    by_id: bool = False
    limit: int | None = None
    parents: list[int] = field(default_factory=list)
    id_parents: list[int] = field(default_factory=list)

    def event(self) -> dict[str, Any]:
        """The fields of its `node_registered` event."""
        told = {name: getattr(self, name) for name in NODE_FIELDS} | {"node": self.number}
        if self.by_id:
            told["by_id"] = True
        if self.limit is not None:
            told["limit"] = self.limit
        return told


def publish(emit: Callable[..., None], nodes: Sequence[PlanNode]) -> None:
    """Tell of nodes and of what each comes from."""
    for node in nodes:
        emit(contract.NODE_REGISTERED, **node.event())
        for port, parent in enumerate(node.parents):
            emit(contract.LINK, source=parent, target=node.number, port=port)
        for port, parent in enumerate(node.id_parents):
            emit(contract.LINK, source=parent, target=node.number, port=port, ids=True)


class PlanNodes:
    """The nodes of one plan, in the order in which they were made."""

    def __init__(self, next_number: Callable[[], int], call_site: str) -> None:
        self._next_number = next_number
        self._call_site = call_site
        self.made: list[PlanNode] = []
        self.given: list[PlanNode] = []  # in the order in which they were asked for, some of them again
        self._again: Iterator[PlanNode] | None = None

    @contextmanager
    def again(self, made: Sequence[PlanNode]) -> Iterator[None]:
        """Give these, in their order, to who makes the same part of a plan once more.

        Raises AnotherPartError, inside of it too, where it turns out not to be the same.
        """
        self._again = iter(made)
        try:
            yield
            if next(self._again, None) is not None:
                raise AnotherPartError
        finally:
            self._again = None

    @property
    def is_again(self) -> bool:
        return self._again is not None

    def parents(self) -> set[int]:
        """All nodes that some node of the plan reads."""
        return {parent for node in self.made for parent in node.parents}

    def operator(
        self, name: str, description: str, parents: list[int], made_at: Sequence[str] = (), **fields: Any
    ) -> PlanNode:
        """One that was made at these places of the user's program; where none is known, at its action's."""
        if self._again is not None:
            before = next(self._again, None)
            if before is None or (before.name, before.parents) != (name, parents):
                raise AnotherPartError
            self.given.append(before)
            return before
        call_site = merged_sites(made_at) or self._call_site
        node = PlanNode(
            self._next_number(), name, description, call_site=call_site, parents=parents, **fields
        )
        self.made.append(node)
        self.given.append(node)
        return node

    def keyed(self, operation: PlanNode, sources: list[int]) -> tuple[PlanNode, PlanNode, PlanNode, PlanNode]:
        """The steps of an operation that brings rows together by keys: (rows, codes, keys, groups)."""

        def step(name: str, relation: str, parents: list[int], **fields: Any) -> PlanNode:
            name, fields["made_at"] = f"{operation.name}: {name}", [operation.call_site]
            node = self.operator(name, "", parents, kind="step", relation=relation, **fields)
            node.operation = operation.number
            return node

        rows = step("rows", contract.FLOWS, [], by_id=True, id_parents=list(dict.fromkeys(sources)))
        codes = step("codes", contract.FLOWS, [rows.number])
        keys = step("keys", contract.FLOWS, [codes.number])
        return rows, codes, keys, step("groups", contract.KEYED, [keys.number])

"""What is known of a function that another one calls."""

from __future__ import annotations

from types import CodeType
from typing import NamedTuple, Protocol

from spark_agent.worker.reading.values import Atoms, Need, Path


class Effects(NamedTuple):
    """What calling a function does: what its result depends on, and what it puts something into.

    `parameters`: what it puts into its arguments. `left`: needs of calls in it, that they put nothing into
    theirs. `calls`: all calls in it.
    """

    result: Atoms
    parameters: Atoms
    stored: frozenset[Path]
    required: frozenset[Need]
    left: frozenset[Need]
    calls: frozenset[Need]

    @property
    def is_changing_parameters(self) -> bool:
        return any(not isinstance(atom, Need) for atom in self.parameters)


class InnerFunctions(Protocol):
    """Reads the functions that a function creates."""

    def items_of(self, code: CodeType) -> Atoms:
        """What the outputs of a generator expression over the partition depend on."""

    def effects_of(self, code: CodeType) -> Effects: ...

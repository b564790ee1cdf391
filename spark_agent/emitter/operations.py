"""The operations of a program, and the records of each, as columns that leave now and then.

Knows nothing of hashes and of Kafka.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from spark_agent import contract
from spark_agent.delivery.producer import Delivery
from spark_agent.emitter.collected_inputs import CollectedInputs

#: A message leaves with so many flows, or texts of so many characters.
MESSAGE_FLOWS = 10_000
MESSAGE_CHARACTERS = 100_000


def new_run_number() -> int:
    return int.from_bytes(os.urandom(8), "little") % (contract.MAX_RUN - 1) + 1


@dataclass
class Operation:
    """One operation of the program: a node of the contract. `parent`: the one that it is a step of."""

    number: int
    name: str
    description: str
    path: str | None
    parent: int | None = None
    parents: list[int] = field(default_factory=list)
    runs: dict[int, OperationRun] = field(default_factory=dict)  # by partition
    reads_rows: bool = False  # it has records from outside
    is_redirected: bool = False  # in a replay: `path` is a file of the sandbox
    collected: CollectedInputs[Place] = field(default_factory=CollectedInputs)


class OperationRun:
    """The records of one operation in one partition: a task run of the contract, its position and streams."""

    def __init__(
        self,
        operation: Operation,
        partition: int,
        send: Callable[[OperationRun, str, dict[str, Any]], None],
    ) -> None:
        self.operation = operation
        self.partition = partition
        self.number = new_run_number()
        self.delivery = Delivery()
        self.blocks = 0
        self.records = 0  # all positions are below it
        self._send = send
        self._with_value: set[int] = set()
        self._pairs: tuple[list[int], list[int], list[int]] = ([], [], [])
        self._texts: dict[str, tuple[list[int], list[contract.Text]]] = {
            contract.KEYS: ([], []),
            contract.VALUES: ([], []),
        }
        self._characters = {contract.KEYS: 0, contract.VALUES: 0}

    def add_flow(self, output: int, input_: int, run: int) -> None:
        for column, value in zip(self._pairs, (output, input_, run), strict=True):
            column.append(value)
        if len(self._pairs[0]) >= MESSAGE_FLOWS:
            self._ship_pairs()

    def add_key(self, position: int, key: str) -> None:
        self._add_text(contract.KEYS, position, key)

    def add_value(self, position: int, value: Any) -> None:
        """The first value of a record counts; None is none."""
        if value is not None and position not in self._with_value:
            self._with_value.add(position)
            self._add_text(contract.VALUES, position, value)

    def _add_text(self, relation: str, position: int, value: Any) -> None:
        outputs, texts = self._texts[relation]
        outputs.append(position)
        texts.append(contract.typed_text(value))
        self._characters[relation] += len(texts[-1][1]) + 16
        if self._characters[relation] >= MESSAGE_CHARACTERS:
            self._ship_texts(relation)

    def ship(self) -> None:
        self._ship_pairs()
        for relation in self._texts:
            self._ship_texts(relation)

    def _ship_pairs(self) -> None:
        if self._pairs[0]:
            self._send(self, contract.PAIRS, dict(zip(("out", "in", "run"), self._pairs, strict=True)))
            self._pairs = ([], [], [])

    def _ship_texts(self, relation: str) -> None:
        outputs, texts = self._texts[relation]
        if texts:
            self._send(self, relation, {"out": outputs, "text": texts})
            self._texts[relation], self._characters[relation] = ([], []), 0


Place = tuple[OperationRun, int]
"""A record: the run that has it, and its position there."""

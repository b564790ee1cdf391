"""Runs a function over a partition as a worker does, and gives the sources that the agent names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from types import SimpleNamespace
from typing import Any

from spark_agent import contract
from spark_agent.worker.culprits import Stage
from spark_agent.worker.partition_sources import outputs_of_user
from spark_agent.worker.position_streams import Stream

#: For each output the positions of its sources; None: the whole partition, as an upper bound.
Sources = list[list[int]] | None


class OneRun:
    """As much of a task run as the capture of one function needs."""

    partition = 3
    observer = None

    def __init__(self) -> None:
        self.plan = SimpleNamespace(input_node=0, sides=())
        self.stages = [Stage(1)]
        self.streams: list[Stream] = []
        self.blocks: list[tuple[str, dict[str, Any]]] = []

    def override(self, node: int, relation: str) -> Stream:
        self.streams.append(Stream(self, node, relation))  # type: ignore[arg-type] # all that a stream needs
        return self.streams[-1]

    def withdraw(self, stream: Stream) -> None:
        self.streams.remove(stream)

    def emit(self, _node: int, relation: str, _base_in: int, _base_out: int, columns: dict[str, Any]) -> None:
        self.blocks.append((relation, {name: list(column) for name, column in columns.items()}))

    def sources(self) -> Sources:
        if not self.streams:
            return None
        for stream in self.streams:
            stream.close()
        sources: list[list[int]] = []
        for relation, columns in self.blocks:
            counts = [1] * len(columns["in"]) if relation == contract.POSITIONS else columns["count"]
            inputs = iter(columns["in"])
            sources += [list(islice(inputs, count)) for count in counts]
        return sources


def captured(
    function: Callable[[Any], Iterable[Any]], rows: Iterable[Any], many: int | None = None
) -> tuple[list[Any], Sources]:
    """The outputs of `function` over `rows`, and their sources; with `many`, only so many are asked for."""
    run = OneRun()
    outputs = outputs_of_user(run, 1, lambda _partition, records: function(records), iter(rows))  # type: ignore[arg-type]
    result = list(islice(outputs, many))
    return result, run.sources()

"""Operators that leave the work to PySpark's own function, and know how its outputs relate to its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count, repeat
from typing import TYPE_CHECKING, Any

from spark_agent import contract
from spark_agent.worker.operator import Operator
from spark_agent.worker.position_streams import CHUNK, Counter, Stream, last_read

if TYPE_CHECKING:
    from spark_agent.worker.task_run import TaskRun


class Adapted(Operator):
    """Around an `original`, a function of PySpark's that takes (partition, records)."""

    def __init__(self, original: Callable[[int, Any], Iterable[Any]]) -> None:
        self.original = original

    def __call__(self, partition: int, records: Any) -> Iterable[Any]:
        return self.original(partition, records)


class LastRead(Adapted):
    """A function that gives only what it has just read (a sampler): the positions that it read."""

    node_name = "lastread"

    def capture(self, run: TaskRun, records: Any) -> Iterable[Any]:
        counter = Counter()
        run.stages[-1].pulled = lambda: counter.count
        outputs = self.original(run.partition, counter.through(records))
        return last_read(outputs, counter, run.stream(self.node, contract.POSITIONS))


class Identity(Adapted):
    """A function that gives one output for each input, in order: output k is input k."""

    relation = contract.IDENTITY
    node_name = "known"


class WholePartition(Adapted):
    """A function whose every output is made of its whole partition (glom)."""

    relation = contract.PARTITION
    node_name = "whole"


class WithPosition(Operator):
    """Gives (record, run, position): a driver that keeps some of the records knows which."""

    relation = contract.IDENTITY
    node_name = "tag"

    def __call__(self, partition: int, records: Any) -> Iterator[tuple[Any, int, int]]:
        return zip(records, repeat(0), count(), strict=False)

    def capture(self, run: TaskRun, records: Any) -> Iterator[tuple[Any, int, int]]:
        return zip(records, repeat(run.number), count(), strict=False)


class Order(Operator):
    """Stands behind a merge: output k is input k, unless the merge spilled and gave another order."""

    relation = contract.IDENTITY
    node_name = "order"

    def __call__(self, partition: int, records: Any) -> Any:
        return records


class Sort(Operator):
    """A sort of one partition by `record[0]`, as `original` does it: output k is input in[k].

    The original sorts (key, record, position) in the record's place; it looks at the key only.
    """

    node_name = "sort"

    def __init__(self, original: Callable[[Iterable[Any]], Iterable[Any]]) -> None:
        self.original = original

    def __call__(self, partition: int, records: Any) -> Iterable[Any]:
        return self.original(records)

    def capture(self, run: TaskRun, records: Any) -> Iterable[Any]:
        numbered = self.original((record[0], record, position) for position, record in enumerate(records))
        return self._records(numbered, run.stream(self.node, contract.POSITIONS))

    @staticmethod
    def _records(numbered: Iterable[Any], stream: Stream) -> Iterator[Any]:
        positions = stream.buffers[0]
        for _key, record, position in numbered:
            positions.append(position)
            if len(positions) >= CHUNK:
                stream.flush()
            yield record

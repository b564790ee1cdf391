"""The reduce sides of joins and subtractions while lineage is on: which of a key's records made an output.

Records arrive as (key, (side, value)), side 1 or 2, and are grouped by Spark's own merger, which may spill;
the position of each record travels with its value. The outputs and their order are those of stock PySpark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from spark_agent import capture, contract
from spark_agent.capture import Operator
from spark_agent.operators import Map
from spark_agent.sampling import ON_A_WAY, SIDES
from spark_agent.streams import CHUNK, Stream


class Side(Map):
    """Gives a pair's value its side. Where values are sampled it also says which records are on a chosen way:
    the union of both sides goes through the JVM, which knows of records only."""

    def __init__(self, side: int) -> None:
        super().__init__(lambda pair: (pair[0], (side, pair[1])))
        self.side = side

    def __call__(self, split: int, records: Any) -> Iterator[Any]:
        run, side = capture.current, self.side
        if run is None or run.ways is None:
            return super().__call__(split, records)
        passage = run.ways.reading(self.node)
        marking = Map(lambda pair: (pair[0], (side | ON_A_WAY if passage.last else side, pair[1])))
        marking.node = self.node
        return marking(split, records)


class BySides(Operator):
    """Groups both sides by key; `outputs` makes the outputs of the groups."""

    def __init__(self, aggregator: Any, memory: float, serializer: Any) -> None:
        self.aggregator, self.memory, self.serializer = aggregator, memory, serializer

    def __call__(self, split: int, records: Any) -> Iterator[Any]:
        from pyspark.shuffle import ExternalGroupBy

        run = capture.current
        placed = ((key, (position, side, value)) for position, (key, (side, value)) in enumerate(records))
        if run is None or run.ways is not None:  # then records may be marked
            placed = ((key, (position, side & SIDES, value)) for key, (position, side, value) in placed)
        merger = ExternalGroupBy(self.aggregator, self.memory, self.serializer)
        merger.mergeValues(placed)
        return self.outputs(merger.items(), run)

    def outputs(self, groups: Iterable[Any], run: capture.Run | None) -> Iterator[Any]:
        raise NotImplementedError


class Join(BySides):
    """The joins: each output comes from one record of each side that matched.

    `keep_left` and `keep_right` keep keys without a match on the other side.
    """

    def __init__(
        self, aggregator: Any, memory: float, serializer: Any, keep_left: bool, keep_right: bool
    ) -> None:
        super().__init__(aggregator, memory, serializer)
        self.keep_left, self.keep_right = keep_left, keep_right

    def outputs(self, groups: Iterable[Any], run: capture.Run | None) -> Iterator[Any]:
        stream = run.stream(self.node, contract.GATHER) if run is not None else None
        for key, group in groups:
            left: list[tuple[int, Any]] = []
            right: list[tuple[int, Any]] = []
            for position, side, value in group:
                (left if side == 1 else right).append((position, value))
            if not right and self.keep_left:
                right.append((-1, None))
            if not left and self.keep_right:
                left.append((-1, None))
            for left_position, left_value in left:
                for right_position, right_value in right:
                    if stream is not None:
                        _gather(stream, left_position, right_position)
                    yield key, (left_value, right_value)


def _gather(stream: Stream, left: int, right: int) -> None:
    counts, inputs = stream.buffers
    if left < 0 or right < 0:
        counts.append(1)
        inputs.append(max(left, right))
    else:
        counts.append(2)
        inputs += (left, right)
    if len(counts) >= CHUNK:
        stream.flush()


class Subtract(BySides):
    """subtractByKey: the records of the left side whose key the right side does not have."""

    def outputs(self, groups: Iterable[Any], run: capture.Run | None) -> Iterator[Any]:
        stream = run.stream(self.node, contract.POSITIONS) if run is not None else None
        for key, group in groups:
            kept: list[tuple[int, Any]] = []
            for position, side, value in group:
                if side == 2:
                    break
                kept.append((position, value))
            else:
                for position, value in kept:
                    if stream is not None:
                        stream.buffers[0].append(position)
                        if len(stream.buffers[0]) >= CHUNK:
                            stream.flush()
                    yield key, value

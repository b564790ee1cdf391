"""The reduce sides of joins and subtractions while lineage is on: which of a key's records made an output.

Records arrive as (key, (side, value)), side 1 or 2, and are grouped by Spark's own merger, which may spill;
the position of each record travels with its value. The outputs and their order are those of stock PySpark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
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
    """Groups both sides by key; `outputs` makes the outputs of the groups: (key, [(place, value), ...]).

    A value's place is twice its position among the inputs, and one more on side 2: one number, so that a
    group takes no more memory than stock PySpark's.
    """

    def __init__(self, aggregator: Any, memory: float, serializer: Any) -> None:
        self.aggregator, self.memory, self.serializer = aggregator, memory, serializer

    def __call__(self, split: int, records: Any) -> Iterator[Any]:
        from pyspark.shuffle import ExternalGroupBy

        run = capture.current
        if run is None or run.ways is not None:  # then records may be marked
            records = ((key, (side & SIDES, value)) for key, (side, value) in records)
        before = count(-1, 2)
        placed = (
            (key, (at + side, value)) for at, (key, (side, value)) in zip(before, records, strict=False)
        )
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
        counts, inputs = stream.buffers if stream is not None else ([], [])
        for key, group in groups:
            left: list[tuple[int, Any]] = []
            right: list[tuple[int, Any]] = []
            for place, value in group:
                (right if place & 1 else left).append((place >> 1, value))
            if left and right:
                for left_position, left_value in left:
                    for right_position, right_value in right:
                        counts.append(2)
                        inputs.append(left_position)
                        inputs.append(right_position)
                        yield key, (left_value, right_value)
                        if len(counts) >= CHUNK:
                            _flush(stream, counts, inputs)
            elif (left and self.keep_left) or (right and self.keep_right):
                for position, value in left or right:
                    counts.append(1)
                    inputs.append(position)
                    yield key, (value, None) if left else (None, value)
                    if len(counts) >= CHUNK:
                        _flush(stream, counts, inputs)


def _flush(stream: Stream | None, counts: list[int], inputs: list[int]) -> None:
    if stream is not None:
        stream.flush()
    else:
        counts.clear()
        inputs.clear()


class Subtract(BySides):
    """subtractByKey: the records of the left side whose key the right side does not have."""

    def outputs(self, groups: Iterable[Any], run: capture.Run | None) -> Iterator[Any]:
        stream = run.stream(self.node, contract.POSITIONS) if run is not None else None
        for key, group in groups:
            kept: list[tuple[int, Any]] = []
            for place, value in group:
                if place & 1:
                    break
                kept.append((place, value))
            else:
                for place, value in kept:
                    if stream is not None:
                        stream.buffers[0].append(place >> 1)
                        if len(stream.buffers[0]) >= CHUNK:
                            stream.flush()
                    yield key, value

"""The reduce sides of joins and subtractions while lineage is on: which of a key's records made an output.

Records arrive as (key, (side, value)), side 1 or 2, and are grouped as Spark's own merger would, which goes
on where memory ends; the position of each record travels with its value. The outputs and their order are
those of stock PySpark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator
from itertools import chain, count, islice, product, repeat
from typing import Any

from spark_agent import contract
from spark_agent.worker import task_run
from spark_agent.worker.operator import Operator
from spark_agent.worker.operators.narrow import Map
from spark_agent.worker.position_streams import CHUNK, Stream
from spark_agent.worker.value_sampling import ON_A_WAY, SIDES


class Side(Map):
    """Gives a pair's value its side. Where values are sampled it also says which records are on a chosen way:
    the union of both sides goes through the JVM, which knows of records only."""

    role = ""

    def __init__(self, side: int) -> None:
        super().__init__(lambda pair: (pair[0], (side, pair[1])))
        self.side = side

    def __call__(self, split: int, records: Any) -> Iterator[Any]:
        run, side = task_run.current, self.side
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

        run = task_run.current
        if run is None or run.ways is not None:  # then records may be marked
            records = ((key, (side & SIDES, value)) for key, (side, value) in records)
        merger = ExternalGroupBy(self.aggregator, self.memory, self.serializer)
        _group(merger, records)
        return self.outputs(merger.items(), run)

    def outputs(self, groups: Iterable[Any], run: task_run.Run | None) -> Iterator[Any]:
        raise NotImplementedError


def _group(merger: Any, records: Iterable[Any]) -> None:
    """Bring (key, (side, value)) into the lists of Spark's `merger` as it would itself, each with its place.

    One look-up a record and no call of the aggregator's functions, which are known; once memory ends the
    merger goes on by itself.
    """
    from pyspark.shuffle import get_used_memory

    groups: dict[Any, list[tuple[int, Any]]] = defaultdict(list)
    merger.data = groups
    source = zip(count(-1, 2), records, strict=False)
    ended = object()
    seen, batch = 0, float(merger.batch)  # Spark's rule: look at the memory ever less often
    while True:
        key: Any = ended
        for at, (key, (side, value)) in islice(source, int(batch) - seen):
            groups[key].append((at + side, value))
        if key is ended:
            return
        if get_used_memory() >= merger.memory_limit:
            merger._spill()
            merger.mergeValues((key, (at + side, value)) for at, (key, (side, value)) in source)
            return
        seen, batch = int(batch), batch * 1.5


class Join(BySides):
    """The joins: each output comes from one record of each side that matched.

    `keep_left` and `keep_right` keep keys without a match on the other side.
    """

    def __init__(
        self, aggregator: Any, memory: float, serializer: Any, keep_left: bool, keep_right: bool
    ) -> None:
        super().__init__(aggregator, memory, serializer)
        self.keep_left, self.keep_right = keep_left, keep_right

    def outputs(self, groups: Iterable[Any], run: task_run.Run | None) -> Iterator[Any]:
        stream = run.stream(self.node, contract.GATHER) if run is not None else None
        # Who follows the ways of chosen records asks at each output what it was made of.
        at_once = CHUNK if run is None or run.ways is None else 1
        matched = self._matched(groups, stream, at_once)
        if run is not None:
            run.at_close(matched.close)
        return chain.from_iterable(matched)

    def _matched(
        self, groups: Iterable[Any], stream: Stream | None, at_once: int
    ) -> Generator[Iterable[Any], None, None]:
        """The outputs of each group, at most `at_once` together: no Python for each of them.

        What they are made of is noted before they are pulled, and taken back of those that never are.
        """
        counts, inputs = stream.buffers if stream is not None else ([], [])
        keys, places = repeat(None, 0), 2  # of the outputs that are being pulled
        try:
            for key, group in groups:
                left: list[Any] = []
                right: list[Any] = []
                left_at: list[int] = []
                right_at: list[int] = []
                for place, value in group:
                    if place & 1:
                        right.append(value)
                        right_at.append(place >> 1)
                    else:
                        left.append(value)
                        left_at.append(place >> 1)
                pairs: Iterator[Any]
                made_of: Iterator[int]
                if left and right:
                    places, rest = 2, len(left) * len(right)
                    if rest == 1:  # as often as not: keys that are unique on both sides
                        counts.append(2)
                        inputs += left_at
                        inputs += right_at
                        yield ((key, (left[0], right[0])),)
                        if len(counts) >= CHUNK:
                            _flush(stream, counts, inputs)
                        continue
                    pairs, made_of = product(left, right), chain.from_iterable(product(left_at, right_at))
                elif left and self.keep_left:
                    places, rest = 1, len(left)
                    pairs, made_of = zip(left, repeat(None), strict=False), iter(left_at)
                elif right and self.keep_right:
                    places, rest = 1, len(right)
                    pairs, made_of = zip(repeat(None), right, strict=False), iter(right_at)
                else:
                    continue
                while rest:
                    some = min(rest, at_once)
                    rest -= some
                    counts.extend(repeat(places, some))
                    inputs.extend(islice(made_of, places * some))
                    keys = repeat(key, some)
                    yield zip(keys, pairs, strict=False)  # asks `keys` first, so it takes no pair too many
                    if len(counts) >= CHUNK:
                        _flush(stream, counts, inputs)
        except GeneratorExit:  # a take() had enough
            never = keys.__length_hint__()
            del counts[len(counts) - never :]
            del inputs[len(inputs) - places * never :]
            raise


def _flush(stream: Stream | None, counts: list[int], inputs: list[int]) -> None:
    if stream is not None:
        stream.flush()
    else:
        counts.clear()
        inputs.clear()


class Subtract(BySides):
    """subtractByKey: the records of the left side whose key the right side does not have."""

    def outputs(self, groups: Iterable[Any], run: task_run.Run | None) -> Iterator[Any]:
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

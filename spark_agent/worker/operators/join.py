"""The reduce sides of joins and subtractions while lineage is on: which of a key's records made an output.

Records come as (key, (side, value)), side 1 or 2, and are grouped as Spark's own merger would, which goes on
where memory ends; the position of each record travels with its value. The outputs and their order are
PySpark's own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator
from inspect import getgeneratorlocals
from itertools import chain, count, islice, product, repeat
from typing import TYPE_CHECKING, Any

from spark_agent import contract
from spark_agent.worker.culprits import CulpritNote
from spark_agent.worker.operator import Operator
from spark_agent.worker.operators.narrow import Map
from spark_agent.worker.position_streams import CHUNK, Stream
from spark_agent.worker.sampling_rules import ON_SAMPLED_PATH, SIDES

if TYPE_CHECKING:
    from spark_agent.worker.task_run import TaskRun


class Side(Map):
    """Gives a pair's value its side, and where values are sampled, a mark to the records on a sampled path.

    The union of both sides goes through the JVM, which knows of records only.
    """

    role = ""
    node_name = "side"

    def __init__(self, side: int) -> None:
        super().__init__(lambda pair: (pair[0], (side, pair[1])))
        self.side = side

    def capture(self, run: TaskRun, records: Any) -> Iterator[Any]:
        if run.sampled_paths is None:
            return super().capture(run, records)
        side, inputs = self.side, run.sampled_paths.inputs_of(self.node)
        marking = Map(lambda pair: (pair[0], (side | ON_SAMPLED_PATH if inputs.last else side, pair[1])))
        marking.node = self.node
        return marking.capture(run, records)


class BySides(Operator):
    """Groups both sides by key; `outputs` makes the outputs of the groups: (key, [(place, value), ...]).

    A value's place is twice its position among the inputs, and one more on side 2: one number, so that a
    group takes no more memory than PySpark's own.
    """

    notes_culprits = True

    def __init__(self, aggregator: Any, memory: float, serializer: Any) -> None:
        self.aggregator, self.memory, self.serializer = aggregator, memory, serializer

    def __call__(self, partition: int, records: Any) -> Iterator[Any]:
        return self.outputs(self._groups(_unmarked(records)), None)

    def capture(self, run: TaskRun, records: Any) -> Iterator[Any]:
        if run.sampled_paths is not None:
            records = _unmarked(records)
        return self.outputs(self._groups(records), run)

    def _groups(self, records: Iterable[Any]) -> Iterable[Any]:
        from pyspark.shuffle import ExternalGroupBy

        merger = ExternalGroupBy(self.aggregator, self.memory, self.serializer)
        _group(self.node, merger, records)
        return merger.items()  # type: ignore[no-any-return] # PySpark's is not typed

    def outputs(self, groups: Iterable[Any], run: TaskRun | None) -> Iterator[Any]:
        raise NotImplementedError


def _unmarked(records: Iterable[Any]) -> Iterable[Any]:
    return ((key, (side & SIDES, value)) for key, (side, value) in records)


def _group(node: int, merger: Any, records: Iterable[Any]) -> None:
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
    note = CulpritNote(node, lambda variables: (variables["at"] + 1) // 2)
    while True:
        key: Any = ended
        with note:
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

    node_name = "join"

    def __init__(
        self, aggregator: Any, memory: float, serializer: Any, keep_left: bool, keep_right: bool
    ) -> None:
        super().__init__(aggregator, memory, serializer)
        self.keep_left, self.keep_right = keep_left, keep_right

    def outputs(self, groups: Iterable[Any], run: TaskRun | None) -> Iterator[Any]:
        if run is None:
            return chain.from_iterable(self._matched(groups, None, CHUNK))
        stream = run.stream(self.node, contract.GATHER)
        # Who follows sampled paths asks at each output what it was made of.
        at_once = CHUNK if run.sampled_paths is None else 1
        matched = self._matched(groups, stream, at_once)

        def close() -> None:
            _take_back(matched, stream)
            matched.close()

        run.at_close(close)
        return chain.from_iterable(matched)

    def _matched(
        self, groups: Iterable[Any], stream: Stream | None, at_once: int
    ) -> Generator[Iterable[Any], None, None]:
        """The outputs of each group, at most `at_once` together: no Python for each of them.

        What they are made of is noted before they are pulled; see `_take_back`.
        """
        counts, inputs = stream.buffers if stream is not None else ([], [])
        keys, places = repeat(None, 0), 2  # of the outputs that are being pulled
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
            elif (left and self.keep_left) or (right and self.keep_right):
                places, rest = 1, len(left or right)
                pairs = zip(left or repeat(None), right or repeat(None), strict=False)
                made_of = iter(left_at or right_at)
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


def _take_back(matched: Generator[Any, None, None], stream: Stream) -> None:
    """Take out of `stream` what was noted of outputs that nobody has pulled: a take() stopped early."""
    at = getgeneratorlocals(matched)
    if "keys" in at:
        counts, inputs = stream.buffers
        never = at["keys"].__length_hint__()
        del counts[len(counts) - never :]
        del inputs[len(inputs) - at["places"] * never :]


def _flush(stream: Stream | None, counts: list[int], inputs: list[int]) -> None:
    if stream is not None:
        stream.flush()
    else:
        counts.clear()
        inputs.clear()


class Subtract(BySides):
    """subtractByKey: the records of the left side whose key the right side does not have."""

    node_name = "subtract"

    def outputs(self, groups: Iterable[Any], run: TaskRun | None) -> Iterator[Any]:
        stream = run.stream(self.node, contract.POSITIONS) if run is not None else None
        for key, group in groups:
            lefts: list[tuple[int, Any]] = []
            for place, value in group:
                if place & 1:
                    break
                lefts.append((place, value))
            else:
                for place, value in lefts:
                    if stream is not None:
                        stream.buffers[0].append(place >> 1)
                        if len(stream.buffers[0]) >= CHUNK:
                            stream.flush()
                    yield key, value

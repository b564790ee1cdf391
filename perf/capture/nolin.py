"""The agent's operators with the capture lines taken out, and an agent that runs them.

What a job costs more with lineage than with these is the true cost of capture. Each function is the `capture`
of the operator that it is named after, line by line, without positions, streams, headers and counters. The
session of this module patches PySpark as the agent's does and sends nothing. An operator without a mirror
here would make the comparison a lie, so a job that has one is refused (`UnmirroredError`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, count, islice, product, repeat
from typing import Any

from pyspark.serializers import FramedSerializer, pack_long

from spark_agent.driver import session
from spark_agent.driver.event_publisher import EventPublisher
from spark_agent.driver.node_publisher import NodePublisher
from spark_agent.driver.nodes import Node
from spark_agent.driver.rdd import (
    batch_headers,
    key_transformations,
    method_patches,
    partition_transformations,
)
from spark_agent.worker import batch_serializers
from spark_agent.worker.operator import Operator
from spark_agent.worker.operators.narrow import report
from spark_agent.worker.pipeline import Pipeline
from spark_agent.worker.position_streams import FOREVER, restarting

#: Stands for the key of a batch that has no records. (The agent sees the end by the codes that it noted.)
_ENDED = object()


class UnmirroredError(RuntimeError):
    """The job has operators that this module does not have."""

    def __init__(self, unmirrored: list[str]) -> None:
        super().__init__(f"perf.capture.nolin has no mirror of {', '.join(unmirrored)}")
        self.unmirrored = unmirrored


def _map(operator: Any, split: int, records: Any) -> Iterator[Any]:
    function, source = operator.function, iter(records)

    def mapped(ended: list[bool]) -> Iterator[Any]:
        try:
            for record in source:
                yield function(record)
        except StopIteration as error:
            report(error)
        ended.append(True)

    return restarting(mapped)


def _filter(operator: Any, split: int, records: Any) -> Iterator[Any]:
    function, source = operator.function, iter(records)

    def filtered(ended: list[bool]) -> Iterator[Any]:
        try:
            for record in source:
                if function(record):
                    yield record
        except StopIteration as error:
            report(error)
        ended.append(True)

    return restarting(filtered)


def _flat_map(operator: Any, split: int, records: Any) -> Iterator[Any]:
    function = operator.function

    def produced() -> Iterator[Any]:
        try:
            for record in records:
                yield function(record)
        except StopIteration as error:
            report(error)

    return chain.from_iterable(produced())


def _itself(operator: Any, split: int, records: Any) -> Any:
    """For operators that have no capture lines."""
    return operator(split, records)


def _original(operator: Any, split: int, records: Any) -> Any:
    """For operators that are an original function with capture around it."""
    return operator.original(split, records)


def _text_sink(operator: Any, split: int, records: Any) -> Iterator[bytes]:
    for record in records:
        if isinstance(record, str):
            yield record.encode("utf-8")
        elif isinstance(record, bytes):
            yield record
        else:
            yield str(record).encode("utf-8")


def _sort(operator: Any, split: int, records: Any) -> Any:
    return operator.original(records)


def _combine(operator: Any, split: int, records: Any) -> Iterator[Any]:
    functions = operator.functions

    def take_in(some: Iterable[Any], codes: dict[Any, int], combined: list[Any]) -> bool:
        create, combine, size = functions.createCombiner, functions.mergeValue, len(combined)
        key: Any = _ENDED
        for key, value in some:
            code = codes[key]
            try:
                if code < size:
                    combined[code] = combine(combined[code], value)
                else:
                    combined.append(create(value))
                    size += 1
            except StopIteration as error:
                report(error)
        return key is not _ENDED

    return _merge(operator, records, take_in)


def _combine_lists(operator: Any, split: int, records: Any) -> Iterator[Any]:
    def take_in(some: Iterable[Any], codes: dict[Any, int], combined: list[Any]) -> bool:
        size = len(combined)
        key: Any = _ENDED
        for key, value in some:
            code = codes[key]
            if code < size:
                combined[code].append(value)
            else:
                combined.append([value])
                size += 1
        return key is not _ENDED

    return _merge(operator, records, take_in)


def _merge_combiners(operator: Any, split: int, records: Any) -> Iterator[Any]:
    def take_in(some: Iterable[Any], codes: dict[Any, int], combined: list[Any]) -> bool:
        combine, size = operator.functions.mergeCombiners, len(combined)
        key: Any = _ENDED
        for key, value in some:
            code = codes[key]
            if code < size:
                try:
                    combined[code] = combine(combined[code], value)
                except StopIteration as error:
                    report(error)
            else:
                combined.append(value)
                size += 1
        return key is not _ENDED

    return _merge(operator, records, take_in)


def _merge(
    operator: Any, records: Any, take_in: Callable[[Iterable[Any], dict[Any, int], list[Any]], bool]
) -> Iterator[Any]:
    from pyspark.shuffle import get_used_memory

    merger = operator.merger()
    codes: dict[Any, int] = defaultdict(count().__next__)
    combined: list[Any] = []
    source = iter(records)
    batch: float = merger.batch
    while take_in(islice(source, int(batch)), codes, combined):
        batch = min(batch * 1.5, operator.records_between_looks)
        if get_used_memory() >= merger.memory_limit:
            merger.data.update(zip(codes, combined, strict=True))
            combined.clear()
            merger._spill()
            operator.original(merger)(source)
            return merger.items()  # type: ignore[no-any-return] # PySpark's is not typed
    merger.data = dict(zip(codes, combined, strict=True))
    return merger.items()  # type: ignore[no-any-return] # PySpark's is not typed


def _groups(operator: Any, records: Any) -> Iterable[Any]:
    from pyspark.shuffle import ExternalGroupBy, get_used_memory

    merger = ExternalGroupBy(operator.aggregator, operator.memory, operator.serializer)
    groups: dict[Any, list[Any]] = defaultdict(list)
    merger.data = groups
    source = iter(records)
    ended = object()
    seen, batch = 0, float(merger.batch)
    while True:
        key: Any = ended
        for key, sided in islice(source, int(batch) - seen):
            groups[key].append(sided)
        if key is ended:
            break
        if get_used_memory() >= merger.memory_limit:
            merger._spill()
            merger.mergeValues(source)
            break
        seen, batch = int(batch), batch * 1.5
    return merger.items()  # type: ignore[no-any-return] # PySpark's is not typed


def _join(operator: Any, split: int, records: Any) -> Iterator[Any]:
    return _pairs(operator, _groups(operator, records))


def _subtract(operator: Any, split: int, records: Any) -> Iterator[Any]:
    for key, group in _groups(operator, records):
        kept: list[Any] = []
        for side, value in group:
            if side == 2:
                break
            kept.append(value)
        else:
            for value in kept:
                yield key, value


def _pairs(operator: Any, groups: Iterable[Any]) -> Iterator[Any]:
    def matched() -> Iterator[Iterable[Any]]:
        for key, group in groups:
            left: list[Any] = []
            right: list[Any] = []
            for side, value in group:
                if side == 2:
                    right.append(value)
                else:
                    left.append(value)
            pairs: Iterator[Any]
            if left and right:
                rest = len(left) * len(right)
                if rest == 1:
                    yield ((key, (left[0], right[0])),)
                    continue
                pairs = product(left, right)
            elif left and operator.keep_left:
                pairs = zip(left, repeat(None), strict=False)
            elif right and operator.keep_right:
                pairs = zip(repeat(None), right, strict=False)
            else:
                continue
            yield zip(repeat(key), pairs, strict=False)

    return chain.from_iterable(matched())


def _shuffle_write(operator: Any, split: int, records: Any) -> Iterator[bytes]:
    from pyspark.shuffle import get_used_memory

    partition_of, partitions, dumps = operator.partition_of, operator.partitions, operator.serializer.dumps
    buckets: dict[int, list[Any]] = defaultdict(list)
    pending = 0
    ended = object()
    batch: float = min(10 * partitions, 1000)

    def drain() -> Iterator[bytes]:
        for target in list(buckets):
            yield pack_long(target)
            yield dumps(buckets.pop(target))

    source = iter(records)
    while True:
        batch_rows = min(1000 - pending % 1000, int(batch) + 1 - pending)
        key: Any = ended
        for key, value in islice(source, batch_rows):
            target = partition_of(key) % partitions
            buckets[target].append((key, value))
        if key is ended:
            break
        pending += batch_rows
        if (pending % 1000 == 0 and get_used_memory() > operator.limit) or pending > batch:
            targets, size = len(buckets), 0
            for piece in drain():
                size += len(piece)
                yield piece
            average = int(size / targets) >> 20
            if average < 1:
                batch = min(FOREVER, batch * 1.5)
            elif average > 10:
                batch = max(int(batch / 1.5), 1)
            pending = 0
    yield from drain()


class Headerless(FramedSerializer):  # type: ignore[misc] # PySpark's is not typed
    """Stands in for the agent's HeaderSerializer: reads batches that have no headers."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def dumps(self, batch: Any) -> bytes:
        return bytes(self.inner.dumps(batch))

    def loads(self, batch: bytes) -> Any:
        return self.inner.loads(batch)


#: The name of an operator of the agent -> what it does without capture.
MIRRORS: dict[str, Callable[[Any, int, Any], Any]] = {
    "Map": _map,
    "Filter": _filter,
    "FlatMap": _flat_map,
    "Order": _itself,
    "Identity": _itself,
    "WholePartition": _itself,
    "LastRead": _original,
    "TextSink": _text_sink,
    "Combine": _combine,
    "CombineLists": _combine_lists,
    "Merge": _merge_combiners,
    "Group": _merge_combiners,
    "Join": _join,
    "Side": _map,
    "Subtract": _subtract,
    "Sort": _sort,
    "ShuffleWrite": _shuffle_write,
}


class Uncaptured(Pipeline):
    """What a worker calls for a chain."""

    def __call__(self, split: int, records: Any) -> Any:
        for function in self.functions:
            if isinstance(function, Operator):
                records = MIRRORS[type(function).__name__](function, split, records)
            else:
                records = function(split, records)
        return records


class NoEvents(EventPublisher):
    """Sends nothing."""

    def emit(self, event_type: str, **fields: object) -> None:
        pass


class NoNodes(NodePublisher):
    """Publishes nothing."""

    def publish(self, node: Node) -> None:
        pass

    def describe(self, node: Node) -> None:
        pass


class Session(session.Session):
    """Patches like the agent's session; nothing is registered, captured or sent."""

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self.events = NoEvents(context, self.application_id, self.settings, self.notices)
        self.nodes = NoNodes(self.events)

    def begin(self) -> None:
        pass

    def stop(self, *, at_exit: bool = False) -> None:
        self.undo()


def uncaptured(_session: session.Session, pipeline: Pipeline, **_plan: bool) -> Uncaptured:
    """Takes what the agent's `captured` takes. Raises UnmirroredError."""
    operators = {type(function).__name__ for function in pipeline.functions if isinstance(function, Operator)}
    if operators - set(MIRRORS):
        raise UnmirroredError(sorted(operators - set(MIRRORS)))
    return Uncaptured(pipeline.functions)


def install() -> None:
    """From here on each SparkContext of this process runs without capture. Not undone."""
    from pyspark import SparkContext

    for module, name, stand_in in (
        (method_patches, "captured", uncaptured),
        (method_patches, "CapturingSerializer", lambda serializer, _manifests: serializer),
        (batch_serializers, "HeaderSerializer", Headerless),
        (key_transformations, "HeaderSerializer", Headerless),
        (partition_transformations, "HeaderSerializer", Headerless),
        (batch_headers, "with_headers", lambda _form: None),
    ):
        assert hasattr(module, name)  # else headers and the end of runs would be measured as if not captured
        setattr(module, name, stand_in)
    initialise = SparkContext._do_init

    def _do_init(self: Any, *args: Any, **kwargs: Any) -> None:
        initialise(self, *args, **kwargs)
        method_patches.install(Session(self))

    SparkContext._do_init = _do_init

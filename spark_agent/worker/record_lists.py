"""Operations of RDDs on few records, in one task: what a job gives of some lines without its shuffles.

The operations are PySpark's own, as far as it writes them in Python; the functions are the program's. Only
what the JVM does is done here: records that would pass a shuffle, or that several operations read, are
pickled and read again. Promises the records that Spark gives of one partition, but for their order. Of
operations that can tell how records lie in partitions it knows nothing: nobody may ask for these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from types import MethodType
from typing import Any, NamedTuple

from spark_agent import contract

__all__ = ["Of", "RecordList", "Step", "TaskProgram", "TaskRun"]

#: How much memory groups may take before they go to disk, as PySpark has it where nothing is set. PySpark
#: counts all that its process has: in a large one each group would go to disk. Here what is added counts.
_MEMORY_MIB = 512
#: PySpark's merges take this share of the limit for theirs.
_MERGED_SHARE = 0.9
#: Keys of one operation that are named.
_MOST_KEYS = 300


class Of(NamedTuple):
    """In place of an RDD among the arguments: what the step of this number in the program gives."""

    at: int


@dataclass(frozen=True)
class Step:
    """One operation. `number` is that of its node; `lines`: of a source, what it reads.

    The first argument is its own RDD, unless it is one of SparkContext.
    """

    number: int
    name: str
    arguments: Sequence[Any] = ()
    keywords: Mapping[str, Any] | None = None
    is_of_context: bool = False
    lines: Sequence[str] | None = None


@dataclass(frozen=True)
class TaskRun:
    """What was seen of the result, and by operation the first keys of its pairs, as captured texts."""

    seen: list[Any]
    keys: Mapping[int, tuple[str, ...]]


class TaskProgram:
    """Steps, each behind those that it reads. Executors get it, for mapPartitions.

    `look` is shown the last step's records. Of the steps in `keyed`, by their nodes, the keys are listed.
    """

    def __init__(
        self, steps: Sequence[Step], look: Callable[[Iterable[Any]], Iterable[Any]], keyed: frozenset[int]
    ) -> None:
        self.steps, self.look, self.keyed = steps, look, keyed

    def __call__(self, records: Iterable[Any]) -> Iterator[TaskRun]:
        for _ in records:  # Spark ends a worker whose task has left records: the next one waits for a new one
            pass
        yield self.run()

    def run(self) -> TaskRun:
        readers = [0] * len(self.steps)
        for step in self.steps:
            for of in _reads(step):
                readers[of.at] += 1
        results: list[RecordList] = []
        keys: dict[int, tuple[str, ...]] = {}
        for step, count in zip(self.steps, readers, strict=True):
            records = list(_result(step, results))
            if step.number in self.keyed:
                keys[step.number] = tuple(sorted(_keys(records)))[:_MOST_KEYS]
            results.append(_stored(records) if count > 1 else RecordList(records))
        return TaskRun(list(self.look(iter(results[-1]))), keys)


class RecordList:
    """In place of an RDD with one partition."""

    def __init__(self, records: Iterable[Any]) -> None:
        self._records = records
        self.ctx = _Context()
        self.partitioner = None
        self.is_cached = False

    def __iter__(self) -> Iterator[Any]:
        return iter(self._records)

    def __getattr__(self, name: str) -> Any:
        """An operation that PySpark has written in Python."""
        from pyspark import RDD

        return MethodType(getattr(RDD, name), self)

    @property
    def _jrdd_deserializer(self) -> Any:
        return self.ctx.serializer

    def _memory_limit(self) -> int:
        from pyspark.shuffle import get_used_memory

        return int((get_used_memory() + _MEMORY_MIB) / _MERGED_SHARE)

    def _defaultReducePartitions(self) -> int:
        return 1

    def getNumPartitions(self) -> int:
        return 1

    def mapPartitionsWithIndex(
        self, f: Callable[[int, Iterable[Any]], Iterable[Any]], preservesPartitioning: bool = False
    ) -> RecordList:
        return RecordList(_Later(lambda: f(0, iter(self))))

    def partitionBy(
        self, numPartitions: int | None = None, partitionFunc: Callable[[Any], int] | None = None
    ) -> RecordList:
        from pyspark.rdd import portable_hash

        def moved() -> Iterable[Any]:
            records = []
            for key, value in self:
                (partitionFunc or portable_hash)(key)  # raises where Spark does
                records.append((key, value))
            return _sent(records)

        return RecordList(_Later(moved))

    def repartition(self, numPartitions: int) -> RecordList:
        return RecordList(_Later(lambda: _sent(list(self))))

    def coalesce(self, numPartitions: int, shuffle: bool = False) -> RecordList:
        return self

    def union(self, other: RecordList) -> RecordList:
        return RecordList(_Later(lambda: chain(self, other)))

    def cartesian(self, other: RecordList) -> RecordList:
        return RecordList(_Later(lambda: product(_sent(list(self)), _sent(list(other)))))


class _Later:
    """Records that are made each time that they are read."""

    def __init__(self, make: Callable[[], Iterable[Any]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[Any]:
        return iter(self._make())


class _Context:
    """In place of a SparkContext."""

    @property
    def serializer(self) -> Any:
        from pyspark.serializers import CPickleSerializer

        return CPickleSerializer()

    def union(self, rdds: Sequence[RecordList]) -> RecordList:
        return RecordList(_Later(lambda: chain.from_iterable(rdds)))


def _result(step: Step, results: Sequence[RecordList]) -> Iterable[Any]:
    if step.lines is not None:
        return step.lines

    def argument(value: Any) -> Any:
        if isinstance(value, Of):
            return results[value.at]
        if isinstance(value, list) and value and isinstance(value[0], Of):
            return [results[of.at] for of in value]
        return value

    arguments = [argument(value) for value in step.arguments]
    keywords = {name: argument(value) for name, value in (step.keywords or {}).items()}
    if step.is_of_context:
        arguments = [_Context(), *arguments]
    result: Iterable[Any] = getattr(arguments[0], step.name)(*arguments[1:], **keywords)
    return result


def _reads(step: Step) -> Iterator[Of]:
    for value in (*step.arguments, *(step.keywords or {}).values()):
        if isinstance(value, Of):
            yield value
        elif isinstance(value, list):
            yield from (of for of in value if isinstance(of, Of))


def _keys(records: Iterable[Any]) -> set[str]:
    return {
        contract.typed_text(record[0])[1]
        for record in records
        if isinstance(record, tuple) and len(record) == 2
    }


def _sent(records: Sequence[Any]) -> list[Any]:
    """As they come out of a shuffle: a function that changes one changes a copy."""
    serializer = _Context().serializer
    sent: list[Any] = serializer.loads(serializer.dumps(records))
    return sent


def _stored(records: Sequence[Any]) -> RecordList:
    """Each reader gets copies of its own."""
    serializer = _Context().serializer
    data = serializer.dumps(records)
    return RecordList(_Later(lambda: serializer.loads(data)))

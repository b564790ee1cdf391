"""Exact identity through the JVM: a tag of 16 bytes before each pickled batch.

All of PySpark's keyed shuffles go through `RDD.partitionBy`, which pickles records in batches for each
target. The tag names the run that wrote a batch and the written position of its first record; the
reading side notes it when it loads the batch, and the next batch is only loaded when the last is used up.
So every record read is known by its run and position, whatever the order in which blocks were fetched.
What else moves whole batches in the JVM (repartition, cartesian) is told in the same way.
"""

from __future__ import annotations

import struct
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from itertools import chain, islice, product
from typing import Any

from pyspark.serializers import (
    BatchedSerializer,
    FramedSerializer,
    Serializer,
    pack_long,
    write_with_length,
)

from spark_agent import contract
from spark_agent.worker import task_run, value_sampling
from spark_agent.worker.operator import Operator
from spark_agent.worker.plan import Piece
from spark_agent.worker.position_streams import CHUNK, FOREVER

#: The writing run (0: it did not capture) and the written position of the batch's first record.
TAG = struct.Struct("<QQ")


class TaggedSerializer(FramedSerializer):  # type: ignore[misc] # PySpark's is not typed
    """Tags the batches that it writes with this run, and notes the tags of those that it reads.

    Works without a run too (a driver that collects).
    """

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def dumps(self, batch: Any) -> bytes:
        pickled = bytes(self.inner.dumps(batch))
        return tag_of(len(batch)) + pickled

    def loads(self, tagged: bytes) -> Any:
        run, first, bits, start = untag(tagged)
        batch = self.inner.loads(tagged[start:])
        if task_run.current is not None:
            task_run.current.read_batch(run, first, len(batch), bits)
        return batch


class MaybeTagged(TaggedSerializer):
    """Reads batches that have tags, and such as have none: those of a checkpoint, whoever wrote it.

    Of a tag the last three bytes are zero, as no RDD has 2**40 records in a partition, and a pickled list
    follows. At that place a pickled list of PySpark's has an opcode, which is not zero.
    """

    def loads(self, batch: bytes) -> Any:
        is_tagged = batch[TAG.size - 3 : TAG.size] == bytes(3)
        return super().loads(batch) if is_tagged else self.inner.loads(batch)


def tag_of(count: int, passed: Piece | None = None, *, is_known: bool = True) -> bytes:
    """What stands before the next `count` records that leave the run.

    `passed`: they pass it unread, as this piece. Of a number that is not known (`is_known`) no run is named.
    """
    run = task_run.current
    if run is None or not is_known:
        return TAG.pack(0, 0)
    first, run.written = run.written, run.written + count
    head, bits = run.number, b""
    if run.ways is not None and passed is not None:
        head, bits = run.ways.passed_on(head, first, count, passed.bits)
    elif run.ways is not None:
        head, bits = run.ways.left(head, first, count)
    return TAG.pack(head, first) + bits


def untag(batch: bytes) -> tuple[int, int, bytes | None, int]:
    """(run, position of the first record, bits of chosen ways if there are any, where the records begin)."""
    head, first = TAG.unpack_from(batch)
    run, start, bits = value_sampling.untag(head, batch, TAG.size)
    return run, first, bits, start


class TaggedBatches(BatchedSerializer):  # type: ignore[misc] # PySpark's is not typed
    """Batches of the sizes that AutoBatchedSerializer makes, tagged. The tag does not count as size."""

    def __init__(self, inner: Any, best_size: int) -> None:
        super().__init__(TaggedSerializer(inner), self.UNKNOWN_BATCH_SIZE)
        self.bestSize = best_size

    def dump_stream(self, records: Any, stream: Any) -> None:
        batch_size, source = 1, iter(records)
        while batch := list(islice(source, batch_size)):
            pickled = bytes(self.serializer.inner.dumps(batch))
            write_with_length(tag_of(len(batch)) + pickled, stream)
            size = len(pickled)
            if size < self.bestSize:  # Spark's rule
                batch_size *= 2
            elif size > self.bestSize * 10 and batch_size > 1:
                batch_size //= 2


#: Sizes of the batches that `BatchesIn` has read and `SameBatches` has not written yet, in this process.
_sizes: deque[int] = deque()


class BatchesIn(Serializer):  # type: ignore[misc] # PySpark's is not typed
    """Reads as `inner` does and notes the sizes of its batches, for `SameBatches`."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def load_stream(self, stream: Any) -> Iterator[Any]:
        _sizes.clear()
        for batch in self.inner._load_stream_without_unbatching(stream):
            records = batch if hasattr(batch, "__len__") else list(batch)
            if records:
                _sizes.append(len(records))
                yield from records


class SameBatches(BatchedSerializer):  # type: ignore[misc] # PySpark's is not typed
    """Writes tagged batches of the sizes in which `BatchesIn` read them: what the JVM does with whole batches
    (a product of them, a repartitioning) gives the order of stock PySpark."""

    def __init__(self, inner: Any, batch_size: int) -> None:
        super().__init__(TaggedSerializer(inner), batch_size)

    def dump_stream(self, records: Any, stream: Any) -> None:
        source = iter(records)
        for record in source:  # when it has come, the size of its batch is known
            write_with_length(self.serializer.dumps([record, *islice(source, _sizes.popleft() - 1)]), stream)


class Tags(TaggedSerializer):
    """Reads tagged batches as (piece, records)."""

    def loads(self, tagged: bytes) -> tuple[Piece, Any]:
        run, first, bits, start = untag(tagged)
        batch = self.inner.loads(tagged[start:])
        return Piece(run, first, len(batch), bits), batch


class PairsOfBatches(Serializer):  # type: ignore[misc] # PySpark's is not typed
    """Reads the JVM's cartesian product of tagged batches, as PySpark's CartesianDeserializer does."""

    def __init__(self, left: Any, right: Any) -> None:
        super().__init__()
        self.left, self.right = Tags(left), Tags(right)

    def _load_stream_without_unbatching(self, stream: Any) -> Iterator[Any]:
        lefts, rights = self.left.load_stream(stream), self.right.load_stream(stream)
        for (left, lefts_of_it), (right, rights_of_it) in zip(lefts, rights, strict=False):
            if task_run.current is not None:
                task_run.current.read_product(left, right)
            yield product(lefts_of_it, rights_of_it)

    def load_stream(self, stream: Any) -> Iterator[Any]:
        return chain.from_iterable(self._load_stream_without_unbatching(stream))


class ShuffleWrite(Operator):
    """The map side of partitionBy: batches per target, each headed by its run and first position.

    Written position w is input in[w]; a batch's records stand at consecutive written positions.
    """

    def __init__(
        self, partition: Callable[[Any], int], partitions: int, serializer: Any, limit: float
    ) -> None:
        self.partition, self.partitions, self.serializer, self.limit = (
            partition,
            partitions,
            serializer,
            limit,
        )

    def __call__(self, split: int, records: Any) -> Iterator[bytes]:
        from pyspark.shuffle import get_used_memory

        run = task_run.current
        number = run.number if run is not None else 0
        stream = run.stream(self.node, contract.POSITIONS) if run is not None else None
        partition, partitions, dumps = self.partition, self.partitions, self.serializer.dumps
        buckets: dict[int, tuple[list[Any], list[int]]] = defaultdict(lambda: ([], []))
        ways = run.ways if run is not None else None
        written = pending = 0
        seen = -1
        batch: float = min(10 * partitions, 1000)

        def drain() -> Iterator[bytes]:
            nonlocal written
            for target in list(buckets):
                bucket, inputs = buckets.pop(target)
                if stream is not None:
                    stream.buffers[0].extend(inputs)
                    if len(stream.buffers[0]) >= CHUNK:
                        stream.flush()
                yield pack_long(target)
                head, bits = (number, b"") if ways is None else ways.tag(self.node, number, inputs)
                yield TAG.pack(head, written) + bits + dumps(bucket)
                written += len(bucket)

        numbered = enumerate(records)
        while True:
            # Looks after each thousandth record, and when there are more than a batch.
            until_look = min(1000 - pending % 1000, int(batch) + 1 - pending)
            before = seen
            for seen, (key, value) in islice(numbered, until_look):
                target = partition(key) % partitions
                bucket, inputs = buckets[target]
                bucket.append((key, value))
                inputs.append(seen)
            pending += seen - before
            if seen - before < until_look:
                break
            if (pending % 1000 == 0 and get_used_memory() > self.limit) or pending > batch:
                targets, size = len(buckets), 0
                for piece in drain():
                    size += len(piece)
                    yield piece
                if ways is not None:
                    ways.drained(self.node, seen + 1)
                # Spark's rule: batches between 1 and 10 MB.
                average = int(size / targets) >> 20
                if average < 1:
                    batch = min(FOREVER, batch * 1.5)
                elif average > 10:
                    batch = max(int(batch / 1.5), 1)
                pending = 0
        yield from drain()

"""Exact identity through Python's shuffles: a tag of 16 bytes before each pickled batch.

All of PySpark's keyed shuffles go through `RDD.partitionBy`, which pickles records in batches for each
target. The tag names the run that wrote a batch and the written position of its first record; the
reading side notes it when it loads the batch, and the next batch is only loaded when the last is used up.
So every record read is known by its run and position, whatever the order in which blocks were fetched.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

from pyspark.serializers import FramedSerializer, pack_long

from spark_agent import capture, contract
from spark_agent.capture import FOREVER, Operator

#: The writing run (0: it did not capture) and the written position of the batch's first record.
TAG = struct.Struct("<QQ")


class TaggedSerializer(FramedSerializer):  # type: ignore[misc]
    """Reads batches that `ShuffleWrite` wrote. Works without a run too (a driver that collects)."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def dumps(self, batch: Any) -> bytes:
        return TAG.pack(0, 0) + bytes(self.inner.dumps(batch))

    def loads(self, tagged: bytes) -> Any:
        batch = self.inner.loads(tagged[TAG.size :])
        if capture.current is not None:
            run, first = TAG.unpack_from(tagged)
            capture.current.read_batch(run, first, len(batch))
        return batch


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

        run = capture.current
        number = run.number if run is not None else 0
        stream = run.stream(self.node, contract.POSITIONS) if run is not None else None
        partition, partitions, dumps = self.partition, self.partitions, self.serializer.dumps
        buckets: dict[int, list[Any]] = {}
        sources: dict[int, list[int]] = {}
        written = pending = 0
        batch: float = min(10 * partitions, 1000)

        def drain() -> Iterator[bytes]:
            nonlocal written
            for target in list(buckets):
                bucket, inputs = buckets.pop(target), sources.pop(target)
                if stream is not None:
                    stream.buffers[0].extend(inputs)
                    stream.flush()
                yield pack_long(target)
                yield TAG.pack(number, written) + dumps(bucket)
                written += len(bucket)

        for position, (key, value) in enumerate(records):
            target = partition(key) % partitions
            bucket = buckets.get(target)
            if bucket is None:
                bucket = buckets[target] = []
                sources[target] = []
            bucket.append((key, value))
            sources[target].append(position)
            pending += 1
            if (pending % 1000 == 0 and get_used_memory() > self.limit) or pending > batch:
                targets, size = len(buckets), 0
                for piece in drain():
                    size += len(piece)
                    yield piece
                # Spark's rule: batches between 1 and 10 MB.
                average = int(size / targets) >> 20
                if average < 1:
                    batch = min(FOREVER, batch * 1.5)
                elif average > 10:
                    batch = max(int(batch / 1.5), 1)
                pending = 0
        yield from drain()

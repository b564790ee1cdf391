"""Serializers that write a batch header before each pickled batch, and note the headers that they read.

All of PySpark's keyed shuffles go through `RDD.partitionBy`, which pickles records in batches for each
target. What else moves whole batches in the JVM (repartition, cartesian) is read and written in the same way.
A reader notes the header when it loads a batch, and loads the next batch only when that one is used up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain, islice, product
from typing import Any

from pyspark.serializers import BatchedSerializer, FramedSerializer, Serializer, write_with_length

from spark_agent.worker import batch_header
from spark_agent.worker.batch_header import HEADER, UNCAPTURED, Piece
from spark_agent.worker.process_state import worker_process


class HeaderSerializer(FramedSerializer):  # type: ignore[misc] # PySpark's is not typed
    """Writes batches with headers that name this run, and notes the headers of those that it reads.

    Works without a run too (a driver that collects).
    """

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def dumps(self, batch: Any) -> bytes:
        pickled = bytes(self.inner.dumps(batch))
        return _next_header(len(batch)) + pickled

    def loads(self, framed: bytes) -> Any:
        header = batch_header.unpack(framed)
        batch = self.inner.loads(framed[header.size :])
        if worker_process.run is not None:
            worker_process.run.read_batch(header.run, header.first, len(batch), header.bits)
        return batch


class OptionalHeaderSerializer(HeaderSerializer):
    """Reads batches that have headers, and such as have none: those of a checkpoint, whoever wrote it.

    Of a header the last three bytes are zero, as no RDD has 2**40 records in a partition, and a pickled list
    follows. At that place a pickled list of PySpark's has an opcode, which is not zero.
    """

    def loads(self, batch: bytes) -> Any:
        has_header = batch[HEADER.size - 3 : HEADER.size] == bytes(3)
        return super().loads(batch) if has_header else self.inner.loads(batch)


def _next_header(count: int) -> bytes:
    """What stands before the next `count` records that leave this process."""
    run = worker_process.run
    return UNCAPTURED if run is None else run.next_header(count)


class AutoHeaderBatches(BatchedSerializer):  # type: ignore[misc] # PySpark's is not typed
    """Batches of the sizes that AutoBatchedSerializer makes, with headers. These do not count as size."""

    def __init__(self, inner: Any, best_size: int) -> None:
        super().__init__(HeaderSerializer(inner), self.UNKNOWN_BATCH_SIZE)
        self.bestSize = best_size

    def dump_stream(self, records: Any, stream: Any) -> None:
        batch_size, source = 1, iter(records)
        while batch := list(islice(source, batch_size)):
            pickled = bytes(self.serializer.inner.dumps(batch))
            write_with_length(_next_header(len(batch)) + pickled, stream)
            size = len(pickled)
            if size < self.bestSize:  # Spark's rule
                batch_size *= 2
            elif size > self.bestSize * 10 and batch_size > 1:
                batch_size //= 2


class SameSizeBatches(BatchedSerializer):  # type: ignore[misc] # PySpark's is not typed
    """Writes batches with headers, of the sizes in which a `BatchSizeReader` read them.

    So what the JVM does with whole batches (a product of them, a repartitioning) gives PySpark's own order.
    """

    def __init__(self, inner: Any, batch_size: int) -> None:
        super().__init__(HeaderSerializer(inner), batch_size)
        #: Sizes of batches that were read and are not written yet. Reader and writer travel in one command,
        #: and share this list in the worker, too.
        self.sizes: deque[int] = deque()

    def dump_stream(self, records: Any, stream: Any) -> None:
        source, next_size = iter(records), self.sizes.popleft
        for record in source:  # when it has come, the size of its batch is there
            write_with_length(self.serializer.dumps([record, *islice(source, next_size() - 1)]), stream)


class BatchSizeReader(Serializer):  # type: ignore[misc] # PySpark's is not typed
    """Reads as `inner` does, and notes the sizes of its batches in `sizes`, those of a `SameSizeBatches`."""

    def __init__(self, inner: Any, sizes: deque[int]) -> None:
        super().__init__()
        self.inner, self.sizes = inner, sizes

    def load_stream(self, stream: Any) -> Iterator[Any]:
        for batch in self.inner._load_stream_without_unbatching(stream):
            records = batch if hasattr(batch, "__len__") else list(batch)
            if records:
                self.sizes.append(len(records))
                yield from records


class PieceReader(HeaderSerializer):
    """Reads batches with headers as (piece, records)."""

    def loads(self, framed: bytes) -> tuple[Piece, Any]:
        header = batch_header.unpack(framed)
        batch = self.inner.loads(framed[header.size :])
        return Piece(header.run, header.first, len(batch), header.bits), batch


class PairsOfBatches(Serializer):  # type: ignore[misc] # PySpark's is not typed
    """Reads the JVM's cartesian product of batches with headers, as PySpark's CartesianDeserializer does."""

    def __init__(self, left: Any, right: Any) -> None:
        super().__init__()
        self.left, self.right = PieceReader(left), PieceReader(right)

    def _load_stream_without_unbatching(self, stream: Any) -> Iterator[Any]:
        lefts, rights = self.left.load_stream(stream), self.right.load_stream(stream)
        for (left, lefts_of_it), (right, rights_of_it) in zip(lefts, rights, strict=False):
            if worker_process.run is not None:
                worker_process.run.read_product(left, right)
            yield product(lefts_of_it, rights_of_it)

    def load_stream(self, stream: Any) -> Iterator[Any]:
        return chain.from_iterable(self._load_stream_without_unbatching(stream))

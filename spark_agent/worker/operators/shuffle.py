"""The map side of partitionBy: exact identity through the JVM, by a header before each pickled batch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from pyspark.serializers import pack_long

from spark_agent import contract
from spark_agent.worker import batch_header
from spark_agent.worker.culprits import CulpritNote
from spark_agent.worker.operator import Operator
from spark_agent.worker.position_streams import CHUNK, FOREVER

if TYPE_CHECKING:
    from spark_agent.worker.task_run import TaskRun


class ShuffleWrite(Operator):
    """Batches per target, each headed by its run and first position.

    Written position w is input in[w]; a batch's records stand at consecutive written positions.
    """

    notes_culprits = True
    node_name = "shufflewrite"

    def __init__(
        self, partition_of: Callable[[Any], int], partitions: int, serializer: Any, limit: float
    ) -> None:
        self.partition_of, self.partitions = partition_of, partitions
        self.serializer, self.limit = serializer, limit

    def __call__(self, partition: int, records: Any) -> Iterator[bytes]:
        return self._write(_Buckets(self, None), records, None)

    def capture(self, run: TaskRun, records: Any) -> Iterator[bytes]:
        return self._write(_Buckets(self, run), records, run)

    def _write(self, buckets: _Buckets, records: Any, run: TaskRun | None) -> Iterator[bytes]:
        from pyspark.shuffle import get_used_memory

        partition_of, partitions, by_target = self.partition_of, self.partitions, buckets.by_target
        pending, position = 0, -1
        batch: float = min(10 * partitions, 1000)
        numbered: Iterator[Any] = enumerate(records)
        if self.skips_failing:
            from spark_agent.worker.dropped_records import Routed, Skips

            routed = Routed(records, partition_of, partitions, Skips(run, self.node))
            numbered, partition_of = routed, routed.target
        note = CulpritNote(self.node, lambda variables: variables["position"])
        while True:
            # Looks after each thousandth record, and when there are more than a batch.
            until_look = min(1000 - pending % 1000, int(batch) + 1 - pending)
            before = position
            with note:
                for position, (key, value) in islice(numbered, until_look):
                    target = partition_of(key) % partitions
                    bucket, inputs = by_target[target]
                    bucket.append((key, value))
                    inputs.append(position)
            pending += position - before
            if position - before < until_look:
                break
            if (pending % 1000 == 0 and get_used_memory() > self.limit) or pending > batch:
                targets, size = len(by_target), 0
                for piece in buckets.drain():
                    size += len(piece)
                    yield piece
                buckets.drained(position + 1)
                batch = _next_batch(batch, int(size / targets) >> 20)
                pending = 0
        yield from buckets.drain()


def _next_batch(batch: float, average_mb: int) -> float:
    """Spark's rule: batches between 1 and 10 MB."""
    if average_mb < 1:
        return min(FOREVER, batch * 1.5)
    return max(int(batch / 1.5), 1) if average_mb > 10 else batch


class _Buckets:
    """The records that wait to be written, by target: (records, their input positions)."""

    def __init__(self, operator: ShuffleWrite, run: TaskRun | None) -> None:
        self.by_target: dict[int, tuple[list[Any], list[int]]] = defaultdict(lambda: ([], []))
        self._node, self._dumps = operator.node, operator.serializer.dumps
        self._number = run.number if run is not None else 0
        self._stream = run.stream(operator.node, contract.POSITIONS) if run is not None else None
        self._paths = run.sampled_paths if run is not None else None
        self._written = 0

    def drain(self) -> Iterator[bytes]:
        """Each target and its batch, in turn."""
        for target in list(self.by_target):
            bucket, inputs = self.by_target.pop(target)
            if self._stream is not None:
                self._stream.buffers[0].extend(inputs)
                if len(self._stream.buffers[0]) >= CHUNK:
                    self._stream.flush()
            yield pack_long(target)
            bits = self._paths.bits_of_inputs(self._node, inputs) if self._paths is not None else None
            yield batch_header.pack(self._number, self._written, bits) + self._pickled(bucket, inputs)
            self._written += len(bucket)

    def _pickled(self, bucket: list[Any], inputs: list[int]) -> bytes:
        is_alone = len(bucket) == 1
        note = CulpritNote(
            self._node,
            lambda _variables: inputs[-1],
            is_certain_in=lambda _variables, _instruction: is_alone,
            first=inputs[0],
        )
        with note:
            return self._dumps(bucket)  # type: ignore[no-any-return] # PySpark's is not typed

    def drained(self, position: int) -> None:
        """All inputs before `position` have left."""
        if self._paths is not None:
            self._paths.drained(self._node, position)

"""One execution of one pipelined chain in a task: its streams of blocks, and its manifest.

Promises that capture is lazy (nothing is pulled that the job would not pull), that the data passes through
unchanged, and that a failure to deliver lineage never fails a task unless the user asked for that.

The life of a run, in order:
 1. `Capture.__call__` (pipeline) begins the run and chains the operators; each opens the streams it needs.
 2. The job pulls records; operators append positions; full columns leave as blocks.
 3. `CapturingSerializer.dump_stream` returns: the last record was written, or `take()` stopped early.
 4. The streams are closed, the blocks flushed to the broker.
 5. The manifest goes into the accumulator, which Spark hands to the driver only if it accepts the attempt.
    Where something is persisted, one is sent in step 4 as well: a cache that was filled outlives its attempt.
    So it is where the same task reads the records on: if it fails then, the accumulator is lost.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from spark_agent import contract
from spark_agent.contract import Block
from spark_agent.delivery import process_sender, producer
from spark_agent.delivery.log import logger
from spark_agent.delivery.spool import host
from spark_agent.worker import batch_header, derived_values, value_sampling
from spark_agent.worker.batch_header import Piece
from spark_agent.worker.block_sink import Tally
from spark_agent.worker.culprits import Stage
from spark_agent.worker.digests import DigestStream
from spark_agent.worker.plan import ACTION, PERSISTING, Plan
from spark_agent.worker.position_streams import CHUNK, Counter, Stream
from spark_agent.worker.slow_records import SlowRecords
from spark_agent.worker.value_streams import TextStream

#: Pieces of cached or JVM-made batches that a manifest lists; where a run has read more, it lists none.
MAX_PIECES = 5_000


class TaskRun:
    """One execution of one chain over one partition by one task attempt."""

    def __init__(
        self,
        plan: Plan,
        partition: int,
        sender: producer.Sender | None,
        distinct_texts: set[tuple[str, int]] | None = None,
    ) -> None:
        """`distinct_texts`: what runs before this one have learnt of the texts of nodes; see `BlockSink`."""
        self.plan = plan
        self.partition = partition
        self.number = int.from_bytes(os.urandom(8), "little") >> 11
        self._sender = sender
        self._delivery = producer.Delivery()
        self._streams: list[Stream | TextStream | DigestStream] = []
        self._closers: list[Callable[[], None]] = []
        self._batches: Stream | None = None
        self._pieces: list[list[int]] = []  # (run, first, count) of what was read of a cache or the JVM
        self._sides: list[Stream] = []
        self.written = 0  # records in the batches with headers that left
        self._overridden: set[int] = set()
        self._counts: dict[int, Callable[[], int]] = {}
        self.tally = Tally()
        self.distinct_texts = set() if distinct_texts is None else distinct_texts
        self.sampled_paths = value_sampling.sampled_paths(plan, partition, lambda: self.inputs.count)
        self.derived = derived_values.nothing()  # values that follow from what is sent anyway
        self.blocks = 0
        self.skipped: list[dict[str, Any]] = []  # of a replay: the records that were dropped
        self.skipped_total = 0
        self.problem = ""  # why some flows are not there that no block has
        self.result: Any = None
        self.inputs = Counter()
        self.outputs = Counter()
        self._is_whole = False
        #: Where `pace` looks at the run.
        self.slow = SlowRecords()
        #: The functions of the chain, up to the one that is being captured.
        self.stages: list[Stage] = []
        #: How many records the function that is being called has pulled, and afterwards how many have been
        #: pulled from it, where that is known without a counter of its own.
        self.pulled: Callable[[], int] | None = None

    @property
    def observer(self) -> value_sampling.SampledPaths | None:
        """Who observes the run's streams of positions."""
        return self.sampled_paths

    def stream(self, node: int, relation: str) -> Stream:
        stream = Stream(self, node, relation)
        self._streams.append(stream)
        return stream

    def texts(self, node: int, relation: str) -> TextStream:
        stream = TextStream(self, node, relation)
        self._streams.append(stream)
        return stream

    def digested(self, node: int, records: Iterable[Any]) -> Iterable[Any]:
        """`records`, the outputs of `node` in this run, with their digests if the plan asks for these."""
        if node not in self.plan.digest_nodes:
            return records
        stream = DigestStream(self, node, self.plan.digest_salt)
        self._streams.append(stream)
        return stream.through(records)

    def at_close(self, closer: Callable[[], None]) -> None:
        """Call `closer` when the last record was pulled, before the streams are closed."""
        self._closers.append(closer)

    def to_the_end(self, records: Iterable[Any]) -> Iterable[Any]:
        """`records`; who pulls more than there are has read the whole partition."""
        return records if self.plan.reads_shuffle else chain(records, self._ended())

    def _ended(self) -> Iterator[Any]:
        self._is_whole = True
        yield from ()

    def counted(self, node: int, records: Any) -> Any:
        """`records`, the outputs of `node`, counted for the manifest; a list stays the very list.

        So does what is neither a list nor an iterator; how many records it gives cannot be known.
        """
        if hasattr(records, "__len__"):
            size = len(records)
            self._counts[node] = lambda: size
            return records
        if not hasattr(records, "__next__"):
            self.problem = "a function gave another one an object whose records cannot be counted"
            return records
        counter = Counter()
        self._counts[node] = lambda: counter.count
        return counter.through(records)

    def pulling(self, records: Iterable[Any]) -> tuple[Iterator[Any], Callable[[], int]]:
        """`records`, and how many of them the function that is being called has pulled."""
        if self.pulled is not None:
            return iter(records), self.pulled
        counter = Counter()
        return counter.through(records), lambda: counter.count

    def read_batch(self, writer: int, first: int, count: int, bits: bytes | None = None) -> None:
        """The input's next `count` records are those from `first` of what run `writer` has written."""
        if self.sampled_paths is not None:
            self.sampled_paths.read_batch(bits)
        if not self.plan.reads_shuffle:
            self._note_piece(writer, first, count)
            return
        if self._batches is None:
            self._batches = self.stream(self.plan.input_node, contract.SPANS)
        counts, firsts, steps, writers = self._batches.buffers
        counts.append(count)
        firsts.append(first)
        steps.append(1)
        writers.append(writer)
        if len(counts) >= CHUNK:
            self._batches.flush()

    def _note_piece(self, writer: int, first: int, count: int) -> None:
        last = self._pieces[-1] if self._pieces else None
        if last is not None and last[0] == writer and (not writer or last[1] + last[2] == first):
            last[2] += count
        elif len(self._pieces) <= MAX_PIECES:
            self._pieces.append([writer, first, count])

    def read_product(self, left: Piece, right: Piece) -> None:
        """The next inputs are the pairs of two batches."""
        if self.sampled_paths is not None:
            self.sampled_paths.read_product(left, right)
        if not self.plan.sides:
            return
        if not self._sides:
            self._sides = [self.stream(side, contract.SPANS) for side in self.plan.sides]
        if left.records and right.records:
            self._sides[0].extend((right.records, left.first + i, 0, left.run) for i in range(left.records))
            self._sides[1].extend((right.records, right.first, 1, right.run) for _ in range(left.records))

    def next_header(self, count: int, piece: Piece | None = None) -> bytes:
        """What stands before the next `count` records that leave the run.

        `piece`: they pass it unread, as this one.
        """
        first, self.written = self.written, self.written + count
        if self.sampled_paths is None:
            return batch_header.pack(self.number, first)
        bits = (
            self.sampled_paths.bits_of_outputs(first, count)
            if piece is None
            else self.sampled_paths.bits_of_passthrough(first, count, piece.bits)
        )
        return batch_header.pack(self.number, first, bits)

    def override(self, node: int, relation: str) -> Stream:
        """A stream for this run's outputs of `node`, which is an identity or an upper bound in other runs."""
        self._overridden.add(node)
        return self.stream(node, relation)

    def withdraw(self, stream: Stream) -> None:
        """The outputs of the stream's node are the upper bound after all. What was sent is ignored."""
        self._overridden.discard(stream.node)
        self._streams.remove(stream)
        if self.sampled_paths is not None:
            self.sampled_paths.withdrawn(stream.node)

    def emit(self, node: int, relation: str, base_in: int, base_out: int, columns: dict[str, Any]) -> None:
        """Send one block. Called while the job pulls records: what fails here is counted, never raised."""
        seq, self.blocks = self.blocks, self.blocks + 1
        if self._sender is None:
            self._delivery.fail(process_sender.process_sender.unavailable)
            return
        try:
            message = contract.encode_block(
                Block(
                    application_id=self.plan.application_id,
                    node=node,
                    run=self.number,
                    split=self.partition,
                    seq=seq,
                    relation=relation,
                    base_in=base_in,
                    base_out=base_out,
                    columns=columns,
                )
            )
        except Exception as error:  # noqa: BLE001 - an agent bug
            logger.warning("a lineage block of partition %d is lost: %r", self.partition, error)
            self._delivery.fail(f"an agent bug: {error!r}")
            return
        self._sender.send(
            self.plan.settings.flow_topic,
            self.partition % self.plan.flow_partitions,
            f"{self.plan.application_id}#{self.number}".encode(),
            message,
            self._delivery,
        )

    def close(self) -> tuple[int, str]:
        """Close the streams and flush the blocks; (blocks that were not delivered, why)."""
        try:
            for closer in self._closers:
                closer()
            for stream in self._streams:
                stream.close()
        except Exception as error:  # noqa: BLE001 - an agent bug: the flows of this run cannot be trusted
            logger.warning("lineage of partition %d is lost: %r", self.partition, error)
            return max(self.blocks, 1), f"flows could not be captured: {error!r}"
        if self._sender is None:
            return self._delivery.failed, self._delivery.problem
        cached = producer.Delivery()
        if self.plan.is_read_in_task or _is_persisting():
            self._send_event(self._sender, cached, contract.RUN_KEPT, self._manifest(0, ""))
        dropped = self._sender.flush(self._delivery)
        self._sender.flush(cached)
        return dropped, self._delivery.problem if dropped or self._delivery.spooled else ""

    def fail(self, failure: dict[str, Any]) -> None:
        """Send what was captured until the task failed, and a `run_failed` with these fields. May raise."""
        for closer in self._closers:
            closer()
        for stream in self._streams:
            stream.close()
        if self._sender is not None:
            sent = producer.Delivery()
            fields = {**self._manifest(self._delivery.failed, self._delivery.problem), **failure}
            self._send_event(self._sender, sent, contract.RUN_FAILED, fields)
            self._sender.flush(self._delivery)
            self._sender.flush(sent)

    def _send_event(
        self, sender: producer.Sender, delivery: producer.Delivery, kind: str, fields: dict[str, Any]
    ) -> None:
        """From the task itself: it is there for others, whatever becomes of the attempt."""
        event = contract.encode_event(kind, self.plan.application_id, int(time.time() * 1000), fields)
        key = self.plan.application_id.encode()
        sender.send(self.plan.settings.node_topic, -1, key, event, delivery)

    def manifest(self, dropped: int, problem: str, action: int | None = None) -> str:
        """As JSON, for the `run_committed` event; `action` is the one that a driver serves."""
        fields = {
            **self._manifest(dropped, problem),
            "unconfirmed": self._delivery.pending,
            "has_client": self._sender is not None,
        }
        if self._delivery.spooled:
            fields.update(spooled=self._delivery.spooled, host=host())
        if self.skipped_total:
            fields.update(skipped=self.skipped, skipped_total=self.skipped_total)
        if action is not None:
            fields.update(attempt=0, stage=0, action=action)
        return json.dumps(fields)

    def _manifest(self, dropped: int, problem: str) -> dict[str, Any]:
        return {
            "run": self.number,
            "split": self.partition,
            **task_ids(),
            "input": self.plan.input_node,
            "nodes": self.plan.nodes,
            "overridden": sorted(self._overridden),
            "blocks": self.blocks,
            "dropped": dropped + bool(self.problem),
            "waited_ms": round(1000 * self._delivery.waited_s),
            "problem": "; ".join(filter(None, (problem, self.problem, self.tally.problem))),
            "cut": self.tally.cut,
            "withheld": self.tally.failed_redactions,
            "whole": self._is_whole,
            "inputs": self.inputs.count,
            "outputs": self.outputs.count,
            "counts": {str(node): count() for node, count in self._counts.items()},
            **({"read": self._pieces} if 0 < len(self._pieces) <= MAX_PIECES else {}),
            **({"slow": slow} if (slow := self.slow.listed()) else {}),
        }

    def release(self) -> None:
        """Let go of the chain, so that a generator of the user's is finalised when it is without lineage."""
        self.result = self.pulled = None
        self.inputs = self.outputs = Counter()
        self._closers.clear()
        self._streams.clear()
        self.stages.clear()


def task_ids() -> dict[str, int | None]:
    from pyspark import TaskContext

    task = TaskContext.get()
    if task is None:
        return {"attempt": 0, "stage": 0, "action": None}
    action = task.getLocalProperty(ACTION)
    return {
        "attempt": task.taskAttemptId(),
        "stage": task.stageId(),
        "action": int(action) if action and action.isdecimal() else None,
    }


def _is_persisting() -> bool:
    from pyspark import TaskContext

    task = TaskContext.get()
    return task is not None and task.getLocalProperty(PERSISTING) == "true"

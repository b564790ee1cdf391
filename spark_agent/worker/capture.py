"""What runs in a Python worker around one pipelined chain of operators: a run and its column streams.

Promises that capture is lazy (nothing is pulled that the job would not pull), that the data passes through
unchanged, and that a failure to deliver lineage never fails a task unless the user asked for that.

The life of a run, in order:
 1. `Capture.__call__` begins the run and chains the operators; each opens the streams that it needs.
 2. The job pulls records; operators append positions; full columns leave as blocks.
 3. `CapturingSerializer.dump_stream` returns: the last record was written, or `take()` had enough.
 4. The streams are closed, the blocks settled with the broker.
 5. The manifest goes into the accumulator, which Spark hands to the driver only if it accepts the attempt.
    Where something is persisted, one is sent in step 4 as well: a cache that was filled outlives its attempt.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from spark_agent import contract
from spark_agent.contract import Block
from spark_agent.delivery import producer
from spark_agent.delivery.settings import AgentSettings
from spark_agent.worker import derived_values, value_sampling
from spark_agent.worker.position_streams import CHUNK, Counter, Stream, Told, last_read
from spark_agent.worker.row_by_row import is_row_by_row
from spark_agent.worker.value_streams import Tally, TextStream
from spark_agent.worker.worker_init import arrive

#: Local property that names the action that a job serves.
ACTION = "spark.lineage.action"
#: Local property that says that something is persisted: what a task leaves there outlives its attempt.
KEEPING = "spark.lineage.keeping"
#: Pieces of what was kept or put together that a manifest tells; where a run has read more, it tells none.
MAX_PIECES = 5_000


class DeliveryError(RuntimeError):
    """Lineage could not be delivered and spark.lineage.onError=fail."""


@dataclass(frozen=True)
class Plan:
    """What a worker must know of its chain; pickled with the command."""

    application_id: str
    settings: AgentSettings
    flow_partitions: int
    input_node: int
    reads_shuffle: bool
    nodes: tuple[int, ...]
    value_nodes: tuple[int, ...] = ()
    user_nodes: tuple[int, ...] = ()  # mapPartitions with a function of the user's
    read_by_action: int | None = None  # the last node of the user's, where the action goes on by itself
    sides: tuple[int, ...] = ()  # the nodes of the two sides of the cartesian product that it reads
    names: tuple[str, ...] = ()  # of `nodes`, for a redaction function
    problem: str = ""  # why blocks will not arrive, as far as the driver knows
    reads_sides: bool = False  # the records that it reads say of their side whether they are on a chosen way
    writes_tags: bool = False  # the batches that leave have tags


class Piece(NamedTuple):
    """A batch that another run wrote: so many records of that run, from position `first` on."""

    run: int
    first: int
    records: int
    bits: bytes | None = None  # which of them are on a chosen way


class Run:
    """One execution of one chain over one split by one task attempt."""

    def __init__(self, plan: Plan, split: int, sender: producer.Sender | None) -> None:
        self.plan = plan
        self.split = split
        self.number = int.from_bytes(os.urandom(8), "little") >> 11
        self._sender = sender
        self._delivery = producer.Delivery()
        self._streams: list[Stream | TextStream] = []
        self._closers: list[Callable[[], None]] = []
        self._batches: Stream | None = None
        self._pieces: list[list[int]] = []  # (run, first, count) that made what was read of something kept
        self._sides: list[Stream] = []
        self.written = 0  # records in the tagged batches that left
        self._overridden: set[int] = set()
        self._counts: dict[int, Callable[[], int]] = {}
        self.tally = Tally()
        self.ways = value_sampling.ways(self)
        self.documents: dict[int, TextStream] = {}  # node -> its values, each told by the document it reads
        self.keys_tell: dict[int, derived_values.KeyTexts] = {}  # a combine's node -> values told by its keys
        self.blocks = 0
        self.problem = ""  # why some flows are not there that no block has
        self.result: Any = None
        self.inputs = Counter()
        self.outputs = Counter()
        self._is_whole = False
        #: How many records the function that is being called has pulled, and afterwards how many have been
        #: pulled from it, where that is known without a counter of its own.
        self.pulled: Callable[[], int] | None = None

    def stream(self, node: int, relation: str) -> Stream:
        stream = Stream(self, node, relation)
        self._streams.append(stream)
        return stream

    def texts(self, node: int, relation: str) -> TextStream:
        stream = TextStream(self, node, relation)
        self._streams.append(stream)
        return stream

    def at_close(self, closer: Callable[[], None]) -> None:
        """Call `closer` when the last record was pulled, before the streams are closed."""
        self._closers.append(closer)

    def to_the_end(self, records: Iterable[Any]) -> Iterable[Any]:
        """`records`; who pulls more than there are has read the whole split."""
        return records if self.plan.reads_shuffle else chain(records, self._ended())

    def _ended(self) -> Iterator[Any]:
        self._is_whole = True
        yield from ()

    def counted(self, node: int, records: Any) -> Any:
        """`records`, the outputs of `node`, counted for the manifest; a list stays the very list.

        So does what is neither a list nor an iterator, and nobody knows how many records it gave.
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
        if self.ways is not None:
            self.ways.read_batch(bits)
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
        if self.ways is not None:
            self.ways.read_product(left, right)
        if not self.plan.sides:
            return
        if not self._sides:
            self._sides = [self.stream(side, contract.SPANS) for side in self.plan.sides]
        if left.records and right.records:
            self._sides[0].extend((right.records, left.first + i, 0, left.run) for i in range(left.records))
            self._sides[1].extend((right.records, right.first, 1, right.run) for _ in range(left.records))

    def override(self, node: int, relation: str) -> Stream:
        """A stream for this run's outputs of `node`, which is an identity or a bound in other runs."""
        self._overridden.add(node)
        return self.stream(node, relation)

    def emit(self, node: int, relation: str, base_in: int, base_out: int, columns: dict[str, Any]) -> None:
        """Send one block. Called while the job pulls records: what fails here is counted, never raised."""
        seq, self.blocks = self.blocks, self.blocks + 1
        if self._sender is None:
            self._delivery.fail(producer.unavailable)
            return
        try:
            message = contract.encode_block(
                Block(
                    application_id=self.plan.application_id,
                    node=node,
                    run=self.number,
                    split=self.split,
                    seq=seq,
                    relation=relation,
                    base_in=base_in,
                    base_out=base_out,
                    columns=columns,
                )
            )
        except Exception as error:  # noqa: BLE001 - a fault of ours
            producer.logger.warning("a lineage block of split %d is lost: %r", self.split, error)
            self._delivery.fail(f"a fault of the agent: {error!r}")
            return
        self._sender.send(
            self.plan.settings.flow_topic,
            self.split % self.plan.flow_partitions,
            f"{self.plan.application_id}#{self.number}".encode(),
            message,
            self._delivery,
        )

    def close(self) -> tuple[int, str]:
        """Close the streams and settle the blocks; (blocks that did not arrive, why)."""
        try:
            for closer in self._closers:
                closer()
            for stream in self._streams:
                stream.close()
        except Exception as error:  # noqa: BLE001 - a fault of ours: the flows of this run cannot be trusted
            producer.logger.warning("lineage of split %d is lost: %r", self.split, error)
            return max(self.blocks, 1), f"flows could not be captured: {error!r}"
        if self._sender is None:
            return self._delivery.failed, self._delivery.problem
        kept = producer.Delivery()
        if _is_keeping():
            # A cache that this fills is there for others, whatever becomes of the attempt.
            self._sender.send(
                self.plan.settings.node_topic,
                -1,
                self.plan.application_id.encode(),
                contract.encode_event(
                    contract.RUN_KEPT,
                    self.plan.application_id,
                    int(time.time() * 1000),
                    self._manifest(0, ""),
                ),
                kept,
            )
        dropped = self._sender.settle(self._delivery)
        self._sender.settle(kept)
        return dropped, self._delivery.problem if dropped else ""

    def manifest(self, dropped: int, problem: str, action: int | None = None) -> str:
        """As JSON, for the `run_committed` event; `action` is the one that a driver serves."""
        fields = {
            **self._manifest(dropped, problem),
            "unconfirmed": self._delivery.pending,
            "has_client": self._sender is not None,
        }
        if action is not None:
            fields.update(attempt=0, stage=0, action=action)
        return json.dumps(fields)

    def _manifest(self, dropped: int, problem: str) -> dict[str, Any]:
        return {
            "run": self.number,
            "split": self.split,
            **_task(),
            "input": self.plan.input_node,
            "nodes": self.plan.nodes,
            "overridden": sorted(self._overridden),
            "blocks": self.blocks,
            "dropped": dropped + bool(self.problem),
            "waited_ms": round(1000 * self._delivery.waited_s),
            "problem": "; ".join(filter(None, (problem, self.problem, self.tally.problem))),
            "cut": self.tally.cut,
            "withheld": self.tally.withheld,
            "whole": self._is_whole,
            "inputs": self.inputs.count,
            "outputs": self.outputs.count,
            "counts": {str(node): count() for node, count in self._counts.items()},
            **({"read": self._pieces} if 0 < len(self._pieces) <= MAX_PIECES else {}),
        }

    def forget(self) -> None:
        """Let go of the chain, so that a generator of the user's is finalised when stock PySpark would."""
        self.result = self.pulled = None
        self.inputs = self.outputs = Counter()
        self._closers.clear()
        self._streams.clear()


def _task() -> dict[str, int | None]:
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


def _is_keeping() -> bool:
    from pyspark import TaskContext

    task = TaskContext.get()
    return task is not None and task.getLocalProperty(KEEPING) == "true"


#: The run of this worker process; a worker runs one chain at a time.
current: Run | None = None


class Operator:
    """A function of a chain that the agent knows. `relation` is how its outputs relate to its inputs."""

    relation = contract.FLOWS
    node = -1

    def __call__(self, split: int, records: Any) -> Any:
        raise NotImplementedError


class Pipeline:
    """The functions of a chain, flat; each takes (split, records) and gives records.

    On the driver it knows the node of each function and the node that the chain reads; neither travels.
    """

    plan: Plan | None = None

    def __init__(
        self,
        functions: tuple[Callable[[int, Any], Any], ...],
        nodes: tuple[Any, ...] = (),
        input_node: Any = None,
    ) -> None:
        self.functions = functions
        self.nodes = nodes
        self.input_node = input_node

    def __call__(self, split: int, records: Any) -> Any:
        for function in self.functions:
            records = function(split, records)
        return records

    def __reduce__(self) -> Any:
        return arrive, (type(self), self.plan is not None), vars(self)


class Capture(Pipeline):
    """What a worker calls for a chain: records a run while it is pulled, or nothing when `plan` is None."""

    def __init__(self, functions: tuple[Callable[[int, Any], Any], ...], plan: Plan | None) -> None:
        super().__init__(functions)
        self.plan = plan

    def __call__(self, split: int, records: Any) -> Any:
        global current
        current = None  # a task that failed early may have left its run in this worker
        try:
            plan = self.plan
            if plan is None:
                return super().__call__(split, records)
            sender = producer.sender_in_worker(plan.settings, plan.application_id, plan.problem)
            current = run = Run(plan, split, sender)
            run.result = self._captured(plan, run, split, records)
            if run.pulled is None:
                return run.outputs.through(run.result)
            run.outputs = Told(run.pulled)
            return run.result
        except BaseException as error:
            hide_agent(error)
            raise

    def _captured(self, plan: Plan, run: Run, split: int, records: Any) -> Any:
        records, ways = run.inputs.through(run.to_the_end(records)), run.ways
        run.pulled = lambda: run.inputs.count
        told = derived_values.prepare(run, self.functions)
        if ways is not None:
            records = ways.read(records, self.functions[0])
        for index, (node, function) in enumerate(zip(plan.nodes, self.functions, strict=True)):
            if ways is not None:
                ways.enter(node, function, records)
            given, pulled = records, run.pulled
            if node in plan.user_nodes:
                records = _of_user(run, node, function, split, records)
            else:
                records = function(split, records)
            if run.pulled is pulled and records is not given:
                run.pulled = None  # the function does not say it
            following = self.functions[index + 1] if index + 1 < len(self.functions) else None
            if node == plan.read_by_action or (following is not None and _says_no_count(function)):
                records = run.counted(node, records)
            if (
                following is not None
                and not isinstance(following, Operator)
                and not hasattr(records, "__next__")
            ):
                continue  # a user's function may want the very object of the one before it (a list's length)
            is_kept = node in plan.value_nodes and node not in told
            texts = run.texts(node, contract.VALUES) if is_kept else None
            if ways is not None:
                is_last = following is None
                if texts is not None or not is_last or plan.writes_tags:
                    records = ways.leave(
                        node, records, following, texts, is_tagged=is_last and plan.writes_tags
                    )
            elif texts is not None:
                records = texts.through(records)
        return records


def _of_user(run: Run, node: int, function: Callable[[int, Any], Any], split: int, records: Any) -> Any:
    """What a user's function makes of a partition; where it reads row by row, these rows are noted."""
    if not hasattr(records, "__next__"):
        return function(split, records)
    counter = Counter()
    given = counter.through(records)
    made = function(split, given)
    if not is_row_by_row(made, given):
        return made
    return last_read(made, counter, run.override(node, contract.POSITIONS))


def _says_no_count(function: Any) -> bool:
    """Do neither flows nor the inputs tell how many outputs the function had?"""
    return not isinstance(function, Operator) or function.relation == contract.PARTITION


def hide_agent(error: BaseException) -> None:
    """Take the agent's frames out of the tracebacks of `error` and of what led to it: its user reads them."""
    seen: set[int] = set()
    chained: BaseException | None = error
    while chained is not None and id(chained) not in seen:
        seen.add(id(chained))
        entry, kept = chained.__traceback__, []
        while entry is not None:
            if not entry.tb_frame.f_globals.get("__name__", "").startswith("spark_agent."):
                kept.append(entry)
            entry = entry.tb_next
        for index, entry in enumerate(kept):
            entry.tb_next = kept[index + 1] if index + 1 < len(kept) else None
        chained.__traceback__ = kept[0] if kept else None
        chained = chained.__cause__ or chained.__context__


def hiding(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, of whose errors nobody sees that the agent stands around them."""

    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            hide_agent(error)
            raise

    return called


class CapturingSerializer:
    """Writes what the chain gives, then ends the run (steps 3 to 5 of the module's protocol)."""

    def __init__(self, inner: Any, manifests: Any) -> None:
        self.inner = inner
        self.manifests = manifests  # a PySpark accumulator of lists of JSON manifests

    def dump_stream(self, records: Any, stream: Any) -> None:
        global current
        run = current
        try:
            try:
                self.inner.dump_stream(records, stream)
            except BaseException as error:
                hide_agent(error)
                if run is not None and isinstance(error, OSError):
                    # The JVM hung up: its task had enough of what has not found room in a cache. Who reads
                    # this is told that it was computed anew, and is not taken for a reader of the cache.
                    with contextlib.suppress(Exception):
                        run.close()
                raise
            finally:
                # PySpark closes a chain's generator here; ours hides it behind a counter.
                if run is not None and hasattr(run.result, "close"):
                    run.result.close()
            if run is not None:
                self._end(run)
        finally:
            current = None
            if run is not None:
                run.forget()

    def _end(self, run: Run) -> None:
        dropped, problem = run.close()
        if dropped and run.plan.settings.on_error == "fail":
            raise DeliveryError(
                f"lineage of split {run.split} is incomplete, and spark.lineage.onError=fail: {dropped} of "
                f"{run.blocks} blocks are lost; {problem}"
            )
        self.manifests.add([run.manifest(dropped, problem)])


class Manifests:
    """AccumulatorParam: lists of JSON manifests. On the driver they go to `publish` and are not kept.

    Spark applies an accumulator's update only for attempts that it accepts; that makes it the channel for
    commit manifests.
    """

    publish: Callable[[str], None] | None = None

    def zero(self, _value: list[str]) -> list[str]:
        return []

    def addInPlace(self, held: list[str], more: list[str]) -> list[str]:
        if self.publish is None:
            return held + more
        for manifest in more:
            self.publish(manifest)
        return []

    def __getstate__(self) -> dict[str, Any]:
        return {}  # workers collect; only the driver publishes

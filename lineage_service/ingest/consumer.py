"""From topics to stores: the loop of one member of the consumer group, and the protocol of a batch.

Promises that nothing is skipped and nothing doubled, whenever this process dies, and that memory stays
bounded. Each topic partition's messages are gathered until there are enough bytes or enough time has passed;
a batch of them then goes, in this order:
 1. What cannot be decoded is sent to the dead letters, and its delivery awaited.
 2. The flow store gets the batch, with its offset, in Delta transactions.
 3. The graph gets the events.
 4. The offset is committed to the group.
A step that fails because a store is away is tried again, with pauses, and with it the steps after it; until
then no messages are taken. Nor are they while a store is slow: steps are done in a thread of their own, and
this one goes on polling, so that the group sees a living member. After a crash the batch is read again: 1 may
repeat letters, 2 knows what it has, 3 may be applied twice, and 4 only tells how far all stores are. So
reading begins at the flow store's own offset; for events, at the committed one if that is lower, since the
graph may lack what is between.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

from lineage_service.decode.batches import (
    DeadLetter,
    EventBatch,
    FlowBatch,
    Message,
    event_batch,
    flow_batch,
    source_of,
)
from lineage_service.errors import LineageError, UnavailableError
from lineage_service.graph.rows import GraphDataError
from lineage_service.kafka.dead_letters import DeadLetters
from lineage_service.kafka.subscription import POLL_MESSAGES, Owner, Place, Subscription
from lineage_service.store.flow_store import FlowStore
from spark_agent import contract

__all__ = [
    "Consumer",
    "Counters",
    "EventSink",
    "Limits",
    "Observer",
    "TopicReplacedError",
    "resume_offset",
]

logger = logging.getLogger(__name__)

POLL_S = 0.1
#: A step that takes longer is waited for while polling. Shorter, pauses would cost what was read ahead.
SLOW_S = 5.0
#: What a message takes beside its bytes: 230 in Python (measured), and as much while it is decoded.
MESSAGE_OVERHEAD = 500
#: What was done is logged when something changed, at most so often, and at the end.
LOG_S = 30.0
RETRY_FIRST_S, RETRY_LAST_S = 0.25, 15.0


class TopicReplacedError(LineageError):
    """A topic ends before the offset that the store has of it: others will stand where those did."""


class EventSink(Protocol):
    """What the consumer needs of a `graph_store.GraphStore`."""

    def write_events(self, events: Sequence[Mapping[str, Any]]) -> None: ...

    def delete_application(self, application_id: str) -> None: ...


class Observer(Protocol):
    """Is told of batches: `metrics.BatchMetrics`."""

    def batch(self, topic: str, messages: int, size: int) -> None:
        """A batch was made, of so many bytes."""

    def step(self, store: str, seconds: float) -> None:
        """A store (flow_store, graph, dead_letters, offsets) has a batch, after so long."""


class _Nobody:
    def batch(self, topic: str, messages: int, size: int) -> None: ...

    def step(self, store: str, seconds: float) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """A partition's messages are written when they have so many bytes, or the first is so old.

    All partitions together hold `gathered_bytes` at most before one of them is written, and one message more.
    """

    max_bytes: int
    max_seconds: float
    gathered_bytes: int = 128_000_000


@dataclass(slots=True)
class Counters:
    """What this process did since it started."""

    messages: int = 0
    bytes: int = 0
    batches: int = 0
    blocks: int = 0
    rows: int = 0
    events: int = 0
    repeated: int = 0
    dead_letters: int = 0
    retries: int = 0

    def __str__(self) -> str:
        return ", ".join(
            f"{getattr(self, each.name):,} {each.name.replace('_', ' ')}" for each in fields(self)
        )


def resume_offset(held: int | None, committed: int | None, *, has_graph: bool) -> int | None:
    """Where to read on: never behind what a store lacks. None: from the beginning.

    `held` is what the flow store has of the source. The committed offset is no further than all stores were,
    so only a graph needs it; a store that was removed lacks everything, whatever the group says.
    """
    if held is None or not has_graph:
        return held
    return None if committed is None else min(held, committed)


class Consumer(Owner):
    """One member of the group. `subscribe` joins it."""

    def __init__(
        self,
        subscribe: Callable[[Owner], Subscription],
        store: FlowStore,
        graph: EventSink | None,
        dead_letters: DeadLetters,
        *,
        group: str,
        node_topic: str,
        limits: Limits,
        observer: Observer | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._graph = graph
        self._dead_letters = dead_letters
        self._group = group
        self._node_topic = node_topic
        self._limits = limits
        self._observer = observer or _Nobody()
        self._clock = clock
        self.counters = Counters()
        self.is_stopping = False
        self.trouble = ""
        self._sources: dict[tuple[str, int], str] = {}
        self._gathered: dict[tuple[str, int], _Gathered] = {}
        self._work: _Work | None = None
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="stores")
        self._under_way: Future[None] | None = None
        self._is_slow = False
        self._is_paused = False
        self._retry_at = 0.0
        self._retry_s = 0.0
        self._logged = Counters()
        self._log_at = 0.0
        self._subscription = subscribe(self)

    # -- the loop ------------------------------------------------------------------------------------

    def run(self, is_done: Callable[[], bool] = lambda: False) -> bool:
        """Consume until `stop` was called or `is_done` says so; then write what was taken, and leave.

        False if a store is away that lacks some of it: `trouble` says which and why.
        """
        try:
            is_busy = False
            while not self.is_stopping and not is_done():
                self._gather(self._subscription.poll(0.0 if is_busy else POLL_S, self._room()))
                is_busy = self._write_next(self._is_due)
                while self._is_full() and self._write_next(self._is_due):
                    pass
                self._log()
            while self._write_next(lambda _gathered: True, is_patient=True):
                pass
            return self._work is None and not self._gathered
        finally:
            self._subscription.close()
            self._worker.shutdown()
            self._log(at_once=True)

    def stop(self) -> None:
        """Let `run` come to its end. May be called from a signal handler."""
        self.is_stopping = True

    # Both may be asked from another thread.

    @property
    def is_waiting(self) -> bool:
        """A store is away or slow, so no messages are taken."""
        return self._is_paused

    @property
    def gathered_bytes(self) -> int:
        """Bytes of the messages that are not yet in a batch."""
        return sum(gathered.bytes for gathered in list(self._gathered.values()))

    def _gather(self, messages: Sequence[Message]) -> None:
        for message in messages:
            place = message.topic, message.partition
            if place not in self._gathered:
                self._gathered[place] = _Gathered(self._clock())
            self._gathered[place].add(message)
            self.counters.messages += 1
            self.counters.bytes += message.bytes

    def _write_next(self, is_wanted: Callable[[_Gathered], bool], *, is_patient: bool = False) -> bool:
        """Take one batch through its steps; False if none is wanted, or a store is away or slow."""
        if self._clock() < self._retry_at:
            return False
        if self._under_way is not None and self._work is None:  # its batch belongs to another member now
            if not self._is_over(self._under_way, is_patient=is_patient):
                return False
            self._under_way = None
        self._work = self._work or self._next_work(is_wanted)
        if self._work is None:
            self._go_on()
            return False
        if not self._finish(self._work, is_patient=is_patient):
            return False
        self._work = None
        return True

    def _finish(self, work: _Work, *, is_patient: bool) -> bool:
        """The steps of the module's protocol, from the first that is not done.

        False if one failed, or is not over.
        """
        try:
            while work.steps:
                step = work.steps[0]
                if self._under_way is None:
                    work.begun = self._clock()
                if step.is_quick:
                    step.do()
                else:
                    self._under_way = self._under_way or self._worker.submit(step.do)
                    if not self._is_over(self._under_way, is_patient=is_patient):
                        return False
                    done, self._under_way = self._under_way, None
                    done.result()
                work.steps.popleft()
                self._observer.step(step.store, self._clock() - work.begun)
        except UnavailableError as error:
            self._wait(error)
            return False
        self._go_on()
        return True

    def _is_over(self, step: Future[None], *, is_patient: bool) -> bool:
        """True if the step has ended; if it has not within the time, no messages are taken from now on."""
        # Of a step that was seen to be slow the next poll is the wait.
        wait([step], None if is_patient else 0.0 if self._is_slow else SLOW_S)
        self._is_slow = not step.done()
        if self._is_slow:
            self._pause()
        return step.done()

    def _pause(self) -> None:
        if not self._is_paused:
            self._is_paused = True
            self._subscription.pause()

    def _go_on(self) -> None:
        """Take messages again after a time of waiting."""
        if self._retry_s:
            logger.info("going on")
            self._retry_s = 0.0
        if self._is_paused:
            self._is_paused = False
            self._subscription.resume()

    def _wait(self, error: UnavailableError) -> None:
        """Take no messages, stay in the group, try again later."""
        self.counters.retries += 1
        self._pause()
        self.trouble = str(error)
        self._retry_s = min(max(2 * self._retry_s, RETRY_FIRST_S), RETRY_LAST_S)
        self._retry_at = self._clock() + self._retry_s
        logger.warning("trying again in %.2g s: %s", self._retry_s, error)

    # -- batches -------------------------------------------------------------------------------------

    def _is_due(self, gathered: _Gathered) -> bool:
        return (
            gathered.bytes >= self._limits.max_bytes
            or self._clock() - gathered.since >= self._limits.max_seconds
            or self._is_full()
        )

    def _is_full(self) -> bool:
        return self._held() >= self._limits.gathered_bytes

    def _held(self) -> int:
        return sum(each.bytes + MESSAGE_OVERHEAD * len(each.messages) for each in self._gathered.values())

    def _room(self) -> int:
        """How many messages may be taken; one at least, for what is full is written before the next."""
        room = (self._limits.gathered_bytes - self._held()) // contract.MAX_MESSAGE_BYTES
        return min(max(room, 1), POLL_MESSAGES)

    def _next_work(self, is_wanted: Callable[[_Gathered], bool]) -> _Work | None:
        """A batch of the wanted partition that waits longest, so that none starves beside busier ones."""
        wanted = [place for place, gathered in self._gathered.items() if is_wanted(gathered)]
        if not wanted:
            return None
        place = min(wanted, key=lambda each: self._gathered[each].since)
        gathered = self._gathered[place]
        source = self._sources[place]
        work = (
            self._event_work(place, event_batch(source, gathered.messages))
            if place[0] == self._node_topic
            else self._flow_work(place, flow_batch(source, gathered.messages))
        )
        size = gathered.take(work.messages, self._clock())
        self._observer.batch(place[0], work.messages, size)
        if not gathered.messages:
            del self._gathered[place]
        return work

    def _flow_work(self, place: tuple[str, int], batch: FlowBatch) -> _Work:
        return self._work_of(place, batch, _Step("flow_store", partial(self._store_flows, batch)))

    def _event_work(self, place: tuple[str, int], batch: EventBatch) -> _Work:
        steps = [_Step("flow_store", partial(self._store_events, batch))]
        if self._graph is not None and batch.rows:
            steps.append(_Step("graph", partial(self._draw, self._graph, batch)))
        return self._work_of(place, batch, *steps)

    def _work_of(self, place: tuple[str, int], batch: FlowBatch | EventBatch, *stores: _Step) -> _Work:
        first = [_Step("dead_letters", partial(self._bury, batch.dead_letters))] if batch.dead_letters else []
        commit = partial(self._subscription.commit, *place, batch.next_offset)
        last = _Step("offsets", commit, is_quick=True)
        return _Work(place, batch.messages, deque([*first, *stores, last]))

    def _store_flows(self, batch: FlowBatch) -> None:
        written = self._store.write_flows(batch)
        self.counters.blocks += len(batch.rows) - written.repeated
        self.counters.rows += written.rows
        self.counters.repeated += written.repeated
        self.counters.batches += 1

    def _store_events(self, batch: EventBatch) -> None:
        written = self._store.write_events(batch)
        self.counters.events += written.rows
        self.counters.repeated += written.repeated
        self.counters.batches += 1

    def _bury(self, letters: Sequence[DeadLetter]) -> None:
        if letters:
            self._dead_letters.send(letters)
            self.counters.dead_letters += len(letters)
            logger.warning(
                "%d messages cannot be used and are dead letters now; the first, %s-%d offset %d: %s",
                len(letters),
                letters[0].message.topic,
                letters[0].message.partition,
                letters[0].message.offset,
                letters[0].reason,
            )

    def _draw(self, graph: EventSink, batch: EventBatch) -> None:
        """Put the events into the graph; one that cannot stand there is found by halving, and buried."""
        refused: list[DeadLetter] = []
        applications = {row.application_id for _, row in batch.rows}
        deleted = self._store.deleted(applications)
        pieces = [[each for each in batch.rows if each[1].application_id not in deleted]]
        while pieces:
            piece = pieces.pop()
            if not piece:
                continue
            try:
                graph.write_events([row.event for _, row in piece])
            except GraphDataError as error:
                if len(piece) == 1:
                    refused.append(DeadLetter(message=piece[0][0], reason=str(error)))
                else:
                    middle = len(piece) // 2
                    pieces += [piece[middle:], piece[:middle]]
        # Marked while it was drawn, perhaps by who died of it: whoever deletes may have been there before.
        for each in sorted(self._store.deleted(applications)):
            graph.delete_application(each)
        self._bury(refused)

    # -- the owner of partitions -----------------------------------------------------------------------

    def start_at(self, place: Place) -> int | None:
        """Where all stores are. Raises TopicReplacedError."""
        source = source_of(place.topic_id or self._group, place.topic, place.partition)
        self._sources[place.topic, place.partition] = source
        try:
            held = self._store.offset(source)
        except UnavailableError as error:
            logger.warning(
                "reading %s from its beginning; what is stored is skipped later: %s", source, error
            )
            return None
        if held is not None and place.next is not None and held > place.next:
            raise TopicReplacedError(
                f"the flow store has {place.topic}-{place.partition} up to offset {held}, but the topic ends "
                f"at {place.next}: it lost messages. Make the topic anew, or consume it into another "
                "--store, as another --consumer-group"
            )
        has_graph = self._graph is not None and place.topic == self._node_topic
        offset = resume_offset(held, place.committed, has_graph=has_graph)
        if held is not None and place.first is not None and (offset or 0) < place.first:
            logger.warning(
                "%s: messages %d to %d expired before every store had them",
                source,
                offset or 0,
                place.first - 1,
            )
        return offset

    def revoked(self, topic: str, partition: int) -> None:
        """Forget what is not stored: its next owner reads it again."""
        place = topic, partition
        self._gathered.pop(place, None)
        if self._work is not None and self._work.place == place:
            self._work = None

    def _log(self, *, at_once: bool = False) -> None:
        now = self._clock()
        if self.counters != self._logged and (at_once or now >= self._log_at):
            logger.info("%s", self.counters)
            self._logged = replace(self.counters)
            self._log_at = now + LOG_S


@dataclass(slots=True)
class _Gathered:
    """Messages of one topic partition that are not yet a batch."""

    since: float
    bytes: int = 0
    messages: list[Message] = field(default_factory=list)

    def add(self, message: Message) -> None:
        self.messages.append(message)
        self.bytes += message.bytes

    def take(self, count: int, now: float) -> int:
        """Leave out the first messages; their bytes."""
        taken = sum(message.bytes for message in self.messages[:count])
        self.since = now
        self.bytes -= taken
        del self.messages[:count]
        return taken


class _Step(NamedTuple):
    """What brings a batch into one store. One that is quick is done in the thread that polls."""

    store: str
    do: Callable[[], None]
    is_quick: bool = False


@dataclass(slots=True)
class _Work:
    """A batch on its way, with the steps that are not done."""

    place: tuple[str, int]
    messages: int
    steps: deque[_Step]
    begun: float = 0.0  # the step that is under way

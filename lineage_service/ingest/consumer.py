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
repeat letters, 2 knows what it has, 3 may be applied twice, and 4 only reports how far all stores are. So
reading begins at the flow store's own offset; for events, at the committed one if that is lower, since the
graph may lack what is between.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Protocol

from lineage_service.decode.batches import Message, event_batch, flow_batch, source_of
from lineage_service.errors import LineageError, UnavailableError
from lineage_service.ingest.batch_steps import BatchSteps, Counters, EventSink, Work
from lineage_service.ingest.gathered_messages import GatheredMessages, Limits
from lineage_service.kafka.dead_letters import DeadLetters
from lineage_service.kafka.subscription import Assignment, Owner, Subscription
from lineage_service.store.flow_store import FlowStore

__all__ = ["Consumer", "Observer", "TopicReplacedError", "resume_offset"]

logger = logging.getLogger(__name__)

POLL_S = 0.1
#: A step that takes longer is waited for while polling. Shorter, pauses would cost what was read ahead.
SLOW_S = 5.0
#: What was done is logged when something changed, at most so often, and at the end.
LOG_S = 30.0
RETRY_FIRST_S, RETRY_LAST_S = 0.25, 15.0


class TopicReplacedError(LineageError):
    """A topic ends before the offset that the store has of it: others will stand where those did."""


class Observer(Protocol):
    """Observes batches: `metrics.BatchMetrics`."""

    def batch(self, topic: str, messages: int, size: int) -> None:
        """A batch was made, of so many bytes."""

    def step(self, store: str, seconds: float) -> None:
        """A store (flow_store, graph, dead_letters, offsets) has a batch, after so long."""


class _NoObserver:
    def batch(self, topic: str, messages: int, size: int) -> None: ...

    def step(self, store: str, seconds: float) -> None: ...


def resume_offset(stored: int | None, committed: int | None, *, has_graph: bool) -> int | None:
    """Where to read on: never behind what a store lacks. None: from the beginning.

    `stored` is what the flow store has of the source. The committed offset is no further than all stores
    were, so only a graph needs it; a store that was removed lacks everything, whatever the group says.
    """
    if stored is None or not has_graph:
        return stored
    return None if committed is None else min(stored, committed)


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
        self._has_graph = graph is not None
        self._group = group
        self._node_topic = node_topic
        self._observer = observer or _NoObserver()
        self._clock = clock
        self.counters = Counters()
        self.is_stopping = False
        self.trouble = ""
        self._sources: dict[tuple[str, int], str] = {}
        self._gathered = GatheredMessages(limits, clock)
        self._work: Work | None = None
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="stores")
        self._under_way: Future[None] | None = None
        self._is_slow = False
        self._is_paused = False
        self._retry_at = 0.0
        self._retry_s = 0.0
        self._logged = Counters()
        self._log_at = 0.0
        self._subscription = subscribe(self)
        self._steps = BatchSteps(store, graph, dead_letters, self._subscription.commit, self.counters)

    # -- the loop ------------------------------------------------------------------------------------

    def run(self, is_done: Callable[[], bool] = lambda: False) -> bool:
        """Consume until `stop` was called or `is_done` says so; then write what was taken, and leave.

        False if a store is away that lacks some of it: `trouble` says which and why.
        """
        try:
            is_busy = False
            while not self.is_stopping and not is_done():
                self._gather(self._subscription.poll(0.0 if is_busy else POLL_S, self._gathered.room()))
                is_busy = self._write_next()
                while self._gathered.is_full and self._write_next():
                    pass
                self._log()
            while self._write_next(is_end=True):
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
        return self._gathered.bytes

    def _gather(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self._gathered.add(message)
            self.counters.messages += 1
            self.counters.bytes += message.bytes

    def _write_next(self, *, is_end: bool = False) -> bool:
        """Take one batch through its steps; False if none is due, or a store is away or slow.

        At the end all that was gathered is due, and a slow store is waited for.
        """
        if self._clock() < self._retry_at:
            return False
        if self._under_way is not None and self._work is None:  # its batch belongs to another member now
            if not self._is_over(self._under_way, is_end=is_end):
                return False
            self._under_way = None
        self._work = self._work or self._next_work(is_end=is_end)
        if self._work is None:
            self._go_on()
            return False
        if not self._finish(self._work, is_end=is_end):
            return False
        self._work = None
        return True

    def _next_work(self, *, is_end: bool) -> Work | None:
        place = self._gathered.next(is_due=not is_end)
        if place is None:
            return None
        source, messages = self._sources[place], self._gathered[place]
        work = (
            self._steps.of_events(place, event_batch(source, messages))
            if place[0] == self._node_topic
            else self._steps.of_flows(place, flow_batch(source, messages))
        )
        self._observer.batch(place[0], work.messages, self._gathered.take(place, work.messages))
        return work

    def _finish(self, work: Work, *, is_end: bool) -> bool:
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
                    if not self._is_over(self._under_way, is_end=is_end):
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

    def _is_over(self, step: Future[None], *, is_end: bool) -> bool:
        """True if the step has ended; if it has not within the time, no messages are taken from now on."""
        # Of a step that was seen to be slow the next poll is the wait.
        wait([step], None if is_end else 0.0 if self._is_slow else SLOW_S)
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

    # -- the owner of partitions -----------------------------------------------------------------------

    def start_at(self, assignment: Assignment) -> int | None:
        """Where all stores are. Raises TopicReplacedError."""
        source = source_of(assignment.topic_id or self._group, assignment.topic, assignment.partition)
        self._sources[assignment.topic, assignment.partition] = source
        try:
            stored = self._store.offset(source)
        except UnavailableError as error:
            logger.warning(
                "reading %s from its beginning; what is stored is skipped later: %s", source, error
            )
            return None
        if stored is not None and assignment.next is not None and stored > assignment.next:
            raise TopicReplacedError(
                f"the flow store has {assignment.topic}-{assignment.partition} up to offset {stored}, but "
                f"the topic ends at {assignment.next}: it lost messages. Recreate the topic, or consume it "
                "into another --store, as another --consumer-group"
            )
        has_graph = self._has_graph and assignment.topic == self._node_topic
        offset = resume_offset(stored, assignment.committed, has_graph=has_graph)
        if stored is not None and assignment.first is not None and (offset or 0) < assignment.first:
            logger.warning(
                "%s: messages %d to %d expired before every store had them",
                source,
                offset or 0,
                assignment.first - 1,
            )
        return offset

    def revoked(self, topic: str, partition: int) -> None:
        """Forget what is not stored: its next owner reads it again."""
        place = topic, partition
        self._gathered.drop(place)
        if self._work is not None and self._work.place == place:
            self._work = None

    def _log(self, *, at_once: bool = False) -> None:
        now = self._clock()
        if self.counters != self._logged and (at_once or now >= self._log_at):
            logger.info("%s", self.counters)
            self._logged = replace(self.counters)
            self._log_at = now + LOG_S

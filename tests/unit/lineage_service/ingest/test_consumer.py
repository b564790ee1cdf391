"""The protocol of a batch, with twins instead of Kafka and Delta, and a clock that is told the time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from lineage_service.decode.batches import FlowBatch
from lineage_service.graph.graph_store import GraphUnavailableError
from lineage_service.graph.row_values import GraphDataError
from lineage_service.ingest import consumer
from lineage_service.ingest.consumer import RETRY_LAST_S, Consumer, TopicReplacedError, resume_offset
from lineage_service.ingest.gathered_messages import MESSAGE_OVERHEAD, Limits
from lineage_service.kafka.subscription import Assignment, Owner
from lineage_service.store.errors import StoreConflictError, StoreUnavailableError
from lineage_service.store.flow_store import Written
from lineage_service.testing.dead_letters import MemoryDeadLetters
from lineage_service.testing.flow_store import MemoryFlowStore
from lineage_service.testing.subscription import MemoryLog, MemorySubscription
from spark_agent import contract
from tests.support.lineage_messages import APP, block, event

FLOW, NODE = "flow", "node"


class RecordingGraph:
    """Keeps the events that it was given; `failures` are raised first, one for each call."""

    def __init__(self) -> None:
        self.events: list[Mapping[str, Any]] = []
        self.failures: list[Exception] = []
        self.unwanted = ""
        self.when_written: list[Callable[[], object]] = []

    def write_events(self, events: Sequence[Mapping[str, Any]]) -> None:
        if self.failures:
            raise self.failures.pop(0)
        if any(message.get("name") == self.unwanted for message in events if self.unwanted):
            raise GraphDataError("this event cannot stand in the graph")
        self.events.extend(events)
        for each in self.when_written:
            each()

    def delete_application(self, application_id: str) -> None:
        self.events = [message for message in self.events if message["application_id"] != application_id]


class FailingStore(MemoryFlowStore):
    def __init__(self) -> None:
        super().__init__()
        self.failures: list[Exception] = []

    def write_flows(self, batch: FlowBatch) -> Written:
        if self.failures:
            raise self.failures.pop(0)
        return super().write_flows(batch)


class Bench:
    """One consumer over twins. `turn` is one turn of the loop, half a second later."""

    def __init__(
        self,
        *,
        has_graph: bool = True,
        max_bytes: int = 10**6,
        max_seconds: float = 0.0,
        gathered_bytes: int = 10**9,
    ) -> None:
        self.log = MemoryLog()
        self.store = FailingStore()
        self.graph = RecordingGraph() if has_graph else None
        self.dead_letters = MemoryDeadLetters()
        self.limits = Limits(max_bytes=max_bytes, max_seconds=max_seconds, gathered_bytes=gathered_bytes)
        self.now = 100.0
        self.start()

    def start(self) -> None:
        """A new process, over what is in the log and in the stores."""
        self.subscription: MemorySubscription = None  # type: ignore[assignment] # made within Consumer
        self.consumer = Consumer(
            self._subscribe,
            self.store,
            self.graph,
            self.dead_letters,
            group="group",
            node_topic=NODE,
            limits=self.limits,
            clock=lambda: self.now,
        )

    def _subscribe(self, owner: Owner) -> MemorySubscription:
        self.subscription = MemorySubscription(self.log, owner)
        return self.subscription

    def run(self, turns: int = 1, each_turn: Callable[[int], None] = lambda _turn: None) -> None:
        """A process that lives for so many turns and then dies: nothing that comes after the loop is done."""
        at = -1

        def is_done() -> bool:
            nonlocal at
            at += 1
            if at == turns:
                raise Killed
            self.now += 0.5
            each_turn(at)
            return False

        with pytest.raises(Killed):
            self.consumer.run(is_done)

    @property
    def receipts(self) -> list[tuple[int, int]]:
        return sorted(self.store.receipts(APP))


class Killed(Exception):
    pass


def test_messages_reach_every_store_and_then_the_offset_is_committed() -> None:
    bench = Bench()
    bench.log.append(FLOW, 3, block(seq=0), block(seq=1))
    bench.log.append(NODE, 0, event(contract.LINK))
    bench.run(2)
    assert bench.receipts == [(1, 0), (1, 1)]
    assert [message["type"] for message in bench.graph.events] == ["link"]
    assert bench.log.committed == {(FLOW, 3): 2, (NODE, 0): 1}
    assert bench.store.offset("group/flow-3") == 2


def test_what_was_done_is_logged_when_it_changes_every_half_minute_at_most_and_at_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger=consumer.__name__)
    bench = Bench()
    bench.run(200, lambda turn: bench.log.append(FLOW, 0, block(seq=turn)))  # 100 s
    # As they were written: the counters go on counting.
    said = [record.message.partition(",")[0] for record in caplog.records]
    assert said == [f"{count} messages" for count in (1, 61, 121, 181, 200)]
    caplog.clear()
    bench.run(100)
    assert caplog.records == []


def test_a_batch_waits_until_it_is_old_enough() -> None:
    bench = Bench(max_seconds=2.0)
    bench.log.append(FLOW, 0, block())
    bench.run(4)
    assert bench.receipts == []
    bench.start()
    bench.run(6)
    assert bench.receipts == [(1, 0)]


def test_a_batch_is_written_when_it_is_large_enough() -> None:
    bench = Bench(max_seconds=1e9, max_bytes=len(block()) * 2)
    bench.log.append(FLOW, 0, block(seq=0))
    bench.run()
    assert bench.receipts == []
    bench.log.append(FLOW, 0, block(seq=1))
    bench.start()
    bench.run()
    assert bench.receipts == [(1, 0), (1, 1)]


def test_all_partitions_together_hold_a_bounded_number_of_bytes() -> None:
    each = len(block()) + MESSAGE_OVERHEAD
    bench = Bench(max_seconds=1e9, gathered_bytes=4 * each)
    for partition in range(8):
        bench.log.append(FLOW, partition, block(run=partition))
    bench.run(3)
    assert bench.receipts == []  # three messages, one a turn
    bench.start()
    bench.run(8)
    assert len(bench.receipts) == 5  # the rest is below the bound


def test_a_store_that_is_slow_is_waited_for_as_a_living_member(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer, "SLOW_S", 0.01)
    bench = Bench()
    polls, is_done = 0, threading.Event()
    write = bench.store.write_flows

    def slow(batch: FlowBatch) -> Written:
        assert is_done.wait(30)
        return write(batch)

    def count(turn: int) -> None:
        nonlocal polls
        bench.log.append(FLOW, 1, block(run=2, seq=turn))
        polls += bench.subscription.is_paused
        if polls == 5:
            is_done.set()
        if polls >= 5:
            time.sleep(0.01)  # the thread that writes gets its turn

    bench.store.write_flows = slow  # type: ignore[method-assign]
    bench.log.append(FLOW, 0, block(run=1))
    bench.run(40, count)
    assert polls >= 5
    assert not bench.consumer.is_waiting
    assert bench.receipts == [(1, 0), *((2, seq) for seq in range(40))]


def test_what_is_written_of_a_partition_that_was_taken_away_meanwhile_is_not_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consumer, "SLOW_S", 0.01)
    bench = Bench()
    is_done = threading.Event()
    write = bench.store.write_flows

    def slow(batch: FlowBatch) -> Written:
        assert is_done.wait(30)
        return write(batch)

    def take_away(turn: int) -> None:
        if turn == 3:
            bench.subscription.revoke(FLOW, 0)
            bench.log.append(FLOW, 1, block(run=2))
            is_done.set()
        if turn > 3:
            time.sleep(0.01)  # the thread that writes gets its turn

    bench.store.write_flows = slow  # type: ignore[method-assign]
    bench.log.append(FLOW, 0, block(run=1))
    bench.run(20, take_away)
    assert bench.receipts == [(1, 0), (2, 0)]
    assert bench.log.committed == {(FLOW, 1): 1}


def test_the_group_is_told_what_a_member_stored_and_did_not_live_to_tell() -> None:
    bench = Bench(has_graph=False)
    bench.log.append(FLOW, 0, block(seq=0), block(seq=1))
    bench.run()
    bench.log.committed.clear()
    bench.start()
    bench.run()
    assert bench.log.committed == {(FLOW, 0): 2}


def test_a_topic_that_was_made_anew_is_read_from_its_beginning() -> None:
    bench = Bench(has_graph=False)
    bench.log.append(FLOW, 0, block(seq=0), block(seq=1))
    bench.run()
    bench.log = MemoryLog(topic_id="another")
    bench.log.append(FLOW, 0, block(run=2))
    bench.start()
    bench.run()
    assert bench.receipts == [(1, 0), (1, 1), (2, 0)]


def test_a_quiet_partition_is_not_starved_by_busy_ones() -> None:
    bench = Bench()
    bench.log.append(NODE, 0, event(contract.LINK))

    def more(turn: int) -> None:
        for partition in range(3):
            bench.log.append(
                FLOW, partition, *(block(run=partition, seq=10 * turn + seq) for seq in range(10))
            )

    bench.run(6, more)
    assert len(bench.graph.events) == 1


def test_poison_goes_to_the_dead_letters_and_the_rest_goes_on() -> None:
    bench = Bench()
    bench.log.append(FLOW, 0, block(seq=0), b"poison", block(seq=1))
    bench.log.append(NODE, 0, b"{}", event(contract.LINK))
    bench.run(2)
    assert bench.receipts == [(1, 0), (1, 1)]
    found = {(letter.message.topic, letter.message.offset): letter for letter in bench.dead_letters.letters}
    assert found.keys() == {(FLOW, 1), (NODE, 0)}
    assert found[FLOW, 1].message.value == b"poison"
    assert "shorter than its preamble" in found[FLOW, 1].reason
    assert bench.consumer.counters.dead_letters == 2
    assert bench.log.committed == {(FLOW, 0): 3, (NODE, 0): 2}


def test_offsets_are_not_committed_before_dead_letters_are_delivered() -> None:
    bench = Bench()
    bench.dead_letters.send = _unavailable  # type: ignore[method-assign]
    bench.log.append(FLOW, 0, b"poison")
    bench.run(3)
    assert bench.log.committed == {}
    assert bench.store.offset("group/flow-0") is None


def _unavailable(*_: object) -> None:
    raise StoreUnavailableError("away")


def test_an_event_that_cannot_stand_in_the_graph_is_found_and_buried() -> None:
    bench = Bench()
    bench.graph.unwanted = "bad"
    names = ["a", "b", "bad", "c", "d"]
    bench.log.append(NODE, 0, *(event(contract.NODE_REGISTERED, name=name) for name in names))
    bench.run()
    assert [message["name"] for message in bench.graph.events] == ["a", "b", "c", "d"]
    assert [letter.message.offset for letter in bench.dead_letters.letters] == [2]
    assert bench.log.committed == {(NODE, 0): 5}


def test_while_a_store_is_away_no_messages_are_taken_and_none_is_lost() -> None:
    bench = Bench()
    bench.store.failures = [StoreUnavailableError("away")] * 3
    bench.log.append(FLOW, 0, block(seq=0))
    paused: list[bool] = []

    def more(turn: int) -> None:
        paused.append(bench.subscription.is_paused)
        bench.log.append(FLOW, 0, block(seq=turn + 1))

    bench.run(8, more)
    assert paused[:3] == [False, True, True]
    assert paused[-1] is False
    assert bench.receipts == [(1, seq) for seq in range(9)]
    assert bench.consumer.counters.retries == 3


def test_the_pause_between_tries_grows_to_a_bound() -> None:
    bench = Bench()
    bench.store.failures = [StoreUnavailableError("away")] * 1000
    bench.log.append(FLOW, 0, block())
    bench.run(400)
    assert 200 / RETRY_LAST_S - 5 < bench.consumer.counters.retries < 200 / RETRY_LAST_S + 8


def test_a_graph_that_is_away_keeps_the_offset_back_but_not_the_flow_store() -> None:
    bench = Bench()
    bench.graph.failures = [GraphUnavailableError("away")] * 2
    bench.log.append(NODE, 0, event(contract.LINK))
    bench.run(1)
    assert bench.store.offset("group/node-0") == 1
    assert bench.log.committed == {}
    bench.start()  # it dies here; the graph lacks what the flow store has
    bench.run(8)
    assert [message["type"] for message in bench.graph.events] == ["link"]
    assert bench.log.committed == {(NODE, 0): 1}
    assert len(bench.store.events(APP)) == 1


@pytest.mark.parametrize("dies", [False, True])
def test_an_application_that_is_deleted_while_it_is_drawn_does_not_stay_in_the_graph(dies: bool) -> None:
    bench = Bench()

    def deleted_meanwhile() -> None:  # and the graph was looked at a moment before
        bench.store.delete(APP)
        if dies:
            bench.graph.when_written.clear()
            raise Killed

    bench.graph.when_written = [deleted_meanwhile]
    bench.log.append(NODE, 0, event(contract.LINK), event(contract.LINK, application_id="app-2"))
    bench.run(2)
    if dies:
        assert len(bench.graph.events) == 2
        bench.start()
        bench.run(2)
    assert {message["application_id"] for message in bench.graph.events} == {"app-2"}


def test_what_comes_late_of_a_deleted_application_reaches_no_store_and_its_offset_is_committed() -> None:
    bench = Bench()
    bench.store.delete(APP)
    late = event(contract.LINK), event(contract.LINK, application_id="app-2")
    bench.log.append(NODE, 0, *late)
    bench.log.append(FLOW, 0, block())
    bench.run(4)
    assert [message["application_id"] for message in bench.graph.events] == ["app-2"]
    assert bench.store.applications() == ["app-2"]
    assert bench.log.committed == {(NODE, 0): 2, (FLOW, 0): 1}


def test_a_step_that_is_done_is_not_done_again() -> None:
    bench = Bench()
    bench.graph.failures = [GraphUnavailableError("away")] * 2
    bench.log.append(NODE, 0, event(contract.LINK), b"poison")
    bench.run(8)
    assert len(bench.dead_letters.letters) == 1
    assert bench.consumer.counters.batches == 1


def test_a_writer_that_was_too_slow_reads_the_store_anew() -> None:
    bench = Bench()
    bench.store.failures = [StoreConflictError("another was faster")]
    bench.log.append(FLOW, 0, block())
    bench.run(4)
    assert bench.receipts == [(1, 0)]
    assert bench.log.committed == {(FLOW, 0): 1}


def test_a_process_that_died_before_the_commit_doubles_nothing() -> None:
    bench = Bench()
    bench.log.append(FLOW, 0, block(seq=0), b"poison", block(seq=1))
    bench.run()
    bench.log.committed.clear()
    bench.start()
    bench.run()
    assert bench.receipts == [(1, 0), (1, 1)]
    assert len(bench.dead_letters.letters) == 1


def test_a_store_that_was_removed_gets_everything_again() -> None:
    bench = Bench(has_graph=False)
    bench.log.append(FLOW, 0, block(seq=0), block(seq=1))
    bench.run()
    bench.store = FailingStore()
    bench.start()
    bench.run()
    assert bench.receipts == [(1, 0), (1, 1)]


def test_what_was_gathered_of_a_revoked_partition_is_forgotten() -> None:
    bench = Bench(max_seconds=3.0)
    bench.log.append(FLOW, 0, block())
    bench.run(12, lambda turn: bench.subscription.revoke(FLOW, 0) if turn == 2 else None)
    assert bench.receipts == []
    assert bench.log.committed == {}


def test_a_revoked_partition_does_not_hold_up_the_others() -> None:
    bench = Bench()
    bench.store.failures = [StoreUnavailableError("away")]
    bench.log.append(FLOW, 0, block(run=1))

    def other(turn: int) -> None:
        if turn == 1:
            bench.subscription.revoke(FLOW, 0)
            bench.log.append(FLOW, 1, block(run=2))

    bench.run(5, other)
    assert bench.receipts == [(2, 0)]
    assert not bench.subscription.is_paused


def test_a_stop_writes_what_was_taken_and_leaves_the_group() -> None:
    bench = Bench(max_seconds=1e9)
    bench.log.append(FLOW, 0, block())
    turns = iter(range(10))

    def is_done() -> bool:
        if next(turns) == 2:
            bench.consumer.stop()
        return False

    bench.consumer.run(is_done)
    assert bench.receipts == [(1, 0)]
    assert bench.log.committed == {(FLOW, 0): 1}
    assert bench.subscription.is_closed


def test_a_stop_does_not_wait_for_a_store_that_is_away() -> None:
    bench = Bench()
    bench.store.failures = [StoreUnavailableError("away")] * 10
    bench.log.append(FLOW, 0, block())
    turns = iter(range(10))
    bench.consumer.run(lambda: next(turns) == 2)
    assert bench.receipts == []
    assert bench.subscription.is_closed


@pytest.mark.parametrize(
    ("stored", "committed", "has_graph", "expected"),
    [
        (None, None, False, None),
        (None, 9, False, None),  # the store was removed: it lacks all
        (None, 9, True, None),
        (7, None, False, 7),
        (7, None, True, None),  # the graph may lack all
        (7, 5, True, 5),  # died before the graph had the last batch
        (7, 5, False, 7),
        (7, 9, True, 7),  # an older copy of the store was put back
        (7, 9, False, 7),
    ],
)
def test_reading_begins_where_no_store_lacks_anything(
    stored: int | None, committed: int | None, has_graph: bool, expected: int | None
) -> None:
    assert resume_offset(stored, committed, has_graph=has_graph) == expected


def test_a_topic_that_ends_before_what_is_stored_is_refused() -> None:
    bench = Bench()
    bench.log.append(FLOW, 0, block(seq=0), block(seq=1))
    bench.run()
    place = Assignment(topic=FLOW, partition=0, committed=2, first=0, next=1)
    with pytest.raises(TopicReplacedError, match="flow-0 up to offset 2, but the topic ends at 1"):
        bench.consumer.start_at(place)


def test_a_store_that_is_away_at_the_start_is_read_from_the_beginning() -> None:
    bench = Bench()
    bench.store.offset = _unavailable  # type: ignore[method-assign, assignment]
    place = Assignment(topic=FLOW, partition=0, committed=2, first=0, next=5)
    assert bench.consumer.start_at(place) is None

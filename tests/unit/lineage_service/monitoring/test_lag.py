"""The lag of a group and of applications, with twins instead of Kafka and Delta, and a clock of our own."""

from __future__ import annotations

from typing import Any

import pytest

from lineage_service.decode.batches import event_batch, flow_batch
from lineage_service.errors import UnavailableError
from lineage_service.kafka.errors import BrokerUnavailableError
from lineage_service.lineage import GroupLag
from lineage_service.monitoring.incomplete_applications import IncompleteApplications, IncompleteWatch
from lineage_service.monitoring.lag import LagWatch
from lineage_service.testing.flow_store import MemoryFlowStore
from lineage_service.testing.group import MemoryGroup
from spark_agent import contract
from tests.support.lineage_messages import APP, block, event, messages

NODE, FLOW, DEAD = "node", "flow", "dead"
NOW_S = 1_000.0


class CountingStore(MemoryFlowStore):
    """Notes which applications are read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []
        self.messages = 0

    def events(self, application_id: str) -> list[dict[str, Any]]:
        self.read.append(application_id)
        return super().events(application_id)

    def tell(self, *values: bytes) -> None:
        self.write_events(event_batch("g/node-0", messages(*values, first=self.messages)))
        self.messages += len(values)

    def give(self, *values: bytes) -> None:
        self.write_flows(flow_batch("g/flow-0", messages(*values, first=self.messages)))
        self.messages += len(values)


class Bench:
    def __init__(self) -> None:
        self.group = MemoryGroup()
        self.store = CountingStore()
        self.at = 0.0
        self.read_s = 0.0
        self.unfinished = IncompleteWatch(lambda: self.store, clock=self._clock, now=self._now)
        self.watch = LagWatch(
            self.group,
            self.unfinished,
            name="g",
            topics=[NODE, FLOW],
            dead_letter_topic=DEAD,
            clock=lambda: self.at,
            now=self._now,
        )

    def _clock(self) -> float:
        self.at += self.read_s
        return self.at

    def _now(self) -> float:
        return NOW_S + self.at

    def applications(self, budget_s: float = 1.0) -> IncompleteApplications:
        """A look, and the time until the next may be."""
        found = self.unfinished.look(budget_s)
        self.at += 30.0
        return found

    def stamps(self, *ages_s: float) -> list[int]:
        return [int((NOW_S - age) * 1000) for age in ages_s]

    def after(self, seconds: float) -> GroupLag:
        self.at += seconds
        return self.watch.group()


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_messages_wait_from_the_committed_offset_to_the_end(bench: Bench) -> None:
    bench.group.stamps = {(FLOW, 0): bench.stamps(30, 20, 10), (FLOW, 1): bench.stamps(5), (NODE, 0): []}
    bench.group.committed = {(FLOW, 0): 1, (FLOW, 1): 1}
    lag = bench.watch.group()
    found = {
        (partition.topic, partition.partition): (partition.committed, partition.next, partition.messages)
        for partition in lag.partitions
    }
    assert found == {(FLOW, 0): (1, 3, 2), (FLOW, 1): (1, 1, 0), (NODE, 0): (None, 0, 0)}
    assert lag.messages == 2


def test_seconds_are_the_age_of_the_first_message_that_waits(bench: Bench) -> None:
    bench.group.stamps = {(FLOW, 0): bench.stamps(30, 20, 10), (FLOW, 1): bench.stamps(5, 4)}
    bench.group.committed = {(FLOW, 0): 1, (FLOW, 1): 2}
    lag = bench.watch.group()
    assert [partition.seconds for partition in lag.partitions] == [20.0, 0.0]
    assert lag.seconds == 20.0
    assert bench.after(2.0).seconds == 22.0


def test_where_nothing_waits_there_are_no_seconds_and_no_time_is_asked_for(bench: Bench) -> None:
    bench.group.stamps = {(FLOW, 0): bench.stamps(30)}
    bench.group.committed = {(FLOW, 0): 1}
    lag = bench.watch.group()
    assert (lag.messages, lag.seconds, lag.drain_seconds) == (0, 0.0, 0.0)
    assert bench.group.asked == []


def test_a_time_that_was_read_is_not_read_again(bench: Bench) -> None:
    bench.group.stamps = {(FLOW, 0): bench.stamps(30, 20), (FLOW, 1): bench.stamps(5)}
    bench.watch.group()
    bench.after(1.0)
    bench.group.committed = {(FLOW, 0): 1}
    bench.after(1.0)
    assert bench.group.asked == [{(FLOW, 0): 0, (FLOW, 1): 0}, {(FLOW, 0): 1}]


def test_an_age_that_could_not_be_read_is_unknown_and_not_zero(bench: Bench) -> None:
    bench.group.stamps = {(FLOW, 0): bench.stamps(30)}
    bench.group.is_slow = True
    lag = bench.watch.group()
    assert (lag.messages, lag.seconds, lag.partitions[0].seconds) == (1, None, None)


def test_clocks_that_differ_make_no_negative_age(bench: Bench) -> None:
    bench.group.stamps = {(FLOW, 0): bench.stamps(-30)}
    assert bench.watch.group().seconds == 0.0


def test_a_group_that_never_consumed_has_everything_before_it(bench: Bench) -> None:
    bench.group.stamps = {(FLOW, 0): bench.stamps(30, 20, 10)}
    bench.group.first = {(FLOW, 0): 1}
    [found] = bench.watch.group().partitions
    assert (found.committed, found.first, found.messages, found.seconds) == (None, 1, 2, 20.0)


def test_messages_that_expired_do_not_wait(bench: Bench) -> None:
    bench.group.stamps = {(FLOW, 0): bench.stamps(30, 20, 10)}
    bench.group.first, bench.group.committed = {(FLOW, 0): 2}, {(FLOW, 0): 1}
    assert bench.watch.group().messages == 1


def test_a_topic_that_was_made_anew_has_no_negative_lag(bench: Bench) -> None:
    bench.group.stamps, bench.group.committed = {(FLOW, 0): bench.stamps(1)}, {(FLOW, 0): 9}
    assert bench.watch.group().messages == 0


def test_dead_letters_are_counted_and_do_not_wait(bench: Bench) -> None:
    bench.group.stamps = {(DEAD, 0): bench.stamps(3, 2, 1)}
    bench.group.first = {(DEAD, 0): 1}
    lag = bench.watch.group()
    assert (lag.dead_letters, lag.messages, lag.partitions) == (2, 0, ())


def test_rates_and_the_drain_estimate_come_from_two_looks(bench: Bench) -> None:
    bench.group.stamps, bench.group.committed = {(FLOW, 0): [0] * 1_000}, {(FLOW, 0): 0}
    first = bench.watch.group()
    assert (first.rate, first.incoming_rate, first.drain_seconds) == (None, None, None)
    bench.group.committed[FLOW, 0] = 300
    bench.group.stamps[FLOW, 0] += [0] * 100
    second = bench.after(10.0)
    assert (second.rate, second.incoming_rate, second.messages) == (30.0, 10.0, 800)
    assert second.drain_seconds == 40.0


def test_what_does_not_get_less_has_no_drain_estimate(bench: Bench) -> None:
    bench.group.stamps, bench.group.committed = {(FLOW, 0): [0] * 10}, {(FLOW, 0): 5}
    bench.watch.group()
    still = bench.after(10.0)
    assert (still.rate, still.drain_seconds) == (0.0, None)
    bench.group.committed[FLOW, 0] = 8
    bench.group.stamps[FLOW, 0] += [0] * 3
    assert bench.after(10.0).drain_seconds is None


def test_rates_span_about_fifteen_seconds_however_often_somebody_looks(bench: Bench) -> None:
    bench.group.stamps, bench.group.committed = {(FLOW, 0): [0] * 10_000}, {(FLOW, 0): 0}
    for _ in range(60):
        bench.group.committed[FLOW, 0] += 10
        bench.after(1.0)
    bench.group.committed[FLOW, 0] += 150
    assert bench.after(1.0).rate == pytest.approx((14 * 10 + 150) / 15, rel=0.2)


def test_a_look_of_long_ago_makes_no_rate(bench: Bench) -> None:
    bench.group.stamps, bench.group.committed = {(FLOW, 0): [0] * 10}, {(FLOW, 0): 0}
    bench.watch.group()
    bench.group.committed[FLOW, 0] = 9
    assert bench.after(3_600.0).rate is None


def test_those_who_ask_within_a_moment_share_one_look_and_its_error(bench: Bench) -> None:
    bench.group.stamps = {(FLOW, 0): bench.stamps(1)}
    assert bench.watch.group() is bench.after(0.1)
    bench.group.is_away = True
    with pytest.raises(BrokerUnavailableError):
        bench.after(1.0)
    bench.group.is_away = False
    with pytest.raises(BrokerUnavailableError):
        bench.after(0.1)
    assert bench.after(1.0).messages == 1


def test_everything_needs_both_kafka_and_the_store(bench: Bench) -> None:
    bench.group.stamps = {(FLOW, 0): bench.stamps(1)}
    bench.store.tell(event(contract.APPLICATION_STARTED, name="job"))
    lag = bench.watch.look()
    assert (lag.group.messages, [application.name for application in lag.applications]) == (1, ["job"])
    assert lag.unread_applications == 0
    bench.group.is_away = True
    bench.at += 1.0
    with pytest.raises(UnavailableError):
        bench.watch.look()


# -- applications --------------------------------------------------------------------------------------


def test_an_application_says_what_it_waits_for_and_for_how_long(bench: Bench) -> None:
    at = int((NOW_S - 8) * 1000)
    bench.store.tell(
        event(contract.APPLICATION_STARTED, name="job", time=at - 5_000),
        event(contract.RUN_COMMITTED, run=1, blocks=3, time=at),
        event(contract.RUN_COMMITTED, run=2, blocks=1, time=at + 2_000),
        event(contract.RUN_COMMITTED, run=3, blocks=0, time=at - 4_000),
    )
    bench.store.give(block(run=1, seq=0))
    [found] = bench.applications().applications
    assert (found.application_id, found.name, found.state) == (APP, "job", "running")
    assert (found.messages, found.missing_blocks, found.incomplete_runs) == (3, 3, 2)
    assert found.seconds == 8.0
    assert "its end has not arrived" in found.missing


def test_what_the_agent_dropped_is_missing_but_does_not_wait(bench: Bench) -> None:
    bench.store.tell(
        event(contract.RUN_COMMITTED, run=1, blocks=3, dropped=2),
        event(contract.APPLICATION_ENDED, counters={"runs": 1}),
    )
    bench.store.give(block(run=1, seq=0))
    [found] = bench.applications().applications
    assert (found.state, found.messages, found.seconds) == ("ended", 0, 0.0)
    assert (found.dropped, found.missing_blocks, found.incomplete_runs) == (2, 2, 1)


def test_manifests_that_the_end_announced_wait_since_then(bench: Bench) -> None:
    ended = int((NOW_S - 3) * 1000)
    bench.store.tell(event(contract.APPLICATION_ENDED, counters={"runs": 2}, time=ended))
    [found] = bench.applications().applications
    assert (found.messages, found.missing_runs, found.seconds) == (2, 2, 3.0)


def test_an_application_that_was_deleted_waits_for_nothing(bench: Bench) -> None:
    bench.store.tell(event(contract.APPLICATION_STARTED))
    bench.store.tell(event(contract.APPLICATION_STARTED, application_id="other"))
    assert len(bench.applications().applications) == 2
    bench.store.delete(APP)
    assert [application.application_id for application in bench.applications().applications] == ["other"]


def test_a_complete_application_is_not_listed_and_not_read_again(bench: Bench) -> None:
    bench.store.tell(event(contract.APPLICATION_ENDED))
    assert bench.applications().applications == ()
    bench.store.tell(event(contract.APPLICATION_STARTED, application_id="other"))
    assert [application.application_id for application in bench.applications().applications] == ["other"]
    assert bench.store.read == [APP, "other"]


def test_only_applications_of_which_something_came_are_read_again(bench: Bench) -> None:
    for name in ("a", "b"):
        bench.store.tell(event(contract.RUN_COMMITTED, run=1, blocks=2, application_id=name))
    bench.applications()
    bench.store.read.clear()
    bench.applications()
    assert bench.store.read == []
    bench.store.give(block(run=1, seq=0, application_id="b"))
    assert [application.messages for application in bench.applications().applications] == [2, 1]
    assert bench.store.read == ["b"]


def test_a_look_that_has_no_time_says_what_it_left_and_the_next_goes_on(bench: Bench) -> None:
    for name in ("a", "b", "c"):
        bench.store.tell(event(contract.APPLICATION_STARTED, application_id=name))
    bench.read_s = 1.0
    found = [bench.applications(0.5) for _ in range(3)]
    assert [(len(each.applications), each.unread) for each in found] == [(1, 2), (2, 1), (3, 0)]
    assert bench.store.read == ["a", "b", "c"]


def test_reading_takes_a_fifth_of_the_time_however_often_somebody_asks(bench: Bench) -> None:
    bench.store.tell(event(contract.APPLICATION_STARTED))
    bench.read_s = 1.0
    bench.unfinished.look(9.0)
    bench.read_s = 0.0
    bench.store.tell(event(contract.LINK))
    for _ in range(3):
        bench.unfinished.look(9.0)
    assert bench.store.read == [APP]
    bench.at += 20.0
    bench.unfinished.look(9.0)
    assert bench.store.read == [APP, APP]


def test_ages_grow_while_nothing_is_read(bench: Bench) -> None:
    bench.store.tell(event(contract.RUN_COMMITTED, run=1, blocks=1, time=int(NOW_S * 1000)))
    ages = []
    for _ in range(3):
        ages += [application.seconds for application in bench.unfinished.look(1.0).applications]
        bench.at += 0.1
    assert ages == pytest.approx([0.0, 0.1, 0.2])
    assert bench.store.read == [APP]

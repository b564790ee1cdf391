"""What every Group promises; the tests of each one give the fixture `bench`."""

from __future__ import annotations

import time
from typing import Protocol

import pytest

from lineage_service.kafka.group import Group, PartitionState

TIMEOUT_S = 10.0


class GroupBench(Protocol):
    """A group, and a topic of two partitions that is its own."""

    group: Group
    topic: str

    def put(self, partition: int, *times: int) -> None:
        """Append messages of these times (Unix ms)."""

    def commit(self, partition: int, offset: int) -> None:
        """As a member of the group."""


class GroupSuite:
    @pytest.fixture
    def bench(self) -> GroupBench:
        raise NotImplementedError

    def test_what_was_never_committed_is_none(self, bench: GroupBench) -> None:
        now = int(time.time() * 1000)
        bench.put(0, now, now)
        bench.put(1, now)
        bench.commit(0, 1)
        assert bench.group.state([bench.topic], TIMEOUT_S).partitions == (
            PartitionState(topic=bench.topic, partition=0, committed=1, first=0, next=2),
            PartitionState(topic=bench.topic, partition=1, committed=None, first=0, next=1),
        )

    def test_a_topic_that_is_not_there_has_no_partitions(self, bench: GroupBench) -> None:
        other = f"{bench.topic}-other"
        state = bench.group.state([other, bench.topic], TIMEOUT_S)
        assert {partition.topic for partition in state.partitions} == {bench.topic}
        again = bench.group.state([other], TIMEOUT_S)
        assert again.partitions == (), "a look made a topic"

    def test_the_time_is_that_of_the_message_at_the_offset(self, bench: GroupBench) -> None:
        now = int(time.time() * 1000)
        bench.put(0, now - 30_000, now - 20_000, now - 10_000)
        bench.put(1, now - 5_000)
        places = {(bench.topic, 0): 1, (bench.topic, 1): 0}
        assert bench.group.times(places, TIMEOUT_S) == {
            (bench.topic, 0): now - 20_000,
            (bench.topic, 1): now - 5_000,
        }

    def test_the_end_has_no_time_and_is_not_waited_for(self, bench: GroupBench) -> None:
        bench.put(0, int(time.time() * 1000))
        begun = time.monotonic()
        assert bench.group.times({(bench.topic, 0): 1, (bench.topic, 1): 0}, TIMEOUT_S) == {}
        assert time.monotonic() - begun < TIMEOUT_S / 2

    def test_who_looks_is_no_member(self, bench: GroupBench) -> None:
        bench.put(0, int(time.time() * 1000))
        bench.group.times({(bench.topic, 0): 0}, TIMEOUT_S)
        assert bench.group.state([bench.topic], TIMEOUT_S).members == 0

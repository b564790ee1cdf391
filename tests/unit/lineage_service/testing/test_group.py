"""The in-memory twin of a group."""

from __future__ import annotations

import pytest

from lineage_service.kafka.errors import BrokerUnavailableError
from lineage_service.testing.group import MemoryGroup
from tests.support.group_suite import GroupSuite


class MemoryBench:
    topic = "flow"

    def __init__(self) -> None:
        self.group = MemoryGroup(stamps={(self.topic, 0): [], (self.topic, 1): []})

    def put(self, partition: int, *times: int) -> None:
        self.group.stamps[self.topic, partition] += times

    def commit(self, partition: int, offset: int) -> None:
        self.group.committed[self.topic, partition] = offset


class TestMemoryGroup(GroupSuite):
    @pytest.fixture
    def bench(self) -> MemoryBench:
        return MemoryBench()


def test_a_group_that_is_away_answers_nothing() -> None:
    group = MemoryGroup(is_away=True)
    with pytest.raises(BrokerUnavailableError):
        group.state(["flow"], 1.0)
    with pytest.raises(BrokerUnavailableError):
        group.times({}, 1.0)

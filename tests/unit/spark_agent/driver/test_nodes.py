from __future__ import annotations

import gc
import json
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from spark_agent import contract
from spark_agent.driver.nodes import Node
from spark_agent.driver.session import Session

touched: set[int] = set()


class Watched(Node):
    """Notes that anything of it was looked at."""

    def __getattribute__(self, name: str) -> Any:
        touched.add(id(self))
        return super().__getattribute__(name)


class Driver:
    """The nodes of a job as a driver makes them, and their session, whose events stay in it."""

    def __init__(self) -> None:
        self.session = Session(SimpleNamespace(applicationId="app", _conf={}))
        self.made = 0

    def node(self, name: str, *parents: Node, **fields: Any) -> Node:
        self.made += 1
        return Watched(self.made, name, parents=list(parents), **fields)

    def act(self, *parents: Node) -> None:
        sink = self.node("count", *parents, kind="sink", relation=contract.AGGREGATE)
        self.session.nodes.publish(sink)
        sink.describe = lambda: [{"split": 0}]
        self.session.nodes.describe(sink)

    def events(self, event_type: str) -> list[dict[str, Any]]:
        events = [json.loads(message) for message in self.session.events._early or ()]
        return [event for event in events if event["type"] == event_type]


@pytest.fixture
def driver() -> Driver:
    return Driver()


def pairs(driver: Driver, before: Node) -> Node:
    """map and reduceByKey."""
    mapped = driver.node("map", before, is_in_python=True)
    written = driver.node("write", driver.node("combine", mapped, is_in_python=True), is_in_python=True)
    read = driver.node("shuffle", written, relation=contract.FLOWS)
    return driver.node("merge", read, is_in_python=True)


def test_an_action_of_a_long_job_looks_at_what_is_new(driver: Driver) -> None:
    records = driver.node("textFile", kind="source", relation=contract.SOURCE, describe=list)
    looked_at = []
    for _ in range(200):
        records = pairs(driver, records)
        touched.clear()
        driver.act(records)
        looked_at.append(len(touched))
    assert max(looked_at) <= 7  # five steps, the sink, and the end of what was done before
    assert len(driver.events(contract.NODE_REGISTERED)) == driver.made


def test_a_union_that_grows_for_ever_is_asked_for_its_ends_in_no_time(driver: Driver) -> None:
    def part() -> Node:
        return driver.node("map", is_in_python=True)

    records = part()
    looked_at = []
    for _ in range(200):
        records = driver.node("union", records, part(), relation=contract.STATIC)
        touched.clear()
        assert records.origins.are_counted
        assert records.origins.are_plain
        driver.act(records)
        looked_at.append(len(touched))
    assert max(looked_at) <= 4
    records = driver.node("union", records, driver.node("parallelize", kind="source"))
    assert not records.origins.are_counted
    assert not records.origins.are_plain


def test_what_was_published_and_described_lets_go_of_what_it_comes_from(driver: Driver) -> None:
    source = driver.node("textFile", kind="source", relation=contract.SOURCE)
    result = pairs(driver, source)
    forgotten = weakref.ref(source)
    del source
    gc.collect()
    assert forgotten() is not None
    driver.act(result)
    gc.collect()
    assert forgotten() is None


def test_after_an_action_that_failed_the_next_one_describes_what_it_left(driver: Driver) -> None:
    source = driver.node("textFile", kind="source", describe=lambda: [{"split": 0}])
    mapped = driver.node("map", source, is_in_python=True)
    driver.session.nodes.publish(driver.node("count", mapped, kind="sink"))  # and its job raised
    assert driver.events(contract.PARTITIONS) == []
    driver.act(driver.node("filter", mapped, is_in_python=True))
    assert [event["node"] for event in driver.events(contract.PARTITIONS)] == [1, 5]
    assert len(driver.events(contract.LINK)) == 4


def test_partitions_that_cannot_be_described_stop_nobody(driver: Driver) -> None:
    def fails() -> list[Any]:
        raise ValueError("an unusual input format")

    broken = driver.node("hadoopFile", kind="source", describe=fails)
    good = driver.node("textFile", kind="source", describe=lambda: [{"split": 0}])
    driver.act(driver.node("union", broken, good, relation=contract.STATIC))
    assert [event["node"] for event in driver.events(contract.PARTITIONS)] == [2, 4]


def test_two_actions_at_once_publish_and_describe_each_node_once(driver: Driver) -> None:
    source = driver.node("textFile", kind="source", describe=lambda: [{"split": 0}])
    mapped = driver.node("map", source, is_in_python=True)
    sinks = [driver.node("count", mapped, kind="sink") for _ in range(2)]
    session, emit = driver.session, driver.session.events.emit

    def interrupted(event_type: str, **fields: Any) -> None:
        """While the first action's events leave, the second one goes all its way."""
        session.events.emit = emit  # type: ignore[method-assign] # a scene, not a mock
        session.nodes.publish(sinks[1])
        session.nodes.describe(sinks[1])
        emit(event_type, **fields)

    session.events.emit = interrupted  # type: ignore[method-assign] # as above
    session.nodes.publish(sinks[0])
    session.nodes.describe(sinks[0])
    links = sorted((event["source"], event["target"]) for event in driver.events(contract.LINK))
    assert links == [(1, 2), (2, 3), (2, 4)]
    assert sorted(event["node"] for event in driver.events(contract.NODE_REGISTERED)) == [1, 2, 3, 4]
    assert [event["node"] for event in driver.events(contract.PARTITIONS)] == [1]

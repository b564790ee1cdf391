"""What operations of a program say of their nodes, without Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from spark_agent.driver.capture_plan import captured
from spark_agent.driver.loop_variables import MAX_CHAINS, LoopVariables
from spark_agent.driver.nodes import Node
from spark_agent.driver.session import Session
from spark_agent.driver.sites import Sites
from spark_agent.worker.operators.narrow import Map
from spark_agent.worker.operators.passthrough import Passthrough
from spark_agent.worker.pipeline import Pipeline


class Driver:
    """operate(name, datasets) is one operation that the program calls; it gives a dataset."""

    def __init__(self, **conf: str) -> None:
        settings = {f"spark.lineage.{name}": text for name, text in conf.items()}
        self.session = Session(SimpleNamespace(applicationId="app", _conf=settings))

    def operate(self, name: str, *datasets: Any) -> Any:
        with self.session.scope.operation(name, list(datasets)) as frame:
            parents = [self.session.scope.node_of(dataset) for dataset in datasets]
            result = SimpleNamespace(_lineage_node=self.session.scope.new_node("part", parents=parents))
        self.session.scope.finish(frame, result)
        return result

    def digested(self, read: Any, *datasets: Any, operator: Any = None) -> tuple[int, ...]:
        """The nodes whose records get digests in a chain that reads a dataset and makes others of it."""
        nodes = tuple(dataset._lineage_node for dataset in datasets)
        functions = tuple(operator or Map(str) for _ in nodes)
        pipeline = Pipeline(functions, nodes, read._lineage_node)
        plan = captured(self.session, pipeline, writes_headers=False, is_of_action=True).plan
        assert plan is not None
        return plan.digest_nodes


def node_of(dataset: Any) -> Node:
    node: Node = dataset._lineage_node
    return node


def test_the_node_of_an_operation_has_its_site() -> None:
    driver = Driver()
    nodes = [node_of(driver.operate("map")) for _turn in range(3)]
    sites = [node.event()["site"] for node in nodes]
    assert [site["visit"] for site in sites] == [0, 1, 2]
    assert len({site["path"] for site in sites}) == 1
    assert [loop.rpartition(":")[0] for loop in sites[0]["loops"]] == [__file__]


def test_what_a_library_makes_inside_of_an_operation_has_none() -> None:
    driver = Driver()
    with driver.session.scope.operation("join", []) as frame:
        inner = driver.session.scope.new_node("side")
        result = SimpleNamespace(_lineage_node=driver.session.scope.new_node("join"))
    driver.session.scope.finish(frame, result)
    assert "site" not in inner.event()
    assert "site" in node_of(result).event()


def test_an_action_is_one_visit() -> None:
    driver = Driver()
    sinks = []
    for _turn in range(2):
        sink = driver.session.scope.new_node("count", kind="sink")
        with driver.session.scope.operation("count", [], site=sink.site):
            pass
        sinks.append(sink)
    assert [sink.site.visit for sink in sinks if sink.site] == [0, 1]


def test_with_explanations_off_nodes_have_no_site_and_records_no_digest() -> None:
    driver = Driver(explain="off")
    labels = driver.operate("labels")
    for _turn in range(2):
        labels, before = driver.operate("map", labels), labels
        assert driver.digested(before, labels) == ()
    assert "site" not in node_of(labels).event()


def test_a_loop_variable_is_digested_in_the_chains_that_have_it() -> None:
    driver = Driver()
    labels = driver.operate("labels")
    for _turn in range(3):
        labels, before = driver.operate("map", labels), labels
        assert driver.digested(before, labels) == (node_of(before).number,)
    behind = driver.operate("show", labels)
    assert driver.digested(before, labels, behind) == (node_of(before).number, node_of(labels).number)


def test_at_most_a_few_chains_take_the_digests_of_one_version() -> None:
    driver = Driver()
    labels = driver.operate("labels")
    for _turn in range(1):
        turn = driver.operate("map", labels)
    taken = [driver.digested(labels, turn) for _ in range(10)]
    assert taken == [(node_of(labels).number,)] * MAX_CHAINS + [()] * (10 - MAX_CHAINS)


def test_batches_that_pass_unread_get_no_digests() -> None:
    driver = Driver()
    labels = driver.operate("labels")
    for _turn in range(1):
        turn = driver.operate("map", labels)
    node_of(turn).is_passthrough = True
    assert driver.digested(labels, turn, operator=Passthrough(1)) == ()


@pytest.mark.parametrize("conf", [{"redact": "module:function"}])
def test_where_values_are_redacted_there_are_no_digests(conf: dict[str, str]) -> None:
    driver = Driver(**conf)
    labels = driver.operate("labels")
    for _turn in range(2):
        labels, before = driver.operate("map", labels), labels
        assert driver.digested(before, labels) == ()
    assert node_of(labels).site is not None


def test_the_salt_is_in_no_message_and_differs_between_applications() -> None:
    salts = {Driver().session.digest_salt for _ in range(3)}
    assert len(salts) == 3
    assert all(len(salt) == 16 for salt in salts)


@pytest.mark.parametrize(("owner", "name"), [(Sites, "visit"), (LoopVariables, "note")])
def test_an_error_of_the_agent_ends_sites_and_no_operation(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    def fail(*_arguments: object) -> None:
        raise KeyError(88)

    driver = Driver()
    monkeypatch.setattr(owner, name, fail)
    node_of(driver.operate("map"))
    assert node_of(driver.operate("map")).site is None
    assert driver.session.scope.new_node("count").site is None

"""Which nodes are the versions of a loop variable, by the sites of operations."""

from __future__ import annotations

from typing import Any

from lineage_service.tracing.model.families import Families, families_of, nodes_between
from lineage_service.tracing.model.topology import Topology
from lineage_service.tracing.model.topology_builder import read_topology
from spark_agent import contract


class Program:
    """Calls of operations, in order: each gives the number of its node."""

    def __init__(self) -> None:
        self._events: list[dict[str, Any]] = []
        self._node = -1

    def call(
        self, name: str, *parents: int, at: str = "", loops: tuple[str, ...] = ("job.py:7",), **more: Any
    ) -> int:
        """`at`: the site, if the agent knows it."""
        self._node += 1
        if at:
            more["site"] = {"path": [f"/home/ada/{at}"], "loops": [f"/home/ada/{loop}" for loop in loops]}
        named = {"name": name, "description": "", "relation": contract.IDENTITY, "exact": True}
        kind = "operator" if parents else "source"
        self._tell(contract.NODE_REGISTERED, node=self._node, **{"kind": kind, **named, **more})
        for port, parent in enumerate(parents):
            self._tell(contract.LINK, source=parent, target=self._node, port=port)
        return self._node

    def _tell(self, what: str, **fields: Any) -> None:
        at = len(self._events)
        self._events.append(
            {"type": what, "version": contract.VERSION, "application_id": "a", "time": at, **fields}
        )

    def topology(self) -> Topology:
        return read_topology("a", self._events, ())

    def families(self) -> Families:
        return families_of(self.topology())

    def versions(self) -> list[tuple[int, ...]]:
        return [family.versions for family in self.families().families]

    def join(self, left: int, right: int, at: str) -> int:
        """With its steps inside, as the agent tells it."""
        sides = [self.call("side", parent, kind="step") for parent in (left, right)]
        union = self.call("union", *sides, kind="step")
        return self.call("join", union, at=at)

    def turn(self, labels: int, edges: int) -> int:
        """labels = labels.union(labels.join(edges).map(message)).reduceByKey(min)"""
        sent = self.call("map", self.join(labels, edges, "job.py:8@10"), at="job.py:8@20")
        both = self.call("union", labels, sent, at="job.py:8@4")
        return self.call("reduceByKey", self.call("combine", both, kind="step"), at="job.py:8@30")


def labels(turns: int) -> tuple[Program, list[int]]:
    program = Program()
    edges = program.call("textFile", at="job.py:1@2", loops=())
    versions = [program.call("map", edges, at="job.py:2@2", loops=())]
    for _ in range(turns):
        versions.append(program.turn(versions[-1], edges))
    program.call("saveAsTextFile", versions[-1], at="job.py:9@2", loops=(), kind="sink")
    return program, versions


def test_the_labels_of_a_graph_are_one_variable_and_its_edges_are_none() -> None:
    program, versions = labels(turns=4)
    families = program.families()
    assert [family.versions for family in families.families] == [tuple(versions)]
    assert families.families[0].loop == "job.py:7"
    assert families.before(versions[3]) == versions[2]
    assert families.before(versions[0]) is None
    assert families.before(0) is None


def test_a_loop_of_one_turn_is_none() -> None:
    assert labels(turns=1)[0].versions() == []


def test_without_sites_there_are_no_variables() -> None:
    program = Program()
    data = program.call("textFile")
    for _ in range(3):
        data = program.call("map", data)
    assert program.versions() == []


def test_two_variables_of_one_loop_are_apart() -> None:
    program = Program()
    hubs = program.call("a", at="job.py:1", loops=())
    authorities = program.call("b", at="job.py:2", loops=())
    of_hubs, of_authorities = [hubs], [authorities]
    for _ in range(3):
        hubs, authorities = (
            program.call("first", hubs, at="job.py:8"),
            program.call("second", authorities, at="job.py:9"),
        )
        of_hubs.append(hubs)
        of_authorities.append(authorities)
    assert sorted(program.versions()) == sorted([tuple(of_hubs), tuple(of_authorities)])


def test_an_inner_loop_that_begins_anew_each_time_has_a_variable_each_time() -> None:
    program = Program()
    data = program.call("textFile", at="job.py:1", loops=())
    versions = []
    for _ in range(2):
        inner = [program.call("map", data, at="job.py:5", loops=("job.py:4",))]
        for _ in range(2):
            inner.append(program.call("filter", inner[-1], at="job.py:7", loops=("job.py:4", "job.py:6")))
        versions.append(tuple(inner))
    assert sorted(program.versions()) == versions
    assert {family.loop for family in program.families().families} == {"job.py:6"}


def test_what_one_loop_ends_with_and_another_begins_with_is_of_both() -> None:
    program = Program()
    first = [program.call("textFile", at="job.py:1", loops=())]
    for _ in range(3):
        first.append(program.call("map", first[-1], at="job.py:4", loops=("job.py:3",)))
    second = [first[-1]]
    for _ in range(5):
        second.append(program.call("filter", second[-1], at="job.py:6", loops=("job.py:5",)))
    families = program.families()
    assert sorted(program.versions()) == [tuple(first), tuple(second)]
    assert families.before(first[3]) == first[2]
    assert families.before(second[1]) == first[3]
    assert families.families[families.place_of[first[3]][0]].loop == "job.py:3"


def test_nested_loops_over_one_variable_are_one_row_of_versions() -> None:
    program = Program()
    versions = [program.call("textFile", at="job.py:1", loops=())]
    for _ in range(4):  # two turns of the inner loop in each of two of the outer one
        versions.append(program.call("map", versions[-1], at="job.py:7", loops=("job.py:5", "job.py:6")))
    assert program.versions() == [tuple(versions)]


def test_a_variable_that_stays_for_a_turn_has_that_version_once() -> None:
    program = Program()
    first = program.call("textFile", at="job.py:1", loops=())
    program.call("count", first, at="job.py:8", kind="sink")
    program.call("count", first, at="job.py:8", kind="sink")
    second = program.call("map", first, at="job.py:9")
    program.call("count", second, at="job.py:8", kind="sink")
    assert program.versions() == [(first, second)]


def test_the_same_function_of_unrelated_data_is_no_loop_over_one_variable() -> None:
    program = Program()
    for _ in range(3):
        program.call("map", program.call("textFile", at="job.py:3"), at="job.py:4")
    assert program.versions() == []


def test_recursion_is_a_loop_where_it_calls_itself() -> None:
    program = Program()
    versions = [program.call("textFile", at="job.py:1", loops=())]
    for _ in range(3):
        call_site = "/home/ada/job.py:3"
        versions.append(program.call("map", versions[-1], at="job.py:3@2", loops=(), call_site=call_site))
    families = program.families()
    assert [family.versions for family in families.families] == [tuple(versions)]
    assert families.families[0].loop == "job.py:3"


def test_between_two_nodes_is_what_leads_from_one_to_the_other() -> None:
    program, versions = labels(turns=2)
    topology = program.topology()
    between = nodes_between(topology, versions[1], versions[2])
    names = sorted(topology.nodes[node].name for node in between)
    assert names == ["combine", "join", "map", "reduceByKey", "side", "union", "union"]
    assert nodes_between(topology, versions[2], versions[1]) == frozenset()
    assert nodes_between(topology, versions[1], versions[1]) == frozenset()


class Frames(Program):
    """A program of DataFrames: each call of `kept` is a query over some of those that were cached before."""

    def kept(self, *read: int, at: str, loops: tuple[str, ...] = ("job.py:7",)) -> int:
        """With the operators of its query, as the agent tells it."""
        scans = [self.call("InMemoryRelation", node, relation=contract.CARRIED) for node in read]
        scans = scans or [self.call("Scan csv", by_id=True, relation=contract.SOURCE)]
        top = self.call("Aggregate", *scans, relation=contract.CARRIED, call_site="job.py:8")
        more = {"kind": "operator", "relation": contract.FLOWS, "by_id": True}
        return self.call("localCheckpoint", top, at=at, loops=loops, **more)


def test_what_a_loop_of_dataframes_caches_is_one_variable() -> None:
    program = Frames()
    edges = program.kept(at="job.py:1", loops=())
    versions = [program.kept(at="job.py:2", loops=())]
    for _ in range(3):
        versions.append(program.kept(versions[-1], edges, at="job.py:8"))
    [family] = program.families().families
    assert (family.versions, family.loop) == (tuple(versions), "job.py:7")
    assert [program.families().turn(node) for node in versions] == [0, 1, 2, 3]


def test_where_nobody_cached_what_a_loop_begins_with_the_first_version_is_that_of_turn_one() -> None:
    program = Frames()
    edges = program.kept(at="job.py:1", loops=())
    versions = [program.kept(edges, at="job.py:8")]
    for _ in range(2):
        versions.append(program.kept(versions[-1], edges, at="job.py:8"))
    families = program.families()
    [family] = families.families
    assert family.versions == tuple(versions)
    assert [families.turn(node) for node in versions] == [1, 2, 3]
    assert families.before(versions[0]) is None


def test_dataframes_that_a_loop_caches_anew_each_time_are_no_variable() -> None:
    program = Frames()
    edges = program.kept(at="job.py:1", loops=())
    for _ in range(3):
        program.kept(edges, at="job.py:8")
    assert program.versions() == []

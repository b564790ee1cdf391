"""Whose records a task read of what the JVM puts together or keeps, as manifests tell it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from lineage_service.tracing.model.topology import Topology
from lineage_service.tracing.model.topology_builder import read_topology
from spark_agent import contract

#: Node 1 reads the splits 0 and 1 of a file, node 2 is its union with itself, and 3 that in one split.
LINES, FILTERED, UNION, TOGETHER, SAVED = range(5)


def told(*, kept: Sequence[int], runs: Sequence[dict[str, Any]], version: str = contract.VERSION) -> Topology:
    events: list[dict[str, Any]] = []

    def tell(what: str, **fields: Any) -> None:
        at = len(events)
        events.append({"type": what, "version": version, "application_id": "a", "time": at, **fields})

    tell(contract.APPLICATION_STARTED, name="a", detailed=False)
    for number, kind, relation, parents in (
        (LINES, "source", contract.SOURCE, ()),
        (FILTERED, "operator", contract.FLOWS, (LINES,)),
        (UNION, "operator", contract.STATIC, (FILTERED, FILTERED)),
        (TOGETHER, "operator", contract.STATIC, (UNION,)),
        (SAVED, "sink", contract.IDENTITY, (TOGETHER,)),
    ):
        named = {"name": kind, "description": "", "kind": kind, "relation": relation, "exact": True}
        tell(contract.NODE_REGISTERED, node=number, **named)
        for port, parent in enumerate(parents):
            tell(contract.LINK, source=parent, target=number, port=port)
    for number, parents in (
        (UNION, [[[0, 0]], [[0, 1]], [[1, 0]], [[1, 1]]]),
        (TOGETHER, [[[0, split] for split in range(4)]]),
    ):
        partitions = [{"split": split, "parents": each} for split, each in enumerate(parents)]
        tell(contract.PARTITIONS, node=number, partitions=partitions)
    for node in kept:
        tell(contract.PERSISTED, node=node)
    for run in runs:
        tell(contract.RUN_COMMITTED, blocks=0, dropped=0, whole=True, stage=0, action=SAVED, **run)
    return read_topology("a", events, ())


def filtered(number: int, split: int, outputs: int, attempt: int) -> dict[str, Any]:
    return {
        "run": number,
        "split": split,
        "attempt": attempt,
        "input": LINES,
        "nodes": [FILTERED],
        "inputs": 10,
        "outputs": outputs,
    }


def saved(inputs: int, attempt: int, read: list[list[int]] | None = None) -> dict[str, Any]:
    run: dict[str, Any] = {"run": 99, "split": 0, "attempt": attempt, "input": TOGETHER, "nodes": [SAVED]}
    return run | {"inputs": inputs, "outputs": inputs} | ({"read": read} if read else {})


def sources_of(topology: Topology, run: int) -> list[tuple[int, int, int]]:
    """(first input, run, records) of the runs that the inputs of a run are outputs of, in order."""
    found: list[tuple[int, int, int]] = []
    for link in topology.links:
        if link.run == run and link.parent_run < 0:
            found += [(link.start + start, *rest) for start, *rest in sources_of(topology, link.parent_run)]
        elif link.run == run:
            found.append((link.start, link.parent_run, link.count))
    return sorted(found)


def test_each_part_is_what_the_named_run_has_made() -> None:
    """Split 0 was computed once and read twice, split 1 twice; another task has computed both, too."""
    runs = [filtered(number, number % 2, 3, attempt=1) for number in (10, 11, 13)]
    runs += [filtered(number, number % 2, 3, attempt=2) for number in (20, 21)]
    read = [[10, 0, 3], [11, 0, 3], [10, 0, 3], [13, 0, 3]]
    topology = told(kept=[TOGETHER, FILTERED], runs=[*runs, saved(12, 3, read)])
    assert sources_of(topology, 99) == [(0, 10, 3), (3, 11, 3), (6, 10, 3), (9, 13, 3)]
    assert not topology.unresolved


def test_of_a_part_without_records_no_batch_tells() -> None:
    runs = [filtered(10, 0, 0, attempt=1), filtered(11, 1, 3, attempt=1), filtered(20, 0, 3, attempt=2)]
    topology = told(kept=[FILTERED], runs=[*runs, saved(6, 3, [[11, 0, 3], [11, 0, 3]])])
    assert sources_of(topology, 99) == [(0, 10, 0), (0, 11, 3), (3, 10, 0), (3, 11, 3)]
    assert not topology.unresolved


@pytest.mark.parametrize(
    "read",
    [
        pytest.param([[10, 0, 3], [12, 0, 3]], id="nobody told of a run"),
        pytest.param([[0, 0, 3], [11, 0, 3]], id="a run that was not captured"),
        pytest.param([[11, 0, 3], [10, 0, 3], [11, 0, 3], [10, 0, 3]], id="another order"),
        pytest.param([[10, 1, 3], [11, 0, 3]], id="not from the first record on"),
        pytest.param([[10, 0, 3], [11, 0, 2]], id="fewer records than were read"),
        pytest.param([[10, 0, 3]] * 3, id="more parts than there are"),
    ],
)
def test_what_cannot_be_is_not_believed(read: list[list[int]]) -> None:
    runs = [filtered(10, 0, 3, attempt=1), filtered(11, 1, 3, attempt=1)]
    topology = told(kept=[FILTERED], runs=[*runs, saved(6, 3, read)])
    assert topology.unresolved == {99}


TWICE = [filtered(number, number % 2, 3, attempt=number // 10) for number in (10, 11, 20, 21)]


@pytest.mark.parametrize(
    ("kept", "runs", "attempt", "first"),
    [
        pytest.param([], TWICE, 2, 20, id="the task computed it"),
        pytest.param([FILTERED], TWICE, 2, None, id="the task may have read it from the cache before"),
        pytest.param([FILTERED], TWICE[:2], 3, 10, id="nobody else had computed it"),
        pytest.param([UNION], TWICE[:2], 3, 10, id="nobody else, for a union that is kept"),
        pytest.param([FILTERED], TWICE, 3, None, id="one of two is in the cache"),
        pytest.param([UNION], TWICE, 2, None, id="what a kept union is made of may be another one"),
        pytest.param([UNION], [], 2, None, id="nobody told of it"),
    ],
)
def test_where_no_batch_told(
    kept: list[int], runs: list[dict[str, Any]], attempt: int, first: int | None
) -> None:
    topology = told(kept=kept, runs=[*runs, saved(12, attempt)])
    if first is None:
        assert topology.unresolved == {99}
    else:
        expected = [(3 * at, first + at % 2, 3) for at in range(4)]
        assert sources_of(topology, 99) == expected
    is_unknown = {place[0] for place in topology.lost} == {UNION, TOGETHER, FILTERED}
    assert is_unknown == (not runs)


def test_of_agents_that_did_not_tell_what_is_kept_anything_may_be() -> None:
    topology = told(kept=[], runs=[*TWICE, saved(12, 2)], version="1.5")
    assert topology.unresolved == {99}


@pytest.mark.parametrize(("rounds", "is_known"), [(400, True), (2_000, False)])
def test_a_union_of_many_unions_is_followed_to_its_parts(rounds: int, is_known: bool) -> None:
    """As a loop that adds to an RDD makes it, and coalesces what has come together."""
    events: list[dict[str, Any]] = []

    def tell(what: str, **fields: Any) -> None:
        at = len(events)
        events.append({"type": what, "version": "1.7", "application_id": "a", "time": at, **fields})

    def node(number: int, kind: str, relation: str, *parents: int) -> None:
        named = {"name": kind, "description": "", "kind": kind, "relation": relation, "exact": True}
        tell(contract.NODE_REGISTERED, node=number, **named)
        for port, parent in enumerate(parents):
            tell(contract.LINK, source=parent, target=number, port=port)

    tell(contract.APPLICATION_STARTED, name="a", detailed=False)
    node(0, "source", contract.SOURCE)
    node(1, "operator", contract.FLOWS, 0)
    for at in range(2, rounds + 2):
        node(at, "operator", contract.STATIC, at - 1, 1)
        parents = [[0, 0], [1, 0]]
        tell(contract.PARTITIONS, node=at, partitions=[{"split": 0, "parents": parents}])
        tell(contract.PERSISTED, node=at)
    node(rounds + 2, "sink", contract.IDENTITY, rounds + 1)
    common = {"blocks": 0, "dropped": 0, "whole": True, "stage": 0, "action": rounds + 2, "split": 0}
    made = {"input": 0, "nodes": [1], "inputs": 2, "outputs": 2}
    for run in range(1, rounds + 2):
        tell(contract.RUN_COMMITTED, run=run, attempt=run, **made, **common)
    read = [[run, 0, 2] for run in range(1, rounds + 2)]
    size = 2 * (rounds + 1)
    taken = {"input": rounds + 1, "nodes": [], "inputs": size, "outputs": size, "read": read}
    tell(contract.RUN_COMMITTED, run=9_999, attempt=9_999, **taken, **common)
    topology = read_topology("a", events, ())
    assert topology.unresolved == (set() if is_known else {9_999})
    if is_known:
        assert [run for _, run, _ in sources_of(topology, 9_999)] == list(range(1, rounds + 2))

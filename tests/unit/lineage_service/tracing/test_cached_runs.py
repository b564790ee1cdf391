"""Which runs count that no manifest accepts: those that filled a cache that was read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lineage_service.completeness import Receipt
from lineage_service.tracing.model.cached_runs import not_accepted, that_were_read, whole
from lineage_service.tracing.model.elements import TaskRun, TopologyNode
from lineage_service.tracing.walk.linked_files import linked_files
from spark_agent import contract

BY_ID = (contract.SOURCE, contract.FLOWS, contract.IDENTITY)
NODES = {
    number: TopologyNode(
        number=number,
        name=name,
        description="",
        kind=kind,
        relation=relation,
        exact=True,
        reason="",
        call_site="",
        dataset=None,
        parents=(number - 1,) if number else (),
        partitions={},
    )
    for number, (name, kind, relation) in enumerate(
        [
            ("textFile", "source", contract.SOURCE),
            ("filter", "operator", contract.FLOWS),
            ("map", "operator", contract.IDENTITY),
            ("saveAsTextFile", "sink", contract.IDENTITY),
        ]
    )
}
#: Of DataFrames: a scan, a grouping with its steps, the cache of its rows, a cache of these, and an output.
SCAN, ROWS, CODES, KEYS, GROUPS, CACHE, ANOTHER, OUTPUT, GIVEN = range(10, 19)
NODES |= {
    number: replace(
        NODES[0], number=number, kind=kind, relation=relation, parents=parents, by_id=relation in BY_ID
    )
    for number, kind, relation, parents in (
        (SCAN, "source", contract.SOURCE, ()),
        (ROWS, "step", contract.FLOWS, ()),
        (CODES, "step", contract.FLOWS, (ROWS,)),
        (KEYS, "step", contract.FLOWS, (CODES,)),
        (GROUPS, "step", contract.KEYED, (KEYS,)),
        (CACHE, "operator", contract.FLOWS, ()),
        (ANOTHER, "operator", contract.FLOWS, ()),
        (OUTPUT, "sink", contract.FLOWS, ()),
        (GIVEN, "operator", contract.IDENTITY, (1,)),  # an RDD that a DataFrame is made of
    )
}
TARGETS = {
    SCAN: (ROWS,),
    GROUPS: (CACHE,),
    CACHE: (ANOTHER, OUTPUT),
    ANOTHER: (OUTPUT,),
    GIVEN: (CACHE,),
}


def run(number: int, reads: int, *makes: int, **others: Any) -> TaskRun:
    given = {"partition": 0, "attempt": number, "stage": number, "action": number, "outputs": 1, **others}
    return TaskRun(
        number=number,
        input=reads,
        nodes=makes,
        overridden=frozenset(),
        inputs=1,
        counts={},
        **given,
    )


def read(committed: list[TaskRun], kept: list[TaskRun]) -> set[int]:
    known = {each.number: each for each in committed}
    maybe = not_accepted(NODES, known, {each.number: each for each in kept})
    assert all(each.action is None for each in maybe.values())
    return set(that_were_read(NODES, known, maybe, (), TARGETS, {1, 2}))


READER = run(9, 1, 2, 3)


def reader(*pieces: tuple[int, int, int]) -> TaskRun:
    """One whose manifest tells of what it has read."""
    return replace(READER, read=pieces)


@pytest.mark.parametrize(
    ("committed", "kept", "counts"),
    [
        pytest.param([reader((5, 0, 1))], [run(5, 0, 1)], {5}, id="it is named"),
        pytest.param([reader((5, 0, 1))], [run(5, 0, 1), run(6, 0, 1)], {5}, id="and not another one"),
        pytest.param([reader((6, 0, 1)), run(6, 0, 1)], [run(5, 0, 1)], set(), id="a committed one is named"),
        pytest.param([reader((4, 0, 1))], [run(5, 0, 1)], set(), id="one is named that nobody told of"),
        pytest.param([READER], [run(5, 0, 1)], {5}, id="nothing is named, and no other was there"),
        pytest.param(
            [READER], [run(5, 0, 1), run(6, 0, 1)], set(), id="nothing is named, and one of two was"
        ),
        pytest.param([READER, run(6, 0, 1)], [run(5, 0, 1)], set(), id="or of two, one of which counts"),
        pytest.param([READER], [run(5, 0, 1, partition=1)], set(), id="another split"),
        pytest.param([READER], [READER], set(), id="committed itself"),
        pytest.param([run(9, 0, 1, 2, 3)], [run(5, 0, 1)], set(), id="computed anew"),
        pytest.param(
            [run(9, 1, 2, 3, attempt=5), run(6, 0, 1, attempt=5)], [run(5, 0, 1)], set(), id="by itself"
        ),
        pytest.param([], [run(5, 0, 1), run(7, 1, 2)], set(), id="nobody that counts"),
    ],
)
def test_which_counts_that_no_manifest_accepts(
    committed: list[TaskRun], kept: list[TaskRun], counts: set[int]
) -> None:
    assert read(committed, kept) == counts


def test_ways_over_several_caches_are_followed() -> None:
    reads = run(9, 2, 3, read=((7, 0, 1),))
    assert read([reads], [run(5, 0, 1), run(7, 1, 2, read=((5, 0, 1),)), run(6, 0, 1)]) == {5, 7}


def attempt(number: int, **others: Any) -> list[TaskRun]:
    """All that one reads and groups for the cache of a DataFrame; its runs have numbers from `number` on."""
    given = {"attempt": number, "stage": number, **others}
    return [
        run(number, SCAN, **given),
        run(number + 1, ROWS, CODES, KEYS, **given),
        run(number + 2, CACHE, **given),
    ]


def test_what_an_attempt_read_and_grouped_counts_with_the_cache_of_a_dataframe() -> None:
    assert read([run(40, OUTPUT)], attempt(20)) == {20, 21, 22}


def test_of_a_cache_of_a_dataframe_the_attempt_with_the_most_records_counts() -> None:
    several = [*attempt(20), *attempt(30, outputs=2), *attempt(33)]
    assert read([run(40, OUTPUT)], several) == {30, 31, 32}


def test_a_cache_of_a_cache_is_followed() -> None:
    kept = [*attempt(20), run(30, ANOTHER, partition=1)]
    assert read([run(40, OUTPUT)], kept) == {20, 21, 22, 30}


def test_an_rdd_below_the_cache_of_a_dataframe_is_followed() -> None:
    given = {"attempt": 20, "stage": 20}
    kept = [run(20, 0, 1, GIVEN, **given), run(21, GIVEN, **given), run(22, CACHE, **given)]
    assert set(read([run(40, OUTPUT)], [*kept, run(23, 0, 1, GIVEN)])) == {20, 21, 22}


def test_of_steps_another_stage_may_have_other_rows() -> None:
    committed = [run(40, OUTPUT), run(5, ROWS, CODES, KEYS)]
    assert read(committed, attempt(20)) == {20, 21, 22}


@pytest.mark.parametrize(
    ("committed", "kept"),
    [
        pytest.param([run(40, SCAN)], attempt(20), id="nobody reads it"),
        pytest.param([run(40, OUTPUT), run(5, CACHE)], attempt(20), id="computed in another stage"),
        pytest.param([run(40, OUTPUT)], attempt(20)[:2], id="no cache of its own"),
        pytest.param([run(40, OUTPUT), *attempt(20)], attempt(20), id="committed itself"),
    ],
)
def test_others_do_not_of_dataframes_either(committed: list[TaskRun], kept: list[TaskRun]) -> None:
    assert not read(committed, kept)


def test_one_whose_blocks_are_not_all_stored_does_not() -> None:
    kept = {number: run(number, 0, 1) for number in (5, 6, 7)}
    receipts = [
        Receipt(run=number, seq=seq, node=1, relation=contract.POSITIONS, rows=1)
        for number, seq in [(5, 0), (5, 1), (6, 0), (6, 0), (8, 0)]
    ]
    assert set(whole(kept, {5: 2, 6: 2, 7: 0}, receipts)) == {5, 7}


def test_files_that_only_such_a_run_told_of_lead_from_one_application_to_the_next() -> None:
    dataset = {"namespace": "file", "name": "/data", "format": "text"}
    node = {"type": contract.NODE_REGISTERED, "time": 1, "node": SCAN, "kind": "source", "dataset": dataset}
    part = {"path": "/data/a", "start": 0, "first": 0, "size": 9, "modified": 7}
    kept = {"type": contract.RUN_KEPT, "time": 2, "input": SCAN, "split": 3, "parts": [part]}
    files = linked_files("app", [kept, node])
    [read] = files.read
    assert (read.node, read.partition, read.path, read.size) == (SCAN, 3, "/data/a", 9)
    assert not files.written
    assert not files.unfollowed

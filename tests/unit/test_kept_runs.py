"""Which runs count that no manifest accepts: those that filled a cache that was read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lineage_service.completeness import Receipt
from lineage_service.tracing.elements import Run, TopologyNode
from lineage_service.tracing.ghost_links import _files_of
from lineage_service.tracing.keeping import Keeping
from lineage_service.tracing.kept_runs import not_accepted, that_were_read, whole
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


#: Nodes 1 and 2 are cached all the time.
KEPT = [{"node": node, "how": contract.CACHED, "event": 0} for node in (1, 2)]


def run(number: int, reads: int, *makes: int, **others: Any) -> Run:
    """One that begins when all of lower numbers have ended."""
    given = {
        "split": 0,
        "attempt": number,
        "stage": number,
        "task": 0,
        "action": number,
        "began": 10 * number,
        "event": 10 * number + 5,
        "outputs": 1,
        **others,
    }
    return Run(
        number=number,
        input=reads,
        nodes=makes,
        overridden=frozenset(),
        inputs=1,
        counts={},
        **given,
    )


def read(
    committed: list[Run], kept: list[Run], persisted: list[Any] = KEPT, *, local: bool = True
) -> set[int]:
    known = {each.number: each for each in committed}
    ends = {each.number: 10 * each.number + 5 for each in kept}
    maybe = not_accepted(NODES, known, {each.number: each for each in kept}, ends)
    assert all(each.action is None for each in maybe.values())
    keeping = Keeping(persisted, is_told=True)
    return set(that_were_read(NODES, known, maybe, (), TARGETS, keeping, is_one_process=local))


READER = run(9, 1, 2, 3)
AGAIN = {"stage": 5, "action": 5, "began": 50}


@pytest.mark.parametrize(
    ("kept", "counts"),
    [
        pytest.param([run(5, 0, 1)], {5}, id="a committed run read it"),
        pytest.param([run(5, 0, 1), run(6, 0, 1), run(10, 0, 1)], {6}, id="the last one before the reader"),
        pytest.param([run(5, 0, 1), run(6, 0, 1, **AGAIN)], {6}, id="two attempts of one task"),
        pytest.param([run(5, 0, 1), run(6, 0, 1, began=50)], set(), id="which was the last is not known"),
        pytest.param([run(5, 0, 1), run(6, 0, 1, task=1, **AGAIN)], set(), id="two tasks of one stage"),
        pytest.param([run(5, 0, 1, split=1)], set(), id="another split"),
        pytest.param([run(9, 1, 2, 3)], set(), id="committed itself"),
    ],
)
def test_which_counts_that_no_manifest_accepts(kept: list[Run], counts: set[int]) -> None:
    assert read([READER], kept) == counts


def test_ways_over_several_caches_are_followed() -> None:
    assert read([run(9, 2, 3)], [run(5, 0, 1), run(7, 1, 2)]) == {5, 7}


def test_of_two_attempts_at_once_the_last_one_is_not_known() -> None:
    assert not read([READER], [run(5, 0, 1), run(6, 0, 1, **AGAIN)], local=False)


@pytest.mark.parametrize(
    "committed",
    [
        pytest.param([run(9, 0, 1, 2, 3)], id="computed anew"),
        pytest.param([READER, run(6, 0, 1)], id="a later one was committed"),
        pytest.param([run(9, 1, 2, 3, attempt=5), run(6, 0, 1, attempt=5)], id="by itself"),
        pytest.param([], id="nobody that counts"),
    ],
)
def test_others_do_not(committed: list[Run]) -> None:
    assert not read(committed, [run(5, 0, 1), run(7, 1, 2)] if not committed else [run(5, 0, 1)])


@pytest.mark.parametrize(
    ("how", "at", "counts"),
    [
        pytest.param(contract.DROPPED, 57, set(), id="dropped before the reader began"),
        pytest.param(contract.DROPPED, 95, {5}, id="dropped while it was at work"),
        pytest.param(contract.RELEASED, 57, {5}, id="released and cached again"),
    ],
)
def test_what_is_no_longer_kept_is_not_read(how: str, at: int, counts: set[int]) -> None:
    again = [{"node": 1, "how": how, "event": at}, {"node": 1, "how": contract.CACHED, "event": at + 1}]
    assert read([READER], [run(5, 0, 1)], [*KEPT, *again]) == counts


def attempt(number: int, **others: Any) -> list[Run]:
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
    kept = [*attempt(20), run(30, ANOTHER, split=1)]
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
def test_others_do_not_of_dataframes_either(committed: list[Run], kept: list[Run]) -> None:
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
    [[read], written] = _files_of("app", [kept, node])
    assert (read.node, read.split, read.path, read.size) == (SCAN, 3, "/data/a", 9)
    assert not written

"""Which runs count that no manifest accepts: those that filled a cache that was read."""

from __future__ import annotations

from typing import Any

import pytest

from lineage_service.completeness import Receipt
from lineage_service.tracing.elements import Run, TopologyNode
from lineage_service.tracing.kept_runs import that_were_read, whole
from spark_agent import contract

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


def run(number: int, reads: int, *makes: int, **others: Any) -> Run:
    given = {"split": 0, "attempt": number, "stage": number, "task": 0, "action": 3, **others}
    return Run(
        number=number,
        input=reads,
        nodes=makes,
        overridden=frozenset(),
        inputs=1,
        outputs=1,
        counts={},
        **given,
    )


def read(committed: list[Run], kept: list[Run]) -> dict[int, Run]:
    found = that_were_read(NODES, {each.number: each for each in committed}, {r.number: r for r in kept}, ())
    assert all(each.action is None for each in found.values())
    return found


def test_one_that_a_committed_run_read_counts() -> None:
    assert set(read([run(9, 1, 2, 3)], [run(5, 0, 1)])) == {5}


def test_the_last_one_before_the_reader_counts() -> None:
    assert set(read([run(9, 1, 2, 3)], [run(5, 0, 1), run(6, 0, 1), run(10, 0, 1)])) == {6}


def test_ways_over_several_caches_are_followed() -> None:
    assert set(read([run(9, 2, 3)], [run(5, 0, 1), run(7, 1, 2)])) == {5, 7}


@pytest.mark.parametrize(
    ("committed", "kept"),
    [
        pytest.param([run(9, 1, 2, 3)], [run(5, 0, 1, split=1)], id="another split"),
        pytest.param([run(9, 1, 2, 3), run(5, 0, 1)], [run(5, 0, 1)], id="committed itself"),
        pytest.param([run(9, 0, 1, 2, 3)], [run(5, 0, 1)], id="computed anew"),
        pytest.param([run(9, 1, 2, 3), run(6, 0, 1)], [run(5, 0, 1)], id="a later one was committed"),
        pytest.param(
            [run(9, 1, 2, 3), run(4, 0, 1, stage=7)], [run(5, 0, 1, stage=7)], id="a copy of it was"
        ),
        pytest.param([run(9, 1, 2, 3, attempt=5), run(6, 0, 1, attempt=5)], [run(5, 0, 1)], id="by itself"),
        pytest.param([], [run(5, 0, 1), run(7, 1, 2)], id="nobody that counts"),
    ],
)
def test_others_do_not(committed: list[Run], kept: list[Run]) -> None:
    assert not read(committed, kept)


def test_one_whose_blocks_are_not_all_stored_does_not() -> None:
    kept = {number: run(number, 0, 1) for number in (5, 6, 7)}
    receipts = [
        Receipt(run=number, seq=seq, node=1, relation=contract.POSITIONS, rows=1)
        for number, seq in [(5, 0), (5, 1), (6, 0), (6, 0), (8, 0)]
    ]
    assert set(whole(kept, {5: 2, 6: 2, 7: 0}, receipts)) == {5, 7}

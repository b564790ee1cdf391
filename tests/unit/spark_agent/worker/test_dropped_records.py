"""Records that a replay drops since a function raises on them: nothing else changes, and each is noted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count
from typing import Any

import pyspark.shuffle
import pytest
from pyspark.serializers import CPickleSerializer

from spark_agent import contract
from spark_agent.worker.batch_header import HEADER
from spark_agent.worker.dropped_records import DroppedGroup, DroppedKey
from spark_agent.worker.guard.refusals import ReplayRefused
from spark_agent.worker.operator import Operator
from spark_agent.worker.operators.adapters import Order
from spark_agent.worker.operators.aggregate import Combine, CombineLists, Functions, Merge
from spark_agent.worker.operators.join import Side
from spark_agent.worker.operators.narrow import Filter, FlatMap, Map
from spark_agent.worker.operators.shuffle import ShuffleWrite
from tests.support.spark.one_task import Ran, run_chain

PICKLE = CPickleSerializer()
#: MiB that no test process reaches.
ENOUGH = 1 << 20
BAD = (3, 17, 18, 29)
SUM = Functions(lambda value: value, lambda total, value: total + value, lambda total, other: total + other)


def skipping(operator: Operator) -> Operator:
    operator.skip_failing()
    return operator


def failing(record: int) -> int:
    if record in BAD:
        raise ValueError(f"bad {record}")
    return record * 2


def raises_late(record: int) -> Iterator[int]:
    yield record
    if record in BAD:
        raise ValueError(f"bad {record}")
    yield -record


def skipped(ran: Ran) -> list[tuple[int, int, str]]:
    """(node, position, message) of each record that was dropped."""
    entries = ran.manifest.get("skipped", [])
    assert ran.manifest.get("skipped_total", 0) == len(entries)
    return [(entry["failed_node"], entry["position"], entry["message"]) for entry in entries]


GOOD = [record for record in range(40) if record not in BAD]
NARROW = {
    "map": (lambda: Map(failing), [(record * 2, record) for record in GOOD]),
    "filter": (lambda: Filter(lambda record: failing(record) % 4), [(r, r) for r in GOOD if r % 2]),
    "flatMap": (
        lambda: FlatMap(lambda record: [failing(record)] * (record % 3)),
        [(r * 2, r) for r in GOOD for _ in range(r % 3)],
    ),
    "lazy flatMap": (lambda: FlatMap(raises_late), [(s * r, r) for r in GOOD for s in (1, -1)]),
}


@pytest.mark.parametrize("name", NARROW)
def test_a_record_on_which_a_function_raises_is_dropped_and_noted(name: str) -> None:
    make, expected = NARROW[name]
    ran = run_chain(range(40), skipping(make()))
    assert list(zip(ran.outputs, ran.of_chain(1), strict=True)) == [(out, [row]) for out, row in expected]
    assert skipped(ran) == [(1, row, f"bad {row}") for row in BAD]
    assert [entry["record"] for entry in ran.manifest["skipped"]] == [["int", str(row)] for row in BAD]
    assert all(entry["certain"] and entry["error"] == "ValueError" for entry in ran.manifest["skipped"])


@pytest.mark.parametrize("name", NARROW)
def test_nothing_is_noted_where_nothing_is_captured(name: str) -> None:
    make, expected = NARROW[name]
    assert list(skipping(make())(0, iter(range(40)))) == [out for out, _ in expected]


def test_positions_are_those_behind_what_was_dropped_before() -> None:
    chained = (
        skipping(Map(failing)),
        skipping(Filter(lambda x: x != 8)),
        skipping(Map(lambda x: 1 / (x - 10))),
    )
    ran = run_chain(range(40), *chained)
    expected = [row for row in GOOD if row not in (4, 5)]
    assert ran.of_chain(3) == [[row] for row in expected]
    # Row 5 is the fifth output of the first map, and the fourth of the filter.
    assert skipped(ran)[-1][:2] in {(3, 3), (1, 29)}
    assert (3, 3, "division by zero") in skipped(ran)


def test_an_error_from_further_up_is_not_the_function_s() -> None:
    records = chain([1, 2], (1 // 0 for _ in range(1)))
    with pytest.raises(ZeroDivisionError):
        run_chain(records, skipping(Map(failing)))


@pytest.mark.parametrize("cause", [False, True])
def test_a_refusal_of_the_replay_ends_the_job(cause: bool) -> None:
    def writes(record: int) -> int:
        try:
            raise ReplayRefused("to write", "/data/orders.csv")
        except ReplayRefused:
            if cause:
                raise ValueError(record) from None
            raise

    with pytest.raises(ValueError if cause else ReplayRefused):
        run_chain(range(3), skipping(Map(writes)))


def test_more_than_a_thousand_are_counted() -> None:
    ran = run_chain(range(1_500), skipping(Map(lambda record: 1 // 0)))
    assert (ran.outputs, len(ran.manifest["skipped"]), ran.manifest["skipped_total"]) == ([], 1_000, 1_500)


# -- by key --------------------------------------------------------------------------------------------

PAIRS = [("a", 1), ("b", 2), ("a", "x"), "pair?", (["unhashable"], 1), ("b", 3), ("a", 4), ("c", 5)]


def written(ran: Ran) -> list[Any]:
    """What a ShuffleWrite has handed to the JVM."""
    return [pair for batch in ran.outputs[1::2] for pair in PICKLE.loads(batch[HEADER.size :])]


def test_a_group_whose_function_raises_is_dropped_on_the_map_side() -> None:
    order = Order()
    write = skipping(ShuffleWrite(lambda key: 0, 1, PICKLE, ENOUGH))
    ran = run_chain(PAIRS, skipping(Combine(SUM, ENOUGH, PICKLE, order)), order, write)
    (first, dropped), *others = written(ran)
    assert (first, type(dropped)) == ("a", DroppedGroup)
    assert others == [("b", 5), ("c", 5)]
    assert [(node, position) for node, position, _ in skipped(ran)] == [(1, 2), (1, 3), (1, 4)]
    assert [entry["certain"] for entry in ran.manifest["skipped"]] == [False, True, True]


def test_records_that_are_no_pairs_do_not_reach_the_other_side_of_groupByKey() -> None:
    order = Order()
    write = skipping(ShuffleWrite(lambda key: 0, 1, PICKLE, ENOUGH))
    lists = Functions(lambda v: [v], lambda vs, v: [*vs, v], lambda vs, ws: vs + ws)
    ran = run_chain(PAIRS, skipping(CombineLists(lists, ENOUGH, PICKLE, order)), order, write)
    assert written(ran) == [("a", [1, "x", 4]), ("b", [2, 3]), ("c", [5])]
    assert ran.of_chain(3, outputs=3) == [[0, 2, 6], [1, 5], [7]]


@pytest.fixture
def no_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Every look at the memory finds that it is time to spill."""
    monkeypatch.setattr(pyspark.shuffle, "get_used_memory", lambda: 2 * ENOUGH)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    monkeypatch.setenv("PYTHONHASHSEED", "0")


@pytest.mark.parametrize("spills", [False, True])
def test_a_group_is_dropped_as_a_whole_on_the_reduce_side(
    spills: bool, request: pytest.FixtureRequest
) -> None:
    if spills:
        request.getfixturevalue("no_memory")
    order = Order()
    halves = [(f"k{key}", key) for key in range(50)] * 2
    halves[7] = ("k7", DroppedGroup())
    halves[9] = ("k9", "text")
    ran = run_chain(halves, skipping(Merge(SUM, 1 if spills else ENOUGH, PICKLE, order)), order)
    expected = {f"k{key}": (2 * key, [key, key + 50]) for key in range(50) if key not in (7, 9)}
    sources = dict(zip((key for key, _ in ran.outputs), ran.of_chain(2), strict=True))
    assert {key: (total, sources[key]) for key, total in ran.outputs} == expected
    assert [position for _, position, _ in skipped(ran)] == [59]
    keys = [block for block in ran.blocks if block.relation == contract.KEYS]
    assert [text for block in keys for _, text in block.columns["text"]] == [key for key, _ in ran.outputs]


def test_a_partition_function_that_raises_drops_the_record() -> None:
    def partition_of(key: Any) -> int:
        return int(key)

    records = [("1", "a"), ("x", "b"), ("2", "c"), None, ("4", "d"), (DroppedKey(0), DroppedGroup())]
    ran = run_chain(records, skipping(ShuffleWrite(partition_of, 2, PICKLE, ENOUGH)))
    assert sorted(written(ran)) == [("1", "a"), ("2", "c"), ("4", "d")]
    assert [position for _, position, _ in skipped(ran)] == [1, 3]
    assert sorted(position for (position,) in ran.origins(1).values()) == [0, 2, 4]


def test_the_sides_of_a_join_drop_what_is_no_pair() -> None:
    ran = run_chain([("a", 1), 5, ("b", 2)], skipping(Side(1)))
    assert ran.outputs == [("a", (1, 1)), ("b", (1, 2))]
    assert ran.of_chain(1) == [[0], [2]]
    assert [position for _, position, _ in skipped(ran)] == [1]


def test_a_shuffle_of_many_records_drops_all_bad_ones() -> None:
    numbers = count()
    records = [(next(numbers), "v") if at % 7 else None for at in range(10_000)]
    ran = run_chain(records, skipping(ShuffleWrite(lambda key: key, 3, PICKLE, ENOUGH)))
    good = [at for at, record in enumerate(records) if record is not None]
    assert sorted(position for (position,) in ran.origins(1).values()) == good
    assert ran.manifest["skipped_total"] == len(records) - len(good)

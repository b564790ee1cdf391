"""Which input of a merge by key is its winner, and when there is none."""

from __future__ import annotations

import operator
import pickle
from collections import namedtuple
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple

import pyspark.shuffle
import pytest
from pyspark.serializers import CPickleSerializer
from pyspark.sql import Row

from spark_agent import contract
from spark_agent.worker.operators.adapters import Order
from spark_agent.worker.operators.aggregate import Combine, CombineLists, Functions, Group, Merge
from spark_agent.worker.winners import is_immutable
from tests.support.spark.one_task import Ran, run_chain

PICKLE = CPickleSerializer()
#: MiB that no test process reaches.
ENOUGH = 1 << 20
SIDES = pytest.mark.parametrize("side", [Combine, Merge])


class Point(NamedTuple):
    x: int
    label: Any


class Bag(tuple):  # type: ignore[type-arg] # as users write it
    """Has attributes of its own."""


Pair = namedtuple("Pair", "left right")  # as users write it


def unchanged(value: Any) -> Any:
    return value


def merged(
    side: type[Combine],
    pairs: list[tuple[Any, Any]],
    merge: Callable[[Any, Any], Any],
    create: Callable[[Any], Any] = unchanged,
    memory: int = ENOUGH,
    **settings: Any,
) -> Ran:
    order = Order()
    aggregation = side(Functions(create, merge, merge), memory, PICKLE, order)
    return run_chain(pairs, aggregation, order, **settings)


def winners(*arguments: Any, **settings: Any) -> dict[int, int]:
    return merged(*arguments, **settings).winners(1)


PAIRS = [("a", 3.5), ("b", 2.5), ("a", 1.5), ("c", 9.5), ("b", 2.75), ("a", 2.5)]


@SIDES
def test_a_minimum_is_the_input_that_it_came_from(side: type[Combine]) -> None:
    ran = merged(side, PAIRS, min)
    assert ran.outputs == [("a", 1.5), ("b", 2.5), ("c", 9.5)]
    assert ran.origins(1) == {0: [0, 2, 5], 1: [1, 4], 2: [3]}
    assert ran.winners(1) == {0: 2, 1: 1}  # c has one input, which the flow says


@SIDES
def test_any_function_that_picks_has_winners(side: type[Combine]) -> None:
    records = [(key, Point(x, label)) for key, x, label in (("a", 3, "p"), ("a", 9, "q"), ("a", 5, ("r",)))]
    assert winners(side, records, lambda p, q: p if p.x > q.x else q) == {0: 1}
    assert winners(side, records, lambda _, q: q) == {0: 2}
    assert winners(side, records, max) == {0: 1}


@SIDES
def test_of_equal_objects_the_earliest_wins(side: type[Combine]) -> None:
    assert winners(side, [("a", None), ("b", None), ("a", None)], lambda x, _: x) == {0: 0}
    assert winners(side, [("a", None), ("b", None), ("a", None)], lambda _, y: y) == {0: 0}


@SIDES
def test_what_is_added_up_has_no_winner(side: type[Combine]) -> None:
    ran = merged(side, [(at % 3, at + 1000) for at in range(50)], operator.add)
    assert {block.relation for block in ran.blocks if block.node == 1} == {contract.CODES}


@SIDES
def test_a_key_that_something_new_was_made_for_once_has_no_winner(side: type[Combine]) -> None:
    def larger(one: float, other: float) -> float:
        return one + other if other == 7.5 else max(one, other)

    pairs = [("a", 1.5), ("b", 1.5), ("a", 7.5), ("b", 2.5), ("a", 99.5), ("b", 0.5)]
    assert winners(side, pairs, larger) == {1: 3}


@SIDES
@pytest.mark.parametrize(
    ("first", "merge"),
    [
        ([1], lambda a, b: a.extend(b) or a),
        ([1], operator.iadd),
        ({1}, operator.ior),
        (([1],), lambda a, b: a[0].extend(b[0]) or a),
        (Bag([1]), lambda a, _: a),
    ],
    ids=["extend", "iadd", "ior", "in a tuple", "a class"],
)
def test_what_may_have_been_changed_has_no_winner(side: type[Combine], first: Any, merge: Any) -> None:
    assert winners(side, [("a", first), ("a", first)], merge) == {}


def test_a_combiner_that_is_made_anew_has_no_winner() -> None:
    assert winners(Combine, PAIRS, min, lambda value: value + 1) == {}
    assert winners(Merge, PAIRS, min, lambda value: value + 1) == {0: 2, 1: 1}  # which calls no function


def test_what_might_not_be_taken_as_it_is_wins_only_as_the_first() -> None:
    """`abs` took 5000 as it is, but alone, -3000 would give 3000."""
    pairs = [("a", 5000), ("a", -3000), ("b", 1000), ("b", 2000), ("b", 3000)]
    assert winners(Combine, pairs, min, abs) == {1: 2}
    assert winners(Combine, pairs, min, lambda value: min(9999, value)) == {1: 2}  # as of aggregateByKey
    assert winners(Combine, pairs, min, lambda anything: anything) == {0: 1, 1: 2}


@SIDES
@pytest.mark.parametrize(
    ("one", "other"),
    [
        *((1, 1.0), (1, True), (0.0, -0.0), (Decimal("1.0"), Decimal("1.00")), ((1, 2), (1, 2.0))),
        *((Point(1, 2), (1, 2)), (Row(a=1), Row(b=1)), ((1, (2, 0.0)), (1, (2, -0.0)))),
    ],
    ids=repr,
)
def test_a_winner_has_the_key_of_the_output(side: type[Combine], one: Any, other: Any) -> None:
    assert one == other
    ran = merged(side, [(one, 5.5), (other, 3.5), ("b", 5.5), ("b", 3.5)], min)
    assert repr(ran.outputs) == repr([(one, 3.5), ("b", 3.5)])
    assert ran.winners(1) == {1: 3}
    assert winners(side, [(one, 3.5), (other, 5.5), ("b", 5.5), ("b", 3.5)], min) == {0: 0, 1: 3}


@SIDES
@pytest.mark.parametrize(
    "key", [7**30, "text", b"b", 1.5, None, (), (1, ("a", 2.5)), date(2026, 1, 1)], ids=repr
)
def test_keys_that_nobody_can_tell_apart_are_one(side: type[Combine], key: Any) -> None:
    other = pickle.loads(pickle.dumps(key))
    assert winners(side, [(key, 5.5), (other, 3.5)], min) == {0: 1}


@SIDES
def test_keys_of_many_types(side: type[Combine]) -> None:
    class Word(str):
        __slots__ = ()

    keys = ["a", "b", Word("a"), "b", 1, 2, True, 2]
    assert winners(side, [(key, -at) for at, key in enumerate(keys, 1000)], min) == {1: 3, 3: 7}
    assert winners(side, [(key, at) for at, key in enumerate(keys, 1000)], min) == {0: 0, 1: 1, 2: 4, 3: 5}


@SIDES
def test_keys_that_share_their_parts_cost_no_more(side: type[Combine]) -> None:
    one: Any = (1.5,)
    other: Any = (2.5 - 1,)
    for _ in range(12):
        one, other = (one, one), (other, other)
    assert winners(side, [(one, 5.5), (other, 3.5), ("b", 5.5), ("b", 3.5)], min) == {1: 3}


@pytest.mark.parametrize("side", [CombineLists, Group])
def test_groups_have_no_winners(side: type[Combine]) -> None:
    values = [("a", [1]), ("a", [2])] if side is Group else [("a", 1), ("a", 2)]
    assert winners(side, values, operator.iadd, lambda value: [value]) == {}


@SIDES
def test_a_merge_that_spilled_has_no_winners(
    side: type[Combine], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(pyspark.shuffle, "get_used_memory", lambda: 2 * ENOUGH)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    pairs = [(f"k{at % 700}", float(at)) for at in range(5_000)]
    ran = merged(side, pairs, min, memory=1)
    assert sorted(ran.outputs) == sorted((f"k{at}", float(at)) for at in range(700))
    assert ran.winners(1) == ran.winners(2) == {}


@SIDES
def test_it_can_be_switched_off(side: type[Combine]) -> None:
    assert winners(side, PAIRS, min, is_explained=False) == {}


@SIDES
def test_winners_of_many_batches_and_blocks(side: type[Combine], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_agent.worker.winners.PIECE", 100)
    pairs = [(at * 7919 % 1_013, float(at * 104_729 % 99_991)) for at in range(20_000)]
    ran = merged(side, pairs, min)
    best = {output: min(inputs, key=lambda at: pairs[at][1]) for output, inputs in ran.origins(1).items()}
    assert ran.winners(1) == best
    assert max(len(block.columns["out"]) for block in ran.blocks if block.relation == contract.WINNERS) == 100


@SIDES
def test_a_function_that_seldom_picks_is_not_looked_at_for_long(side: type[Combine]) -> None:
    pairs = [(at % 10, at) for at in range(50_000)]
    assert winners(side, pairs, lambda a, b: a + b if a < 10_000 or b % 10 else b) == {}


@SIDES
def test_rows_order_and_errors_stay_the_same(side: type[Combine]) -> None:
    def failing(one: float, other: float) -> float:
        raise StopIteration

    with pytest.raises(Exception, match="StopIteration"):
        merged(side, PAIRS, failing)
    for merge in (min, max, operator.add, lambda one, _: one):
        with_winners, without = (merged(side, PAIRS, merge, is_explained=flag) for flag in (True, False))
        assert with_winners.outputs == without.outputs
        assert with_winners.origins(1) == without.origins(1)


@pytest.mark.parametrize(
    "value",
    [
        *(1, 1.5, 1j, True, "a", b"a", None, (), frozenset({("a",)})),
        *((1, ("a", (None, b"b"))), Point(1, (2, 3)), Pair(1, "a"), Row(a=1, b=(2,)), Row(1, 2)),
        *(date(2026, 11, 27), datetime(2026, 11, 27, tzinfo=timezone.utc), timedelta(1), Decimal("1.5")),
    ],
    ids=repr,
)
def test_a_value_that_nobody_can_change(value: Any) -> None:
    assert is_immutable(value)
    assert is_immutable((value,))


class Text(str):
    __slots__ = ("more",)


@pytest.mark.parametrize(
    "value",
    [[1], {1}, {}, bytearray(b"a"), object(), Text("a"), Bag((1,)), Point(1, [2]), Row(a=[1]), iter(())],
    ids=lambda value: type(value).__name__,
)
def test_a_value_that_somebody_may_change(value: Any) -> None:
    assert not is_immutable(value)
    assert not is_immutable((1, value))


def test_of_what_is_nested_too_deep_or_too_long_nothing_is_said() -> None:
    value: Any = ()
    for _ in range(100_000):
        value = (value,)
    assert not is_immutable(value)
    assert is_immutable(tuple(range(90)))
    assert not is_immutable(tuple(range(110)))
    assert not is_immutable((tuple(range(60)), tuple(range(60))))
    assert not is_immutable(frozenset(range(1_000)))


class Hostile(type):
    def __eq__(cls, other: object) -> bool:
        raise RuntimeError

    def __hash__(cls) -> int:
        raise RuntimeError


class Odd(metaclass=Hostile):
    pass


class Endless(NamedTuple("Endless", [("x", int)])):
    __slots__ = ()

    def __iter__(self) -> Any:
        raise RuntimeError


@SIDES
def test_classes_of_the_user_do_no_harm(side: type[Combine]) -> None:
    odd = Odd()
    assert merged(side, [("a", odd), ("a", Odd())], lambda one, _: one).outputs == [("a", odd)]
    assert winners(side, [("a", Endless(1)), ("a", Endless(2))], lambda _, other: other) == {0: 1}

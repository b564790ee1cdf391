"""The operators of perf.capture.nolin give the rows of the agent's, in the same order."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from operator import add
from typing import Any

import pytest
from pyspark.serializers import CPickleSerializer
from pyspark.shuffle import Aggregator, ExternalMerger

from perf.capture import nolin
from perf.capture.broker import flows_of
from spark_agent import contract
from spark_agent.contract import Block
from spark_agent.driver import capture_plan
from spark_agent.worker import operators
from spark_agent.worker.batch_header import HEADER
from spark_agent.worker.operator import Operator
from spark_agent.worker.operators import adapters, aggregate, narrow, shuffle
from spark_agent.worker.pipeline import Pipeline

SERIALIZER = CPickleSerializer()
PAIRS = [(number % 7, number) for number in range(5_000)]
SUMS = Aggregator(lambda value: value, add, add)
LISTS = Aggregator(lambda value: [value], lambda values, value: [*values, value], lambda one, two: one + two)
LISTED = [(number % 7, [number]) for number in range(5_000)]
SIDED = [(number % 5, (1 + number % 2, number)) for number in range(40)] + [(6, (1, 0)), (7, (2, 0))]


def agents(name: str) -> Any:
    """The agent's operator of this name, whichever module has it."""
    modules = [
        iter_module.name for iter_module in pkgutil.iter_modules(operators.__path__, f"{operators.__name__}.")
    ]
    found = [getattr(importlib.import_module(module), name, None) for module in modules]
    return next(each for each in found if each is not None)


def modulo(key: int) -> int:
    return key


@pytest.mark.parametrize(
    ("name", "arguments", "records"),
    [
        ("Map", (lambda value: value + 1,), range(10)),
        ("Filter", (lambda value: value % 3,), range(10)),
        ("FlatMap", (lambda value: (value for _ in range(value)),), range(10)),
        ("Order", (), range(10)),
        ("Combine", (SUMS, 512, SERIALIZER, adapters.Order()), PAIRS),
        ("CombineLists", (LISTS, 512, SERIALIZER, adapters.Order()), PAIRS),
        ("Merge", (SUMS, 512, SERIALIZER, adapters.Order()), PAIRS),
        ("Group", (LISTS, 512, SERIALIZER, adapters.Order()), LISTED),
        *[
            ("Join", (LISTS, 512, SERIALIZER, left, right), SIDED)
            for left in (True, False)
            for right in (True, False)
        ],
        ("Side", (1,), PAIRS),
        ("Subtract", (LISTS, 512, SERIALIZER), SIDED),
        ("Sort", (lambda records: sorted(records, key=lambda record: record[0]),), PAIRS),
        ("TextSink", (lambda _split, records: (str(record).encode() for record in records),), range(10)),
    ],
)
def test_an_operator_without_capture_gives_the_same_rows(
    name: str, arguments: tuple[Any, ...], records: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What spills comes in another order, and how much this process holds depends on the tests before.
    monkeypatch.setattr("pyspark.shuffle.get_used_memory", lambda: 1)
    operator = agents(name)(*arguments)
    rows = list(nolin.MIRRORS[name](operator, 0, iter(records)))
    assert rows == list(operator(0, iter(records)))
    assert rows


def test_a_merge_that_spills_gives_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.shuffle.get_used_memory", lambda: 600)
    monkeypatch.setattr(ExternalMerger, "_next_limit", lambda _self: 1_000)
    combine = aggregate.Combine(SUMS, 512, SERIALIZER, adapters.Order())
    pairs = [(number, 1) for number in range(3_000)] * 2
    assert sorted(nolin.MIRRORS["Combine"](combine, 0, iter(pairs))) == [
        (number, 2) for number in range(3_000)
    ]


def test_a_shuffle_without_tags_writes_the_same_records() -> None:
    def written(pieces: list[bytes], skip: int) -> list[tuple[bytes, Any]]:
        return [
            (target, SERIALIZER.loads(batch[skip:]))
            for target, batch in zip(*[iter(pieces)] * 2, strict=True)
        ]

    write = shuffle.ShuffleWrite(modulo, 3, SERIALIZER, 512.0)
    tagged = written(list(write(0, iter(PAIRS))), HEADER.size)
    assert written(list(nolin.MIRRORS["ShuffleWrite"](write, 0, iter(PAIRS))), 0) == tagged


@pytest.mark.parametrize("name", ["Map", "Filter", "FlatMap"])
def test_a_stop_iteration_of_the_users_is_an_error(name: str) -> None:
    def stops(_value: int) -> int:
        raise StopIteration

    with pytest.raises(Exception, match="StopIteration"):
        list(nolin.MIRRORS[name](agents(name)(stops), 0, iter(range(3))))


def test_a_job_with_an_operator_that_has_no_mirror_is_refused() -> None:
    class Zip(Operator):
        pass

    pipeline = Pipeline((narrow.Map(str), Zip()))
    with pytest.raises(nolin.UnmirroredError, match="no mirror of Zip"):
        nolin.uncaptured(nolin.Session.__new__(nolin.Session), pipeline, writes_headers=False)


def test_flows_count_once_at_the_widest_node_of_each_run() -> None:
    def block(of_run: int, node: int, relation: str, **columns: list[int]) -> Block:
        return Block("app", node, of_run, 0, 0, relation, columns=columns)

    blocks = [
        block(1, 2, contract.COUNTS, count=[3, 0, 2]),
        block(1, 4, contract.CODES, code=[0, 1, 0]),
        block(1, 4, contract.CODES, code=[0, 1, 0]),
        block(2, 5, contract.SPANS, count=[4], **{"in": [0]}, step=[1], run=[1]),
        block(2, 6, contract.POSITIONS, **{"in": [1, 3]}),
    ]
    assert flows_of(iter(blocks)) == 6 + 4


def test_a_chain_is_planned_with_what_the_agent_plans_it_with() -> None:
    signature = inspect.signature(capture_plan.captured)
    arguments = dict.fromkeys(signature.parameters, True) | {"pipeline": Pipeline((adapters.Order(),))}
    assert nolin.uncaptured(arguments.pop("session"), **arguments).functions

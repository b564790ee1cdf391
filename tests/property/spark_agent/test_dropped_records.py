"""Laws of dropped records: a chain gives what it gives of the others, and knows where that is from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from spark_agent.worker.operator import Operator
from spark_agent.worker.operators.narrow import Filter, FlatMap, Map
from tests.support.spark.one_task import run_chain

Step = tuple[str, int]
"""(kind, a number below 5): it raises where the record has this remainder."""

STEPS = st.lists(
    st.tuples(st.sampled_from(["map", "filter", "list", "generator"]), st.integers(0, 4)),
    min_size=1,
    max_size=5,
)
#: (a record, the input that it comes from)
Data = list[tuple[int, int]]


def raising(record: int, remainder: int) -> int:
    if record % 5 == remainder:
        raise ValueError(record)
    return record


def made_by(kind: str, remainder: int) -> Callable[[int], Any]:
    if kind == "map":
        return lambda record: 3 * raising(record, remainder) + 1
    if kind == "filter":
        return lambda record: raising(record, remainder) % 3
    if kind == "list":
        return lambda record: [raising(record, remainder)] * (record % 3)
    return lambda record: (raising(record + at, remainder) for at in range(2))


def operator_of(kind: str, remainder: int) -> Operator:
    kinds: dict[str, Any] = {"map": Map, "filter": Filter, "list": FlatMap, "generator": FlatMap}
    operator: Operator = kinds[kind](made_by(kind, remainder))
    operator.skip_failing()
    return operator


def naively(data: Data, kind: str, function: Callable[[int], Any]) -> tuple[Data, list[int]]:
    """(what a step gives, the positions of its inputs that are dropped)."""
    outputs: Data = []
    dropped = []
    for position, (record, origin) in enumerate(data):
        try:
            result = function(record)
            results = list(result) if kind in ("list", "generator") else [result]
        except ValueError:
            dropped.append(position)
            continue
        if kind == "filter":
            results = [record] if result else []
        outputs += [(value, origin) for value in results]
    return outputs, dropped


@given(st.lists(st.integers(0, 50), max_size=30), STEPS)
def test_a_chain_drops_what_its_functions_raise_on(records: list[int], steps: list[Step]) -> None:
    data: Data = [(record, at) for at, record in enumerate(records)]
    dropped: list[tuple[int, int]] = []
    for node, (kind, remainder) in enumerate(steps, 1):
        data, positions = naively(data, kind, made_by(kind, remainder))
        dropped += [(node, position) for position in positions]
    ran = run_chain(records, *(operator_of(*step) for step in steps))
    assert ran.outputs == [record for record, _ in data]
    assert ran.of_chain(len(steps)) == [[origin] for _, origin in data]
    entries = ran.manifest.get("skipped", [])
    assert sorted((entry["failed_node"], entry["position"]) for entry in entries) == dropped


@given(st.lists(st.integers(0, 50), max_size=30), STEPS)
def test_so_does_one_that_is_not_captured(records: list[int], steps: list[Step]) -> None:
    captured = run_chain(records, *(operator_of(*step) for step in steps))
    source: Any = iter(records)
    for step in steps:
        source = operator_of(*step)(0, source)
    assert list(source) == captured.outputs

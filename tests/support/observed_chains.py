"""A chain of operators as a worker runs it, without Spark. Its functions may ask where they are."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import Any

from pyspark.serializers import CPickleSerializer
from pyspark.shuffle import Aggregator

from spark_agent.delivery.settings import AgentSettings
from spark_agent.worker.operators.adapters import Order
from spark_agent.worker.operators.aggregate import Combine, Merge
from spark_agent.worker.operators.narrow import Filter, FlatMap, Map
from spark_agent.worker.operators.save import TextSink
from spark_agent.worker.operators.shuffle import ShuffleWrite
from spark_agent.worker.pipeline import Capture
from spark_agent.worker.plan import Plan
from spark_agent.worker.process_state import worker_process
from spark_agent.worker.record_at_hand import AtHand, record_at_hand
from spark_agent.worker.serializer import CapturingSerializer

__all__ = ["ENDS", "OPERATORS", "ChainOf", "Observed", "chain_of", "run_chain"]

PICKLE = CPickleSerializer()
ENOUGH = 1 << 20


class _ListSerializer:
    def dump_stream(self, records: Iterable[Any], stream: list[Any]) -> None:
        stream.extend(records)


class _Manifests(list[str]):
    def add(self, manifests: list[str]) -> None:
        self.extend(manifests)


def run_chain(records: Iterable[Any], functions: Iterable[Any], *, pace: bool = False) -> dict[str, Any]:
    """Run a chain to its end; its nodes are 1, 2, ... The manifest of its run."""
    chain = tuple(functions)
    nodes = tuple(range(1, len(chain) + 1))
    plan = Plan(
        application_id="app",
        settings=AgentSettings(bootstrap_servers="127.0.0.1:1", pace=pace),
        flow_partitions=1,
        input_node=0,
        reads_shuffle=False,
        nodes=nodes,
        user_nodes=tuple(node for node in nodes if not hasattr(chain[node - 1], "node_name")),
        problem="no broker is wanted",
    )
    manifests = _Manifests()
    serializer = CapturingSerializer(_ListSerializer(), manifests)
    serializer.dump_stream(Capture(chain, plan)(0, iter(records)), [])
    return dict(json.loads(manifests[0]))


class Observed:
    """Asks at each call of a function of a node where the task is, and knows it by counting the calls."""

    def __init__(self) -> None:
        self.seen: list[tuple[AtHand | None, AtHand]] = []  # (what is said, what is so)
        self._calls: dict[int, int] = {}

    def next_input(self, node: int, first: int = 0) -> None:
        """The function of `node` was called with its next input; the first one is at `first`."""
        self._calls[node] = self._calls.get(node, first - 1) + 1

    def ask(self, node: int) -> None:
        """Of the frame of the caller."""
        run = worker_process.run
        assert run is not None
        said = record_at_hand(sys._getframe(1), run.stages)
        self.seen.append((said, AtHand(node, self._calls[node])))

    def asking(self, node: int, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def asked(record: Any) -> Any:
            self.next_input(node)
            self.ask(node)
            return function(record)

        return asked


ChainOf = Callable[[Observed, int], tuple[Any, ...]]
"""The operators of one step, whose first one is this node. Records are pairs of whole numbers, or text."""


def _map(observed: Observed, node: int) -> tuple[Any, ...]:
    return (Map(observed.asking(node, lambda pair: (pair[0] + 1, pair[1]))),)


def _filter(observed: Observed, node: int) -> tuple[Any, ...]:
    return (Filter(observed.asking(node, lambda pair: pair[1] % 3)),)


def _few(observed: Observed, node: int) -> tuple[Any, ...]:
    return (Filter(observed.asking(node, lambda pair: pair[1] % 7 == 1)),)


def _lists(observed: Observed, node: int) -> tuple[Any, ...]:
    return (FlatMap(observed.asking(node, lambda pair: [pair] * (pair[1] % 4))),)


def _generators(observed: Observed, node: int) -> tuple[Any, ...]:
    def function(pair: Any) -> Any:
        observed.next_input(node)
        for _ in range(pair[1] % 3):
            observed.ask(node)
            yield pair

    return (FlatMap(function),)


def _combine(observed: Observed, node: int) -> tuple[Any, ...]:
    return _aggregate(observed, node, Combine)


def _merge(observed: Observed, node: int) -> tuple[Any, ...]:
    return _aggregate(observed, node, Merge)


def _aggregate(observed: Observed, node: int, kind: type[Combine]) -> tuple[Any, ...]:
    """Each input is passed to one function, but for the first of a group that is merged."""

    def create(value: Any) -> Any:
        observed.next_input(node)
        observed.ask(node)
        return value

    def add(before: Any, value: Any) -> Any:
        observed.next_input(node)
        observed.ask(node)
        return before + value

    order = Order()
    if kind is Combine:
        return Combine(Aggregator(create, add, add), ENOUGH, PICKLE, order), order

    def add_next(before: Any, value: Any) -> Any:
        observed.next_input(node + 1, first=1)  # the one at 0 made the only group
        observed.ask(node + 1)
        return before + value

    one_key = Map(lambda pair: (0, pair[1]))
    return one_key, Merge(Aggregator(create, add_next, add_next), ENOUGH, PICKLE, order), order


#: Steps that may follow each other in any order.
OPERATORS: dict[str, ChainOf] = {
    "map": _map,
    "filter": _filter,
    "filter of few": _few,
    "lists": _lists,
    "generators": _generators,
    "combine": _combine,
    "merge": _merge,
}
#: Steps with which a chain may end.
ENDS: dict[str, ChainOf] = {
    "partitioner": lambda observed, node: (
        ShuffleWrite(observed.asking(node, lambda key: hash(key)), 3, PICKLE, ENOUGH),
    ),
    "text": lambda observed, node: (
        Map(lambda pair: _Text(observed, node + 1)),
        TextSink(lambda _partition, records: records),
    ),
}


def chain_of(observed: Observed, steps: Iterable[str], end: str = "") -> tuple[Any, ...]:
    """The steps of these names, one behind the other."""
    makers = [OPERATORS[step] for step in steps] + ([ENDS[end]] if end else [])
    chain: tuple[Any, ...] = ()
    for maker in makers:
        chain += maker(observed, len(chain) + 1)
    return chain


class _Text:
    """Asks when it is made a text."""

    def __init__(self, observed: Observed, node: int) -> None:
        self._observed, self._node = observed, node

    def __str__(self) -> str:
        self._observed.next_input(self._node)
        self._observed.ask(self._node)
        return "a"

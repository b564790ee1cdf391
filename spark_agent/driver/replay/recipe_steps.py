"""What the operations of a recipe do with the records of one source, as steps that run in the driver.

For maps, filters, aggregations by key, and what moves records. Other operations are refused by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any

from spark_agent.driver.monkeypatch import rdd_module
from spark_agent.driver.recipes import Recipe
from spark_agent.driver.replay.leave_one_out import Merger, own_copy
from spark_agent.driver.replay.local_evaluation import Aggregation, Function, NotLocalError, Step
from spark_agent.driver.replay.own_functions import HeldBroadcastError, own_function

__all__ = ["steps_of"]

Arguments = Mapping[str, Any]
_MOVING = frozenset(("repartition", "coalesce", "partitionBy", "sortBy", "sortByKey"))
_LISTS = Aggregation(Merger(lambda value: [value], lambda one, two: [*one, two], lambda a, b: a + b), True)


def steps_of(recipe: Recipe) -> tuple[Recipe, list[Step]]:
    """The source of a recipe, and what is done with its records. Raises NotLocalError."""
    steps: list[Step] = []
    while recipe.source is None:
        if len(recipe.parents) != 1:
            raise NotLocalError(f"{recipe.name} has several inputs")
        if recipe.name not in _MOVING:
            if recipe.name not in _STEPS:
                raise NotLocalError(f"{recipe.name} is none of map, flatMap, filter and aggregations by key")
            steps += _STEPS[recipe.name](_arguments(recipe))[::-1]
        recipe = recipe.parents[0]
    return recipe, steps[::-1]


def _arguments(recipe: Recipe) -> Arguments:
    operation = getattr(rdd_module().RDD, recipe.name)
    bound = inspect.signature(operation).bind(*recipe.arguments, **recipe.keywords)
    return {name: _own(value) if callable(value) else value for name, value in bound.arguments.items()}


def _own(function: Callable[..., Any]) -> Callable[..., Any]:
    try:
        return own_function(function)
    except HeldBroadcastError as reason:
        raise NotLocalError(str(reason)) from None


def _each(function: Callable[[Any], Any]) -> Function:
    return lambda _, records: map(function, records)


def _kept(function: Callable[[Any], Any]) -> Function:
    return lambda _, records: filter(function, records)


def _flat(function: Callable[[Any], Iterable[Any]]) -> Function:
    return lambda _, records: chain.from_iterable(map(function, records))


def _of_values(function: Callable[[Any], Iterable[Any]]) -> Function:
    return _flat(lambda pair: [(pair[0], value) for value in function(pair[1])])


def _reduced(function: Callable[[Any, Any], Any]) -> Aggregation:
    return Aggregation(Merger(lambda value: value, function, function), False)


def _folded(zero: Any, merge: Callable[[Any, Any], Any], combine: Callable[[Any, Any], Any]) -> Aggregation:
    return Aggregation(Merger(lambda value: merge(own_copy(zero), value), merge, combine), False)


def _grouped(before: Iterable[Step] = ()) -> list[Step]:
    from pyspark.resultiterable import ResultIterable

    return [*before, _LISTS, _each(lambda pair: (pair[0], ResultIterable(pair[1])))]


_DISTINCT: list[Step] = [
    _each(lambda record: (record, None)),
    _reduced(lambda one, _: one),
    _each(lambda pair: pair[0]),
]
_STEPS: dict[str, Callable[[Arguments], list[Step]]] = {
    "map": lambda asked: [_each(asked["f"])],
    "filter": lambda asked: [_kept(asked["f"])],
    "flatMap": lambda asked: [_flat(asked["f"])],
    "mapValues": lambda asked: [_each(lambda pair: (pair[0], asked["f"](pair[1])))],
    "flatMapValues": lambda asked: [_of_values(asked["f"])],
    "keyBy": lambda asked: [_each(lambda record: (asked["f"](record), record))],
    "keys": lambda _: [_each(lambda pair: pair[0])],
    "values": lambda _: [_each(lambda pair: pair[1])],
    "distinct": lambda _: _DISTINCT,
    "reduceByKey": lambda asked: [_reduced(asked["func"])],
    "foldByKey": lambda asked: [_folded(asked["zeroValue"], asked["func"], asked["func"])],
    "aggregateByKey": lambda asked: [_folded(asked["zeroValue"], asked["seqFunc"], asked["combFunc"])],
    "combineByKey": lambda asked: [Aggregation(Merger(*(asked[name] for name in Merger._fields)), False)],
    "groupByKey": lambda _: _grouped(),
    "groupBy": lambda asked: _grouped([_each(lambda record: (asked["f"](record), record))]),
}

"""Functions of the program as executors have them: what they change there is not the program's.

An accumulator is one of the driver's objects wherever its copy is made in the driver, since Spark registers
it. So a copy of a function gets accumulators of its own.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from spark_agent.driver.replay.leave_one_out import own_copy

__all__ = ["HeldBroadcastError", "accumulators_of", "broadcasts_of", "own_function", "pickled", "unchanged"]


class HeldBroadcastError(Exception):
    """A function holds a broadcast variable, which only executors load."""


def own_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """A copy of it, with accumulators that nobody reads. Raises HeldBroadcastError."""
    from pyspark import cloudpickle

    text, _, broadcasts = pickled(function)
    if broadcasts:
        raise HeldBroadcastError("a function holds a broadcast variable, which only executors load")
    own: Callable[..., Any] = cloudpickle.loads(text)
    return own


def accumulators_of(functions: Iterable[Callable[..., Any]]) -> list[Any]:
    """Those that the functions hold, each once. One that cannot be sent to executors adds to none there."""
    return _each_once(accumulators for accumulators, _ in _held(functions))


def broadcasts_of(functions: Iterable[Callable[..., Any]]) -> list[Any]:
    """The broadcast variables that the functions hold, each once."""
    return _each_once(broadcasts for _, broadcasts in _held(functions))


@contextmanager
def unchanged(accumulators: Sequence[Any]) -> Iterator[None]:
    """Afterwards they have the values that they had, whatever was added meanwhile."""
    before = [own_copy(accumulator._value) for accumulator in accumulators]
    try:
        yield
    finally:
        for accumulator, value in zip(accumulators, before, strict=True):
            accumulator._value = value


def _held(functions: Iterable[Callable[..., Any]]) -> Iterator[tuple[list[Any], list[Any]]]:
    """The accumulators and the broadcast variables of each that can be pickled."""
    for function in functions:
        try:
            _, accumulators, broadcasts = pickled(function)
        except Exception:  # noqa: BLE001 - whatever the objects of a program raise
            continue
        yield accumulators, broadcasts


def _each_once(groups: Iterable[list[Any]]) -> list[Any]:
    return list({id(value): value for group in groups for value in group}.values())


def pickled(function: Callable[..., Any]) -> tuple[bytes, list[Any], list[Any]]:
    """(its text, the accumulators that it holds, the broadcast variables)."""
    from pyspark import Accumulator, Broadcast, cloudpickle

    accumulators: list[Any] = []
    broadcasts: list[Any] = []

    class Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
        def reducer_override(self, value: Any) -> Any:
            if isinstance(value, Broadcast):
                broadcasts.append(value)
                return object, ()
            if not isinstance(value, Accumulator):
                return super().reducer_override(value)
            accumulators.append(value)
            parameter = value.accum_param
            return _unregistered, (value.aid, parameter.zero(value._value), parameter)

    text = io.BytesIO()
    Pickler(text).dump(function)
    return text.getvalue(), accumulators, broadcasts


def _unregistered(number: int, zero: Any, parameter: Any) -> Any:
    """An accumulator as a task has it, whose value goes nowhere."""
    from pyspark import Accumulator

    accumulator = object.__new__(Accumulator)
    accumulator.aid, accumulator.accum_param, accumulator._value = number, parameter, zero
    accumulator._deserialized = True
    return accumulator

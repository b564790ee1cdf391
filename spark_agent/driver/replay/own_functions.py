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

__all__ = ["HeldBroadcastError", "accumulators_of", "own_function", "unchanged"]


class HeldBroadcastError(Exception):
    """A function holds a broadcast variable, which only executors load."""


def own_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """A copy of it, with accumulators that nobody reads. Raises HeldBroadcastError."""
    from pyspark import cloudpickle

    pickled, _, has_broadcasts = _pickled(function)
    if has_broadcasts:
        raise HeldBroadcastError("a function holds a broadcast variable, which only executors load")
    own: Callable[..., Any] = cloudpickle.loads(pickled)
    return own


def accumulators_of(functions: Iterable[Callable[..., Any]]) -> list[Any]:
    """Those that the functions hold, each once. One that cannot be sent to executors adds to none there."""
    by_id: dict[int, Any] = {}
    for function in functions:
        try:
            _, accumulators, _ = _pickled(function)
        except Exception:  # noqa: BLE001 - whatever the objects of a program raise
            continue
        by_id.update((id(accumulator), accumulator) for accumulator in accumulators)
    return list(by_id.values())


@contextmanager
def unchanged(accumulators: Sequence[Any]) -> Iterator[None]:
    """Afterwards they have the values that they had, whatever was added meanwhile."""
    before = [own_copy(accumulator._value) for accumulator in accumulators]
    try:
        yield
    finally:
        for accumulator, value in zip(accumulators, before, strict=True):
            accumulator._value = value


def _pickled(function: Callable[..., Any]) -> tuple[bytes, list[Any], bool]:
    """(its text, the accumulators that it holds, does it hold broadcast variables?)."""
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
    return text.getvalue(), accumulators, bool(broadcasts)


def _unregistered(number: int, zero: Any, parameter: Any) -> Any:
    """An accumulator as a task has it, whose value goes nowhere."""
    from pyspark import Accumulator

    accumulator = object.__new__(Accumulator)
    accumulator.aid, accumulator.accum_param, accumulator._value = number, parameter, zero
    accumulator._deserialized = True
    return accumulator

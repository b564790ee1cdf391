"""The functions of operations as executors got them, with the values that they had then.

A program may have changed what its functions use since: k-means overwrites its centres in place. Promises the
very values that were pickled when the chain ran, or nothing: not where they were too large to be kept, where
chains that ran at several times got several of them, or where a broadcast variable is gone. What is loaded is
a copy: nothing of the program changes.
"""

from __future__ import annotations

import functools
import inspect
import io
import pickle
import types
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any, NamedTuple

from spark_agent.driver.function_state import alike
from spark_agent.driver.pickled_chains import PickledFunction
from spark_agent.driver.recipes import MOST_PICKLED, Recipe
from spark_agent.driver.replay.own_functions import broadcasts_of, pickled

__all__ = ["FunctionsThen"]

Then = Mapping[int, Any]
"""By `id` of an argument of the operation: the same as it was."""

#: What cloudpickle makes classes with. With a number of theirs they would be the program's own, and changed.
_MAKERS = ("_make_skeleton_class", "_make_skeleton_enum", "_make_typevar")
_TRACKER = "class_tracker_id"
_OF_A_FUNCTION = "a value"


class _NotKeptError(Exception):
    """They are not known as they were."""


class _SeveralError(Exception):
    """Executors got several of them, with other values."""


def _functions_then(recipe: Recipe, functions: Iterable[Any]) -> Then | None:
    """Of one operation; None if they are not known. `functions` may hold broadcast variables.

    Raises _SeveralError.
    """
    if not recipe.pickled:
        return None
    used = {id(value): value for value in recipe.used()}
    try:
        broadcasts = _Broadcasts([*used.values(), *functions])
        versions = [_in_chain(function, used, broadcasts) for function in recipe.pickled]
        then = {key: _agreed([version[key] for version in versions if key in version]) for key in used}
        return then if len(versions) <= MOST_PICKLED else None
    except _SeveralError:
        raise
    except Exception:  # noqa: BLE001 - whatever the objects of a program raise where they are loaded
        return None


class FunctionsThen:
    """Of the operations that an RDD was made by. What is known of one is found once."""

    def __init__(self, recipe: Recipe) -> None:
        steps = recipe.lineage()
        self._all = [value for step in steps for value in step.used()]
        self._of_step = {id(step): self._of(step) for step in steps if step.source is None}
        self._steps = steps

    def _of(self, step: Recipe) -> StepThen:
        name = step.changed() or ""
        try:
            then = _functions_then(step, self._all)
        except _SeveralError:
            return StepThen(name or _OF_A_FUNCTION, None)
        if not name and (then is None or not _differ(step, then)):
            return StepThen("", {})
        return StepThen(name or _OF_A_FUNCTION, then)

    def of(self, step: Recipe) -> Then:
        """In the place of its arguments. Empty where these are as they were, or that is not known."""
        then = self._of_step.get(id(step))
        return {} if then is None or then.functions is None else then.functions

    @property
    def are_known(self) -> bool:
        """Is it known of all that were changed what they were?"""
        return all(is_known for *_, is_known in self.changed())

    def changed(self) -> Iterator[tuple[Recipe, str, bool]]:
        """(an operation, a name whose value is another one now, is it known what it was?)."""
        for step in self._steps:
            then = self._of_step.get(id(step))
            if then is not None and then.changed:
                yield step, then.changed, then.functions is not None


class StepThen(NamedTuple):
    changed: str
    functions: Then | None


def _differ(step: Recipe, then: Then) -> bool:
    """Did executors get something else than what the functions use now, and used when they were called?"""
    return any(alike(value, then[id(value)]) is False for value in step.used())


def _agreed(copies: list[Any]) -> Any:
    """One of them, if there is one, and they are the same. Raises _NotKeptError, _SeveralError."""
    are_alike = [alike(one, other) for one, other in combinations(copies, 2)]
    if False in are_alike:
        raise _SeveralError
    if not copies or None in are_alike:
        raise _NotKeptError
    return copies[0]


def _in_chain(function: PickledFunction, used: Mapping[int, Any], broadcasts: _Broadcasts) -> Then:
    if function.chain.data is None:
        raise _NotKeptError
    command = _Unpickler(function.chain.data, broadcasts).load()
    if not isinstance(command, tuple):
        raise _NotKeptError  # a broadcast variable that holds the chain
    then: dict[int, Any] = {}
    for live, copy in _pairs(function.function, command[0].functions[function.place], used):
        then[id(live)] = copy
    if broadcasts.are_missing:
        for copy in then.values():
            broadcasts.check(copy)
    return then


# -- the same place in two objects ------------------------------------------------------------------------


def _pairs(live: Any, copy: Any, used: Mapping[int, Any]) -> Iterator[tuple[Any, Any]]:
    """(one of `used`, what stands in its place in the copy)."""
    seen: set[int] = set()
    stack = [(live, copy)]
    while stack:
        one, other = stack.pop()
        if id(one) in used:
            yield one, other
        elif id(one) not in seen and type(one).__name__ == type(other).__name__:
            seen.add(id(one))
            stack.extend(_parts(one, other))


def _parts(one: Any, other: Any) -> Iterator[tuple[Any, Any]]:
    """What an operator, or a function around a function, holds."""
    if isinstance(one, (tuple, list)):
        yield from zip(one, other, strict=True)
    elif isinstance(one, types.FunctionType):
        for cell, cell_of_copy in zip(one.__closure__ or (), other.__closure__ or (), strict=True):
            yield cell.cell_contents, cell_of_copy.cell_contents
        yield from zip(one.__defaults__ or (), other.__defaults__ or (), strict=True)
    elif isinstance(one, types.MethodType):
        yield one.__self__, other.__self__
    elif isinstance(one, functools.partial):
        yield from ((one.func, other.func), (one.args, other.args))
    elif type(one).__module__.startswith(("spark_agent.", "pyspark.")):
        values, others = (getattr(value, "__dict__", {}) for value in (one, other))
        yield from ((values[name], others[name]) for name in values if name in others)


# -- loading ------------------------------------------------------------------------------------------------


class _Broadcasts:
    """The broadcast variables that the program still has, found when the first one is asked for."""

    def __init__(self, functions: list[Any]) -> None:
        self._functions = functions
        self._by_id: dict[int, Any] | None = None
        self.are_missing = False

    def of(self, number: int) -> Any:
        """That variable, or what stands for one that is gone."""
        if self._by_id is None:
            broadcasts = broadcasts_of(self._functions)
            self._by_id = {broadcast._jbroadcast.id(): broadcast for broadcast in broadcasts}
        self.are_missing |= number not in self._by_id
        return self._by_id.get(number, _GONE)

    @staticmethod
    def check(function: Any) -> None:
        """Raises where it holds a variable that is gone."""
        pickled(function)


class _Gone:
    """In the place of a broadcast variable that the program has let go of."""

    def __reduce__(self) -> Any:
        raise _NotKeptError


_GONE = _Gone()


class _Unpickler(pickle.Unpickler):
    """Changes nothing of the program: classes that were pickled as a whole become classes of their own."""

    def __init__(self, data: bytes, broadcasts: _Broadcasts) -> None:
        super().__init__(io.BytesIO(data))
        self._broadcasts = broadcasts

    def find_class(self, module: str, name: str) -> Any:
        value = super().find_class(module, name)
        if module.startswith("pyspark."):
            if name == "_from_id":
                return self._broadcasts.of
            if name in _MAKERS:
                return _untracked(value)
        return value


def _untracked(maker: Any) -> Any:
    signature = inspect.signature(maker)

    def make(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.arguments[_TRACKER] = None
        return maker(*bound.args, **bound.kwargs)

    return make

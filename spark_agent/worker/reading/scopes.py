"""How the objects that a function uses are reached when it runs, without running the user's code."""

from __future__ import annotations

import builtins
import inspect
import itertools
from collections.abc import Mapping
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, NamedTuple

from spark_agent.worker.reading.kinds import (
    CONSTANTS,
    CONTAINERS,
    MAX_PARTS,
    is_constant,
)
from spark_agent.worker.reading.values import Batch, Path

#: A larger container is not looked through.
MAX_LOOKED_AT = 1_000_000
_PLAIN_DESCRIPTORS = (
    type(vars(Batch)["name"]),  # a field of a named tuple
    staticmethod,
    classmethod,
    MemberDescriptorType,
    GetSetDescriptorType,
    MethodDescriptorType,
    WrapperDescriptorType,
    ClassMethodDescriptorType,
    BuiltinFunctionType,
)


class Unknown(Exception):
    """An object cannot be reached without running the user's code."""


class Scope(NamedTuple):
    """Where the paths of a function begin."""

    variables: Mapping[str, Any]
    cells: Mapping[str, Any]
    names: Mapping[str, Any]

    def find(self, path: Path) -> Any:
        kind, *rest = path
        if kind == "attribute":
            return attribute(self.find(rest[0]), rest[1])
        if kind == "part":
            return part(self.find(rest[0]))
        try:
            if kind == "global":
                return self.names[rest[0]] if rest[0] in self.names else getattr(builtins, rest[0])
            return (self.variables if kind == "local" else self.cells)[rest[0]]
        except (KeyError, AttributeError, ValueError):
            raise Unknown from None


def scope_of(function: FunctionType, variables: Mapping[str, Any]) -> Scope:
    return Scope(variables, cells_of(function), function.__globals__)


def cells_of(function: FunctionType) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            cells[name] = cell.cell_contents
        except ValueError:  # it is empty
            continue
    return cells


def attribute(owner: Any, name: str) -> Any:
    """`owner.name`, if that runs no code of the user's."""
    if isinstance(owner, ModuleType):
        if name in vars(owner):
            return vars(owner)[name]
        raise Unknown
    if type(owner).__module__ == "pyspark.core.broadcast" or type(owner).__module__ == "pyspark.broadcast":
        return getattr(owner, name)
    try:
        static = inspect.getattr_static(owner, name)
    except AttributeError:
        raise Unknown from None
    if isinstance(owner, type):
        return getattr(owner, name) if not isinstance(static, property) else static
    if isinstance(static, FunctionType):
        return MethodType(static, owner)
    if isinstance(static, _PLAIN_DESCRIPTORS) or not hasattr(type(static), "__get__"):
        return getattr(owner, name)
    raise Unknown


def part(owner: Any) -> Any:
    """A constant in place of any part of `owner`, if all of them are constants."""
    if is_constant(owner):
        return None
    if type(owner) not in CONTAINERS or len(owner) > MAX_LOOKED_AT:
        raise Unknown
    kinds = set(map(type, owner.values() if isinstance(owner, Mapping) else owner))
    if all(kind in CONSTANTS or kind is bool for kind in kinds) or all(map(is_constant, _values(owner))):
        return None
    raise Unknown


def _values(owner: Any) -> list[Any]:
    values = list(itertools.islice(owner.values() if isinstance(owner, Mapping) else owner, MAX_PARTS + 1))
    return values if len(values) <= MAX_PARTS else [owner]

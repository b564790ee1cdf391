"""How the objects that a function uses are reached when it runs, without running the user's code."""

from __future__ import annotations

import builtins
import itertools
import sys
from collections import ChainMap, UserDict, UserList
from collections.abc import Iterable, Mapping
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

from spark_agent.worker.reading.broadcasts import is_broadcast, value_of
from spark_agent.worker.reading.kinds import (
    CONSTANTS,
    MAX_PARTS,
    is_constant,
    is_container,
)
from spark_agent.worker.reading.static_lookup import (
    Unknown,
    has,
    is_any,
    is_kind_of,
    module_namespace,
    module_of,
    static_attribute,
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
            if kind == "import":
                return sys.modules[rest[0]]
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
    if is_kind_of(owner, ModuleType):
        names = module_namespace(owner)
        if type(owner) is ModuleType and name in names:
            return names[name]
        raise Unknown
    if name == "value" and is_broadcast(owner):
        return value_of(owner)
    static = static_attribute(owner, name)
    if type(static) is property:
        if is_kind_of(owner, type):
            return static
        raise Unknown
    if type(static) is FunctionType:
        return static if is_kind_of(owner, type) else MethodType(static, owner)
    if not has(type(static), "__get__"):
        return static
    is_member_of_enum = is_kind_of(owner, type) and module_of(type(static)) == "enum"
    if is_any(type(static), _PLAIN_DESCRIPTORS) or is_member_of_enum:
        return getattr(owner, name)
    raise Unknown


def part(owner: Any) -> Any:
    """A constant in place of any part of `owner`, if all of them are constants."""
    if is_constant(owner):
        return None
    is_plain = is_container(owner) and not is_any(type(owner), (ChainMap, UserDict, UserList))
    if not is_plain or len(owner) > MAX_LOOKED_AT:
        raise Unknown
    kinds = {id(kind): kind for kind in map(type, _items(owner))}.values()
    if all(is_any(kind, CONSTANTS) or kind is bool for kind in kinds) or all(
        map(is_constant, _values(owner))
    ):
        return None
    raise Unknown


def _items(owner: Any) -> Iterable[Any]:
    items: Iterable[Any] = owner.values() if is_kind_of(owner, dict) else owner
    return items


def _values(owner: Any) -> list[Any]:
    values = list(itertools.islice(_items(owner), MAX_PARTS + 1))
    return values if len(values) <= MAX_PARTS else [owner]

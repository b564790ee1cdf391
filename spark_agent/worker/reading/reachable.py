"""The code of the user's that a function may run: what it puts into objects that outlive a call.

The walk takes the objects that the code names, and what is in them. A function that the code calls by its
name is looked at where it is called. One that is reached another way may run at any time: what its result
depends on counts as used. Such are methods, properties, and functions that a library was given.
"""

from __future__ import annotations

import builtins
import functools
import gc
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
)
from typing import Any, NamedTuple

from spark_agent.worker.reading import kinds
from spark_agent.worker.reading.static_lookup import module_of

#: More objects are not looked at.
MAX_OBJECTS = 20_000
MAX_ITEMS = 5_000
_PLAIN = (*kinds.CONSTANTS, bool, type(abs), CodeType)
#: Names of what changes objects whichever they are.
_REFLECTING = frozenset(("setattr", "delattr", "__setattr__", "__dict__", "vars", "globals", "exec", "eval"))
_CREATING = frozenset(("__init__", "__new__", "__post_init__", "__set_name__", "__init_subclass__"))


def _is_of_user(module: Any) -> bool:
    return not kinds.is_library_file(vars(module).get("__file__") or "")


def is_a(value: Any, kind: Any) -> bool:
    """As `isinstance`, which may run code of the object's class."""
    return issubclass(type(value), kind)


_METHOD_WRAPPER = type([].__len__)


class TooMany(Exception):
    """There are more objects than are looked at."""


#: Of classes, without the code of their own classes.
bases_of: Any = vars(type)["__mro__"].__get__
attributes_of: Any = vars(type)["__dict__"].__get__


class Reached(NamedTuple):
    """A function of the user's, the class that it belongs to, and whether code calls it by its name."""

    function: Any
    owner: type | None
    is_named: bool

    @property
    def is_creating(self) -> bool:
        return self.owner is not None and self.function.__name__ in _CREATING


def names_of(code: CodeType) -> frozenset[str]:
    """The names of globals and attributes in `code`, and in the functions that it creates."""
    inner = (names_of(constant) for constant in code.co_consts if is_a(constant, CodeType))
    return frozenset(code.co_names).union(*inner)


def is_reflecting(function: FunctionType) -> bool:
    """Does it reach attributes or variables by names that are made when it runs?"""
    return bool(names_of(function.__code__) & _REFLECTING)


def is_user_class(kind: type) -> bool:
    """Is it neither of Python nor of an installed library?"""
    return (
        module_of(kind) != "builtins"
        and not kinds.is_standard(module_of(kind))
        and not kinds.is_of_library(kind)
    )


def functions_of(
    roots: Iterable[Any], code: CodeType, names: Mapping[str, Any], partition: int
) -> tuple[list[Reached], list[Any]]:
    """The functions of the user's that `code` reaches, with the variables `roots` and the globals `names`.

    And the functions and methods that are not written in Python.
    """
    walk = _Walk(partition)
    walk.add_named(code, names)
    for root in roots:
        walk.add(root, True)
    walk.run()
    return list(walk.functions.values()), walk.methods


class _Walk:
    def __init__(self, partition: int) -> None:
        self.functions: dict[tuple[int, bool], Reached] = {}
        self._seen: dict[tuple[int, bool], Any] = {(partition, is_named): None for is_named in (True, False)}
        #: Functions and methods that are not written in Python.
        self.methods: list[Any] = []
        self._pending: list[tuple[Any, bool]] = []

    def add(self, value: Any, is_named: bool) -> None:
        if is_a(value, BuiltinFunctionType) or type(value) is _METHOD_WRAPPER:
            self.methods.append(value)
        key = (id(value), is_named)
        if is_a(value, _PLAIN) or key in self._seen:
            return
        if len(self._seen) > MAX_OBJECTS:
            raise TooMany
        self._seen[key] = value
        self._pending.append((value, is_named))

    def add_named(self, code: CodeType, names: Mapping[str, Any]) -> None:
        used = names_of(code)
        for name in used:
            value = names.get(name)
            self.add(value, True)
            for module in (value, sys.modules.get(name)):
                if is_a(module, ModuleType) and _is_of_user(module):
                    for inner in used:
                        self.add(vars(module).get(inner), True)

    def run(self) -> None:
        while self._pending:
            value, is_named = self._pending.pop()
            if is_a(value, FunctionType):
                self._add_function(value, None, is_named)
            elif is_a(value, type):
                self._add_class(value)
            elif not is_a(value, ModuleType):
                self._add_object(value, is_named)

    def _add_function(self, function: FunctionType, owner: type | None, is_named: bool) -> None:
        is_user = kinds.is_of_user(function)
        if is_user:
            key = (id(function), is_named)
            if key in self.functions and owner is None:
                return
            self.functions[key] = Reached(function, owner, is_named)
            self.add_named(function.__code__, function.__globals__)
        elif not function.__closure__:
            return
        inner = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
        for cell in function.__closure__ or ():
            for part in gc.get_referents(cell):
                self.add(part, is_named and is_user)
        for part in (*inner, *vars(function).values()):
            self.add(part, is_named and is_user)

    def _add_class(self, kind: type) -> None:
        for base in bases_of(kind) if is_user_class(kind) else ():
            if not is_user_class(base):
                continue
            for value in list(attributes_of(base).values()):
                for part in _of_attribute(value):
                    if is_a(part, FunctionType):
                        self._add_function(part, kind, False)
                    else:
                        self.add(part, False)
        if is_user_class(type(kind)):
            self.add(type(kind), False)

    def _add_object(self, value: Any, is_named: bool) -> None:
        kind = type(value)
        self.add(kind, False)
        if is_a(value, (functools.partial, MethodType)):
            for part in gc.get_referents(value):
                self.add(part, is_named)
            return
        if is_a(value, GeneratorType):
            self._add_function_of(value)
        for part in parts_of(value):
            self.add(part, False)

    def _add_function_of(self, generator: GeneratorType[Any, Any, Any]) -> None:
        frame = generator.gi_frame
        if frame is not None:
            self.add_named(generator.gi_code, frame.f_globals)


def _of_attribute(value: Any) -> Iterator[Any]:
    """The functions in a property, a static or a class method, and others that have a function in them."""
    if is_a(value, (staticmethod, classmethod)):
        yield value.__func__
    elif is_a(value, property):
        yield from (part for part in (value.fget, value.fset, value.fdel) if part is not None)
    else:
        yield value


def parts_of(value: Any) -> list[Any]:
    """What is in an object. A large container of constants has no parts."""
    if is_a(value, memoryview):
        return [value.obj]
    if is_a(value, (FunctionType, type, ModuleType)) or not gc.is_tracked(value):
        return []
    if kinds.is_of_library(type(value)):
        return []  # a library's object is not examined
    if kinds.is_container(value) and len(value) > MAX_ITEMS:
        items = value.values() if is_a(value, dict) else value
        if all(issubclass(kind, (*_PLAIN, tuple, frozenset, list, dict)) for kind in set(map(type, items))):
            return []
        raise TooMany
    parts = gc.get_referents(value)
    return [part for part in parts if not is_a(part, _PLAIN) and part is not builtins]


def inside(values: Iterable[Any], *, has_classes: bool) -> dict[int, Any]:
    """`values`, and all that is in them: functions, classes and modules are not looked into."""
    values = list(values)
    direct = set(map(id, values))
    seen: dict[int, Any] = {}
    pending = values
    while pending:
        value = pending.pop()
        if id(value) in seen or is_a(value, (*_PLAIN, CellType)):
            continue
        if is_a(value, type) and id(value) not in direct and not has_classes:
            continue
        if len(seen) > MAX_OBJECTS:
            raise TooMany
        seen[id(value)] = value
        pending += parts_of(value) if not is_a(value, (FunctionType, type, ModuleType)) else ()
    return seen

"""What kinds of objects there are, as far as they may hold rows of earlier turns.

What is taken to hold none: constants, modules and classes; connections of the Python Database API; objects
of installed libraries. Containers may, if something is put into them. Iterators, and other objects of the
standard library, are not known."""

from __future__ import annotations

import builtins
import functools
import inspect
import itertools
import sys
from collections import (
    ChainMap,
    Counter,
    OrderedDict,
    UserDict,
    UserList,
    defaultdict,
    deque,
)
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    FunctionType,
    MethodDescriptorType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

from spark_agent.worker.reading.static_lookup import (
    has,
    inherited,
    is_any,
    is_kind_of,
    module_namespace,
    module_of,
    name_of,
)

CONTAINERS = (
    list,
    dict,
    set,
    bytearray,
    deque,
    defaultdict,
    Counter,
    OrderedDict,
    ChainMap,
    UserDict,
    UserList,
)
CONSTANTS = (
    int,
    float,
    complex,
    str,
    bytes,
    type(None),
    range,
    slice,
    type(...),
    type(NotImplemented),
)
#: Modules of the standard library whose objects hold no more than they were created with.
CONSTANT_MODULES = frozenset(
    [
        "re",
        "datetime",
        "decimal",
        "_decimal",
        "fractions",
        "uuid",
        "zoneinfo",
        "pathlib",
        "string",
        "_struct",
        "json",
        "operator",
        "_operator",
        "enum",
        "types",
        "ipaddress",
        "_pydatetime",
        "_zoneinfo",
        "numbers",
        "threading",
        "_thread",
        "logging",
        "random",
    ]
)
#: Types of these modules that hold what is put into them, or call what they are given.
_NOT_CONSTANT = frozenset(
    ("SimpleNamespace", "_local", "local", "LoggerAdapter", "methodcaller", "mappingproxy", "Context")
)
READS = frozenset(
    [
        "__getitem__",
        "__contains__",
        "__iter__",
        "__len__",
        "get",
        "items",
        "keys",
        "values",
        "index",
        "count",
        "copy",
        "most_common",
        "elements",
        "union",
        "intersection",
        "difference",
        "symmetric_difference",
        "issubset",
        "issuperset",
        "isdisjoint",
        "startswith",
        "endswith",
        "find",
        "decode",
        "hex",
        "maps",
    ]
)
#: Builtin functions that change what they are given, or take from it.
CHANGING = frozenset(
    (
        "next",
        "setattr",
        "delattr",
        "exec",
        "eval",
        "vars",
        "globals",
        "locals",
        "__import__",
    )
)
CHANGING_MODULES = frozenset(("_heapq", "heapq", "_bisect", "bisect", "random", "_random", "_operator"))
#: Iterators beside the partition, and what creates them, that give what was known before.
COUNTING = tuple(
    type(iterator)
    for iterator in (
        *(itertools.count(), itertools.cycle(()), itertools.repeat(0), iter(range(0)), iter(range(1 << 99))),
        *(iter([]), iter(()), iter("")),
    )
)
MAX_PARTS = 1_000


def is_filling(value: Any) -> bool:
    """Does a container get an item when one is asked for that it has not?"""
    return type(value) is defaultdict and value.default_factory is not None


def is_constant(value: Any) -> bool:
    """Can it hold nothing more than it does?"""
    kind = type(value)
    if is_any(kind, CONSTANTS) or kind is bool:
        return True
    for of in (tuple, frozenset):
        if is_kind_of(value, of):
            return of.__len__(value) <= MAX_PARTS and all(map(is_constant, of.__iter__(value)))
    module = module_of(kind).partition(".")[0]
    if module not in CONSTANT_MODULES or has(kind, "__next__") or name_of(kind) in _NOT_CONSTANT:
        return False
    return module != "json" or not any(map(callable, getattr(value, "__dict__", {}).values()))


def is_container(value: Any) -> bool:
    return is_any(type(value), CONTAINERS)


def is_connection(value: Any) -> bool:
    """Is it of a module that says that it follows the Python Database API (PEP 249)?"""
    module = module_of(type(value))
    while module:
        namespace = module_namespace(sys.modules.get(module))
        if "apilevel" in namespace and "paramstyle" in namespace:
            return True
        module = module.rpartition(".")[0]
    return False


def is_apart(owner: Any) -> bool:
    """Does what a method of `owner` gives show nothing of what `owner` holds later?"""
    if is_kind_of(owner, ModuleType, type, FunctionType) or is_constant(owner) or is_connection(owner):
        return True
    return not is_container(owner) and is_of_library(type(owner))


def is_builtin(value: Any, name: str) -> bool:
    if name == "from_iterable":
        return type(value) is BuiltinFunctionType and value == itertools.chain.from_iterable
    return is_any(
        value,
        (
            getattr(builtins, name, None),
            getattr(itertools, name, None),
            deque if name == "deque" else None,
        ),
    )


def is_answering(value: Any) -> bool:
    """Does a class of the user's say what attributes it has? What it says may count what it was asked."""
    kind = type(value)
    if is_standard(module_of(kind)) or is_of_library(kind):
        return False
    return has(kind, "__getattr__") or type(inherited(kind, "__getattribute__")) is FunctionType


def is_standard(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names and module != "__main__"


def is_of_library(kind: type) -> bool:
    """Is it a class of an installed library, the standard one not among them?"""
    module = module_of(kind)
    if module in ("__main__", "builtins") or is_standard(module):
        return False
    path = module_namespace(sys.modules.get(module)).get("__file__")
    return type(path) is str and is_library_file(path)


@functools.lru_cache(maxsize=1_024)
def is_library_file(path: str) -> bool:
    """Is it a file of an installed library, or of Python itself?"""
    is_installed = "site-packages" in path or "dist-packages" in path
    return is_installed or path.startswith("<frozen") or path.startswith(_LIBRARY)


_LIBRARY = tuple({inspect.__file__.rpartition("inspect.py")[0]})


def is_quiet_builtin(function: Any, arguments: list[tuple[Any, Any]]) -> bool:
    """Does a call of what is not written in Python leave `arguments` as they are?"""
    return not has_container(arguments) or not is_changing_builtin(function)


def is_changing_builtin(function: Any) -> bool:
    """Is it a function not written in Python that may change a container?"""
    if is_any(type(function), (MethodDescriptorType, WrapperDescriptorType, ClassMethodDescriptorType)):
        return function.__name__ not in READS
    if type(function) is not BuiltinFunctionType:
        return False
    return function.__module__ in CHANGING_MODULES or function.__name__ in CHANGING


def has_container(arguments: list[tuple[Any, Any]]) -> bool:
    return any(is_container(value) for _place, value in arguments)


def is_of_user(function: Any) -> bool:
    """Is it written in Python, and not in an installed library?"""
    return type(function) is FunctionType and not is_library_file(function.__code__.co_filename)


def is_changeable(argument: tuple[Any, Any]) -> bool:
    """Is it an object that a library's function may be called to change, such as an array?"""
    _place, value = argument
    return is_of_library(type(value)) and not is_connection(value)

"""Tells whether what a function of the program uses is still as it was when an operation was called with it.

A replay in a session calls the functions as they are now. A closure over a list that the program has changed
in place gives other records then. Promises to run no code of the program: only values of known types are
looked at, and of objects what is in their dictionaries. What is not known, or too large, is said to be so.
"""

from __future__ import annotations

import functools
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, timedelta
from decimal import Decimal
from hashlib import blake2b
from operator import attrgetter, itemgetter, methodcaller
from typing import Any

from spark_agent.worker.guard.places import is_of_user

__all__ = ["States", "alike", "changed_since", "states_of"]

States = Mapping["tuple[int, str]", "bytes | None"]
"""Number of a function and name there -> digest of the value; None where that cannot be told."""

#: Values that are looked at for one name, and bytes of each: a job calls many operations.
_MOST_VALUES, _MOST_BYTES = 500, 1 << 18


_CONTAINERS = (tuple, list, set, frozenset, dict)


class _CannotTellError(Exception):
    """A value is of a type that is not known, or there are too many."""


def states_of(values: Iterable[Any], *, by_name: bool = False) -> States:
    """Of functions and other values, which are numbered. Never raises.

    `by_name`: functions and classes of the program count as the same if they look the same, copies too.
    """
    states: dict[tuple[int, str], bytes | None] = {}
    for number, function in enumerate(values):
        try:
            uses = dict(_uses(function))
        except Exception:  # noqa: BLE001 - an object that the program has made in its own way
            states[number, "a function"] = None
            continue
        if by_name and isinstance(function, types.FunctionType):
            uses["a function"] = function.__code__
        states.update(((number, name), _digest(value, by_name=by_name)) for name, value in uses.items())
    return states


def changed_since(states: States, values: Iterable[Any]) -> str:
    """The first name whose value is another one now, or of which that cannot be told; empty if none is."""
    now = states_of(values)
    if now.keys() != states.keys():
        return next(iter(states.keys() ^ now.keys()))[1]
    return next((key[1] for key, digest in states.items() if digest is None or now[key] != digest), "")


def alike(one: Any, other: Any) -> bool | None:
    """Are a function and a copy of it the same, with all that both use? None: that cannot be told."""
    if one is other:
        return True
    states, others = (states_of([function], by_name=True) for function in (one, other))
    common = states.keys() & others.keys()
    pairs = [(states[name], others[name]) for name in common]
    if any(None not in pair and pair[0] != pair[1] for pair in pairs):
        return False
    return None if any(None in pair for pair in pairs) or not pairs else True


def _uses(function: Any) -> Iterator[tuple[str, Any]]:
    """(name, value) of what a function refers to outside of itself. Of any other value itself."""
    if not isinstance(function, types.FunctionType):
        yield type(function).__name__, function
        return
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:
            continue  # of a name that has no value yet
    for number, default in enumerate(function.__defaults__ or ()):
        yield f"argument {number + 1}", default
    yield from (function.__kwdefaults__ or {}).items()
    names = set(_names_in(function.__code__))
    for name in sorted(names):
        if name in function.__globals__:
            value = function.__globals__[name]
            yield name, value
            if isinstance(value, types.ModuleType) and _is_of_user(value):
                yield from ((f"{name}.{of}", vars(value)[of]) for of in sorted(names & vars(value).keys()))


def _names_in(code: types.CodeType) -> Iterator[str]:
    """Of globals and attributes, also those that functions inside of it refer to."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_in(constant)


def _is_of_user(module: types.ModuleType) -> bool:
    file = vars(module).get("__file__")
    return isinstance(file, str) and is_of_user(file)


def _digest(value: Any, *, by_name: bool = False) -> bytes | None:
    try:
        return _Digest(by_name=by_name).of(value)
    except Exception:  # noqa: BLE001 - what cannot be told is said
        return None


class _Digest:
    """Of one value. Equal digests: nothing was changed that can be seen without running code."""

    def __init__(self, *, by_name: bool) -> None:
        self.by_name = by_name
        self._left = _MOST_VALUES
        self._open: set[int] = set()

    def of(self, value: Any) -> bytes:
        self._left -= 1
        if self._left < 0:
            raise _CannotTellError
        digest = blake2b(type(value).__name__.encode(), digest_size=16)
        if id(value) in self._open:
            return digest.digest()
        self._open.add(id(value))
        try:
            for part in self._parts(value):
                digest.update(part)
        finally:
            self._open.discard(id(value))
        return digest.digest()

    def _parts(self, value: Any) -> Iterator[bytes]:
        kind = type(value)
        if kind in _CONTAINERS and len(value) > self._left:
            raise _CannotTellError
        if kind in _OF_KIND:
            yield from _OF_KIND[kind](self, value)
        elif kind.__module__ == "numpy":
            yield from _of_numpy(value)
        elif isinstance(value, type):
            yield from _of_class(self, value)
        elif isinstance(value, types.ModuleType) or _is_of_spark(kind):
            yield str(id(value)).encode()
        elif kind.__dictoffset__ and kind.__basicsize__ <= _MOST_BASIC:
            yield self.of(kind)
            yield self.of(object.__getattribute__(value, "__dict__"))
        else:
            raise _CannotTellError


def _of_plain(_: _Digest, value: Any) -> Iterator[bytes]:
    yield _sized(repr(value).encode("utf-8", "surrogatepass"))


def _of_identity(_: _Digest, value: Any) -> Iterator[bytes]:
    yield str(id(value)).encode()


def _of_sequence(digest: _Digest, value: Any) -> Iterator[bytes]:
    yield from map(digest.of, value)


def _of_set(digest: _Digest, value: Any) -> Iterator[bytes]:
    yield from sorted(map(digest.of, value))


def _of_dict(digest: _Digest, value: Any) -> Iterator[bytes]:
    for key, of_key in value.items():
        yield digest.of(key)
        yield digest.of(of_key)


def _of_function(digest: _Digest, value: Any) -> Iterator[bytes]:
    yield digest.of(value.__code__) if digest.by_name else str(id(value.__code__)).encode()
    for name, used in _uses(value):
        yield name.encode()
        yield digest.of(used)


def _of_code(digest: _Digest, value: types.CodeType) -> Iterator[bytes]:
    yield from (value.co_code, repr(value.co_names).encode(), repr(value.co_varnames).encode())
    yield digest.of(value.co_consts)


def _of_builtin(digest: _Digest, value: Any) -> Iterator[bytes]:
    """Of `len`, or of `d.get`, which holds a value."""
    yield value.__name__.encode()
    if not isinstance(value.__self__, (types.ModuleType, type(None))):
        yield digest.of(value.__self__)


def _attributes(*names: str) -> _Parts:
    def parts(digest: _Digest, value: Any) -> Iterator[bytes]:
        yield from (digest.of(getattr(value, name)) for name in names)

    return parts


def _of_getter(digest: _Digest, value: Any) -> Iterator[bytes]:
    yield digest.of(value.__reduce__()[1])


def _of_class(digest: _Digest, value: type) -> Iterator[bytes]:
    yield f"{value.__module__}.{value.__qualname__}".encode()
    if not digest.by_name:
        yield str(id(value)).encode()
    if _is_in_module_of_user(value):
        for name, of_class in list(vars(value).items()):
            if name not in _OF_CLASSES:
                yield name.encode()
                yield digest.of(of_class)


#: A method of a C type that knows its module.
_BUILTIN_METHOD = type(re.compile("").match)
_Parts = Callable[[_Digest, Any], Iterator[bytes]]
_OF_KIND: Mapping[type, _Parts] = {
    **dict.fromkeys((bool, int, float, complex, str, type(None), range, bytes, bytearray), _of_plain),
    **dict.fromkeys((date, timedelta, Decimal), _of_plain),
    **dict.fromkeys((tuple, list), _of_sequence),
    **dict.fromkeys((set, frozenset), _of_set),
    **dict.fromkeys((types.BuiltinFunctionType, types.MethodWrapperType, _BUILTIN_METHOD), _of_builtin),
    **dict.fromkeys((attrgetter, itemgetter, methodcaller), _of_getter),
    **dict.fromkeys((staticmethod, classmethod), _attributes("__func__")),
    **dict.fromkeys(
        (
            types.WrapperDescriptorType,
            types.MethodDescriptorType,
            types.ClassMethodDescriptorType,
            types.GetSetDescriptorType,
            types.MemberDescriptorType,
        ),
        _of_identity,
    ),
    dict: _of_dict,
    types.FunctionType: _of_function,
    types.CodeType: _of_code,
    types.MethodType: _attributes("__func__", "__self__"),
    functools.partial: _attributes("func", "args", "keywords"),
    property: _attributes("fget", "fset", "fdel"),
    re.Pattern: _attributes("pattern", "flags"),
}
#: Of an object that has a dictionary and references to it, and nothing else.
_MOST_BASIC = object.__basicsize__ + 2 * tuple.__itemsize__
_OF_CLASSES = frozenset(
    ("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__qualname__")
)


def _is_in_module_of_user(value: type) -> bool:
    if value.__module__ == "__main__":
        return True
    module = sys.modules.get(value.__module__)
    return module is not None and _is_of_user(module)


def _is_of_spark(kind: type) -> bool:
    """Is it what workers load, or only add to?"""
    return kind.__module__.startswith("pyspark.") and kind.__name__ in ("Broadcast", "Accumulator")


def _sized(data: bytes) -> bytes:
    if len(data) > _MOST_BYTES:
        raise _CannotTellError
    return data


def _of_numpy(value: Any) -> Iterator[bytes]:
    """Of an array or a number, whose memory holds all of it; other objects of NumPy do not change."""
    if not hasattr(value, "nbytes"):
        yield str(id(value)).encode()
        return
    if value.dtype.hasobject or value.nbytes > _MOST_BYTES:
        raise _CannotTellError
    yield value.dtype.str.encode()
    yield repr(value.shape).encode()
    yield value.tobytes()

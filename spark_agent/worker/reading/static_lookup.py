"""Looks at objects of the user's without running the user's code, and without keeping them.

A class may say what `__class__`, `len`, `==` and each attribute are. So what is asked here is the real type
of an object, and what the dictionaries of its classes hold.
"""

from __future__ import annotations

import dis
import functools
import inspect
import sys
import weakref
from collections.abc import Callable, Iterable
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, NamedTuple


class Unknown(Exception):
    """An object cannot be reached without running the user's code."""


_mro: Callable[[Any], tuple[type, ...]] = vars(type)["__mro__"].__get__
_namespace: Callable[[Any], dict[str, Any]] = vars(type)["__dict__"].__get__
_module: Callable[[Any], Any] = vars(type)["__module__"].__get__
_name: Callable[[Any], str] = vars(type)["__name__"].__get__
_module_namespace: Callable[[Any], dict[str, Any]] = vars(ModuleType)["__dict__"].__get__
_MISSING = object()
#: Up to 3.12 a frame keeps a dictionary of its variables once it was asked for, and the objects with it.
_IS_KEPT = sys.version_info < (3, 13)
_OF_FUNCTION = inspect.CO_OPTIMIZED | inspect.CO_NEWLOCALS
#: Who uses one of these functions may have that dictionary, or variables that are only in it.
_SHOWING = frozenset(("locals", "vars", "eval", "exec"))


def variables_of(frame: FrameType, names: Iterable[str] | None = None) -> dict[str, Any]:
    """The variables of a function that runs, or those of `names`. The frame keeps nothing of it."""
    code = frame.f_code
    if code.co_flags & _OF_FUNCTION != _OF_FUNCTION or _is_showing(code):
        raise Unknown
    if sys.gettrace() is not None or frame.f_trace is not None:  # it may have the dictionary, too
        raise Unknown
    shown = frame.f_locals
    variables = {name: shown[name] for name in (shown if names is None else names) if name in shown}
    if _IS_KEPT:
        shown.clear()
    return variables


@functools.lru_cache(maxsize=512)
def _is_showing(code: CodeType) -> bool:
    if "f_locals" in code.co_names:
        return True
    if _SHOWING.isdisjoint(code.co_names):
        return False
    loads = (step for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
    return any(step.argval in _SHOWING for step in loads)


def is_any(kind: Any, kinds: Iterable[Any]) -> bool:
    """Is it one of `kinds`? Asks no metaclass what is equal."""
    return any(kind is other for other in kinds)


def is_kind_of(value: Any, *kinds: type) -> bool:
    """Is it an object of one of `kinds`, whatever it says of itself?"""
    return issubclass(type(value), kinds)


def module_of(kind: type) -> str:
    module = _module(kind)
    return module if type(module) is str else ""


def name_of(kind: type) -> str:
    return _name(kind)


def inherited(kind: type, name: str) -> Any:
    """What a class or one of its bases has under `name`; None if none has it."""
    for base in _mro(kind):
        names = _namespace(base)
        if name in names:
            return names[name]
    return None


def has(kind: type, name: str) -> bool:
    return any(name in _namespace(base) for base in _mro(kind))


def module_namespace(module: Any) -> dict[str, Any]:
    """The names in a module, which a module that is loaded late may not have yet."""
    return _module_namespace(module) if is_kind_of(module, ModuleType) else {}


def static_attribute(owner: Any, name: str) -> Any:
    """What is stored as `owner.name`, if nothing of the user's decides what that is."""
    kind = type(owner)
    classes = _mro(kind) if not is_kind_of(owner, type) else (*_mro(owner), *_mro(kind))
    if any(map(_is_deciding, {id(of): of for of in (kind, *map(type, classes))}.values())):
        raise Unknown
    static = inspect.getattr_static(owner, name, _MISSING)
    if static is _MISSING:
        raise Unknown
    return static


def _is_deciding(kind: type) -> bool:
    """Does a class say itself what attributes its objects have?"""
    if is_any(kind, (weakref.ProxyType, weakref.CallableProxyType)):
        return True
    return type(inherited(kind, "__getattribute__")) is not _SLOT


_SLOT = type(object.__getattribute__)


def called_on(kind: type, name: str) -> FunctionType | None:
    """The method `name` of a class, if it is written in Python."""
    method = inherited(kind, name)
    return method if type(method) is FunctionType else None


class Partial(NamedTuple):
    """What a `functools.partial` was created with."""

    func: Any
    args: tuple[Any, ...]
    keywords: dict[str, Any]


_PARTIAL = [vars(functools.partial)[name].__get__ for name in Partial._fields]


def partial_of(value: Any) -> Partial | None:
    if not is_kind_of(value, functools.partial):
        return None
    return Partial(*(get(value) for get in _PARTIAL))

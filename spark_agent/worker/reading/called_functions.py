"""Functions of the user's that are called: what is called in the end, and with which objects."""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from spark_agent.worker.reading import kinds
from spark_agent.worker.reading.analysis import effects_of, parameters
from spark_agent.worker.reading.effects import Effects
from spark_agent.worker.reading.instructions import Undecided
from spark_agent.worker.reading.static_lookup import Partial, called_on, is_kind_of, partial_of

#: The arguments of a call that outlive it: which one it is, and the object.
Arguments = list[tuple[Any, Any]]


def is_changing_parameters(function: Any) -> bool:
    """Is it a function of the user's that puts something into what it is given?"""
    function, arguments, _owner = unwrapped(function, [])
    if type(function) is not FunctionType or kinds.is_library_file(function.__code__.co_filename):
        return False
    outliving = outliving_parameters(function, arguments)
    effects = None if outliving is None else effects_if_known(function, frozenset(outliving))
    return effects is None or effects.is_changing_parameters


def unwrapped(function: Any, arguments: Arguments) -> tuple[Any, Arguments, Any]:
    """The function that is called in the end, its arguments, and the object whose method it is."""
    while (partial := partial_of(function)) is not None:
        arguments = shifted(arguments, len(partial.args), held_by(partial))
        function = partial.func
    if not is_kind_of(function, FunctionType, MethodType, BuiltinFunctionType, type):
        call = called_on(type(function), "__call__")
        function = function if call is None else MethodType(call, function)
    if type(function) is MethodType:
        owner = function.__self__
        return function.__func__, shifted(arguments, 1, [(0, owner)]), owner
    return function, arguments, None


def held_by(function: Partial) -> Arguments:
    kept = [*enumerate(function.args), *function.keywords.items()]
    return [(place, value) for place, value in kept if not kinds.is_constant(value)]


def shifted(arguments: Arguments, many: int, before: Arguments) -> Arguments:
    """`arguments` behind `many` positional ones, of which `before` matter."""
    moved = [(place + many if isinstance(place, int) else place, value) for place, value in arguments]
    return [*before, *moved]


def effects_if_known(function: FunctionType, outliving: frozenset[str]) -> Effects | None:
    try:
        return effects_of(function.__code__, outliving)
    except Undecided:
        return None


def outliving_parameters(function: FunctionType, arguments: Arguments) -> dict[str, Any] | None:
    """The parameters that may be objects which outlive the call; None if it is not known which."""
    names = parameters(function.__code__)
    outliving: dict[str, Any] = dict(function.__kwdefaults__ or {})
    defaults = function.__defaults__ or ()
    positional = function.__code__.co_argcount
    outliving.update(zip(names[positional - len(defaults) : positional], defaults, strict=True))
    outliving = {name: value for name, value in outliving.items() if not kinds.is_constant(value)}
    for place, value in arguments:
        if isinstance(place, int) and place < positional:
            outliving[names[place]] = value
        elif isinstance(place, str) and place in names:
            outliving[place] = value
        elif not kinds.is_constant(value):
            return None
    return outliving

"""Checks, when a function runs, that the objects from outside that it uses keep no rows from it.

The user's own functions and methods are read as the function is: they may put nothing into an object that is
used. What `kinds` knows of other objects is taken for granted.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from spark_agent.worker.reading import kinds
from spark_agent.worker.reading.analysis import parameters
from spark_agent.worker.reading.called_functions import (
    Arguments,
    effects_if_known,
    held_by,
    is_changing_parameters,
    outliving_parameters,
    shifted,
    unwrapped,
)
from spark_agent.worker.reading.decision import decision_on
from spark_agent.worker.reading.instructions import CO_GENERATOR
from spark_agent.worker.reading.scopes import Scope, attribute, scope_of
from spark_agent.worker.reading.shared_state import SharedState
from spark_agent.worker.reading.static_lookup import (
    Partial,
    Unknown,
    called_on,
    has,
    is_any,
    is_kind_of,
    module_of,
    name_of,
    partial_of,
)
from spark_agent.worker.reading.values import BESIDE, CALLED_FOR_EFFECT, OLD, Need, Path, root_of

MAX_DEPTH = 4
_CHANGING = frozenset(("__next__", "__setattr__", "__delattr__", "__setitem__", "__delitem__", "__missing__"))
_DESCRIPTORS = ("method_descriptor", "wrapper_descriptor", "builtin_method")
NO_CODE = compile("", "", "exec")


class ObjectCheck:
    """One check of the objects that a function uses, and of those that it puts something into."""

    def __init__(self) -> None:
        self.state = SharedState()
        self._active: set[int] = set()
        self._noted: set[Any] = set()

    def holds(
        self,
        needs: Iterable[Need],
        stored: Iterable[Path],
        scope: Scope,
        depth: int = 0,
    ) -> bool:
        """Are the `needs` met, and is nothing that is used in what is `stored` into?"""
        try:
            for path in stored:
                self.state.store(path, scope)
            return all(self._is_met(need, scope, depth) for need in needs)
        except Unknown:
            return False

    def note_calls(self, calls: Iterable[Need], scope: Scope, depth: int = 0) -> None:
        """Note what these calls put something into, whether their results matter or not."""
        for call in calls if depth < MAX_DEPTH else ():
            path = ("attribute", call.path, call.method) if call.kind == "use" else call.path
            try:
                function = scope.find(path)
                arguments = [(place, scope.find(argument)) for place, argument in call.arguments]
            except Unknown:
                continue
            self._note_call(function, arguments, depth)

    def _note_call(self, function: Any, arguments: Arguments, depth: int) -> None:
        function, arguments, _owner = unwrapped(function, arguments)
        if type(function) is not FunctionType or kinds.is_library_file(function.__code__.co_filename):
            return
        key = (id(function), tuple(id(value) for _place, value in arguments))
        outliving = outliving_parameters(function, arguments)
        if key in self._noted or outliving is None:
            return
        self._noted.add(key)
        effects = effects_if_known(function, frozenset(outliving))
        if effects is not None:
            scope = scope_of(function, outliving)
            for path in effects.stored:
                self.state.store(path, scope)
            self.note_calls(effects.calls, scope, depth + 1)

    def _is_met(self, need: Need, scope: Scope, depth: int) -> bool:
        if need.kind == "value":
            return self.state.is_usable(need.path, scope)
        self.state.use_variable(need.path, scope)
        if need.kind == "is":
            return kinds.is_builtin(scope.find(need.path), need.method or "")
        if need.kind == "reads":
            return self._is_reading_by_row(scope.find(need.path), depth)
        if need.kind == "connection":
            return kinds.is_connection(scope.find(need.path))
        if need.kind == "apart":
            return kinds.is_apart(scope.find(need.path))
        arguments = [(place, scope.find(path)) for place, path in need.arguments]
        if need.kind == "still" and not self._is_still(scope.find(need.path), depth):
            return False
        if need.kind in ("quiet", "still"):
            is_for_effect = need.method == CALLED_FOR_EFFECT
            return self._is_quiet(scope.find(need.path), arguments, depth, is_for_effect=is_for_effect)
        if need.kind == "call":
            return self.is_stateless(scope.find(need.path), arguments, depth)
        return self.is_reading(scope.find(need.path), need.method or "", arguments, depth)

    def is_applied_by_row(self, function: Any, partition: int) -> bool:
        """Is it a function for items of an iterator, which keeps nothing of them?"""
        self.state.note_reachable(NO_CODE, {}, [function], partition)
        return self.is_stateless(function, [], 0)

    # -- objects -------------------------------------------------------------------------------------------

    def is_reading(self, owner: Any, method: str, arguments: Arguments, depth: int) -> bool:
        """Does `method` of `owner` (an operation on it, if empty) leave nothing of a row in it?"""
        if not all(self._is_given_safely(argument, depth) for _place, argument in arguments):
            return False
        if kinds.is_constant(owner):
            return True
        self.state.use(owner)
        if kinds.is_container(owner):
            return (method in kinds.READS or not method) and not kinds.is_filling(owner)
        if kinds.is_connection(owner):
            return True
        if is_kind_of(owner, ModuleType, type):
            return not method or self.is_stateless(attribute(owner, method), arguments, depth)
        if is_kind_of(owner, FunctionType, BuiltinFunctionType, MethodType, functools.partial):
            return not method
        if has(type(owner), "__next__"):
            return method == BESIDE and is_any(type(owner), kinds.COUNTING)
        if kinds.is_of_library(type(owner)):
            return True
        return self._is_reading_by(owner, method, arguments, depth) if method else False

    def _is_reading_by(self, owner: Any, method: str, arguments: Arguments, depth: int) -> bool:
        if kinds.is_standard(module_of(type(owner))):
            return False
        return self.is_stateless(attribute(owner, method), arguments, depth)

    def _is_given_safely(self, argument: Any, depth: int) -> bool:
        if kinds.is_constant(argument) or is_kind_of(argument, ModuleType, type):
            return True
        self.state.use(argument)
        if kinds.is_container(argument):
            return not kinds.is_filling(argument)
        if callable(argument):
            return self.is_stateless(argument, [], depth)
        return not has(type(argument), "__next__") and not (
            kinds.is_standard(module_of(type(argument))) and not kinds.is_connection(argument)
        )

    # -- functions -----------------------------------------------------------------------------------------

    def is_stateless(self, function: Any, arguments: Arguments, depth: int) -> bool:
        """Does a call of `function` keep nothing of its arguments, and leave `arguments` as they are?"""
        if depth > MAX_DEPTH:
            return False
        if not all(self._is_given_safely(argument, depth + 1) for _place, argument in arguments):
            return False
        if any(place == "out" or is_changing_parameters(argument) for place, argument in arguments):
            return False
        if is_kind_of(function, type):
            return self._is_class_stateless(function, arguments, depth)
        if (partial := partial_of(function)) is not None:
            return self._is_partial_stateless(partial, arguments, depth)
        if type(function) is functools._lru_cache_wrapper:
            self.state.use(function)
            return self.is_stateless(function.__wrapped__, arguments, depth + 1)
        if type(function) is MethodType:
            self.state.use(function.__self__)
            arguments = shifted(arguments, 1, [(0, function.__self__)])
            return self._is_function_stateless(function.__func__, arguments, depth)
        if type(function) is FunctionType:
            return self._is_function_stateless(function, arguments, depth)
        if type(function) is BuiltinFunctionType:
            return self._is_builtin_stateless(function, arguments, depth)
        return self._is_callable_stateless(function, arguments, depth)

    def _is_partial_stateless(self, function: Partial, arguments: Arguments, depth: int) -> bool:
        arguments = shifted(arguments, len(function.args), held_by(function))
        return self.is_stateless(function.func, arguments, depth + 1)

    def _is_class_stateless(self, function: type, arguments: Arguments, depth: int) -> bool:
        """Does a new object hold nothing but what it is created with?"""
        create = called_on(function, "__init__")
        if create is None or kinds.is_library_file(create.__code__.co_filename):
            return True
        outliving = outliving_parameters(create, shifted(arguments, 1, []))
        effects = None if outliving is None else effects_if_known(create, frozenset(outliving))
        if effects is None or outliving is None or OLD in effects.parameters:
            return False
        needs = {atom for atom in effects.parameters if isinstance(atom, Need)} | effects.required
        return self.holds(needs, effects.stored, scope_of(create, outliving), depth + 1)

    def _is_callable_stateless(self, function: Any, arguments: Arguments, depth: int) -> bool:
        kind = type(function)
        if module_of(kind) == "builtins" and name_of(kind) == "method-wrapper":
            return self.is_reading(function.__self__, function.__name__, arguments, depth + 1)
        if module_of(kind) == "builtins" and name_of(kind) in _DESCRIPTORS:
            is_reading = function.__name__ in kinds.READS
            return is_reading or (not arguments and function.__name__ not in _CHANGING)
        if name_of(kind) == "ufunc" and kinds.is_of_library(kind):
            return not any(type(place) is int and place >= function.nin for place, _value in arguments)
        if kinds.is_of_library(kind):
            return True
        if kinds.is_standard(module_of(kind)):
            return kinds.is_constant(function)
        return self.is_reading(function, "__call__", arguments, depth + 1)

    def _is_builtin_stateless(self, function: Any, arguments: Arguments, depth: int) -> bool:
        owner, module = function.__self__, function.__module__
        if owner is not None and not is_kind_of(owner, ModuleType, type):
            return self.is_reading(owner, function.__name__, arguments, depth + 1)
        if module == "builtins" and function.__name__ in kinds.CHANGING:
            return False
        has_container = kinds.has_container(arguments)
        return not (has_container and module in kinds.CHANGING_MODULES)

    def _is_function_stateless(self, function: Any, arguments: Arguments, depth: int) -> bool:
        if type(function) is not FunctionType:
            return self.is_stateless(function, arguments, depth + 1)
        if kinds.is_library_file(function.__code__.co_filename):
            return not any(is_kind_of(value, *kinds.CONTAINERS) for _p, value in arguments) or (
                function.__module__ not in kinds.CHANGING_MODULES
            )
        if id(function) in self._active:  # it calls itself
            return True
        outliving = outliving_parameters(function, arguments)
        if outliving is None:
            return False
        self._active.add(id(function))
        effects = effects_if_known(function, frozenset(outliving))
        if effects is None or OLD in effects.result:
            return False
        needs = {atom for atom in effects.result if isinstance(atom, Need)} | effects.required
        return self.holds(needs, effects.stored, scope_of(function, outliving), depth + 1)

    def _is_reading_by_row(self, function: Any, depth: int) -> bool:
        """Does the generator `function` make each output of the row of its argument that it read last?"""
        function, arguments, _owner = unwrapped(function, [])
        if type(function) is not FunctionType or not function.__code__.co_flags & CO_GENERATOR:
            return False
        outliving = outliving_parameters(function, arguments)
        names = parameters(function.__code__)
        if outliving is None or depth > MAX_DEPTH or len(names) <= len(arguments):
            return False
        decision = decision_on(function.__code__, names[len(arguments)], has_every_row=False)
        if decision is None or not decision.is_row_by_row:
            return False
        scope = scope_of(function, outliving)
        self.note_calls(decision.calls, scope, depth + 1)
        return self.holds(decision.needs, decision.stored, scope, depth + 1)

    def _is_still(self, function: Any, depth: int) -> bool:
        """Does a call leave all of its arguments as they are?"""
        function, arguments, _owner = unwrapped(function, [])
        if not kinds.is_of_user(function):
            is_plain = is_any(type(function), (FunctionType, BuiltinFunctionType))
            is_changing_module = is_plain and function.__module__ in kinds.CHANGING_MODULES
            return not is_changing_module and not kinds.is_changing_builtin(function)
        outliving = outliving_parameters(function, arguments)
        if outliving is None or depth > MAX_DEPTH:
            return False
        effects = effects_if_known(function, frozenset(outliving))
        if effects is None or effects.is_changing_parameters:
            return False
        needs = {need._replace(kind="still") for need in effects.parameters if isinstance(need, Need)}
        return self.holds(needs, (), scope_of(function, outliving), depth + 1)

    def _is_quiet(self, function: Any, arguments: Arguments, depth: int, *, is_for_effect: bool) -> bool:
        """Does a call leave `arguments` as they are, and put nothing of earlier rows into others?"""
        function, arguments, owner = unwrapped(function, arguments)
        if is_for_effect and any(map(kinds.is_changeable, arguments)) and not kinds.is_of_user(function):
            return False
        if type(function) is not FunctionType:
            return not callable(function) or kinds.is_quiet_builtin(function, arguments)
        if not kinds.is_of_user(function):
            return function.__module__ not in kinds.CHANGING_MODULES or not kinds.has_container(arguments)
        outliving = outliving_parameters(function, arguments)
        effects = (
            None
            if outliving is None or depth > MAX_DEPTH
            else effects_if_known(function, frozenset(outliving))
        )
        if effects is None or outliving is None or OLD in effects.parameters:
            return False
        roots = (root_of(path) for path in effects.stored)
        changed = {root[1] for root in roots if root[0] == "local"}
        needs = {atom for atom in effects.parameters if isinstance(atom, Need)} | effects.left
        is_changing = any(outliving.get(name) is not owner for name in changed)
        return not is_changing and self.holds(needs, (), scope_of(function, outliving), depth + 1)

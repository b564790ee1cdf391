"""What the code of the user's puts into objects that outlive a turn, and what of it outputs are made of."""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Iterable, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from spark_agent.worker.reading import kinds
from spark_agent.worker.reading.analysis import parameters
from spark_agent.worker.reading.broadcasts import is_broadcast
from spark_agent.worker.reading.called_functions import effects_if_known, unwrapped
from spark_agent.worker.reading.methods import MUTATORS, REFLECTING
from spark_agent.worker.reading.reachable import (
    Reached,
    TooMany,
    attributes_of,
    bases_of,
    functions_of,
    inside,
    is_a,
    is_reflecting,
    is_user_class,
    names_of,
    parts_of,
)
from spark_agent.worker.reading.scopes import Scope, attribute, cells_of, scope_of
from spark_agent.worker.reading.static_lookup import Unknown
from spark_agent.worker.reading.values import NOTHING, Atoms, Need, Path, is_reached, root_of

#: How deep functions that return what others return are followed.
MAX_DEPTH = 4
_DEFINED = (FunctionType, BuiltinFunctionType, ModuleType, type)
_STORING = frozenset(
    (
        "STORE_GLOBAL",
        "DELETE_GLOBAL",
        "STORE_ATTR",
        "DELETE_ATTR",
        "STORE_SUBSCR",
        "DELETE_SUBSCR",
        "STORE_SLICE",
    )
)


#: Names of what reads all attributes of an object.
_WHOLE = frozenset(
    ("getattr", "asdict", "astuple", "vars", "__dict__", "attrgetter", "copy", "deepcopy", "dumps", "repr")
)


class SharedState:
    """Objects that outputs are `used` in, and those that something is `stored` into."""

    def __init__(self) -> None:
        self._used: dict[Any, Any] = {}
        self._stored: dict[Any, Any] = {}
        #: Variables that are used, and are not set to a function, a class or a module.
        self._variables: set[Any] = set()
        #: Attributes of objects of a class that are set, or None for something in them.
        self._changed_classes: set[tuple[int, str | None]] = set()
        #: Names of attributes that some code of the user's reads.
        self._loaded: set[str] = set()
        self._set_names: set[str] = set()
        #: Is something put into an object that is not known?
        self._is_unknown = False

    @property
    def is_disjoint(self) -> bool:
        """Is nothing used that something is put into?"""
        if self._set_names & self._loaded:
            return False
        changed = {
            kind
            for kind, name in self._changed_classes
            if name is None or name in self._loaded or self._loaded & _WHOLE
        }
        if not self._stored and not changed and not self._is_unknown:
            return True
        try:
            used = inside(
                (value for key, value in self._used.items() if not is_a(key, tuple)), has_classes=True
            )
            stored = inside(
                (value for key, value in self._stored.items() if not is_a(key, tuple)),
                has_classes=False,
            )
        except TooMany:
            return False
        if self._is_unknown and (self._variables or any(_is_changeable(value) for value in used.values())):
            return False
        kinds_used = {id(kind) for value in used.values() for kind in bases_of(type(value))}
        variables = {key for key in self._stored if is_a(key, tuple)}
        return (
            not used.keys() & stored.keys() and not variables & self._used.keys() and not kinds_used & changed
        )

    # -- what is used --------------------------------------------------------------------------------------

    def use(self, value: Any) -> None:
        if not is_a(value, kinds.CONSTANTS):
            self._used[id(value)] = value

    def use_variable(self, path: Path, scope: Scope) -> None:
        key = _variable(path, scope)
        if key is not None:
            self._used[key] = None

    def is_usable(self, path: Path, scope: Scope) -> bool:
        """Note that what is at `path` is used, and say whether that is known to run no code."""
        if path[0] == "part":
            return self.is_usable(path[1], scope)
        self.use_variable(path, scope)
        if path[0] != "attribute":
            try:
                value = scope.find(path)
            except Unknown:
                self._variables |= {path} if _is_variable(path) else set()
                return True  # set later: who sets it is noted
            self.use(value)
            if _is_variable(path) and not is_a(value, _DEFINED):
                self._variables.add(path)
            return not kinds.is_filling(value)
        if not self.is_usable(path[1], scope):
            return False
        try:
            owner = scope.find(path[1])
        except Unknown:
            return True
        return self._is_attribute_usable(owner, path[2])

    def _is_attribute_usable(self, owner: Any, name: str) -> bool:
        if is_broadcast(owner):
            return True
        if is_a(owner, ModuleType):
            self._used[(id(vars(owner)), name)] = None
        try:
            self.use(attribute(owner, name))
        except Unknown:
            return is_a(owner, (ModuleType, type)) or not is_user_class(type(owner))
        return True

    # -- what is stored ------------------------------------------------------------------------------------

    def store(self, path: Path, scope: Scope, depth: int = 0) -> None:
        kind, inner = path[:2]
        name = path[2] if kind == "set" else None
        if kind == "result":
            self._store_result(inner, scope, depth)
            return
        if kind == "set":
            path = inner
            while path[0] == "part":
                path = path[1]
        key = _variable(path, scope)
        if key is not None:
            self._stored[key] = None
        try:
            value = scope.find(path)
        except Unknown:
            return  # it is created later
        if kind == "set" and is_a(value, ModuleType):
            self._stored[(id(vars(value)), name)] = None
        self._is_unknown |= value is sys.modules
        if kind == "set" or not is_a(value, ModuleType):
            self._store_value(value)

    def _store_value(self, value: Any) -> None:
        if not is_a(value, (*kinds.CONSTANTS, bool)):
            self._stored[id(value)] = value

    def _store_result(self, path: Path, scope: Scope, depth: int) -> None:
        """Something is put into what the function at `path` gives: what may that be?"""
        try:
            function = scope.find(path)
        except Unknown:
            return
        if type(function) is functools._lru_cache_wrapper:
            self._store_value(function)
            function = function.__wrapped__
        function, _arguments, owner = unwrapped(function, [])
        if not kinds.is_of_user(function):
            return
        effects = effects_if_known(function, frozenset(parameters(function.__code__)))
        if effects is None or depth > MAX_DEPTH:
            self._is_unknown = True
            return
        names = parameters(function.__code__)
        inner = scope_of(function, {} if owner is None or not names else {names[0]: owner})
        for atom in effects.result:
            if isinstance(atom, Need) and atom.kind == "value":
                self.store(atom.path, inner, depth + 1)
            elif isinstance(atom, Need) and atom.kind == "call":
                self._store_result(atom.path, inner, depth + 1)

    # -- what other code does ------------------------------------------------------------------------------

    def note_reachable(
        self, code: CodeType, names: Mapping[str, Any], variables: Iterable[Any], partition: int
    ) -> None:
        """Note what the code that is reached from here uses and stores, whoever calls it."""
        try:
            roots = [value for value in variables if id(value) != partition]
            functions, methods = functions_of(roots, code, names, partition)
        except TooMany:
            self._is_unknown = True
            return
        self._loaded |= loaded_by(code)
        for method in methods:
            owner = getattr(method, "__self__", None)
            if not is_a(owner, (ModuleType, type)) and method.__name__ not in kinds.READS:
                self._store_value(owner)
        for reached in functions:
            self._loaded |= loaded_by(reached.function.__code__)
            if reached.function.__code__ is not code:
                self._note_function(reached)

    def _note_function(self, reached: Reached) -> None:
        function, owner = reached.function, reached.owner
        names = parameters(function.__code__)
        effects = effects_if_known(function, frozenset(names))
        if effects is None:
            self._is_unknown |= _may_store(function.__code__)
            self._use_names(function)
            return
        self._is_unknown |= is_reflecting(function) and not reached.is_creating
        first = {names[0]: owner} if owner is not None and names else {}
        scope = Scope(first, cells_of(function), function.__globals__)
        for path in effects.stored:
            root = root_of(path)
            if root[0] == "local":
                self._note_parameter(path, root[1], names, reached)
            else:
                self.store(path, scope)
        if not reached.is_named:
            self._use_class(reached)
            apart = effects_if_known(function, frozenset())
            self._use_results(effects.result, scope)
            self._use_results(apart.result | apart.parameters if apart is not None else NOTHING, scope)

    def _note_parameter(self, path: Path, name: str, names: tuple[str, ...], reached: Reached) -> None:
        """A function puts something into its argument: of a method, that is the object or the class."""
        if reached.owner is None or name != names[0]:
            return
        attribute_set = path[2] if path[0] == "set" else None
        if path[0] == "set" and path[1][0] != "local" and attribute_set is not None:
            self._set_names.add(attribute_set)
        is_direct = path[0] == "set" and path[1][0] == "local"
        if isinstance(attributes_of(reached.owner).get(reached.function.__name__), classmethod):
            self._store_value(reached.owner)
        elif not reached.is_creating:
            self._changed_classes.add((id(reached.owner), attribute_set if is_direct else None))
        if not is_direct:
            shared = (value for base in bases_of(reached.owner) for value in attributes_of(base).values())
            for value in shared:
                if kinds.is_container(value):
                    self._store_value(value)

    def _use_class(self, reached: Reached) -> None:
        """A method may use the containers that its class has."""
        for name in loaded_by(reached.function.__code__) if reached.owner is not None else ():
            for base in bases_of(reached.owner) if reached.owner is not None else ():
                value = attributes_of(base).get(name)
                if kinds.is_container(value):
                    self.use(value)

    def _use_names(self, function: FunctionType) -> None:
        scope = scope_of(function, {})
        for name in names_of(function.__code__):
            self.is_usable(("global", name), scope)
        for name in function.__code__.co_freevars:
            self.is_usable(("cell", name), scope)

    def _use_results(self, atoms: Atoms, scope: Scope) -> None:
        for atom in atoms:
            if isinstance(atom, Need) and is_reached(atom.path):
                self.is_usable(atom.path, scope)


def _variable(path: Path, scope: Scope) -> Any:
    """What tells a variable that may be set again from others."""
    if path[0] == "global":
        return (id(scope.names), path[1])
    if path[0] == "cell":
        return ("cell", path[1])  # functions that share a variable have one name for it
    return None


def loaded_by(code: CodeType) -> set[str]:
    """The names of attributes that `code` reads, and of all globals."""
    names = {
        step.argval
        for step in dis.get_instructions(code)
        if step.opname.startswith("LOAD_") and isinstance(step.argval, str)
    }
    return names.union(*(loaded_by(inner) for inner in code.co_consts if isinstance(inner, CodeType)))


def _is_variable(path: Path) -> bool:
    return path[0] in ("global", "cell")


def _is_changeable(value: Any) -> bool:
    is_fixed = is_a(value, (FunctionType, ModuleType, type)) or kinds.is_constant(value)
    return not is_fixed and bool(parts_of(value) or kinds.is_container(value))


def _may_store(code: CodeType) -> bool:
    """Has a function of which nothing is known an instruction that may change something?"""
    if names_of(code) & (MUTATORS | REFLECTING):
        return True
    return any(_is_storing(step, code) for step in dis.get_instructions(code)) or any(
        _may_store(inner) for inner in code.co_consts if isinstance(inner, CodeType)
    )


def _is_storing(step: dis.Instruction, code: CodeType) -> bool:
    if step.opname == "STORE_DEREF":
        return step.argval in code.co_freevars
    return step.opname in _STORING

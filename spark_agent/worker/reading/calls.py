"""What calls do: some put something into an object, others give a result.

A function or method from outside is taken to keep nothing of what it is given, if the object at hand is of
that kind when the function runs (`Need`). A method whose result nobody uses is called for what it does to its
object: that object may hold its arguments from then on.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

from spark_agent.worker.reading.inner_functions import applied
from spark_agent.worker.reading.instructions import Step, Undecided
from spark_agent.worker.reading.machine import INSIDE, TURN, Machine, operation
from spark_agent.worker.reading.methods import (
    BUILTINS,
    CONNECTION_METHODS,
    EMPTY,
    ENDINGS,
    GROWING,
    MUTATORS,
    ORDERING,
    PARTS,
    REFLECTING,
)
from spark_agent.worker.reading.partition_calls import call_with_partition
from spark_agent.worker.reading.values import (
    CALLED_FOR_EFFECT,
    CLEAN,
    NOTHING,
    NULL,
    Atoms,
    Need,
    Path,
    Place,
    Value,
    is_outside,
    is_reached,
    outlives,
    part_of,
)


class Call(NamedTuple):
    step: Step
    callee: Value
    receiver: Value | None
    arguments: tuple[Value, ...]
    is_discarded: bool

    @property
    def name(self) -> str:
        path = self.callee.path
        return str(path[-1]) if path is not None else ""

    @property
    def path(self) -> Path | None:
        """How the function or method is reached from outside."""
        return self.callee.path if is_reached(self.callee.path) else None

    @property
    def is_ending(self) -> bool:
        """Does it end the use of its object?"""
        return self.name == "__exit__" or (self.name in ENDINGS and self.is_discarded and not self.arguments)

    @property
    def is_changing(self) -> bool:
        """Is it called for what it does to its object?"""
        return (self.is_discarded and not self.is_ending) or self.name in MUTATORS

    @property
    def operands(self) -> tuple[Value, ...]:
        return self.arguments if self.receiver is None else (self.receiver, *self.arguments)


@operation("KW_NAMES")
def _keyword_names(machine: Machine, step: Step) -> None:
    machine.keyword_names = step.value


@operation("CALL", "CALL_KW")
def _call(machine: Machine, step: Step) -> None:
    if step.name == "CALL_KW":
        (names,) = machine.pop(1)[0].constant or ((),)
        machine.keyword_names = names
    arguments = tuple(machine.pop(step.arg))
    slots = machine.pop(2)
    machine.is_spread = False
    result = called(machine, step, slots, arguments)
    machine.stack.append(result)
    machine.keyword_names = ()


@operation("CALL_FUNCTION_EX")
def _call_with_sequences(machine: Machine, step: Step) -> None:
    machine.is_spread = True
    has_keywords = step.arg & 1 or sys.version_info >= (3, 14)
    arguments = tuple(value for value in machine.pop(2 if has_keywords else 1) if value != NULL)
    slots = machine.pop(2)
    result = called(machine, step, slots, arguments)
    machine.stack.append(result)


def called(machine: Machine, step: Step, slots: list[Value], arguments: tuple[Value, ...]) -> Value:
    """What a call gives whose two slots below the arguments are a function and its object, or NULL."""
    lower, upper = slots
    callee, receiver = (upper, None) if lower == NULL else (lower, None if upper == NULL else upper)
    is_method = callee.path is not None and callee.path[0] == "attribute"
    if receiver is not None and not is_method:
        arguments, receiver = (receiver, *arguments), None
    elif receiver is None and is_method and callee.places and callee.path is not None:
        receiver = Value(places=callee.places, path=callee.path[1])
    is_discarded = machine.following is not None and machine.following.name == "POP_TOP"
    call = Call(step, callee, receiver, arguments, is_discarded)
    if callee.items is not None or (receiver is not None and receiver.items is not None):
        raise Undecided
    if call.name in REFLECTING and receiver is None:
        raise Undecided
    if any(argument.items is not None for argument in arguments):
        return call_with_partition(machine, step, callee, call.name, arguments)
    if call.path is not None and not call.is_ending:
        machine.calls.add(Need("quiet", call.path, None, machine.outside(arguments)))
        machine.heap.results[step.offset] = call.path
    atoms = applied(machine, callee, call.operands)
    for operand in call.operands:
        if operand.code is not None:
            others = tuple(value for value in call.operands if value is not operand)
            atoms |= applied(machine, operand, others)
    if receiver is not None:
        return _method(machine, call, receiver, atoms)
    return _function(machine, call, atoms)


def _set_up(machine: Machine, call: Call) -> Value:
    """A frozen data class sets up its new objects by `object.__setattr__`. Else that may set any object."""
    path = call.callee.path
    if path is None or path[1] is None or not str(path[1][-1]).startswith("__dataclass"):
        raise Undecided
    machine.heap.store(call.arguments[0].places, machine.merged(call.arguments[1:]) | machine.control)
    return CLEAN


def _method(machine: Machine, call: Call, receiver: Value, atoms: Atoms) -> Value:
    if call.name in ("__setattr__", "__delattr__"):
        return _set_up(machine, call)
    added = machine.merged(call.arguments) | machine.control
    inner = frozenset(place for argument in call.arguments for place in argument.places)
    buffers = machine.buffers_of(receiver)
    if buffers and (call.is_discarded or call.name in MUTATORS):
        _change_buffer(machine, call, receiver, buffers)
    if call.name in CONNECTION_METHODS and call.is_discarded and receiver.path is not None:
        added = frozenset((Need("connection", receiver.path),)) if is_reached(receiver.path) else added
    needs = NOTHING
    if call.is_changing:
        machine.heap.store(machine.heap.delegates(receiver.places), added, inner)
    elif not call.is_ending:
        needs = machine.use(receiver, call.name, *call.arguments)
    _leave_arguments(machine, call, atoms)
    _share_arguments(machine, call)
    if call.name in PARTS or call.name in MUTATORS:
        result = machine.new(call.step, call.operands, atoms | needs)
        places = result.places | machine.heap.parts(receiver.places)
        return result._replace(places=places, path=part_of(receiver.path))
    return _result_of_method(machine, call, receiver, atoms | needs)


def _result_of_method(machine: Machine, call: Call, receiver: Value, atoms: Atoms) -> Value:
    """A new object. What is set up may show what its creator holds later, if that is not set apart."""
    if any(not outlives(place) for place in receiver.places):
        return machine.new_by_call(call.step, call.operands, atoms)
    atoms |= machine.heap.atoms(receiver)
    is_outside_only = receiver.path is not None and receiver.path[0] in (
        "global",
        "cell",
    )
    if machine.is_started or is_outside_only:
        if not machine.is_started and receiver.path is not None:
            machine.apart.add((call.step.offset, Need("apart", receiver.path)))
        return machine.new_by_call(call.step, call.arguments, atoms)
    return machine.new_by_call(call.step, call.operands, atoms)


def _change_buffer(machine: Machine, call: Call, receiver: Value, buffers: set[str]) -> None:
    if call.name not in ("append", "extend"):
        machine.reordered |= buffers
    is_own = len(buffers) == 1 and all(place.age in ("", "aged") for place in receiver.places)
    if call.name in GROWING and is_own:
        machine.appends |= {(call.step.offset, name) for name in buffers}
        if machine.locals.get(TURN) != INSIDE:
            machine.spoiled |= buffers
    elif call.name == "clear" and is_own:
        for name in buffers:
            machine.clears.add((call.step.offset, name))
            machine.reset(name, call.step)
    elif call.name not in ORDERING:
        machine.spoiled |= buffers


def _function(machine: Machine, call: Call, atoms: Atoms) -> Value:
    needs = NOTHING
    if call.path is not None and machine.is_started and not call.is_discarded:
        needs = frozenset((Need("call", call.path, None, machine.outside(call.arguments)),))
    _leave_arguments(machine, call, atoms)
    _share_arguments(machine, call)
    is_builtin = call.path is not None and call.path[0] == "global" and call.name in BUILTINS
    create = machine.new if is_builtin else machine.new_by_call
    result = create(call.step, call.arguments, atoms | needs)
    if not call.arguments and call.name in EMPTY and call.path is not None:
        machine.empty.add(call.step.offset)
        machine.required.add(Need("is", call.path, call.name))
        return result._replace(atoms=NOTHING)
    if call.name == "iter" and len(call.arguments) == 1 and machine.buffers_of(call.arguments[0]):
        machine.required.add(Need("is", call.path or ("null",), "iter"))
        return call.arguments[0]._replace(path=None)
    places = (place for argument in call.arguments for place in argument.places)
    shared = frozenset(place for place in places if is_outside(place.root))
    return result._replace(places=result.places | shared, cells=result.cells | call.callee.cells)


def _share_arguments(machine: Machine, call: Call) -> None:
    """An object that outlives the turn goes to a function together with what else it is given."""
    is_changing = call.is_discarded or call.name in MUTATORS
    for value in call.arguments if call.callee.code is None else ():
        places = [place for place in value.places if outlives(place) and place.age != "flushed"]
        if not places or not (is_changing or not is_reached(value.path)):
            continue
        if call.path is not None and is_reached(value.path):
            _note_quiet(machine, call, places)
            continue
        if call.path is not None and not is_changing:
            _note_still(machine, call, value)
            continue
        others = machine.merged(argument for argument in call.arguments if argument is not value)
        machine.heap.store(places, others | machine.control)
        machine.spoiled |= machine.buffers_of(value)


def _leave_arguments(machine: Machine, call: Call, atoms: Atoms) -> None:
    """Who does something with this turn's objects may also put something into them."""
    for value in call.arguments:
        places = [place for place in value.places if not outlives(place)]
        if call.callee.code is not None:
            continue  # what it does is known
        _note_held(machine, call, value)
        if machine.buffers_of(value) and call.name not in MUTATORS:
            _note_still(machine, call, value)
        elif places and call.path is not None:
            _note_quiet(machine, call, places)
        elif places and call.is_discarded and call.name not in MUTATORS:
            others = (operand for operand in call.operands if operand is not value)
            machine.heap.store(places, machine.merged(others) | atoms)


def _note_held(machine: Machine, call: Call, value: Value) -> None:
    """Objects that outlive the turn and are held by a new one are left as they are."""
    if call.path is None or is_reached(value.path) or any(map(outlives, value.places)):
        return
    older = [place for place in machine.heap.reachable(value.places) if outlives(place)]
    if older:
        machine.heap.store(older, frozenset((Need("still", call.path),)), is_noted=False)


def _note_still(machine: Machine, call: Call, value: Value) -> None:
    """It puts nothing into `value`, and takes nothing out of it, if the function is of that kind."""
    if call.path is None:
        machine.spoiled |= machine.buffers_of(value) if call.is_discarded else set()
        return
    still = Need("still", call.path)
    machine.left.add(still)
    machine.heap.store(value.places, frozenset((still,)), is_noted=False)


def _note_quiet(machine: Machine, call: Call, places: list[Place]) -> None:
    """It puts nothing of earlier rows into `places`, if the function is of that kind."""
    assert call.path is not None
    method = CALLED_FOR_EFFECT if call.is_discarded else None
    quiet = Need("quiet", call.path, method, machine.outside(call.arguments))
    machine.left.add(quiet)
    machine.heap.store(places, frozenset((quiet,)), is_noted=False)

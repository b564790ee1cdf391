"""What the instructions of loops, yields, returns and contexts do with the values of a `Machine`."""

from __future__ import annotations

import sys

from spark_agent.worker.reading.instructions import Step, Undecided
from spark_agent.worker.reading.machine import OUTSIDE, TURN, Machine, operation
from spark_agent.worker.reading.values import CLEAN, NOTHING, NULL, OLD_ROWS, Value, part_of

_LEAVES_ITERATOR = sys.version_info >= (
    3,
    12,
)  # at the end of a loop, and of a `yield from`


def item_of(machine: Machine, value: Value) -> Value:
    """An item of what is iterated."""
    atoms = machine.heap.atoms(value) | machine.of_cells(value) | machine.use(value, "__iter__")
    return Value(atoms, machine.heap.parts(value.places), part_of(value.path))


@operation("GET_ITER", "GET_YIELD_FROM_ITER")
def _iterate(machine: Machine, _step: Step) -> None:
    value = machine.stack[-1]
    if value.items is None:
        atoms = machine.heap.atoms(value) | machine.use(value, "__iter__")
        machine.stack[-1] = value._replace(atoms=atoms, path=part_of(value.path))


@operation("FOR_ITER")
def _next_of_loop(machine: Machine, step: Step) -> None:
    iterator = machine.stack[-1]
    exhausted = [iterator, NULL] if _LEAVES_ITERATOR else []
    rest = machine.locals if iterator.items is None else machine.ended(iterator)
    machine.jump = dict(rest), [*machine.stack[:-1], *exhausted]
    if iterator.items is not None:
        row = machine.pull(iterator, step)
        machine.stack.append(row)
        return
    item = item_of(machine, iterator)
    machine.condition |= item.atoms
    machine.stack.append(item)


@operation("END_FOR")
def _end_loop(machine: Machine, _step: Step) -> None:
    machine.pop(2 if sys.version_info < (3, 13) else 1)


@operation("SEND")
def _send(machine: Machine, step: Step) -> None:
    _sent = machine.pop(1)
    iterator = machine.stack[-1]
    item = CLEAN if iterator.items is not None else item_of(machine, iterator)
    machine.condition |= item.atoms
    kept = [iterator] if _LEAVES_ITERATOR else []
    rest = machine.locals if iterator.items is None else machine.ended(iterator)
    machine.jump = dict(rest), [*machine.stack[:-1], *kept, Value(OLD_ROWS)]  # what it returned
    item = item if iterator.items is None else machine.pull(iterator, step)
    machine.stack.append(item)


@operation("CLEANUP_THROW")
def _clean_up(machine: Machine, _step: Step) -> None:
    _iterator, _sent, exception = machine.pop(3)
    machine.stack += [CLEAN, exception]


@operation("END_SEND")
def _end_send(machine: Machine, _step: Step) -> None:
    _iterator, result = machine.pop(2)
    machine.stack.append(result)


@operation("YIELD_VALUE")
def _yield(machine: Machine, step: Step) -> None:
    (value,) = machine.pop(1)
    atoms = machine.heap.atoms(value) | machine.of_cells(value)
    control = machine.site_controls.get(step.offset, NOTHING)
    machine.sites[step.offset] = machine.sites.get(step.offset, NOTHING) | atoms
    machine.site_controls[step.offset] = control | machine.control
    turn = machine.locals.get(TURN, OUTSIDE).cells
    machine.turns[step.offset] = machine.turns.get(step.offset, frozenset()) | turn
    machine.stack.append(CLEAN)


@operation("RETURN_VALUE", "RETURN_CONST")
def _return(machine: Machine, step: Step) -> None:
    value = CLEAN if step.name == "RETURN_CONST" else machine.pop(1)[0]
    machine.results.add(value)
    machine.returned |= machine.heap.atoms(value) | machine.of_cells(value) | machine.control


@operation("BEFORE_WITH", "LOAD_SPECIAL")
def _enter(machine: Machine, step: Step) -> None:
    (value,) = machine.pop(1)
    if value.items is not None:
        raise Undecided
    result = Value(machine.heap.atoms(value), value.places)
    name = step.value if step.name == "LOAD_SPECIAL" and isinstance(step.value, str) else "__exit__"
    machine.stack += [Value(path=("attribute", value.path, name)), result]


@operation("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP")
def _jump_or_pop(machine: Machine, _step: Step) -> None:
    machine.jump = dict(machine.locals), list(machine.stack)
    machine.condition |= machine.merged(machine.pop(1))

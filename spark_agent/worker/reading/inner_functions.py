"""Functions and generator expressions that a function creates: what they do is read in their own bytecode."""

from __future__ import annotations

from spark_agent.worker.reading.effects import Effects
from spark_agent.worker.reading.instructions import CO_GENERATOR, Undecided
from spark_agent.worker.reading.machine import Machine
from spark_agent.worker.reading.values import Atoms, Need, Path, Place, Value, outlives


def applied(machine: Machine, function: Value, arguments: tuple[Value, ...]) -> Atoms:
    """What the result of calling `function` depends on, beside its arguments."""
    atoms = machine.heap.atoms(function) | machine.of_cells(function)
    for argument in arguments:
        atoms |= machine.of_cells(argument)
    if function.code is None:
        return atoms
    effects = machine.effects_of(function.code)
    machine.required |= effects.required
    _take_over(machine, effects)
    added = machine.merged(arguments) | atoms | machine.control
    for path in effects.stored:
        is_noted = path[0] != "set"
        if path[0] in ("set", "result"):
            rebased = _rebased(machine, path[1])
            machine.heap.stored |= {(path[0], rebased, *path[2:])} if rebased is not None else set()
            if path[0] == "result":
                continue
            path = path[1]
        root = _root(path)
        if root[0] == "cell" and root[1] in machine.cell_names:
            raise Undecided
        machine.heap.store((Place(root),), added, is_noted=is_noted)
    left = translated(machine, effects.parameters)
    for argument in arguments if effects.parameters else ():
        if effects.is_changing_parameters:
            machine.heap.store(argument.places, added | left)
            machine.spoiled |= machine.buffers_of(argument)
        else:
            reachable = machine.heap.reachable(argument.places)
            is_buffer = bool(machine.buffers_of(argument))
            older = {place for place in reachable if outlives(place) or is_buffer}
            machine.heap.store(older, _unchanged(left), is_noted=False)
            machine.heap.store(argument.places - older, left, is_noted=False)
    return atoms | translated(machine, effects.result)


def _unchanged(left: Atoms) -> Atoms:
    """`left`, with no change at all of what calls are given."""
    return frozenset(
        atom._replace(kind="still") if isinstance(atom, Need) and atom.kind == "quiet" else atom
        for atom in left
    )


def _take_over(machine: Machine, effects: Effects) -> None:
    for needs, noted in ((effects.calls, machine.calls), (effects.left, machine.left)):
        noted |= {need for need in translated(machine, needs) if isinstance(need, Need)}


def _root(path: Path) -> Path:
    while path[0] in ("attribute", "part"):
        path = path[1]
    return path


def of_generator(machine: Machine, function: Value, reader: Value) -> Value:
    """The iterator that an inner generator over the partition, its only argument, gives."""
    code = function.code
    if code is None or reader.items is None or not code.co_flags & CO_GENERATOR or code.co_argcount != 1:
        raise Undecided
    items = translated(machine, machine.items_of(code))
    return Value(
        items=reader.items | items | machine.of_cells(function),
        cells=reader.cells | function.cells,
    )


def translated(machine: Machine, atoms: Atoms) -> Atoms:
    """`atoms` of an inner function, whose outer variables are this one's."""
    return frozenset(
        moved for atom in atoms if (moved := _moved(machine, atom) if isinstance(atom, Need) else atom)
    )


def _moved(machine: Machine, need: Need) -> Need | None:
    path = _rebased(machine, need.path)
    if path is None:
        return None
    arguments = ((place, _rebased(machine, argument)) for place, argument in need.arguments)
    reached = tuple((place, argument) for place, argument in arguments if argument is not None)
    return need._replace(path=path, arguments=reached)


def _rebased(machine: Machine, path: Path) -> Path | None:
    """The path from here. None: it begins at a value of this turn."""
    if path[0] in ("attribute", "part"):
        base = _rebased(machine, path[1]) if path[1] is not None else None
        return None if base is None else (path[0], base, *path[2:])
    if path[0] != "cell" or path[1] not in machine.cell_names:
        return path
    return machine.load(path[1]).path

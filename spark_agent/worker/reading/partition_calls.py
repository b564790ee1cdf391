"""Calls with an iterator over the partition: some take a row, some give another iterator over it."""

from __future__ import annotations

from spark_agent.worker.reading.inner_functions import applied, of_generator
from spark_agent.worker.reading.instructions import Step, Undecided
from spark_agent.worker.reading.machine import Machine
from spark_agent.worker.reading.methods import (
    APPLYING,
    NUMBERING,
    ONE_FOR_ONE,
    WRAPPERS,
)
from spark_agent.worker.reading.values import (
    BESIDE,
    CLEAN,
    EVERY_ROW,
    NEXT_ROWS,
    OLD_ROWS,
    Atoms,
    Need,
    Path,
    Value,
    is_reached,
)


def call_with_partition(
    machine: Machine, step: Step, callee: Value, name: str, arguments: tuple[Value, ...]
) -> Value:
    """What `callee`, the function called `name`, gives. Another use of the partition is not understood."""
    (reader, *more) = (argument for argument in arguments if argument.items is not None)
    others = [argument for argument in arguments if argument.items is None]
    if more:
        raise Undecided
    if callee.code is not None and not others:
        return of_generator(machine, callee, reader)
    if name in ("list", "tuple") and reader.path == NEXT_ROWS and not others:
        machine.required.add(Need("is", callee.path or ("null",), name))
        return machine.pull_many(reader, step)
    if name not in WRAPPERS and name not in ("next", "from_iterable", "chain"):
        return _of_function(callee, reader, others)
    machine.required.add(Need("is", callee.path or ("null",), name))
    if name == "next":
        row = machine.pull(reader, step)
        return row._replace(atoms=row.atoms | machine.merged(others))
    if name == "from_iterable" or (name == "chain" and not others):
        return reader._replace(path=None)
    if name not in WRAPPERS:
        raise Undecided
    if name in APPLYING:
        function, *others = others or [CLEAN]
        if arguments[-1] is not reader or others:
            raise Undecided
        reader = _applied(machine, function, reader)
    return _wrapped(machine, name, reader, others)


def _of_function(callee: Value, reader: Value, others: list[Value]) -> Value:
    """The iterator that a generator of the user's, found when it runs, gives."""
    if callee.path is None or not is_reached(callee.path) or others or reader.items is None:
        raise Undecided
    return reader._replace(items=reader.items | {Need("reads", callee.path)}, path=None)


def _applied(machine: Machine, function: Value, reader: Value) -> Value:
    items = reader.items or OLD_ROWS
    items |= applied(machine, function, (Value(items),)) | _needed(machine, function.path)
    return reader._replace(items=items, cells=reader.cells | function.cells)


def _needed(machine: Machine, path: Path | None) -> Atoms:
    if path is None or not is_reached(path):
        return frozenset()
    machine.calls.add(Need("quiet", path))
    return frozenset((Need("call", path),))


def _beside(machine: Machine, value: Value) -> Atoms:
    """What a new iterator beside the partition gives: of the user's generators that is not known."""
    calls = (machine.heap.results.get(place.root) for place in value.places)
    paths = [path for path in calls if path is not None]
    return frozenset(Need("use", path, BESIDE) for path in paths) if paths else OLD_ROWS


def _wrapped(machine: Machine, name: str, reader: Value, others: list[Value]) -> Value:
    items = reader.items or OLD_ROWS
    if name in NUMBERING and reader.path != EVERY_ROW:
        items |= OLD_ROWS  # how many rows were left out
    for value in others:
        items |= machine.heap.atoms(value) | machine.of_cells(value)
        if value.path is not None and is_reached(value.path):
            items |= {Need("use", value.path, BESIDE if name == "zip" else "")}
        elif name == "zip" and value.places:
            items |= _beside(machine, value)
    path = reader.path if name in ONE_FOR_ONE else None
    if name == "islice" and reader.path == EVERY_ROW:
        path = NEXT_ROWS
    return Value(items=items, cells=reader.cells, path=path)

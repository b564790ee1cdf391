"""Runs the instructions of a block on what is known of values, instead of on values.

`calls` says what a call does. An instruction that is not in the tables leaves the function undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from spark_agent.worker.reading.effects import InnerFunctions
from spark_agent.worker.reading.heap import Heap
from spark_agent.worker.reading.instructions import Step, Undecided
from spark_agent.worker.reading.values import (
    CLEAN,
    COUNTED,
    EVERY_ROW,
    NEXT_ROWS,
    NOTHING,
    THIS_ROW,
    Argument,
    Atoms,
    Batch,
    Need,
    Place,
    Value,
    aged,
    beside,
    flushed,
    is_outside,
    is_reached,
    value_at,
)

#: Variables of no function. STARTED is set once a row was read. TURN has cells INSIDE from there until the
#: next row is asked for and not there, and OUTSIDE else.
STARTED, TURN = ".started", ".turn"
INSIDE, OUTSIDE = (
    Value(cells=frozenset(("inside",))),
    Value(cells=frozenset(("outside",))),
)
#: name -> (how many values it takes, how many it gives). All that it gives is made of all that it takes. A
#: count of -1 is the instruction's argument.
_PLAIN: dict[str, tuple[int, int]] = {
    "UNARY_NOT": (1, 1),
    "TO_BOOL": (1, 1),
    "COMPARE_OP": (2, 1),
    "IS_OP": (2, 1),
    "FORMAT_SIMPLE": (1, 1),
    "FORMAT_WITH_SPEC": (2, 1),
    "CONVERT_VALUE": (1, 1),
    "WITH_EXCEPT_START": (0, 1),
    "CHECK_EXC_MATCH": (1, 1),
    "POP_EXCEPT": (1, 0),
    "POP_TOP": (1, 0),
    "POP_ITER": (1, 0),
    "RETURN_GENERATOR": (0, 1),
    "GEN_START": (1, 0),
    "LOAD_COMMON_CONSTANT": (0, 1),
    "LOAD_ASSERTION_ERROR": (0, 1),
    "RERAISE": (1, 0),
    "BUILD_STRING": (-1, 1),
    "RAISE_VARARGS": (-1, 0),
}
_JUMPS = ("JUMP", "POP_JUMP")


class Machine:
    """One function's values at one point: its variables, and its stack."""

    #: Names of variables that inner functions may read.
    cell_names: frozenset[str] = frozenset()
    #: Variables that are set once rows are read: where they are reached from outside is not fixed.
    moving: frozenset[str] = frozenset()

    def __init__(self, heap: Heap, inner: InnerFunctions) -> None:
        self.heap = heap
        self.items_of = inner.items_of
        self.effects_of = inner.effects_of
        self.locals: dict[str, Value] = {}
        self.stack: list[Value] = []
        #: What decides whether this block runs.
        self.control: Atoms = NOTHING
        #: What the machine is like where it jumps, if not as where it goes on.
        self.jump: tuple[dict[str, Value], list[Value]] | None = None
        #: What decides where the block goes on.
        self.condition: Atoms = NOTHING
        #: The names of the last arguments of the call at hand, and whether it has sequences of arguments.
        self.keyword_names: tuple[str, ...] = ()
        self.is_spread = False
        self.following: Step | None = None
        #: Offset of a yield -> what its outputs depend on, what decides whether they come, and whether it is
        #: reached inside of turns.
        self.sites: dict[int, Atoms] = {}
        self.site_controls: dict[int, Atoms] = {}
        self.turns: dict[int, frozenset[str]] = {}
        #: What the results of the function depend on.
        self.returned: Atoms = NOTHING
        self.results: set[Value] = set()
        #: Names that must be the builtins that they seem to be.
        self.required: set[Need] = set()
        #: Offset of a call before the first row -> that its result shows nothing of later rows.
        self.apart: set[tuple[int, Need]] = set()
        #: That calls put nothing into their arguments.
        self.left: set[Any] = set()
        #: All calls of functions and methods from outside.
        self.calls: set[Need] = set()
        self.pulls: set[int] = set()
        #: Those that may pass over rows.
        self.filtering_pulls: set[int] = set()
        self.resets: set[tuple[int, str]] = set()
        self.appends: set[tuple[int, str]] = set()
        self.clears: set[tuple[int, str]] = set()
        #: Buffers whose items do not stand in the order in which they came.
        self.reordered: set[str] = set()
        #: Where an empty list is created.
        self.empty: set[int] = set()
        #: Buffers that something else is done to than adding at an end, and emptying.
        self.spoiled: set[str] = set()
        self.assigned: dict[str, set[Any]] = {}
        #: Variables that get something else than a list of next rows.
        self.rebound: set[str] = set()
        #: Variable -> the lists of next rows that it gets.
        self.lists_of_rows: dict[str, set[str]] = {}

    # -- values --------------------------------------------------------------------------------------------

    def pop(self, many: int) -> list[Value]:
        if not many:
            return []
        if len(self.stack) < many:
            raise Undecided
        values = self.stack[-many:]
        del self.stack[-many:]
        return values

    def merged(self, values: Iterable[Value]) -> Atoms:
        atoms = NOTHING
        for value in values:
            atoms |= self.heap.atoms(value)
        return atoms

    def new(self, step: Step, values: Iterable[Value], extra: Atoms = NOTHING) -> Value:
        """A new object that is created by `step` of `values`."""
        values = list(values)
        atoms = self.merged(values) | extra
        inner = frozenset(place for value in values for place in value.places)
        self.heap.link(step.offset, inner)
        return Value(atoms, frozenset((Place(step.offset),)))

    def new_by_call(self, step: Step, values: Iterable[Value], extra: Atoms = NOTHING) -> Value:
        """A new object that may put what it is given into those of `values` that it holds."""
        values = list(values)
        self.heap.delegate(step.offset, (place for value in values for place in value.places))
        return self.new(step, values, extra)

    def use(self, value: Value, method: str, *arguments: Value) -> Atoms:
        """What the result of an operation on `value` depends on, beside its operands."""
        if value.path is None or not is_reached(value.path) or not self.is_started:
            return NOTHING
        return frozenset((Need("use", value.path, method, self.outside(arguments)),))

    def outside(self, values: Iterable[Value]) -> tuple[Argument, ...]:
        """The arguments of a call whose objects are from outside."""
        values = tuple(values)
        first_keyword = len(values) - len(self.keyword_names)
        places: tuple[int | str | None, ...] = (
            *range(first_keyword),
            *self.keyword_names,
        )
        if self.is_spread:
            places = (None,) * len(values)
        return tuple(
            (place, value.path)
            for place, value in zip(places, values, strict=True)
            if value.path is not None and is_reached(value.path)
        )

    @property
    def is_started(self) -> bool:
        return STARTED in self.locals

    # -- rows ----------------------------------------------------------------------------------------------

    def pull(self, reader: Value, step: Step) -> Value:
        """The next row is read: what was of this row is of an earlier one from now on."""
        self.pulls.add(step.offset)
        if reader.path not in (EVERY_ROW, NEXT_ROWS):
            self.filtering_pulls.add(step.offset)
        self.locals = {name: self._older(value, name) for name, value in self.locals.items()}
        self.stack = [self._older(value, "") for value in self.stack]
        self.locals[STARTED] = CLEAN
        self.locals[TURN] = INSIDE
        self.heap.is_started = True
        assert reader.items is not None
        return Value(
            reader.items | self.of_cells(reader) | self.control,
            frozenset((Place(step.offset),)),
        )

    def pull_many(self, reader: Value, step: Step) -> Value:
        """The list of the next rows. Its buffer is named by its place until a variable has it."""
        row = self.pull(reader, step)
        name = f"@{step.offset}"
        self.heap.buffers[step.offset] = name
        return Value(row.atoms - THIS_ROW | {Batch(name, False)}, row.places)

    def is_list_of_rows(self, value: Value) -> bool:
        """Is it a list of the next rows? Whether that is empty depends on no row."""
        return bool(value.places) and all(
            not place.age and str(self.heap.buffers.get(place.root, "")).startswith("@")
            for place in value.places
        )

    def ended(self, reader: Value) -> dict[str, Value]:
        """The variables where there is no further row. A reader may have left out the last ones."""
        variables = self.locals
        if reader.path != EVERY_ROW:
            variables = {name: self._older(value, name) for name, value in variables.items()}
        return {**variables, TURN: OUTSIDE}

    def _older(self, value: Value, name: str) -> Value:
        if not value.atoms and not value.places:
            is_counting = name in self.moving and value == CLEAN and not name.startswith(".")
            return value._replace(atoms=COUNTED) if is_counting else value
        places = frozenset(
            place._replace(age=self._age(place, name)) if not is_outside(place.root) else place
            for place in value.places
        )
        return value._replace(atoms=aged(value.atoms), places=places)

    def _age(self, place: Place, name: str) -> str:
        buffer = self.heap.buffers.get(place.root)
        return "aged" if buffer is None or (buffer == name and place.age != "flushed") else "stale"

    def reset(self, name: str, step: Step) -> None:
        """The buffer `name` is emptied, or gets a new list: what others have of it is of the last batch."""
        self.resets.add((step.offset, name))
        self.locals = {
            variable: self._flushed(value, name) if variable != name else value
            for variable, value in self.locals.items()
        }
        self.stack = [self._flushed(value, name) for value in self.stack]

    def _flushed(self, value: Value, name: str) -> Value:
        places = frozenset(
            place._replace(age="flushed") if place.age != "stale" and self._holds(place, name) else place
            for place in value.places
        )
        return value._replace(atoms=flushed(value.atoms, name), places=places)

    def _holds(self, place: Place, name: str) -> bool:
        """Is or holds the object the list of the buffer `name`?"""
        return any(self.heap.buffers.get(inner.root) == name for inner in self.heap.reachable((place,)))

    def of_cells(self, value: Value) -> Atoms:
        """What the variables hold now that an inner function reads."""
        return self.merged(self.locals[name] for name in value.cells if name in self.locals)

    def buffers_of(self, value: Value) -> set[str]:
        """The buffers that it may be."""
        names = {self.heap.buffers.get(place.root) for place in value.places}
        return {name for name in names if name is not None}

    # -- variables -----------------------------------------------------------------------------------------

    def load(self, name: str) -> Value:
        value = self.locals.get(name, CLEAN)
        is_buffer = any(self.heap.buffers.get(place.root) == name for place in value.places)
        is_fixed = name not in self.moving or is_buffer
        if value.items is None and value.path is None and value.code is None and is_fixed:
            atoms = (
                value_at(("local", name)) if value.places and not is_buffer and self.is_started else NOTHING
            )
            return value._replace(atoms=value.atoms | atoms, path=("local", name))
        return value

    def store(self, name: str, value: Value, step: Step) -> None:
        self.assigned.setdefault(name, set()).add(self._creation(value))
        if self.is_list_of_rows(value):
            self.lists_of_rows.setdefault(name, set()).update(self.buffers_of(value))
        else:
            self.rebound.add(name)
        if self.is_started and name in self.heap.buffers.values():
            self.reset(name, step)
        elif value.items is None and self.control:
            value = value._replace(atoms=value.atoms | beside(self.heap.atoms(value), self.control))
        kind = None if value.path is None else value.path[0]
        is_of_new = kind == "attribute" and not is_reached(value.path)
        if kind == "local" or is_of_new or (kind == "part" and name not in self.moving):
            value = value._replace(path=None)  # it is reached by this name
        self.locals[name] = value

    def _creation(self, value: Value) -> Any:
        """Where an empty list is created; None of any other value."""
        (place, *others) = value.places or (None,)
        is_new = place is not None and not others and not place.age and place.root in self.empty
        is_empty = is_new and value.path is None and not value.atoms
        return place.root if is_empty and place is not None else None

    # -- instructions --------------------------------------------------------------------------------------

    def run_step(self, step: Step) -> None:
        operation = OPERATIONS.get(step.name)
        if operation is not None:
            operation(self, step)
        elif step.name.startswith(_JUMPS):
            if step.name.startswith("POP_JUMP"):
                (value,) = self.pop(1)
                self.condition |= NOTHING if self.is_list_of_rows(value) else self.heap.atoms(value)
        elif step.name in _PLAIN:
            self._run_plain(step)
        else:
            raise Undecided

    def _run_plain(self, step: Step) -> None:
        taken, pushed = _PLAIN[step.name]
        values = self.pop(step.arg if taken < 0 else taken)
        if step.name in ("TO_BOOL", "UNARY_NOT") and self.is_list_of_rows(values[0]):
            values = []
        if step.name in ("POP_TOP", "POP_ITER"):
            return
        atoms = self.merged(values)
        self.stack += [Value(atoms)] * pushed


Operation = Callable[[Machine, Step], None]
OPERATIONS: dict[str, Operation] = {}


def operation(*names: str) -> Callable[[Operation], Operation]:
    """Register what an instruction does, under its names in all versions."""

    def register(function: Operation) -> Operation:
        OPERATIONS.update(dict.fromkeys(names, function))
        return function

    return register

"""Reads a function's bytecode: which rows its outputs are made of, on which conditions.

An abstract interpretation: `Machine` runs each block on what is known of values, until nothing more becomes
known. Whatever is not understood leaves the function undecided.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from types import CodeType
from typing import Any, NamedTuple

from spark_agent.worker.reading import calls, loops, operations
from spark_agent.worker.reading.control import bits_of, deciding, reached
from spark_agent.worker.reading.effects import Effects
from spark_agent.worker.reading.heap import Heap
from spark_agent.worker.reading.instructions import Block, Step, Undecided, blocks_of
from spark_agent.worker.reading.machine import INSIDE, STARTED, Machine
from spark_agent.worker.reading.values import (
    CLEAN,
    COUNTED,
    EVERY_ROW,
    NOTHING,
    THIS_ROW,
    Atoms,
    Need,
    Path,
    Place,
    Value,
    aged,
    beside,
    joined,
)

_REGISTERED = (calls, loops, operations)  # what instructions do
#: Rounds after which a function is left undecided, and how deep functions in functions are read.
MAX_ROUNDS, MAX_DEPTH = 12, 4

State = tuple[dict[str, Value], tuple[Value, ...]]
_STORES = (
    "STORE_FAST",
    "STORE_DEREF",
    "DELETE_FAST",
    "DELETE_DEREF",
    "LOAD_FAST_AND_CLEAR",
)


class Reading(NamedTuple):
    """What is known of a function. `sites`: what the outputs of each yield depend on, by offset."""

    sites: dict[int, Atoms]
    returned: Atoms
    stored: frozenset[Path]
    required: frozenset[Need]
    machine: Machine
    blocks: tuple[Block, ...]


class Analysis:
    """One function with one set of arguments."""

    def __init__(
        self,
        code: CodeType,
        arguments: dict[str, Value],
        depth: int = 0,
        buffers: dict[Any, str] | None = None,
    ) -> None:
        self.blocks = blocks_of(code)
        self._arguments = arguments
        self._depth = depth
        self.heap = Heap(buffers or {})
        self.machine = Machine(self.heap, self)
        inherited = (name for name in code.co_freevars if name in arguments)  # the partition
        self.machine.cell_names = frozenset((*code.co_cellvars, *inherited))
        self._exits = [
            (
                *block.exits,
                *((block.handler.block,) if block.handler is not None else ()),
            )
            for block in self.blocks
        ]
        self._conditions: list[Atoms] = [NOTHING] * len(self.blocks)
        self._control: list[Atoms] = [NOTHING] * len(self.blocks)
        self._is_pulling: set[int] = set()
        self._is_filtering: set[int] = set()

    def run(self, moving: frozenset[str]) -> Reading:
        """`moving`: the variables that are set once a row was read."""
        self.machine.moving = moving
        for _ in range(MAX_ROUNDS):
            self.heap.is_changed = False
            self._pass()
            before, self._control = self._control, self._controls()
            if self._control == before and not self.heap.is_changed:
                break
        else:
            raise Undecided
        machine = self.machine
        return Reading(
            {
                offset: atoms | beside(atoms, machine.site_controls[offset])
                for offset, atoms in machine.sites.items()
            },
            machine.returned,
            frozenset(self.heap.stored),
            frozenset(machine.required | self._apart()),
            machine,
            self.blocks,
        )

    def _apart(self) -> set[Need]:
        """Of calls that come before the first row, whatever happens."""
        behind = set(bits_of(self._behind_pulls()))
        before = {
            step.offset
            for number, block in enumerate(self.blocks)
            if number not in behind
            for step in block.steps
        }
        return {need for offset, need in self.machine.apart if offset in before}

    def _behind_pulls(self) -> int:
        behind = 0
        for number in self._is_pulling:
            behind |= reached(number, self._exits) | 1 << number
        return behind

    # -- functions in the function -------------------------------------------------------------------------

    def items_of(self, code: CodeType) -> Atoms:
        reading = read_generator(code, code.co_varnames[0], self._depth + 1)
        if any(turn != INSIDE.cells for turn in reading.machine.turns.values()):
            raise Undecided  # what it gives may come without a row
        return NOTHING.union(*reading.sites.values())

    def effects_of(self, code: CodeType) -> Effects:
        return effects_of(code, frozenset(), self._depth + 1)

    # -- one pass over the blocks --------------------------------------------------------------------------

    def _pass(self) -> None:
        states: dict[int, State] = {0: (dict(self._arguments), ())}
        pending = [0]
        while pending:
            number = pending.pop()
            for target, state in self._run_block(number, states[number]):
                before = states.get(target)
                merged = state if before is None else _merged(before, state)
                if merged != before:
                    states[target] = merged
                    pending.append(target)

    def _run_block(self, number: int, state: State) -> list[tuple[int, State]]:
        block, machine = self.blocks[number], self.machine
        variables, stack = state
        machine.locals, machine.stack = dict(variables), list(stack)
        machine.control, machine.condition, machine.jump = (
            self._control[number],
            NOTHING,
            None,
        )
        self.heap.is_started = machine.is_started
        thrown: State | None = None
        for step, following in zip(block.steps, (*block.steps[1:], None), strict=False):
            if block.handler is not None:
                thrown = self._thrown(block, stack, thrown)
            machine.following = following
            pulls = len(machine.pulls)
            machine.run_step(step)
            if len(machine.pulls) > pulls:
                self._is_pulling.add(number)
            if step.offset in machine.filtering_pulls:
                self._is_filtering.add(number)
        self._conditions[number] |= machine.condition
        results: list[tuple[int, State]] = []
        if block.handler is not None:
            results.append((block.handler.block, self._thrown(block, stack, thrown)))
        if block.following is not None:
            left = self._decided(stack, machine.stack)
            results.append((block.following, (machine.locals, left)))
        if block.jump is not None:
            jump = machine.jump or (machine.locals, machine.stack)
            results.append((block.jump, (jump[0], self._decided(stack, jump[1]))))
        return results

    def _decided(self, before: Sequence[Value], after: Sequence[Value]) -> tuple[Value, ...]:
        """What a block leaves: whether it runs decides which values these are."""
        control = self.machine.control
        same = next(
            (at for at, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), None
        )
        kept = min(len(before), len(after)) if same is None else same
        left = (
            value._replace(atoms=value.atoms | beside(value.atoms, control)) if value.items is None else value
            for value in after[kept:]
        )
        return (*after[:kept], *left)

    def _thrown(self, block: Block, stack: Sequence[Value], before: State | None) -> State:
        """What a handler finds if the instruction at hand fails."""
        assert block.handler is not None
        exception = Value(THIS_ROW if self.machine.is_started else NOTHING)
        place = (CLEAN,) if block.handler.pushes_place else ()
        state = (
            dict(self.machine.locals),
            (*stack[: block.handler.depth], *place, exception),
        )
        return state if before is None else _merged(before, state)

    # -- what decides whether a block runs -----------------------------------------------------------------

    def _controls(self) -> list[Atoms]:
        reach = [reached(number, self._exits) for number in range(len(self.blocks))]
        pulling = sum(1 << number for number in self._is_pulling)
        base, exits = self._handling(reach, pulling)
        deciders = deciding(self.blocks, exits)
        control = list(base)
        is_changed = True
        while is_changed:
            is_changed = False
            for number, bits in enumerate(deciders):
                atoms = control[number]
                for decider in bits_of(bits):
                    atoms |= self._decision(decider, control)
                    if decider in self._is_filtering and decider != number:
                        atoms |= THIS_ROW  # rows that are left out have no turn
                if atoms != control[number]:
                    control[number] = atoms
                    is_changed = True
        return control

    def _decision(self, decider: int, control: list[Atoms]) -> Atoms:
        atoms = (self._conditions[decider] | control[decider]) - COUNTED
        return aged(atoms) if decider in self._is_pulling else atoms

    def _handling(self, reach: list[int], pulling: int) -> tuple[list[Atoms], list[tuple[int, ...]]]:
        """What depends on whether an exception is raised, and the ways out of each block that this adds."""
        base = [NOTHING] * len(self.blocks)
        exits = [block.exits for block in self.blocks]
        normal = reached(0, exits) | 1
        behind_pull = 0
        for number in self._is_pulling:
            behind_pull |= reach[number]
        for number, block in enumerate(self.blocks):
            if not normal >> number & 1 and behind_pull >> number & 1:
                base[number] = THIS_ROW
            if block.handler is None or not behind_pull >> number & 1:
                continue
            handler = block.handler.block
            if not self._covers_pull(handler) and (reach[handler] & pulling or self._returns(handler)):
                exits[number] = (*exits[number], handler)
                base[number] = THIS_ROW
        return base, exits

    def _returns(self, handler: int) -> bool:
        behind = reached(handler, [block.exits for block in self.blocks]) | 1 << handler
        return any(self.blocks[number].returns for number in bits_of(behind))

    def _covers_pull(self, handler: int) -> bool:
        """Is the loop over the partition inside of what `handler` is for? Then an exception ends it."""
        return any(
            (covering := self.blocks[number].handler) is not None and covering.block == handler
            for number in self._is_pulling
        )

    def moving(self) -> frozenset[str]:
        """The variables that are set once a row was read, as one pass over the blocks shows it."""
        self._pass()
        repeated = 0
        for number in self._is_pulling:
            repeated |= reached(number, self._exits)
        steps = [step for number in bits_of(repeated) for step in self.blocks[number].steps]
        for number in self._is_pulling:  # what comes before a pull that is not repeated is set up
            block = self.blocks[number]
            pulls = [at for at, step in enumerate(block.steps) if step.offset in self.machine.pulls]
            steps += block.steps[min(pulls, default=0) :]
        return frozenset(name for step in steps for name in _set_by(step))


def _set_by(step: Step) -> Iterable[str]:
    if not step.name.startswith(_STORES):
        return ()
    return step.value if isinstance(step.value, tuple) else (step.value,)


def _merged(state: State, following: State) -> State:
    variables, stack = state
    others, other_stack = following
    if len(stack) != len(other_stack):
        raise Undecided
    merged = dict(variables)
    for name, value in others.items():
        before = merged.get(name)
        merged[name] = value if before is None else joined((before, value))
    return merged, tuple(joined(pair) for pair in zip(stack, other_stack, strict=True))


def parameters(code: CodeType) -> tuple[str, ...]:
    many = code.co_argcount + code.co_kwonlyargcount
    return code.co_varnames[: many + bool(code.co_flags & 4) + bool(code.co_flags & 8)]


def outside(name: str) -> Value:
    """An argument of which the object is known."""
    return Value(places=frozenset((Place(("local", name)),)), path=("local", name))


@functools.lru_cache(maxsize=512)
def read_generator(code: CodeType, partition: str, depth: int = 0) -> Reading:
    """How a generator reads the partition that is in its variable `partition`."""
    if depth > MAX_DEPTH:
        raise Undecided
    arguments = partition_arguments(code, partition)
    return Analysis(code, arguments, depth).run(moving_of(code, arguments))


def partition_arguments(code: CodeType, partition: str, *, has_every_row: bool = False) -> dict[str, Value]:
    reader = Value(items=THIS_ROW, path=EVERY_ROW if has_every_row else None)
    return {**{name: outside(name) for name in parameters(code)}, partition: reader}


def moving_of(code: CodeType, arguments: dict[str, Value]) -> frozenset[str]:
    return Analysis(code, arguments).moving()


@functools.lru_cache(maxsize=512)
def effects_of(code: CodeType, outliving: frozenset[str], depth: int = 0) -> Effects:
    """What a call of a function does whose parameters `outliving` are objects that outlive it.

    Its other parameters, and its defaults, are taken for parts of the row.
    """
    if depth > MAX_DEPTH:
        raise Undecided
    arguments = {
        name: outside(name) if name in outliving else Value(THIS_ROW, frozenset((Place(-1 - index),)))
        for index, name in enumerate(parameters(code))
    }
    arguments[STARTED] = CLEAN
    analysis = Analysis(code, arguments, depth)
    variables = {*code.co_varnames, *code.co_cellvars}
    stored = {name for block in analysis.blocks for step in block.steps for name in _set_by(step)}
    reading = analysis.run(frozenset(variables - outliving | stored))
    result = reading.returned.union(*reading.sites.values())
    machine = analysis.machine
    own = (Place(-1 - index) for index, name in enumerate(parameters(code)) if name not in outliving)
    return Effects(
        result,
        analysis.heap.contents(own),
        reading.stored,
        reading.required,
        frozenset(machine.left),
        frozenset(machine.calls),
    )

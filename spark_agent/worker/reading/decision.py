"""Decides how a generator reads its partition: row by row, in batches, or in a way that stays unknown.

Each of its yields is of one kind: made of the row that was read last, of no row (a header), or of the rows of
buffers. A buffer is a variable with a list of its own that grows by the row at hand and is emptied before the
next row once its rows went into an output.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable
from types import CodeType
from typing import Any, NamedTuple

from spark_agent.worker.reading.analysis import (
    Analysis,
    Reading,
    moving_of,
    partition_arguments,
)
from spark_agent.worker.reading.instructions import Undecided
from spark_agent.worker.reading.machine import Machine
from spark_agent.worker.reading.values import (
    COUNT,
    OLD,
    ROW,
    Atoms,
    Batch,
    Need,
    Path,
    Place,
)

#: How far behind a YIELD_VALUE a suspended generator says that it is: at the next instruction.
_AHEAD = 2 if sys.version_info >= (3, 13) else 0


class Site(NamedTuple):
    """What the outputs of one yield are made of: the row at hand, rows of buffers, or nothing at all."""

    has_row: bool
    buffers: frozenset[str] = frozenset()
    #: Buffers that were emptied before the yield, in the same turn.
    flushed: frozenset[str] = frozenset()


class Decision(NamedTuple):
    """`sites`: by the offset that a generator which is suspended at the yield says. It holds if the `needs`
    do, and nothing is used that is `stored`
    into, by the generator or by one of its `calls`.

    `adds_first`: buffers that the row at hand is in when they are emptied.
    """

    sites: dict[int, Site]
    needs: frozenset[Need]
    stored: frozenset[Path]
    calls: frozenset[Need]
    adds_first: frozenset[str] = frozenset()
    #: Buffer that is a list of the rows read last -> the variable that has it.
    lists_of_rows: tuple[tuple[str, str], ...] = ()

    @property
    def is_row_by_row(self) -> bool:
        return all(site == Site(True) for site in self.sites.values())

    @property
    def buffers(self) -> frozenset[str]:
        return frozenset().union(*(site.buffers | site.flushed for site in self.sites.values()))


class Listing(NamedTuple):
    """The list in the variable `name` grows by what is made of the row at hand, and is the result."""

    name: str
    needs: frozenset[Need]
    stored: frozenset[Path]
    calls: frozenset[Need]


@functools.lru_cache(maxsize=256)
def decision_on(code: CodeType, partition: str, *, has_every_row: bool) -> Decision | None:
    """How a generator reads what its variable `partition` holds; None if that is not known.

    `has_every_row`: that gives an item for each row.
    """
    try:
        arguments = partition_arguments(code, partition, has_every_row=has_every_row)
        moving = moving_of(code, arguments)
        reading = Analysis(code, arguments).run(moving)
        decision = _decision(reading)
        if decision is not None:
            return decision
        buffers = _buffers(reading)
        return _decision(Analysis(code, arguments, buffers=buffers).run(moving)) if buffers else None
    except Undecided:
        return None


@functools.lru_cache(maxsize=256)
def listing_by(code: CodeType, partition: str) -> Listing | None:
    """How a function, not a generator, lists what it makes of each row; None if that is not known."""
    try:
        arguments = partition_arguments(code, partition, has_every_row=True)
        moving = moving_of(code, arguments)
        buffers = _buffers(Analysis(code, arguments).run(moving))
        reading = Analysis(code, arguments, buffers=buffers).run(moving)
    except Undecided:
        return None
    machine = reading.machine
    names = {buffers.get(place.root, "") for value in machine.results for place in value.places}
    if reading.sites or len(names) != 1 or any(not value.places for value in machine.results):
        return None
    (name,) = names
    if not name or name in machine.spoiled | machine.reordered | machine.heap.self_fed:
        return None
    atoms = machine.heap.contents(Place(root, "aged") for root, of in buffers.items() if of == name)
    rows = {atom for atom in atoms if not isinstance(atom, Need)}
    if any(of == name for _offset, of in machine.resets) or not rows <= {Batch(name, False)}:
        return None
    needs = reading.required | {atom for atom in atoms if isinstance(atom, Need)}
    return Listing(name, needs, reading.stored, frozenset(machine.calls))


def _buffers(reading: Reading) -> dict[Any, str]:
    """Where the lists of variables that only ever get empty lists are created -> the variable."""
    variables: dict[Any, set[str]] = {}
    for name, roots in reading.machine.assigned.items():
        for root in roots:
            variables.setdefault(root, set()).add(name)
    shared = {name for root, names in variables.items() if root is None or len(names) > 1 for name in names}
    return {root: name for root, names in variables.items() for name in names - shared}


def _decision(reading: Reading) -> Decision | None:
    sites: dict[int, Site] = {}
    needs = reading.required
    for offset, atoms in reading.sites.items():
        site = _site(atoms, reading.machine.turns[offset])
        if site is None:
            return None
        sites[offset + _AHEAD] = site
        needs |= {atom for atom in atoms if isinstance(atom, Need)}
    decision = Decision(sites, needs, reading.stored, frozenset(reading.machine.calls))
    return _with_buffers(decision, reading) if decision.buffers else decision


def _site(atoms: Atoms, turn: frozenset[str]) -> Site | None:
    if OLD in atoms or COUNT in atoms:
        return None
    full = frozenset(atom.name for atom in atoms if isinstance(atom, Batch) and not atom.is_flushed)
    flushed = frozenset(atom.name for atom in atoms if isinstance(atom, Batch) and atom.is_flushed)
    if full or flushed or ROW in atoms:
        return Site(ROW in atoms, full, flushed)
    return Site("inside" in turn) if len(turn) == 1 else None


def _with_buffers(decision: Decision, reading: Reading) -> Decision | None:
    """`decision`, if its buffers are emptied in time and what they hold can be told when it runs."""
    machine = reading.machine
    if machine.spoiled & decision.buffers:
        return None
    adds_first = set()
    lists = _lists_of_rows(decision, machine)
    if lists is None:
        return None
    for name in decision.buffers - lists.keys():
        appends = {offset for offset, of in machine.appends if of == name}
        resets = {offset for offset, of in machine.resets if of == name}
        clears = {offset for offset, of in machine.clears if of == name}
        outputs = {offset - _AHEAD for offset, site in decision.sites.items() if name in site.buffers}
        if _leads(reading, outputs, machine.pulls, resets) or _leads(reading, clears, appends, machine.pulls):
            return None
        if _leads(reading, resets, resets, machine.pulls | outputs) or _is_deleted(reading, name):
            return None  # the new list may have the id of the one before the last
        if any(name in site.flushed for site in decision.sites.values()):
            may_come_first = _leads(reading, appends, resets, machine.pulls)
            may_not = _leads(reading, machine.pulls, resets, appends)
            if clears or (may_come_first and may_not):
                return None
        if _leads(reading, appends, resets, machine.pulls):
            adds_first.add(name)
    return decision._replace(adds_first=frozenset(adds_first), lists_of_rows=tuple(lists.items()))


def _is_deleted(reading: Reading, name: str) -> bool:
    steps = (step for block in reading.blocks for step in block.steps)
    return any(step.name in ("DELETE_FAST", "DELETE_DEREF") and step.value == name for step in steps)


def _lists_of_rows(decision: Decision, machine: Machine) -> dict[str, str] | None:
    """The variables that have the lists of rows. None if one is changed, or outputs come without one."""
    lists: dict[str, str] = {}
    for name in decision.buffers:
        if not name.startswith("@"):
            continue
        variables = [variable for variable, names in machine.lists_of_rows.items() if name in names]
        is_changed = any(of == name for _offset, of in machine.appends | machine.clears)
        if len(variables) != 1 or is_changed or machine.assigned[variables[0]] != {None}:
            return None
        if variables[0] in machine.rebound:
            return None
        lists[name] = variables[0]
    if lists and any(
        site != Site(False, site.buffers) or not site.buffers for site in decision.sites.values()
    ):
        return None
    return lists


def _leads(reading: Reading, starts: Iterable[int], targets: set[int], barriers: set[int]) -> bool:
    """May one of `targets` run after one of `starts`, with none of `barriers` in between?"""
    blocks = reading.blocks
    index_of = {
        step.offset: (number, at)
        for number, block in enumerate(blocks)
        for at, step in enumerate(block.steps)
    }
    pending = [(number, at + 1) for number, at in (index_of[start] for start in starts)]
    seen = set()
    while pending:
        number, first = pending.pop()
        block = blocks[number]
        passed = next(
            (
                step.offset
                for step in block.steps[first:]
                if step.offset in targets or step.offset in barriers
            ),
            None,
        )
        if passed in targets and passed is not None:
            return True
        handler = () if block.handler is None else (block.handler.block,)
        ways = handler if passed is not None else (*block.exits, *handler)
        for way in ways:
            if way not in seen:
                seen.add(way)
                pending.append((way, 0))
    return False

"""How what a user's `mapPartitions` function returned reads its partition.

It is a generator whose bytecode says so (`reading`), or one of Python's own iterators, such as a `map`, over
the partition or over such a generator. For anything else the answer is None, and the whole partition stays
the upper bound.
"""

from __future__ import annotations

import functools
import gc
import itertools
from inspect import GEN_CREATED, getgeneratorstate
from types import FrameType, FunctionType, GeneratorType
from typing import Any, NamedTuple

from spark_agent.worker.reading.decision import Decision, decision_on, listing_by
from spark_agent.worker.reading.instructions import CO_GENERATOR
from spark_agent.worker.reading.kinds import COUNTING, is_answering, is_constant
from spark_agent.worker.reading.objects import ObjectCheck
from spark_agent.worker.reading.scopes import Scope
from spark_agent.worker.reading.static_lookup import Unknown, is_any, is_kind_of, partial_of, variables_of

#: They take one item after another of the one that they are given.
_ITERATORS = (
    map,
    filter,
    enumerate,
    zip,
    itertools.islice,
    itertools.starmap,
    itertools.filterfalse,
    itertools.chain,
)


class Level(NamedTuple):
    """A generator that reads, and what is known of it."""

    frame: FrameType
    decision: Decision


class PartitionReading:
    """How the outputs of one result come from the partition. Holds if `is_met` when the first row is read."""

    def __init__(self, levels: list[Level], functions: list[Any], is_generator: bool, partition: int) -> None:
        self._partition = partition
        self._levels = levels
        self._functions = functions
        outer = levels[-1].decision if is_generator else None
        #: What is known of the outermost generator, if its yields differ or it has buffers.
        self.outer = None if outer is None or outer.is_row_by_row else outer

    def is_met(self) -> bool:
        """Are the objects that the generators use such that nothing of an earlier row is in them?

        To be asked when the first row is read: what was set up before is there.
        """
        check = ObjectCheck()
        for frame, decision in self._levels:
            variables = variables_of(frame)
            scope = _scope_in(frame, variables)
            if not check.holds(decision.needs, decision.stored, scope):
                return False
            check.note_calls(decision.calls, scope)
            check.state.note_reachable(frame.f_code, frame.f_globals, variables.values(), self._partition)
        return (
            all(check.is_applied_by_row(function, self._partition) for function in self._functions)
            and check.state.is_disjoint
        )


def reading_of(result: object, partition: object) -> PartitionReading | None:
    """How `result`, not yet started, reads `partition`; None if that is not known."""
    levels: list[Level] = []
    functions: list[Any] = []
    if result is partition or not _reads(result, partition, levels, functions):
        return None
    if not all(level.decision.is_row_by_row for level in levels[:-1]):
        return None
    is_generator = type(result) is GeneratorType
    if levels and not is_generator and not levels[-1].decision.is_row_by_row:
        return None
    return PartitionReading(levels, functions, is_generator, id(partition))


def listing_in(frame: FrameType, partition: int) -> list[Any] | None:
    """The list that the function of `frame` fills, which has just begun to read, if it is known how.

    `partition`: the id of what it reads.
    """
    if frame.f_code.co_flags & CO_GENERATOR:
        return None
    variables = variables_of(frame)
    readers = [name for name, value in variables.items() if id(value) == partition]
    if len(readers) != 1:
        return None
    reader = variables[readers[0]]
    if any(takes(value, reader) for value in variables.values() if value is not reader):
        return None
    listing = listing_by(frame.f_code, readers[0])
    if listing is None:
        return None
    check, scope = ObjectCheck(), _scope_in(frame, variables)
    if not check.holds(listing.needs, listing.stored, scope):
        return None
    check.note_calls(listing.calls, scope)
    check.state.note_reachable(frame.f_code, frame.f_globals, variables.values(), partition)
    outputs = variables.get(listing.name)
    return outputs if type(outputs) is list and not outputs and check.state.is_disjoint else None


def _scope_in(frame: FrameType, variables: dict[str, Any]) -> Scope:
    names = frame.f_globals
    used = [names[name] for name in frame.f_code.co_names if name in names]
    if any(map(is_answering, (*used, *variables.values()))):
        raise Unknown
    return Scope(variables, variables, names)


def _reads(result: object, partition: object, levels: list[Level], functions: list[Any]) -> bool:
    if result is partition:
        return True
    if is_any(type(result), _ITERATORS):
        return _iterates(result, partition, levels, functions)
    if type(result) is not GeneratorType or getgeneratorstate(result) != GEN_CREATED:
        return False
    frame = result.gi_frame
    if frame is None:
        return False
    variables = variables_of(frame)
    readers = [name for name, value in variables.items() if _reads(value, partition, levels, functions)]
    others = (value for name, value in variables.items() if name not in readers)
    if len(readers) != 1 or any(takes(value, partition) for value in others):
        return False
    is_whole = _gives_every_row(variables[readers[0]], partition)
    decision = decision_on(result.gi_code, readers[0], has_every_row=is_whole)
    if decision is None:
        return False
    levels.append(Level(frame, decision))
    return True


def _iterates(result: object, partition: object, levels: list[Level], functions: list[Any]) -> bool:
    parts = _parts(result)
    readers = [part for part in parts if _reads(part, partition, levels, functions)]
    others = [part for part in parts if part is not None and not is_constant(part)]
    others = [part for part in others if not any(part is reader for reader in readers)]
    if len(readers) != 1 or any(takes(part, partition) for part in others):
        return False
    if type(result) in (enumerate, zip, itertools.islice) and not _gives_every_row(readers[0], partition):
        return False  # a number of the rows that were not left out
    if type(result) not in (map, filter, itertools.starmap, itertools.filterfalse):
        return not others or (type(result) is zip and all(is_any(type(part), COUNTING) for part in others))
    functions += others
    return all(callable(part) for part in others)


def _gives_every_row(reader: object, partition: object) -> bool:
    """Does it give an item for each row?"""
    while type(reader) in (map, enumerate, zip, itertools.starmap):
        reader = next(
            (part for part in _parts(reader) if part is partition or is_any(type(part), _ITERATORS)),
            None,
        )
    return reader is partition


def _parts(iterator: object) -> list[Any]:
    parts: list[Any] = []
    for part in gc.get_referents(iterator):
        if part is not type(iterator):
            parts += part if type(part) is tuple else [part]
    return parts


def takes(value: object, partition: object) -> bool:
    """Has it the partition itself, to take items that nobody sees: `map(lambda a: (a, next(rows)), rows)`?"""
    inner: tuple[Any, ...] = ()
    if is_any(type(value), (*_ITERATORS, GeneratorType)):
        inner = tuple(gc.get_referents(value))
    elif (partial := partial_of(value)) is not None:
        inner = (partial.func, *partial.args, *partial.keywords.values())
    elif type(value) is FunctionType:
        inner = tuple(part for cell in value.__closure__ or () for part in gc.get_referents(cell))
    return any(part is partition or (part is not value and takes_directly(part, partition)) for part in inner)


def takes_directly(value: object, partition: object) -> bool:
    is_taking = is_any(type(value), (FunctionType, *_ITERATORS)) or is_kind_of(value, functools.partial)
    return is_taking and takes(value, partition)

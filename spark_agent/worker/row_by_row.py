"""Tells whether what a user's `mapPartitions` function returned reads its partition row by row.

Then each of its outputs is made of the row that was read last, and nothing needs to be assumed: it is one
of Python's own `map` and `filter` objects over the partition, or a generator whose bytecode says so. One
loop runs over the partition itself, the partition is named nowhere else, what is yielded is yielded inside
of that loop, no local variable is carried from one row to the next, and no variable of another function nor
a global one is set. What such code keeps elsewhere (in a list of a closure, say) is not looked at, just as in
the function of a `map`.

For code of any other shape the answer is no, and the whole partition stays the upper bound.
"""

from __future__ import annotations

import dis
import functools
import gc
import re
from collections.abc import Iterator
from types import CodeType, FunctionType, GeneratorType

#: Accesses of local variables in an instruction's name; newer Pythons put two into one instruction.
_ACCESSES = re.compile(r"(LOAD|STORE|DELETE)_FAST(?:_CHECK|_BORROW)?(?!_AND_CLEAR)")
_ENDS = ("RETURN_VALUE", "RETURN_CONST", "RERAISE", "RAISE_VARARGS")
_SETS_OUTSIDE = frozenset(("STORE_DEREF", "DELETE_DEREF", "STORE_GLOBAL", "DELETE_GLOBAL"))
_CONSTANTS = (int, float, str, bytes, type(None))


def is_row_by_row(result: object, partition: object) -> bool:
    """Is each output of `result`, not yet started, made of the item that it takes last from `partition`?"""
    if type(result) in (map, filter):
        parts: tuple[object, ...] = result.__reduce__()[1]  # type: ignore[assignment] # typed as of any object
        return len(parts) == 2 and parts[1] is partition and not _takes(parts[0], partition)
    if not isinstance(result, GeneratorType) or result.gi_frame is None:
        return False
    variables = result.gi_frame.f_locals
    names = [name for name, value in variables.items() if value is partition]
    constants = frozenset(name for name, value in variables.items() if isinstance(value, _CONSTANTS))
    is_taken_elsewhere = any(_takes(value, partition) for value in variables.values())
    return len(names) == 1 and not is_taken_elsewhere and _is_one_loop(result.gi_code, names[0], constants)


def _takes(function: object, partition: object) -> bool:
    """Has it the partition itself, to take items that nobody sees: `map(lambda a: (a, next(rows)), rows)`?"""
    if type(function) is functools.partial:
        arguments = (*function.args, *function.keywords.values())
        return any(value is partition for value in arguments) or _takes(function.func, partition)
    cells = (function.__closure__ or ()) if type(function) is FunctionType else ()
    return any(value is partition for cell in cells for value in gc.get_referents(cell))


@functools.lru_cache(maxsize=256)
def _is_one_loop(code: CodeType, partition: str, constants: frozenset[str]) -> bool:
    if code.co_cellvars:  # a function of its own may keep what it saw
        return False
    steps = [step for step in dis.get_instructions(code) if step.opname not in ("CACHE", "EXTENDED_ARG")]
    if any(step.opname in _SETS_OUTSIDE for step in steps):  # a sum that goes on from row to row
        return False
    loops = [index for index, step in enumerate(steps) if ("LOAD", partition) in _accesses(step)]
    if len(loops) != 1:
        return False
    head = loops[0] + 1
    if steps[head].opname == "GET_ITER":
        head += 1
    if steps[head].opname != "FOR_ITER":
        return False
    exit_offset = steps[head].argval
    body = [step for step in steps[head + 1 :] if step.offset < exit_offset]
    outside = steps[: head + 1] + steps[head + 1 + len(body) :]
    if any(step.opname in ("YIELD_VALUE", "YIELD_FROM") for step in outside):
        return False
    # Behind the loop a variable may be set for the next time that an outer loop comes to it.
    after = steps[head + 1 + len(body) :]
    later = {name for step in after for kind, name in _accesses(step) if kind != "LOAD"}
    return _carries_nothing(body, constants - later)


def _accesses(instruction: dis.Instruction) -> list[tuple[str, str]]:
    """(LOAD | STORE | DELETE, local variable) in the order in which the instruction does them."""
    kinds = _ACCESSES.findall(instruction.opname)
    names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
    return list(zip(kinds, names, strict=False)) if kinds else []


def _carries_nothing(body: list[dis.Instruction], constants: frozenset[str]) -> bool:
    """Is each local variable that the loop reads set before in the same turn, on every path?"""
    index_of = {step.offset: index for index, step in enumerate(body)}
    stored = {name for step in body for kind, name in _accesses(step) if kind != "LOAD"}
    allowed = constants - stored
    set_at: dict[int, frozenset[str]] = {}  # instruction -> variables that were set on every path to it
    pending: list[tuple[int, frozenset[str]]] = [(0, frozenset())]
    while pending:
        index, is_set = pending.pop()
        before = set_at.get(index)
        if before is not None:
            is_set &= before
            if is_set == before:
                continue
        set_at[index] = is_set
        for kind, name in _accesses(body[index]):
            if kind == "LOAD" and name not in is_set and name not in allowed:
                return False
            is_set = is_set | {name} if kind == "STORE" else is_set - {name} if kind == "DELETE" else is_set
        pending += [(index_of[offset], is_set) for offset in _next(body, index) if offset in index_of]
    # Not reached: handlers of exceptions. They may do nothing but end the generator.
    return not any(
        _accesses(step) or step.opname == "YIELD_VALUE"
        for index, step in enumerate(body)
        if index not in set_at
    )


def _next(body: list[dis.Instruction], index: int) -> Iterator[int]:
    """Offsets of what may run after instruction `index`."""
    instruction = body[index]
    if instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs:
        yield instruction.argval
    is_final = instruction.opname in _ENDS or instruction.opname.startswith(("JUMP_F", "JUMP_B", "JUMP_A"))
    if not is_final and index + 1 < len(body):
        yield body[index + 1].offset

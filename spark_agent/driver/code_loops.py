"""The loops of a piece of bytecode: which of its instructions each loop repeats.

A loop is an edge back to an instruction that the walk from the beginning came through (a back edge of a
depth-first walk), and all that leads to that edge without leaving the loop (its natural loop; Aho, Lam,
Sethi, Ullman, Compilers, 9.6). A jump backwards alone is none: the compiler puts handlers of exceptions
behind the rest, and they jump back. Reads the bytecode of CPython from 3.10 on, and finds no loop in other.
Never raises.
"""

from __future__ import annotations

import dis
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType
from typing import NamedTuple

from spark_agent.delivery.log import logger
from spark_agent.worker.reading.instructions import is_jump, protected_ranges

#: Of code with more bytes no loop is known: it is made by a program, and takes long to read.
MAX_BYTES = 50_000

_ENDS = frozenset(("RAISE_VARARGS", "RERAISE", "RETURN_CONST", "RETURN_VALUE"))
_JUMPS = frozenset(
    ("JUMP_ABSOLUTE", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP_FORWARD", "JUMP_NO_INTERRUPT")
)


class Loop(NamedTuple):
    """`header`: the offset of the instruction that each turn begins with. `line`: the loop's first."""

    header: int
    line: int
    offsets: frozenset[int]


class CodeLoops:
    """The instructions and the loops of one code object."""

    def __init__(self, code: CodeType) -> None:
        self._offsets: list[int] = []
        self._lines = _Lines(code)
        #: Outermost first.
        self.loops: tuple[Loop, ...] = ()
        if len(code.co_code) <= MAX_BYTES:
            try:
                instructions = list(dis.get_instructions(code))
                self.loops = _loops(code, instructions, self._lines)
                self._offsets = [instruction.offset for instruction in instructions]
            except Exception as error:  # noqa: BLE001 - bytecode that no compiler of CPython has made
                logger.debug("the loops of %s are not known: %r", code.co_name, error)

    def instruction_at(self, offset: int) -> int:
        """The offset at which the instruction begins that `f_lasti` of a frame is in.

        While a call goes on, `f_lasti` may stand behind the instruction, in its inline cache.
        """
        index = bisect_right(self._offsets, offset)
        return self._offsets[index - 1] if index else offset

    def line_of(self, instruction: int) -> int:
        return self._lines.first_of((instruction,))

    def around(self, instruction: int) -> tuple[Loop, ...]:
        """The loops that repeat the instruction, outermost first."""
        return tuple(loop for loop in self.loops if instruction in loop.offsets)


def _loops(code: CodeType, instructions: list[dis.Instruction], lines: _Lines) -> tuple[Loop, ...]:
    if not instructions:
        return ()
    following = _following(code, instructions)
    tails: dict[int, list[int]] = {}
    before: dict[int, list[int]] = {}
    for offset, target, is_back in _edges(following, instructions[0].offset):
        before.setdefault(target, []).append(offset)
        if is_back:
            tails.setdefault(target, []).append(offset)
    loops = []
    for header, ends in tails.items():
        offsets = _natural_loop(header, ends, before)
        loops.append(Loop(header, lines.first_of(offsets), offsets))
    return tuple(sorted(loops, key=lambda loop: (-len(loop.offsets), loop.header)))


def _following(code: CodeType, instructions: list[dis.Instruction]) -> dict[int, list[int]]:
    """Offset -> the offsets that may come next: behind it, where it jumps to, a handler of exceptions."""
    names = {instruction.offset: instruction.opname for instruction in instructions}
    following: dict[int, list[int]] = {}
    next_offsets = [*list(names)[1:], None]
    for instruction, next_offset in zip(instructions, next_offsets, strict=True):
        name, targets = instruction.opname, []
        if next_offset is not None and name not in _ENDS and name not in _JUMPS:
            targets.append(next_offset)
        # An `await` and a `yield from` ask again and again: no loop of the program.
        asks_again = names.get(instruction.argval) == "SEND" and name.startswith("JUMP")
        if is_jump(instruction) and not asks_again:
            targets.append(instruction.argval)
        following[instruction.offset] = targets
    offsets = list(following)
    for start, end, handler in _protected(code, instructions):
        for offset in offsets[bisect_left(offsets, start) : bisect_left(offsets, end)]:
            following[offset].append(handler)
    return following


def _protected(code: CodeType, instructions: list[dis.Instruction]) -> Iterator[tuple[int, int, int]]:
    """(first offset, offset behind the last, handler) of what an exception leads to a handler from."""
    if hasattr(code, "co_exceptiontable"):
        for start, end, handler, _depth, _pushes_place in protected_ranges(code.co_exceptiontable):
            yield start, end, handler
        return
    for instruction in instructions:  # before 3.11; handlers stand behind what they protect
        if instruction.opname.startswith("SETUP_"):
            yield instruction.offset, instruction.argval, instruction.argval


def _edges(following: Mapping[int, list[int]], entry: int) -> Iterator[tuple[int, int, bool]]:
    """(from, to, does it lead back) of each edge that can be reached."""
    on_path, seen = {entry}, {entry}
    path = [(entry, iter(following[entry]))]
    while path:
        offset, targets = path[-1]
        target = next(targets, None)
        if target is None:
            path.pop()
            on_path.discard(offset)
            continue
        yield offset, target, target in on_path
        if target not in seen:
            seen.add(target)
            on_path.add(target)
            path.append((target, iter(following[target])))


def _natural_loop(header: int, tails: Iterable[int], before: Mapping[int, list[int]]) -> frozenset[int]:
    offsets, stack = {header}, list(tails)
    while stack:
        offset = stack.pop()
        if offset not in offsets:
            offsets.add(offset)
            stack.extend(before.get(offset, ()))
    return frozenset(offsets)


class _Lines:
    def __init__(self, code: CodeType) -> None:
        ranges = [(start, line) for start, _end, line in code.co_lines()]
        self._starts, self._lines = [start for start, _ in ranges], [line for _, line in ranges]
        self._first = code.co_firstlineno

    def first_of(self, offsets: Iterable[int]) -> int:
        lines = (self._lines[bisect_right(self._starts, offset) - 1] for offset in offsets)
        return min((line for line in lines if line), default=self._first)

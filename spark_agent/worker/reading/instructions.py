"""The bytecode of one function as basic blocks, with the handlers of exceptions.

Knows the Pythons of `VERSIONS`, in which the catalogue of generators (`tests/support/generators`) was run. Of
others nothing is decided.
"""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Iterator
from itertools import pairwise
from types import CodeType
from typing import Any, NamedTuple

#: Python versions whose bytecode is read.
VERSIONS = frozenset(((3, 11), (3, 12), (3, 13), (3, 14)))
#: The flag of a generator's code.
CO_GENERATOR = 0x20
#: Functions with more instructions are left undecided.
MAX_STEPS = 1_000

_IGNORED = frozenset(
    (
        "CACHE",
        "EXTENDED_ARG",
        "NOP",
        "RESUME",
        "PRECALL",
        "MAKE_CELL",
        "COPY_FREE_VARS",
        "NOT_TAKEN",
    )
)
_RETURNS = frozenset(("RETURN_VALUE", "RETURN_CONST"))
_RAISES = frozenset(("RERAISE", "RAISE_VARARGS"))
_JUMPS = frozenset(
    (
        "JUMP",
        "JUMP_FORWARD",
        "JUMP_BACKWARD",
        "JUMP_BACKWARD_NO_INTERRUPT",
        "JUMP_NO_INTERRUPT",
    )
)


class Undecided(Exception):
    """The function does something of which nothing is known."""


class Step(NamedTuple):
    """One instruction. `value` is what its argument stands for."""

    name: str
    arg: int
    value: Any
    offset: int


class Handler(NamedTuple):
    """Where an exception goes: the block, the depth of the stack there, and whether the place is pushed."""

    block: int
    depth: int
    pushes_place: bool


class Block(NamedTuple):
    """Instructions that run one after another. `jump` and `following` are blocks, or None."""

    steps: tuple[Step, ...]
    following: int | None
    jump: int | None
    handler: Handler | None
    returns: bool

    @property
    def exits(self) -> tuple[int, ...]:
        return tuple(block for block in (self.following, self.jump) if block is not None)


@functools.lru_cache(maxsize=256)
def blocks_of(code: CodeType) -> tuple[Block, ...]:
    """The blocks of `code`; the first one is where it begins."""
    if sys.version_info[:2] not in VERSIONS:
        raise Undecided
    instructions = [
        step._replace(argval=code.co_consts[step.arg or 0]) if step.opname == "KW_NAMES" else step
        for step in dis.get_instructions(code)
    ]
    if len(instructions) > MAX_STEPS:
        raise Undecided
    # Where something is thrown into a generator at a `yield from`: nobody does.
    thrown = {step.offset for step in instructions if step.opname == "CLEANUP_THROW"}
    ranges = [entry for entry in protected_ranges(code.co_exceptiontable) if entry[2] not in thrown]
    starts = _starts(instructions, ranges)
    offsets = sorted(starts)
    numbers = {offset: number for number, offset in enumerate(offsets)}
    pieces: list[list[dis.Instruction]] = [[] for _ in offsets]
    at = -1
    for instruction in instructions:
        at = numbers.get(instruction.offset, at)
        pieces[at].append(instruction)
    return tuple(_block(piece, number, numbers, ranges) for number, piece in enumerate(pieces))


def _block(
    piece: list[dis.Instruction],
    number: int,
    numbers: dict[int, int],
    ranges: list[tuple[int, int, int, int, bool]],
) -> Block:
    last = piece[-1]
    ends = last.opname in _RETURNS or last.opname in _RAISES or last.opname in _JUMPS
    covering = [entry for entry in ranges if entry[0] <= piece[0].offset < entry[1]]
    handler = None
    if covering:
        _start, _end, target, depth, pushes_place = covering[-1]
        handler = Handler(numbers[target], depth, pushes_place)
    return Block(
        tuple(
            Step(step.opname, step.arg or 0, step.argval, step.offset)
            for step in piece
            if step.opname not in _IGNORED
        ),
        None if ends or number + 1 == len(numbers) else number + 1,
        numbers[last.argval] if is_jump(last) else None,
        handler,
        last.opname in _RETURNS,
    )


def _starts(instructions: list[dis.Instruction], ranges: list[tuple[int, int, int, int, bool]]) -> set[int]:
    starts = {0}
    offsets = {instruction.offset for instruction in instructions}
    for start, end, target, _depth, _place in ranges:
        starts |= {start, end, target} & offsets
    starts |= {instruction.argval for instruction in instructions if is_jump(instruction)}
    for instruction, following in pairwise(instructions):
        if is_jump(instruction) or instruction.opname in _RETURNS or instruction.opname in _RAISES:
            starts.add(following.offset)
    return starts


def is_jump(instruction: dis.Instruction) -> bool:
    return instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs


def protected_ranges(table: bytes) -> Iterator[tuple[int, int, int, int, bool]]:
    """(first offset, offset behind the last, handler, depth, whether the place is pushed) of each range.

    `table` is the `co_exceptiontable` of a code object. The format is that of
    `Objects/exception_handling_notes.txt` in CPython.
    """
    numbers = _numbers(table)
    for start in numbers:
        length, target, depth = next(numbers), next(numbers), next(numbers)
        yield 2 * start, 2 * (start + length), 2 * target, depth >> 1, bool(depth & 1)


def _numbers(table: bytes) -> Iterator[int]:
    value = 0
    for byte in table:
        value = value << 6 | byte & 63
        if not byte & 64:
            yield value
            value = 0

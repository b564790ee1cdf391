"""Which blocks decide whether another block runs (control dependence, Ferrante et al., TOPLAS 1987)."""

from __future__ import annotations

from collections.abc import Sequence

from spark_agent.worker.reading.instructions import Block


def deciding(blocks: Sequence[Block], exits: Sequence[tuple[int, ...]]) -> list[int]:
    """For each block the set of blocks, as bits, that decide whether it runs.

    `exits` are the ways out of each block that count. Ways that never come to a return do not.
    """
    ends = _reaching([number for number, block in enumerate(blocks) if block.returns], exits)
    exits = [tuple(to for to in ways if ends >> to & 1) for ways in exits]
    behind = _behind_all(blocks, exits, ends)
    result = [0] * len(blocks)
    for number, ways in enumerate(exits):
        if len(ways) < 2:
            continue
        for way in ways:
            decided = behind[way] & ~(behind[number] & ~(1 << number))
            for block in bits_of(decided):
                result[block] |= 1 << number
    return result


def reached(start: int, exits: Sequence[tuple[int, ...]]) -> int:
    """The blocks that may run after `start`, as bits."""
    seen, pending = 0, list(exits[start])
    while pending:
        block = pending.pop()
        if not seen >> block & 1:
            seen |= 1 << block
            pending += exits[block]
    return seen


def bits_of(number: int) -> list[int]:
    return [index for index in range(number.bit_length()) if number >> index & 1]


def _reaching(targets: list[int], exits: Sequence[tuple[int, ...]]) -> int:
    """The blocks from which one of `targets` can be reached, as bits."""
    ways_in: list[list[int]] = [[] for _ in exits]
    for number, ways in enumerate(exits):
        for way in ways:
            ways_in[way].append(number)
    seen, pending = 0, list(targets)
    while pending:
        block = pending.pop()
        if not seen >> block & 1:
            seen |= 1 << block
            pending += ways_in[block]
    return seen


def _behind_all(blocks: Sequence[Block], exits: Sequence[tuple[int, ...]], ends: int) -> list[int]:
    """For each block those that every way from it to a return passes (its postdominators), as bits."""
    behind = [ends] * len(blocks)
    is_changed = True
    while is_changed:
        is_changed = False
        for number in reversed(range(len(blocks))):
            common = -1
            for way in exits[number]:
                common &= behind[way]
            after = (1 << number) | (common if exits[number] and not blocks[number].returns else 0)
            if after != behind[number]:
                behind[number] = after
                is_changed = True
    return behind

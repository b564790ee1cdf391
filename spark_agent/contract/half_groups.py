"""How far an output moves without each of many rows, where its function takes all of them at once. Pure.

An estimate by random halves: of each pair, one half has a row and the other one lacks it. What the first
gives less what the second gives is how far the row moves the output of half of the rows. So rows are put in
an order, and of the first ones the output without them is computed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

__all__ = ["HALVES", "Estimate", "estimate"]

#: Random halves, each with its other half.
HALVES = 64
#: Values that are taken for rows one by one, and the fewest and most such rows.
_MOST_TAKEN, _FEWEST, _MOST_COMPUTED = 4_000_000, 20, 1_000
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_SEED = 20_261

Evaluate = Callable[[Sequence[int]], str | None]
"""The output of the rows with these numbers; None if there is none."""


class Estimate:
    """By row: the output without it where `changes` has None, else how far the output is thought to move."""

    def __init__(self, without: Sequence[str | None], changes: Sequence[float | None]) -> None:
        self.without, self.changes = list(without), list(changes)


def estimate(evaluate: Evaluate, count: int, text: str, most_computed: int = _MOST_COMPUTED) -> Estimate:
    """Of `count` rows, which together give `text`. At most so many are left out one by one."""
    changes: list[float | None] = list(_moves(evaluate, count, text))
    without: list[str | None] = [None] * count
    order = sorted(range(count), key=lambda number: -(changes[number] or 0.0))
    computed = min(max(_MOST_TAKEN // count - HALVES, _FEWEST), most_computed)
    for number in order[:computed]:
        without[number] = evaluate([other for other in range(count) if other != number])
        changes[number] = None
    return Estimate(without, changes)


def _moves(evaluate: Evaluate, count: int, text: str) -> list[float]:
    """How far the numbers of the output move with each row, all together, by halves of the rows."""
    form, fields = _NUMBER.sub("\0", text), len(_NUMBER.findall(text))
    random = Random(_SEED)
    sums = [[0.0] * fields for _ in range(count)]
    pairs = 0
    for _ in range(HALVES // 2):
        order = list(range(count))
        random.shuffle(order)
        halves = sorted(order[: count // 2]), sorted(order[count // 2 :])
        texts = [evaluate(half) for half in halves]
        if any(of_half is None or _NUMBER.sub("\0", of_half) != form for of_half in texts):
            continue
        pairs += 1
        one, other = ([float(number) for number in _NUMBER.findall(of_half or "")] for of_half in texts)
        moves = [first - second for first, second in zip(one, other, strict=True)]
        for half, sign in zip(halves, (1, -1), strict=True):
            for number in half:
                of_row = sums[number]
                for field, move in enumerate(moves):
                    of_row[field] += sign * move
    return [sum(map(abs, of_row)) / max(pairs, 1) for of_row in sums]

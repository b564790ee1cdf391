"""How far an output moves without each of many rows, where its function takes all of them at once. Pure.

An estimate by random halves: of each pair, one half has a row and the other one lacks it. What the first
gives less what the second gives is how far the row moves the output of half of the rows. So rows are put in
an order, and of the first ones the output without them is computed. Where no half gives an output of the same
form, nothing is estimated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from spark_agent.contract.row_alignment import form, numbers_in
from spark_agent.contract.row_counterparts import Counterpart

__all__ = ["HALVES", "Estimate", "NoEstimateError", "estimate"]

#: Random halves, each with its other half.
HALVES = 64
#: Values that are taken for rows one by one, and the fewest and most such rows.
_MOST_TAKEN, _FEWEST, _MOST_COMPUTED = 4_000_000, 20, 1_000
_SEED = 20_261

Evaluate = Callable[[Sequence[int]], Counterpart]
"""The output of the rows with these numbers; not sure where it may be another row, or is not known."""


class NoEstimateError(Exception):
    """No halves of the rows give an output that can be compared. The text says so."""


class Estimate:
    """By row: the output without it where `changes` has None, else how far the output is thought to move."""

    def __init__(self, without: Sequence[str | None], changes: Sequence[float | None]) -> None:
        self.without, self.changes = list(without), list(changes)


def estimate(evaluate: Evaluate, count: int, text: str, most_computed: int = _MOST_COMPUTED) -> Estimate:
    """Of `count` rows, which together give `text`. At most so many are left out one by one.

    A row without which the output is not sure keeps its estimate. Raises NoEstimateError.
    """
    changes: list[float | None] = list(_moves(evaluate, count, text))
    without: list[str | None] = [None] * count
    order = sorted(range(count), key=lambda number: -(changes[number] or 0.0))
    computed = min(max(_MOST_TAKEN // count - HALVES, _FEWEST), most_computed)
    for number in order[:computed]:
        output = evaluate([other for other in range(count) if other != number])
        if output.is_sure:
            without[number], changes[number] = output.text, None
    return Estimate(without, changes)


def _moves(evaluate: Evaluate, count: int, text: str) -> list[float]:
    """How far the numbers of the output move with each row, all together, by halves of the rows."""
    fields = len(numbers_in(text))
    random = Random(_SEED)
    sums = [[0.0] * fields for _ in range(count)]
    pairs = 0
    for _ in range(HALVES // 2):
        order = list(range(count))
        random.shuffle(order)
        halves = sorted(order[: count // 2]), sorted(order[count // 2 :])
        one, other = (_numbers(evaluate(half).text, text) for half in halves)
        if one is None or other is None:
            continue
        pairs += 1
        moves = [first - second for first, second in zip(one, other, strict=True)]
        for half, sign in zip(halves, (1, -1), strict=True):
            for number in half:
                of_row = sums[number]
                for field, move in enumerate(moves):
                    of_row[field] += sign * move
    if not pairs:
        raise NoEstimateError(
            "how much each row matters cannot be estimated: halves of the rows give no row of the same form"
        )
    return [sum(map(abs, of_row)) / pairs for of_row in sums]


def _numbers(of_half: str | None, text: str) -> list[float] | None:
    """Those of an output; None where it is gone, or has another form."""
    if of_half is None or form(of_half) != form(text):
        return None
    return list(map(float, numbers_in(of_half)))

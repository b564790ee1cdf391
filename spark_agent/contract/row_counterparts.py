"""Which row of a run stands in the place of a row, where one input row was left out. Pure.

Rows of the run that were there before stand for themselves. Promises to say where it is a guess.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from spark_agent.contract.row_alignment import are_close, common_key, corresponding_texts

__all__ = ["Counterpart", "counterpart"]

#: Rows that changed, among which are looked for those that are nearly the same.
_MOST_CHANGED = 300


class Counterpart(NamedTuple):
    """The text is None where the row is gone. `is_sure`: no other row of the run may be it."""

    text: str | None
    is_sure: bool


def counterpart(was: str, before: Sequence[str], now: Sequence[str]) -> Counterpart:
    """Of a row of `before`, the outputs of a run, in those of another one."""
    gone, new = _changed(was, before, now)
    if was not in gone:
        return Counterpart(was, is_sure=True)
    near = next((text for text in new if are_close(was, text)), None)
    if near is not None:
        return Counterpart(near, is_sure=True)
    if not new:
        return Counterpart(None, is_sure=True)
    if len(before) == len(now) == 1:
        return Counterpart(now[0], is_sure=True)
    key = common_key(was)
    of_key = [text for text in new if common_key(text) == key]
    if key and len(of_key) == 1 and [text for text in gone if common_key(text) == key] == [was]:
        return Counterpart(of_key[0], is_sure=True)
    candidates = of_key if key else new
    pairs = corresponding_texts([was], candidates)
    return Counterpart(candidates[pairs[0][1]] if pairs else None, is_sure=False)


def _changed(was: str, before: Sequence[str], now: Sequence[str]) -> tuple[list[str], list[str]]:
    """The rows that are gone and those that are new, but for others whose numbers are nearly the same."""
    counts, others = Counter(before), Counter(now)
    gone, new = list((counts - others).elements()), list((others - counts).elements())
    if max(len(gone), len(new)) > _MOST_CHANGED:
        return gone, new
    left = []
    for text in gone:
        near = None if text == was else next((other for other in new if are_close(text, other)), None)
        if near is None:
            left.append(text)
        else:
            new.remove(near)
    return left, new

"""What an aggregation of a group gives without each of its values in turn. Pure.

For functions that are associative, by folds from both sides: with L the values before one and R those behind
it, the group without it is merge(L, R). These are a few calls for a value, and no knowledge of the functions.
A value that can be changed is copied before a function gets it, so functions may change what they are given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

__all__ = [
    "NOTHING",
    "Merger",
    "NotAssociativeError",
    "are_alike",
    "own_copy",
    "together",
    "without_one",
]


class _Nothing:
    """What is left of a group whose only value is left out."""


NOTHING = _Nothing()
#: How far numbers may be apart, of the larger one, that were added in another order.
_RELATIVE = 1e-9
_UNCHANGEABLE = (int, float, complex, str, bytes, bool, type(None))


class NotAssociativeError(Exception):
    """The functions give something else in another order of calls."""


class Merger(NamedTuple):
    """The functions of combineByKey."""

    createCombiner: Callable[[Any], Any]
    mergeValue: Callable[[Any, Any], Any]
    mergeCombiners: Callable[[Any, Any], Any]


def together(merger: Merger, values: Sequence[Any]) -> Any:
    """Of a group, which has a value."""
    combined = merger.createCombiner(own_copy(values[0]))
    for value in values[1:]:
        combined = merger.mergeValue(combined, own_copy(value))
    return combined


def without_one(merger: Merger, parts: Sequence[Sequence[Any]]) -> list[Any]:
    """What the group is without each part, which has one value or several.

    Raises NotAssociativeError where two halves of the group, merged, are not the group.
    """
    before = [NOTHING, *_folded_from_left(merger, parts)]
    behind = [*_folded_from_right(merger, parts), NOTHING]
    if not all(
        are_alike(before[-1], _merged(merger, *halves)) for halves in zip(before, behind, strict=True)
    ):
        raise NotAssociativeError
    return [_merged(merger, before[at], behind[at + 1]) for at in range(len(parts))]


def _folded_from_left(merger: Merger, parts: Sequence[Sequence[Any]]) -> list[Any]:
    """Of the first one part, the first two, ..."""
    folded: list[Any] = []
    for part in parts:
        if not folded:
            folded.append(together(merger, part))
            continue
        combined = own_copy(folded[-1])
        for value in part:
            combined = merger.mergeValue(combined, own_copy(value))
        folded.append(combined)
    return folded


def _folded_from_right(merger: Merger, parts: Sequence[Sequence[Any]]) -> list[Any]:
    """Of all parts, all but the first, ..."""
    folded: list[Any] = []
    for part in reversed(parts):
        combined = together(merger, part)
        folded.append(combined if not folded else merger.mergeCombiners(combined, own_copy(folded[-1])))
    return folded[::-1]


def _merged(merger: Merger, before: Any, behind: Any) -> Any:
    if before is NOTHING or behind is NOTHING:
        return behind if before is NOTHING else before
    return merger.mergeCombiners(own_copy(before), own_copy(behind))


def own_copy(value: Any) -> Any:
    """The value, or a copy of it where it could be changed."""
    return value if _is_unchangeable(value) else deepcopy(value)


def _is_unchangeable(value: Any) -> bool:
    if type(value) in (tuple, frozenset):
        return all(map(_is_unchangeable, value))
    return type(value) in _UNCHANGEABLE


def are_alike(one: Any, other: Any) -> bool:
    """Equal, but for numbers with fractions that were added in another order."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=_RELATIVE, abs_tol=1e-300) or (one != one and other != other)
    if type(one) is not type(other):
        return bool(one == other)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(are_alike, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(are_alike(one[key], other[key]) for key in one)
    return bool(one == other) or _have_equal_state(one, other)


def _have_equal_state(one: Any, other: Any) -> bool:
    """Of objects without an equality of their own."""
    has_own = "__eq__" in {name for kind in type(one).__mro__[:-1] for name in vars(kind)}
    return not has_own and hasattr(one, "__dict__") and are_alike(vars(one), vars(other))

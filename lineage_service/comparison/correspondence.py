"""Which things of two runs correspond: those that alone have one identity in both. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

__all__ = ["corresponding"]

Thing = TypeVar("Thing")


def corresponding(
    before: Iterable[Thing], after: Iterable[Thing], identities: Iterable[Callable[[Thing], object]]
) -> list[tuple[Thing, Thing]]:
    """The first identity decides first; where none does, the only two correspond."""
    left, right, pairs = list(before), list(after), list[tuple[Thing, Thing]]()
    for identity in identities:
        for thing in list(left):
            same = [other for other in right if identity(other) == identity(thing)]
            alike = [other for other in left if identity(other) == identity(thing)]
            if len(same) == len(alike) == 1:
                pairs.append((thing, same[0]))
                left.remove(thing)
                right.remove(same[0])
    if not pairs and len(left) == len(right) == 1:
        pairs.append((left[0], right[0]))
    return pairs

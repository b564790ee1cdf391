"""Which row of one output stands for which row of another one, by their texts alone. Pure.

Rows correspond if nothing else has what both have in common: their key, or their form without numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import chain

__all__ = ["are_close", "common_key", "corresponding_texts", "difference", "form", "numbers_in"]

#: How far two numbers may be apart, of the larger one: sums in another order.
_RELATIVE = 1e-9
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?(?![\w.])")
_SEPARATOR = re.compile(r"[,;|\t:=]")
_BRACKETS = "()[]{} \t"


def are_close(was: str, now: str) -> bool:
    """The same but for numbers that are nearly the same, as sums in another order are.

    Whole numbers must be equal: no sum of them depends on the order.
    """
    if was == now:
        return True
    if form(was) != form(now):
        return False
    pairs = zip(numbers_in(was), numbers_in(now), strict=True)
    return all(_are_close(before, after) for before, after in pairs)


def difference(was: str, now: str) -> float | None:
    """How far the numbers of two texts are apart, all together; None where their words differ."""
    if form(was) != form(now):
        return None
    pairs = zip(numbers_in(was), numbers_in(now), strict=True)
    return math.fsum(abs(float(before) - float(after)) for before, after in pairs)


def _are_close(was: str, now: str) -> bool:
    if was == now:
        return True
    if was.lstrip("+-").isdigit() and now.lstrip("+-").isdigit():
        return False
    return math.isclose(float(was), float(now), rel_tol=_RELATIVE)


def form(text: str) -> str:
    """The text without its numbers. Digits within a word, as of an id, are none."""
    return _NUMBER.sub("\x00", text)


def numbers_in(text: str) -> list[str]:
    """The numbers that its form lacks."""
    return _NUMBER.findall(text)


def common_key(text: str) -> str:
    """The first field of a row that reads like a record with a key; empty of a row of one field."""
    first, separator, _ = _parted(text.strip(_BRACKETS))
    return first.strip().strip("'\"") if separator else ""


def _parted(text: str) -> tuple[str, str, str]:
    separator = _SEPARATOR.search(text)
    return (
        (text, "", "")
        if separator is None
        else (text[: separator.start()], separator[0], text[separator.end() :])
    )


def corresponding_texts(was: Iterable[str], now: Iterable[str]) -> list[tuple[int, int, str | None]]:
    """(index in `was`, index in `now`, the key that both have) of rows that stand for each other.

    Equal rows should not be among them. The key is None where only the forms agree.
    """
    before, after = list(was), list(now)
    pairs: list[tuple[int, int, str | None]] = []
    left, right = dict(enumerate(before)), dict(enumerate(after))
    identities: tuple[tuple[Callable[[str], Hashable], bool], ...] = (
        (_form_with_key, True),
        (common_key, True),
        (form, False),
    )
    for identity, has_key in identities:
        places = _by_identity(left, identity), _by_identity(right, identity)
        for name in places[0].keys() & places[1].keys():
            if len(places[0][name]) == len(places[1][name]) == 1 and _says_something(name):
                (one,), (other,) = places[0][name], places[1][name]
                pairs.append((one, other, common_key(before[one]) or None if has_key else None))
                del left[one], right[other]
    return sorted(pairs)


def _form_with_key(text: str) -> Hashable:
    key = common_key(text)
    return (key, form(text)) if key else ""


def _by_identity(texts: dict[int, str], identity: Callable[[str], Hashable]) -> dict[Hashable, Sequence[int]]:
    places: dict[Hashable, list[int]] = {}
    for number, text in texts.items():
        places.setdefault(identity(text), []).append(number)
    return dict(places)


def _says_something(identity: Hashable) -> bool:
    """A row of numbers alone has no form that names it."""
    parts = identity if isinstance(identity, tuple) else (identity,)
    return any(character.isalnum() for character in chain.from_iterable(map(str, parts)))

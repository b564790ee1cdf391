"""Which rows look odd among others: by the form of their texts, and by their numbers. Pure.

A row's form is the order of its words and numbers; words of few kinds count by what they say. Rare forms are
odd, and so are numbers far from the others of the same form, in units of their median distance.
This is a guess, for the order of tests alone.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import median

__all__ = ["odd_first"]

_TOKEN = re.compile(r"(?P<number>(?<![A-Za-z0-9.])-?\d+(?:\.\d+)?|\d+(?:\.\d+)?)|(?P<word>[^\W\d_]+)")
#: Tokens of a row that are looked at, and different words of a column that count by what they say.
_MOST_TOKENS, _MOST_WORDS = 40, 10
#: Rows of one form from which its numbers are compared.
_LEAST_ROWS = 4
_LARGEST = 1e6

Token = tuple[str, str]
"""Kind and text."""


def odd_first(texts: Sequence[str]) -> list[int]:
    """The numbers of the texts, the oddest first; equal ones in their order."""
    scores = _scores(texts)
    return sorted(range(len(texts)), key=lambda number: -scores[number])


def _scores(texts: Sequence[str]) -> list[float]:
    rows = [_tokens(text) for text in texts]
    words = _words_by_column(rows)
    by_form: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, tokens in enumerate(rows):
        by_form[_form(tokens, words)].append(number)
    scores = [0.0] * len(rows)
    for numbers in by_form.values():
        rarity = math.log2(len(rows) / len(numbers))
        for number in numbers:
            scores[number] = rarity
        if len(numbers) >= _LEAST_ROWS:
            _add_distances(scores, rows, numbers)
    return scores


def _tokens(text: str) -> list[Token]:
    tokens = []
    for match in _TOKEN.finditer(text):
        tokens.append((match.lastgroup or "", match[0]))
        if len(tokens) == _MOST_TOKENS:
            break
    return tokens


def _words_by_column(rows: Sequence[Sequence[Token]]) -> dict[int, Counter[str]]:
    words: dict[int, Counter[str]] = defaultdict(Counter)
    for tokens in rows:
        for column, (kind, text) in enumerate(tokens):
            if kind == "word" and len(words[column]) <= _MOST_WORDS:
                words[column][text] += 1
    return words


def _form(tokens: Sequence[Token], words: dict[int, Counter[str]]) -> tuple[str, ...]:
    return tuple(
        text if kind == "word" and len(words[column]) <= _MOST_WORDS else f"<{kind}>"
        for column, (kind, text) in enumerate(tokens)
    )


def _add_distances(scores: list[float], rows: Sequence[Sequence[Token]], numbers: Sequence[int]) -> None:
    """Let rows of one form count by their farthest number."""
    for column, (kind, _) in enumerate(rows[numbers[0]]):
        if kind != "number":
            continue
        values = [float(rows[number][column][1]) for number in numbers]
        centre = median(values)
        distances = [abs(value - centre) for value in values]
        scale = median(distances) or sum(distances) / len(distances)
        if not scale or not math.isfinite(scale):
            continue
        for number, distance in zip(numbers, distances, strict=True):
            scores[number] = max(scores[number], min(distance / scale, _LARGEST))

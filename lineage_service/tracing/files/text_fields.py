"""Rows that are texts, split into fields. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

__all__ = ["split_texts"]

_DELIMITERS = ("\t", ";", "|", ",", " ")
#: So many of the texts must have the same number of fields.
_FIT = 0.9


def split_texts(texts: Sequence[str]) -> list[list[str]]:
    """At the delimiter by which most texts have as many fields."""
    for delimiter in _DELIMITERS:
        fields = [text.split(delimiter) for text in texts]
        width, count = Counter(map(len, fields)).most_common(1)[0] if fields else (1, 0)
        if width > 1 and count >= _FIT * len(texts):
            return fields
    return [[text] for text in texts]

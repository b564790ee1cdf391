"""What the texts of two records have in common: their keys, their values, and fields of rows and values.

Fields are those of a tuple, a list or an object, as Python or JSON writes it, or of a row with separators.
Texts are compared as they are, at the same place. Pure.
"""

from __future__ import annotations

import ast
import csv
import json
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from lineage_service.lineage import Record, SharedText

__all__ = ["shared_texts"]

_SEPARATORS = "\t,;|"
#: Of a longer text no fields are looked for.
_MOST_CHARACTERS = 1 << 16


def shared_texts(
    first: Collection[Record], second: Collection[Record]
) -> tuple[bool | None, tuple[SharedText, ...]]:
    """(Have they something in common? what that is). None: of one side no value is known.

    Of several records of a side, one with a text is enough.
    """
    one, other = (dict.fromkeys(_all_texts(records)) for records in (first, second))
    shared = tuple(SharedText(what=what, text=text) for what, text in one if (what, text) in other)
    is_known = all(any(_value(record) is not None for record in records) for records in (first, second))
    return True if shared else False if is_known else None, shared


def _all_texts(records: Iterable[Record]) -> Iterator[tuple[str, str]]:
    """(what it is, the text)."""
    for record in records:
        if record.key is not None:
            yield "key", record.key
        value = _value(record)
        if value is None:
            continue
        fields = list(_fields(value))
        if len(fields) < 2:
            yield "value", value.strip()
        else:
            yield from ((f"field {name}", text) for name, text in fields)


def _value(record: Record) -> str | None:
    if record.source is not None and record.source.text is not None:
        return record.source.text
    return None if record.value_type == "withheld" else record.value


def _fields(text: str) -> Iterator[tuple[str, str]]:
    """(name or number from 1, text). One field at most where it has no parts."""
    if len(text) > _MOST_CHARACTERS:
        return
    parsed = _parsed(text.strip())
    if isinstance(parsed, dict):
        yield from ((str(name), _text(value)) for name, value in parsed.items())
    elif isinstance(parsed, (list, tuple)):
        yield from ((str(number), _text(value)) for number, value in enumerate(parsed, 1))
    else:
        separator = next((sign for sign in _SEPARATORS if sign in text), None)
        parts = text.split() if separator is None else _parts(text, separator)
        yield from ((str(number), part.strip()) for number, part in enumerate(parts, 1))


def _parsed(text: str) -> Any:
    """As JSON, else as a literal of Python; None if it is neither."""
    if text[:1] not in ("(", "[", "{"):
        return None
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
    return None


def _parts(text: str, separator: str) -> list[str]:
    try:
        [parts] = csv.reader([text], delimiter=separator)
    except (csv.Error, ValueError):
        return text.split(separator)
    return parts


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=repr)

"""What can stand in a graph: ids that an index can hold, texts without halves of surrogate pairs, numbers.

What cannot is refused here, before a transaction begins. No I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from lineage_service.errors import LineageError

__all__ = [
    "BATCH_CHARACTERS",
    "BATCH_ROWS",
    "MAX_ID_BYTES",
    "MAX_INTEGER",
    "EdgeCounts",
    "GraphDataError",
    "NodeCounts",
    "Row",
    "batches",
    "clean_text",
    "cleaned",
    "identity",
    "natural",
    "text_or_none",
]

T = TypeVar("T")

Row = dict[str, Any]
"""Parameters of a statement: what the statement's header describes."""

NodeCounts = Mapping[int, int]
"""Node -> how many records it has."""
EdgeCounts = Mapping[tuple[int, int], int]
"""(source, target) -> how many flows went from node to node."""

#: Rows of one statement, so of one transaction: enough to make its cost vanish, little enough for its memory.
#: In the heap of `lineage up`, 512 MB, a transaction of 15,000 records outlives young collections of garbage
#: and ends in full ones: half of the server's work. With up to 5,000 there are none (docs/neo4j.md, Writing).
BATCH_ROWS = 5_000
#: And at most so much text in one: Neo4j keeps a transaction in memory until its end.
BATCH_CHARACTERS = 8_000_000
#: Neo4j refuses index keys beyond 8,167 bytes, and the widest index holds two ids.
MAX_ID_BYTES = 4_000
MAX_INTEGER = (1 << 63) - 1


class GraphDataError(LineageError):
    """An event or record cannot stand in the graph; trying again changes nothing."""


def identity(text: str) -> str:
    """An id that an index can hold, unchanged: a cleaned id would be another id."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise GraphDataError(f"id {text[:80]!r} is no Unicode text: it holds half a surrogate pair") from None
    if size > MAX_ID_BYTES:
        raise GraphDataError(f"id {text[:80]!r}... has {size} bytes; the graph takes {MAX_ID_BYTES}")
    return text


def clean_text(text: str) -> str:
    """A text for people, with halves of surrogate pairs replaced: JSON can hold them, Neo4j cannot."""
    return text.encode("utf-8", "replace").decode()


def cleaned(texts: Iterable[str | None]) -> list[str | None]:
    """A column of texts for people."""
    return [None if text is None else clean_text(text) for text in texts]


def text_or_none(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if not isinstance(value, str | None):
        raise GraphDataError(f"event has a field {name!r} that is no text")
    return clean_text(value) if value else None


def natural(value: object, name: str) -> int:
    if type(value) is not int or not 0 <= value <= MAX_INTEGER:
        raise GraphDataError(f"event has a field {name!r} that is no number from 0 to 2**63-1: {value!r:.80}")
    return value


def batches(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """The rows, at most BATCH_ROWS together."""
    return (rows[start : start + BATCH_ROWS] for start in range(0, len(rows), BATCH_ROWS))

"""Dead letters as they are read, which of them are selected, and which were redelivered.

Letters are data from strangers: what their headers say is checked, and holds no control characters
afterwards. Knows nothing of Kafka clients.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from lineage_service.errors import LineageError

__all__ = ["Letter", "Redelivered", "RedeliveryError", "Selection", "fault_of", "letter_of", "natural"]

#: Kafka keeps 4,096 bytes with an offset by default.
MAX_MEMORY_CHARACTERS = 4_000
MAX_BEYOND = 1_000_000


class RedeliveryError(LineageError):
    """Letters were not sent back; the text says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A dead letter: its own place in the topic of dead letters, and what its headers say.

    `topic`, `from_partition` and `from_offset` are where the message came from, None if no header says so.
    Times are Unix times in ms. `cut` is set if the value is not all of the message: the size that it had.
    """

    partition: int
    offset: int
    topic: str | None
    from_partition: int | None
    from_offset: int | None
    reason: str
    buried_ms: int | None
    written_ms: int | None
    cut: str | None
    key: bytes | None
    value: bytes | None

    @property
    def bytes(self) -> int:
        return len(self.key or b"") + len(self.value or b"")

    @property
    def origin(self) -> str:
        return f"{self.topic}-{self.from_partition} offset {self.from_offset}"


def letter_of(message: Any) -> Letter:
    """The letter that a Kafka message is, whatever its headers hold."""
    headers = {name: _printable(text or b"") for name, text in message.headers() or ()}
    return Letter(
        partition=message.partition(),
        offset=message.offset(),
        topic=headers.get("topic"),
        from_partition=natural(headers.get("partition")),
        from_offset=natural(headers.get("offset")),
        reason=headers.get("reason", ""),
        buried_ms=natural(headers.get("time")),
        written_ms=natural(headers.get("written")),
        cut=headers.get("cut"),
        key=message.key(),
        value=message.value(),
    )


def _printable(text: bytes) -> str:
    """As text without control characters: it may go to a terminal."""
    decoded = text.decode("utf-8", "replace")
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in decoded)


def natural(text: str | None) -> int | None:
    """A number from 0 on, or None if the text is none."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which letters, by where their messages came from; None: any."""

    topic: str | None = None
    partition: int | None = None
    offset: int | None = None

    @property
    def is_all(self) -> bool:
        return (self.topic, self.partition, self.offset) == (None, None, None)

    def has(self, letter: Letter) -> bool:
        return (
            self.topic in (None, letter.topic)
            and self.partition in (None, letter.from_partition)
            and self.offset in (None, letter.from_offset)
        )


def fault_of(letter: Letter, partitions: Mapping[str, int]) -> str | None:
    """Why a letter cannot go back to one of the topics, given with how many partitions each has."""
    if letter.cut is not None:
        return f"only {letter.bytes:,} of its {letter.cut} bytes were kept"
    if letter.topic is None or letter.from_partition is None or letter.from_offset is None:
        return f"letter {letter.partition}#{letter.offset} does not say where it came from"
    if letter.topic not in partitions:
        return "its topic is neither --node-topic nor --flow-topic"
    if letter.from_partition >= partitions[letter.topic]:
        return f"its topic has {partitions[letter.topic]} partitions now"
    return None


# -- what was redelivered -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Redelivered:
    """The letters of one partition that were sent back: all `before` an offset, and some `beyond` it."""

    before: int = 0
    beyond: frozenset[int] = frozenset()

    def __contains__(self, offset: int) -> bool:
        return offset < self.before or offset in self.beyond

    def up_to(self, offset: int) -> Redelivered:
        """All before `offset` too, whether there are letters or not."""
        return Redelivered(max(self.before, offset), self.beyond)._joined()

    def also(self, offsets: Iterable[int]) -> Redelivered:
        return Redelivered(self.before, self.beyond.union(offsets))._joined()

    def _joined(self) -> Redelivered:
        before = self.before
        while before in self.beyond:
            before += 1
        return Redelivered(before, frozenset(offset for offset in self.beyond if offset > before))

    def as_text(self) -> str:
        """`beyond` as ranges, `7,9-12`. Raises RedeliveryError if it is too long for Kafka."""
        ranges = [
            [offset for _, offset in pairs]
            for _, pairs in groupby(enumerate(sorted(self.beyond)), key=lambda pair: pair[1] - pair[0])
        ]
        text = ",".join(f"{span[0]}-{span[-1]}" if len(span) > 1 else f"{span[0]}" for span in ranges)
        if len(text) > MAX_MEMORY_CHARACTERS or len(self.beyond) > MAX_BEYOND:
            raise RedeliveryError(
                "so many letters were sent back out of turn that Kafka cannot keep which; replay all of "
                "them, without --topic, --partition and --offset"
            )
        return text

    @classmethod
    def of(cls, before: int, text: str) -> Redelivered:
        """What `as_text` said; nothing of it where it was written by someone else."""
        beyond: set[int] = set()
        for piece in text.split(",") if text else ():
            ends = [natural(end) for end in piece.split("-")]
            first, last = ends[0], ends[-1]
            if first is None or last is None or last - first > MAX_BEYOND or len(beyond) > MAX_BEYOND:
                return cls(before)
            beyond.update(range(first, last + 1))
        return cls(before, frozenset(beyond))._joined()

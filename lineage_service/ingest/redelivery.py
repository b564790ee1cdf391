"""Dead letters, which of them are meant, which went back, and how they go back.

Promises that a letter goes back as it came, to no topic but those of lineage, and not twice unless that is
asked for. What went back is remembered as an offset, and as the numbers of letters beyond it that were chosen
out of turn. Letters are data from strangers: what their headers say is checked, and holds no control
characters afterwards. Knows nothing of Kafka clients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol

from lineage_service.errors import LineageError

__all__ = [
    "Done",
    "Letter",
    "Office",
    "Outcome",
    "ReplayError",
    "Wish",
    "done_of",
    "fault_of",
    "letter_of",
    "natural",
    "replay",
]

#: So much is sent before it is waited for and remembered.
CHUNK_LETTERS, CHUNK_BYTES = 200, 16_000_000
#: Kafka keeps 4,096 bytes with an offset by default.
MAX_MEMORY_CHARACTERS = 4_000
MAX_BEYOND = 1_000_000


class ReplayError(LineageError):
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
    headers = {name: _shown(text or b"") for name, text in message.headers() or ()}
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


def _shown(text: bytes) -> str:
    """As text without control characters: it may go to a terminal."""
    decoded = text.decode("utf-8", "replace")
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in decoded)


def natural(text: str | None) -> int | None:
    """A number from 0 on, or None if the text is none."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None


# -- what went back ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Done:
    """The letters of one partition that went back: all `before` an offset, and some `beyond` it."""

    before: int = 0
    beyond: frozenset[int] = frozenset()

    def __contains__(self, offset: int) -> bool:
        return offset < self.before or offset in self.beyond

    def up_to(self, offset: int) -> Done:
        """All before `offset` too, whether there are letters or not."""
        return Done(max(self.before, offset), self.beyond)._joined()

    def also(self, offsets: Iterable[int]) -> Done:
        return Done(self.before, self.beyond.union(offsets))._joined()

    def _joined(self) -> Done:
        before = self.before
        while before in self.beyond:
            before += 1
        return Done(before, frozenset(offset for offset in self.beyond if offset > before))

    def as_text(self) -> str:
        """`beyond` as ranges, `7,9-12`. Raises ReplayError if it is too long to be kept."""
        runs = [
            [offset for _, offset in run]
            for _, run in groupby(enumerate(sorted(self.beyond)), key=lambda pair: pair[1] - pair[0])
        ]
        text = ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)
        if len(text) > MAX_MEMORY_CHARACTERS or len(self.beyond) > MAX_BEYOND:
            raise ReplayError(
                "so many letters were sent back out of turn that Kafka cannot keep which; replay all of "
                "them, without --topic, --partition and --offset"
            )
        return text

    @classmethod
    def of(cls, before: int, text: str) -> Done:
        """What `as_text` said; nothing of it where it was written by someone else."""
        beyond: set[int] = set()
        for piece in text.split(",") if text else ():
            ends = [natural(end) for end in piece.split("-")]
            first, last = ends[0], ends[-1]
            if first is None or last is None or last - first > MAX_BEYOND or len(beyond) > MAX_BEYOND:
                return cls(before)
            beyond.update(range(first, last + 1))
        return cls(before, frozenset(beyond))._joined()


# -- sending back -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Which letters are meant, by where their messages came from; None: any."""

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


class Office(Protocol):
    """Where dead letters are kept. Every method raises BrokerUnavailableError."""

    def bounds(self) -> Mapping[int, tuple[int, int]]:
        """Of each partition of the dead letters, the first offset and the one after the last."""

    def letters(self, partition: int, first: int, end: int) -> Iterator[Letter]:
        """The letters from `first` to before `end`, in order."""

    def done(self) -> Mapping[int, Done]:
        """What went back, by partition."""

    def remember(self, partition: int, done: Done) -> None: ...

    def partitions_of(self, topics: Sequence[str]) -> Mapping[str, int]:
        """How many partitions each topic has; 0 if there is none of that name."""

    def send(self, letters: Sequence[Letter]) -> list[str | None]:
        """Send each back; for each what went wrong, or None once the broker has it."""


@dataclass(slots=True)
class Outcome:
    """What a replay did. `repeated` counts letters that had gone back before and were left alone."""

    sent: int = 0
    repeated: int = 0
    unsent: int = 0


def replay(
    office: Office,
    wish: Wish,
    topics: Sequence[str],
    *,
    is_again: bool = False,
    is_dry: bool = False,
    tell: Callable[[str], None] = print,
) -> Outcome:
    """Send the wanted letters back, those of each partition in their order. Raises LineageError.

    1. Read some letters. 2. Send them, and wait until the broker has each. 3. Remember that. A crash between
    2 and 3 sends some twice, which changes nothing: the stores know what they have.
    """
    outcome = Outcome()
    partitions = office.partitions_of(topics)
    remembered = done_of(office)
    for place, (first, end) in office.bounds().items():
        done = remembered[place]
        start = first if is_again or not wish.is_all else max(first, done.before)
        for chunk in _chunks(office.letters(place, start, end)):
            wanted = [letter for letter in chunk if wish.has(letter)]
            fresh = [letter for letter in wanted if is_again or letter.offset not in done]
            outcome.repeated += len(wanted) - len(fresh)
            whole: list[Letter] = []
            for letter in fresh:
                if fault := fault_of(letter, partitions):
                    outcome.unsent += 1
                    tell(f"not sent: {letter.origin}: {fault}")
                else:
                    whole.append(letter)
            if is_dry:
                for letter in whole:
                    tell(f"would send: {letter.origin} ({letter.bytes:,} bytes): {letter.reason}")
                outcome.sent += len(whole)
                continue
            after = done.up_to(chunk[-1].offset + 1) if wish.is_all else done.also(_offsets(whole))
            after.as_text()  # before anything is sent that could not be remembered
            errors = office.send(whole)
            delivered = [letter for letter, error in zip(whole, errors, strict=True) if error is None]
            outcome.sent += len(delivered)
            if len(delivered) < len(whole):
                office.remember(place, done.also(_offsets(delivered)))
                [(letter, error), *_] = [pair for pair in zip(whole, errors, strict=True) if pair[1]]
                raise ReplayError(
                    f"{len(whole) - len(delivered)} of {len(whole)} letters were not sent back, the first "
                    f"{letter.origin}: {error}; what was sent is remembered, {outcome.sent} in all"
                )
            if after != done:
                office.remember(place, after)
            done = after
    return outcome


def done_of(office: Office) -> dict[int, Done]:
    """What went back, by partition; nothing where a topic ends before that: it was made anew."""
    done = office.done()
    return {
        place: kept if (kept := done.get(place, Done())).before <= end else Done()
        for place, (_, end) in office.bounds().items()
    }


def _offsets(letters: Iterable[Letter]) -> list[int]:
    return [letter.offset for letter in letters]


def _chunks(letters: Iterator[Letter]) -> Iterator[list[Letter]]:
    chunk: list[Letter] = []
    held = 0
    for letter in letters:
        chunk.append(letter)
        held += letter.bytes
        if len(chunk) >= CHUNK_LETTERS or held >= CHUNK_BYTES:
            yield chunk
            chunk, held = [], 0
    if chunk:
        yield chunk


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

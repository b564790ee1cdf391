"""Sends dead letters back to the topic that they came from: `lineage dead-letters replay`.

Promises that a letter goes back as it came, to no topic but those of lineage, and not twice unless that is
asked for. What was sent back is remembered as an offset, and as the numbers of letters beyond it that were
selected out of turn. Knows nothing of Kafka clients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lineage_service.ingest.letters import Letter, Redelivered, RedeliveryError, Selection, fault_of

__all__ = ["DeadLetterTopic", "Outcome", "redeliver", "redelivered_of"]

#: So much is sent before it is waited for and remembered.
CHUNK_LETTERS, CHUNK_BYTES = 200, 16_000_000


class DeadLetterTopic(Protocol):
    """The topic of dead letters, and what was sent back of it. Every method raises BrokerUnavailableError."""

    def bounds(self) -> Mapping[int, tuple[int, int]]:
        """Of each partition of the dead letters, the first offset and the one after the last."""

    def letters(self, partition: int, first: int, end: int) -> Iterator[Letter]:
        """The letters from `first` to before `end`, in order."""

    def redelivered(self) -> Mapping[int, Redelivered]:
        """What was sent back, by partition."""

    def remember(self, partition: int, redelivered: Redelivered) -> None: ...

    def partitions_of(self, topics: Sequence[str]) -> Mapping[str, int]:
        """How many partitions each topic has; 0 if there is none of that name."""

    def send(self, letters: Sequence[Letter]) -> list[str | None]:
        """Send each back; for each what went wrong, or None once the broker has it."""


@dataclass(slots=True)
class Outcome:
    """What was done. `repeated` counts letters that had been sent back before and were left alone."""

    sent: int = 0
    repeated: int = 0
    unsent: int = 0


def redeliver(
    dead_letters: DeadLetterTopic,
    selection: Selection,
    topics: Sequence[str],
    *,
    is_again: bool = False,
    is_dry: bool = False,
    say: Callable[[str], None] = print,
) -> Outcome:
    """Send the selected letters back, those of each partition in their order. Raises LineageError.

    1. Read some letters. 2. Send them, and wait until the broker has each. 3. Remember that. A crash between
    2 and 3 sends some twice, which changes nothing: the stores leave out what they have.
    """
    outcome = Outcome()
    partitions = dead_letters.partitions_of(topics)
    remembered = redelivered_of(dead_letters)
    for place, (first, end) in dead_letters.bounds().items():
        redelivered = remembered[place]
        start = first if is_again or not selection.is_all else max(first, redelivered.before)
        for chunk in _chunks(dead_letters.letters(place, start, end)):
            selected = [letter for letter in chunk if selection.has(letter)]
            fresh = [letter for letter in selected if is_again or letter.offset not in redelivered]
            outcome.repeated += len(selected) - len(fresh)
            usable = _usable(fresh, partitions, outcome, say)
            if is_dry:
                for letter in usable:
                    say(f"would send: {letter.origin} ({letter.bytes:,} bytes): {letter.reason}")
                outcome.sent += len(usable)
                continue
            after = (
                redelivered.up_to(chunk[-1].offset + 1)
                if selection.is_all
                else redelivered.also(_offsets(usable))
            )
            after.as_text()  # before anything is sent that could not be remembered
            _send(dead_letters, place, usable, redelivered, outcome)
            if after != redelivered:
                dead_letters.remember(place, after)
            redelivered = after
    return outcome


def _usable(
    letters: Iterable[Letter], partitions: Mapping[str, int], outcome: Outcome, say: Callable[[str], None]
) -> list[Letter]:
    """The letters that can be sent back; of the others it is said why not."""
    usable: list[Letter] = []
    for letter in letters:
        if fault := fault_of(letter, partitions):
            outcome.unsent += 1
            say(f"not sent: {letter.origin}: {fault}")
        else:
            usable.append(letter)
    return usable


def _send(
    dead_letters: DeadLetterTopic,
    place: int,
    letters: Sequence[Letter],
    redelivered: Redelivered,
    outcome: Outcome,
) -> None:
    """Send all of the letters back. Where some were not sent, remembers the others and raises."""
    errors = dead_letters.send(letters)
    delivered = [letter for letter, error in zip(letters, errors, strict=True) if error is None]
    outcome.sent += len(delivered)
    if len(delivered) == len(letters):
        return
    dead_letters.remember(place, redelivered.also(_offsets(delivered)))
    [(letter, error), *_] = [pair for pair in zip(letters, errors, strict=True) if pair[1]]
    raise RedeliveryError(
        f"{len(letters) - len(delivered)} of {len(letters)} letters were not sent back, the first "
        f"{letter.origin}: {error}; what was sent is remembered, {outcome.sent} in all"
    )


def redelivered_of(dead_letters: DeadLetterTopic) -> dict[int, Redelivered]:
    """What was sent back, by partition; nothing where a topic ends before that: it was recreated."""
    redelivered, bounds = dead_letters.redelivered(), dead_letters.bounds()
    partitions = {place: redelivered.get(place, Redelivered()) for place in bounds}
    return {
        place: partition if partition.before <= bounds[place][1] else Redelivered()
        for place, partition in partitions.items()
    }


def _offsets(letters: Iterable[Letter]) -> list[int]:
    return [letter.offset for letter in letters]


def _chunks(letters: Iterator[Letter]) -> Iterator[list[Letter]]:
    chunk: list[Letter] = []
    size = 0
    for letter in letters:
        chunk.append(letter)
        size += letter.bytes
        if len(chunk) >= CHUNK_LETTERS or size >= CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk

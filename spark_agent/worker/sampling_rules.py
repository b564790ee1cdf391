"""Decides which records are on a sampled path, as they pass from one function of a chain to the next.

A rule knows how an operator's outputs hang together with its inputs. It reads that from the operator's own
stream of positions, which knows when an output comes out. Costs nothing where every value is captured: there
are no rules then.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from spark_agent.worker.batch_header import has_bit

if TYPE_CHECKING:
    from spark_agent.delivery.settings import AgentSettings
    from spark_agent.worker.position_streams import Stream
    from spark_agent.worker.value_streams import TextStream

#: The side of a join's record (1 or 2) may carry this mark; SIDES is the side without it.
ON_SAMPLED_PATH, SIDES = 4, 3
_WORD = (1 << 64) - 1


def is_chosen(partition: int, offset: int, threshold: int) -> bool:
    """Is a hash of the place (SplitMix64, Steele et al., OOPSLA 2014) below `threshold`, of 2**32?"""
    mixed = (offset * 0x9E3779B97F4A7C15 + (partition + 1) * 0xD1342543DE82EF95) & _WORD
    mixed = ((mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9) & _WORD
    mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & _WORD
    return (mixed ^ mixed >> 31) >> 32 < threshold


def chooser(settings: AgentSettings, node: int, partition: int) -> Callable[[int], bool]:
    """Says by its position whether a record is chosen that a partition of `node` has from outside.

    Where records are named, all of a node are chosen of which none is: what they are made of is not known.
    """
    if settings.values_of is None:
        threshold = int(settings.values_sample * (1 << 32))
        return lambda position: is_chosen(partition, position, threshold)
    if all(of != node for of, _, _ in settings.values_of):
        return lambda position: True
    ranges = [
        pair for of, split, pairs in settings.values_of if (of, split) == (node, partition) for pair in pairs
    ]
    firsts = [first for first, _ in ranges]

    def is_named(position: int) -> bool:
        at = bisect_right(firsts, position) - 1
        return at >= 0 and position < sum(ranges[at])

    return is_named


class MarkedRecords:
    """The records between two functions of a chain, as they pass, and which of them are on a sampled path.

    An iterator, not a generator: it goes on after an error that the user's code caught.
    """

    __slots__ = ("_first_mark", "_marks", "_next", "_texts", "any", "count", "last", "rule")

    def __init__(
        self, records: Iterable[Any], rule: Rule, *, keeps_marks: bool, texts: TextStream | None
    ) -> None:
        self._next = iter(records).__next__
        self._marks = bytearray() if keeps_marks else None
        self._first_mark = 0  # the position of the first mark that is still there
        self._texts = texts
        self.rule = rule
        self.count = 0
        self.last = False  # is the record that passed last on a path?
        self.any = False

    def __iter__(self) -> MarkedRecords:
        return self

    def __next__(self) -> Any:
        record = self._next()
        position, self.count = self.count, self.count + 1
        self.last = is_on = self.rule.is_on(position, record)
        if self._marks is not None:
            self._marks.append(is_on)
        if is_on:
            self.any = True
            if self._texts is not None:
                self._texts.note_at(position, record)
        return record

    @property
    def keeps_marks(self) -> bool:
        return self._marks is not None

    def was_on(self, position: int) -> bool:
        """Was the record that passed here at `position` on a path?"""
        return bool(self._marks[position - self._first_mark]) if self._marks is not None else self.any

    def is_on(self, position: int) -> bool:
        """Is the record at `position`, counted by the function that made it, on a path?"""
        if isinstance(self.rule, Coded):
            return self.rule.of_code(position)
        index = position - self._first_mark
        if self._marks is None or not 0 <= index < len(self._marks):
            return self.any  # the mark is gone
        return bool(self._marks[index])

    def forget(self, before: int) -> None:
        """Positions below `before` will not be asked for again."""
        if self._marks is not None:
            del self._marks[: before - self._first_mark]
            self._first_mark = before


class Rule:
    """Decides whether a function's output is on a path. This one: as the input that was read last."""

    def __init__(self, inputs: MarkedRecords | None) -> None:
        self._inputs = inputs

    @property
    def inputs(self) -> MarkedRecords:
        assert self._inputs is not None
        return self._inputs

    def is_on(self, _position: int, _record: Any) -> bool:
        return self.inputs.last

    def flushing(self, buffers: Sequence[list[int]]) -> None:
        """The operator's stream gives its buffers away."""


class Head(Rule):
    """What the run reads: bits that came with the batch, else what is chosen by its position."""

    def __init__(self, is_chosen: Callable[[int], bool]) -> None:
        super().__init__(None)
        self.chooses = is_chosen
        self._bits: bytes | None = None
        self._first = 0

    def read_batch(self, first: int, bits: bytes | None) -> None:
        """The records from position `first` of the input on are those of a batch with these bits."""
        self._first, self._bits = first, bits

    def is_on(self, position: int, _record: Any) -> bool:
        index = position - self._first
        if self._bits is None or not 0 <= index < 8 * len(self._bits):
            return self.chooses(position)
        return has_bit(self._bits, index)


class Sided(Head):
    """The records of a join's sides say it themselves."""

    def is_on(self, _position: int, record: Any) -> bool:
        return bool(record[1][0] & ON_SAMPLED_PATH)


class AnyRead(Rule):
    """An upper bound: anything that was read may be in it."""

    def is_on(self, _position: int, _record: Any) -> bool:
        return self.inputs.any


class Named(Rule):
    """Outputs whose inputs the operator puts into its stream before it gives them: one each, or `counts`."""

    def __init__(self, inputs: MarkedRecords, stream: Stream) -> None:
        super().__init__(inputs)
        self._buffers = stream.buffers
        self._flushed: list[int] = []

    def _latest(self, buffers: Sequence[list[int]]) -> list[int]:
        """The inputs of the latest output."""
        if len(buffers) == 1:
            return buffers[0][-1:]
        counts, positions = buffers
        return positions[len(positions) - counts[-1] :] if counts else []

    def flushing(self, buffers: Sequence[list[int]]) -> None:
        self._flushed = self._latest(buffers) or self._flushed

    def is_on(self, _position: int, _record: Any) -> bool:
        return any(map(self.inputs.is_on, self._latest(self._buffers) or self._flushed))


class Coded(Rule):
    """Outputs that are made of groups of inputs; all inputs were read when the first one comes."""

    def __init__(self, inputs: MarkedRecords, stream: Stream) -> None:
        super().__init__(inputs)
        self._stream = stream
        self._codes = bytearray()
        self._read = 0

    def flushing(self, buffers: Sequence[list[int]]) -> None:
        codes, inputs, marks = buffers[0], self.inputs, self._codes
        if codes and max(codes) >= len(marks):
            marks.extend(bytes(max(codes) + 1 - len(marks)))
        for position, code in enumerate(codes, self._read):
            if inputs.is_on(position):
                marks[code] = True
        self._read += len(codes)
        inputs.forget(self._read)

    def of_code(self, code: int) -> bool:
        if self._stream.buffers[0]:
            self._stream.flush()
        return code >= len(self._codes) or bool(self._codes[code])

    def is_on(self, position: int, _record: Any) -> bool:
        return self.of_code(position)

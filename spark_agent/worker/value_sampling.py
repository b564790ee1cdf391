"""Which records' values are captured when only a fraction shall be (`spark.lineage.values.sample`).

A record that comes into Python from outside is chosen, or not, by a hash of its split and offset, so a retry
chooses the same. What a chosen record went into is *on its way*, through every operator, every shuffle and
what else goes through the JVM in tagged batches. Promises that exactly the records on a chosen way are
captured; behind an operation that is known as a bound only, those that may be. Costs nothing when everything
is captured: there is no `Ways` then.

How an operator's outputs hang together with its inputs is read from the operator's own streams: they know
when an output comes out. From run to run the tags of the batches carry a bit for each record.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from spark_agent import contract
from spark_agent.worker.operator import is_partition_bound, looks_back

if TYPE_CHECKING:
    from spark_agent.worker.plan import Piece, Plan
    from spark_agent.worker.position_streams import Stream
    from spark_agent.worker.value_streams import TextStream

#: A tag's run number with this bit is followed by bits for the batch's records.
HAS_BITS = 1 << 63
#: The side of a join's record (1 or 2) may carry this mark; SIDES is the side without it.
ON_A_WAY, SIDES = 4, 3
_COUNT = struct.Struct("<I")
_WORD = (1 << 64) - 1


def is_chosen(split: int, offset: int, threshold: int) -> bool:
    """Is a hash of the place (SplitMix64, Steele et al., OOPSLA 2014) below `threshold`, of 2**32?"""
    mixed = (offset * 0x9E3779B97F4A7C15 + (split + 1) * 0xD1342543DE82EF95) & _WORD
    mixed = ((mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9) & _WORD
    mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & _WORD
    return (mixed ^ mixed >> 31) >> 32 < threshold


class Passage:
    """The records between two functions of a chain, as they pass: which of them are on a chosen way.

    An iterator, not a generator: it goes on after an error that the user's code caught.
    """

    __slots__ = ("_kept", "_next", "_texts", "any", "count", "first_kept", "last", "rule")

    def __init__(
        self, records: Iterable[Any], rule: Rule, *, is_kept: bool, texts: TextStream | None
    ) -> None:
        self._next = iter(records).__next__
        self._kept = bytearray() if is_kept else None
        self._texts = texts
        self.rule = rule
        self.count = 0
        self.first_kept = 0
        self.last = False  # is the record that passed last on a way?
        self.any = False

    def __iter__(self) -> Passage:
        return self

    def __next__(self) -> Any:
        record = self._next()
        position, self.count = self.count, self.count + 1
        self.last = is_on = self.rule.is_on(position, record)
        if self._kept is not None:
            self._kept.append(is_on)
        if is_on:
            self.any = True
            if self._texts is not None:
                self._texts.note_at(position, record)
        return record

    @property
    def is_kept(self) -> bool:
        return self._kept is not None

    def passed(self, position: int) -> bool:
        """Was the record that passed here at `position` on a way?"""
        return bool(self._kept[position - self.first_kept]) if self._kept is not None else self.any

    def at(self, position: int) -> bool:
        """Is the record at `position`, counted by the function that made it, on a way?"""
        if isinstance(self.rule, Coded):
            return self.rule.of_code(position)
        at = position - self.first_kept
        if self._kept is None or not 0 <= at < len(self._kept):
            return self.any  # not known any more
        return bool(self._kept[at])

    def forget(self, before: int) -> None:
        """Positions below `before` will not be asked for again."""
        if self._kept is not None:
            del self._kept[: before - self.first_kept]
            self.first_kept = before


class Rule:
    """Decides whether a function's output is on a way. This one: as the input that was read last."""

    def __init__(self, before: Passage | None) -> None:
        self._before = before

    @property
    def before(self) -> Passage:
        assert self._before is not None
        return self._before

    def is_on(self, _position: int, _record: Any) -> bool:
        return self.before.last

    def flushing(self, buffers: Sequence[list[int]]) -> None:
        """The operator's stream gives its buffers away."""


class Head(Rule):
    """What the run reads: bits that came with the batch, else the hash of its place."""

    def __init__(self, split: int, threshold: int) -> None:
        super().__init__(None)
        self._split, self._threshold = split, threshold
        self._bits: bytes | None = None
        self._first = 0

    def read_batch(self, first: int, bits: bytes | None) -> None:
        """The records from position `first` of the input on are those of a batch with these bits."""
        self._first, self._bits = first, bits

    def is_on(self, position: int, _record: Any) -> bool:
        at = position - self._first
        if self._bits is None or not 0 <= at < 8 * len(self._bits):
            return self.chooses(position)
        return _bit(self._bits, at)

    def chooses(self, position: int) -> bool:
        """Is a record chosen that comes from outside at this position?"""
        return is_chosen(self._split, position, self._threshold)


class Sided(Head):
    """The records of a join's sides say it themselves."""

    def is_on(self, _position: int, record: Any) -> bool:
        return bool(record[1][0] & ON_A_WAY)


class AnyRead(Rule):
    """A bound: anything that was read may be in it."""

    def is_on(self, _position: int, _record: Any) -> bool:
        return self.before.any


class Named(Rule):
    """Outputs whose inputs the operator puts into its stream before it gives them: one each, or `counts`."""

    def __init__(self, before: Passage, stream: Stream) -> None:
        super().__init__(before)
        self._buffers = stream.buffers
        self._flushed: list[int] = []

    def _inputs(self, buffers: Sequence[list[int]]) -> list[int]:
        if len(buffers) == 1:
            return buffers[0][-1:]
        counts, inputs = buffers
        return inputs[len(inputs) - counts[-1] :] if counts else []

    def flushing(self, buffers: Sequence[list[int]]) -> None:
        self._flushed = self._inputs(buffers) or self._flushed

    def is_on(self, _position: int, _record: Any) -> bool:
        return any(map(self.before.at, self._inputs(self._buffers) or self._flushed))


class Coded(Rule):
    """Outputs that are made of groups of inputs; all inputs were read when the first one comes."""

    def __init__(self, before: Passage, stream: Stream) -> None:
        super().__init__(before)
        self._stream = stream
        self._codes = bytearray()
        self._read = 0

    def flushing(self, buffers: Sequence[list[int]]) -> None:
        codes, before, marks = buffers[0], self.before, self._codes
        if codes and max(codes) >= len(marks):
            marks.extend(bytes(max(codes) + 1 - len(marks)))
        for position, code in enumerate(codes, self._read):
            if before.at(position):
                marks[code] = True
        self._read += len(codes)
        before.forget(self._read)

    def of_code(self, code: int) -> bool:
        if self._stream.buffers[0]:
            self._stream.flush()
        return code >= len(self._codes) or bool(self._codes[code])

    def is_on(self, position: int, _record: Any) -> bool:
        return self.of_code(position)


def ways(plan: Plan, split: int, records_read: Callable[[], int]) -> Ways | None:
    """The ways through a run, None where every value is captured, or none.

    `records_read` says how many records the run has read so far.
    """
    settings = plan.settings
    if not settings.detailed or settings.values_sample >= 1:
        return None
    return Ways(plan, split, records_read, int(settings.values_sample * (1 << 32)))


class Ways:
    """The chosen ways through one run."""

    def __init__(self, plan: Plan, split: int, records_read: Callable[[], int], threshold: int) -> None:
        self._plan, self._records_read = plan, records_read
        self._head = (Sided if plan.reads_sides else Head)(split, threshold)
        self._passages: dict[int, Passage] = {}  # node -> what its function reads
        self._rules: dict[int, Rule] = {}  # node -> how its outputs are decided
        self._made: dict[int, Passage] = {}  # node -> its outputs
        self._early: dict[int, tuple[Stream, str]] = {}  # streams of nodes that are not entered yet

    def read(self, records: Iterable[Any], function: Any) -> Passage:
        """The input of the chain, whose first function is `function`."""
        return Passage(records, self._head, is_kept=looks_back(function), texts=None)

    def read_batch(self, bits: bytes | None) -> None:
        """The next records are a tagged batch; `bits` if its writer knew about ways."""
        self._head.read_batch(self._records_read(), bits)

    def read_product(self, left: Piece, right: Piece) -> None:
        """The next records are the pairs of two tagged batches: on a way where one of both is."""
        pairs = (a or b for a in _each(left) for b in _each(right))
        self._head.read_batch(self._records_read(), _packed(pairs))

    def reading(self, node: int) -> Passage:
        """What the function of `node` reads."""
        return self._passages[node]

    def enter(self, node: int, function: Any, records: Any) -> None:
        """`function` is about to be called with `records`: a passage, or the very object (a list) that
        a user's function gave, whose records do not pass one by one.
        """
        passage = records if isinstance(records, Passage) else next(reversed(self._passages.values()))
        self._passages[node] = passage
        self._rules[node] = AnyRead(passage) if is_partition_bound(function) else Rule(passage)
        if node in self._early:
            self.opened(*self._early.pop(node))

    def leave(
        self,
        node: int,
        records: Iterable[Any],
        following: Any,
        texts: TextStream | None,
        *,
        is_tagged: bool = False,
    ) -> Passage:
        """What `node` gave, on the way to the function `following`, or out of the run in tagged batches."""
        is_kept = is_tagged or looks_back(following)
        passage = Passage(records, self._rules[node], is_kept=is_kept, texts=texts)
        self._made[node] = passage
        return passage

    def left(self, number: int, first: int, count: int) -> tuple[int, bytes]:
        """(run number for the tag, bits that follow it) of the next records that leave the run."""
        passage = self._made[self._plan.nodes[-1]]
        bits = _packed(passage.passed(position) for position in range(first, first + count))
        passage.forget(first + count)
        return with_bits(number, bits)

    def passed_on(self, number: int, first: int, count: int, bits: bytes | None) -> tuple[int, bytes]:
        """The same of a batch that passes unread, and came with these bits."""
        if bits is None:
            chosen = (self._head.chooses(position) for position in range(first, first + count))
            bits = _packed(chosen)
        return with_bits(number, bits)

    def opened(self, stream: Stream, relation: str) -> None:
        """An operator opened a stream: from now on it says how its outputs are decided."""
        before = self._passages.get(stream.node)
        if before is None:  # a merge that spilled tells the order of the node behind it
            self._early[stream.node] = stream, relation
            return
        rule: Rule
        if relation == contract.CODES:
            rule = Coded(before, stream)
        elif relation in (contract.POSITIONS, contract.GATHER) and before.is_kept:
            rule = Named(before, stream)
        else:
            return
        self._rules[stream.node] = rule
        if stream.node in self._made:
            self._made[stream.node].rule = rule

    def flushing(self, stream: Stream) -> None:
        rule = self._rules.get(stream.node)
        if rule is not None:
            rule.flushing(stream.buffers)

    def tag(self, node: int, number: int, positions: Sequence[int]) -> tuple[int, bytes]:
        """(run number for the tag of a batch, bits that follow the tag); `positions` are inputs of `node`."""
        return with_bits(number, _packed(map(self._passages[node].at, positions)))

    def drained(self, node: int, position: int) -> None:
        """All inputs of `node` before `position` have left."""
        self._passages[node].forget(position)


def _bit(bits: bytes, at: int) -> bool:
    return bool(bits[at >> 3] >> (at & 7) & 1)


def _packed(are_on: Iterable[bool]) -> bytes:
    bits = bytearray()
    for index, is_on in enumerate(are_on):
        if not index & 7:
            bits.append(0)
        bits[-1] |= is_on << (index & 7)
    return bytes(bits)


def _each(piece: Piece) -> list[bool]:
    """Of each record, whether it is on a way; of a writer that did not know about ways none is."""
    bits = piece.bits
    return [bits is not None and _bit(bits, at) for at in range(piece.records)]


def with_bits(number: int, bits: bytes) -> tuple[int, bytes]:
    """(run number for the tag of a batch, bits that follow the tag)."""
    return number | HAS_BITS, _COUNT.pack(len(bits)) + bits


def untag(number: int, tagged: bytes, start: int) -> tuple[int, int, bytes | None]:
    """(run number, where the batch begins, its bits) of a batch whose tag ends at `start`."""
    if number < HAS_BITS:
        return number, start, None
    (size,) = _COUNT.unpack_from(tagged, start)
    start += _COUNT.size
    return number & ~HAS_BITS, start + size, tagged[start : start + size]

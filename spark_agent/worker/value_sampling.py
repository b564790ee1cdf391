"""Which records' values are captured when only a fraction shall be (`spark.lineage.values.sample`).

A record that comes into Python from outside is chosen, or not, by a hash of its partition and offset, so a
retry chooses the same. What a chosen record went into is on a *sampled path*, through every operator, every
shuffle and whatever else goes through the JVM in batches with headers. Promises that exactly the records on a
sampled path are captured; behind an operation that is known as an upper bound only, those that may be.

Within a run `sampling_rules` decides it. From run to run the headers of the batches carry a bit for each
record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from spark_agent import contract
from spark_agent.worker.batch_header import Piece, has_bit, pack_bits
from spark_agent.worker.function_traits import is_partition_bound, looks_back
from spark_agent.worker.sampling_rules import AnyRead, Coded, Head, MarkedRecords, Named, Rule, Sided, chooser

if TYPE_CHECKING:
    from spark_agent.worker.plan import Plan
    from spark_agent.worker.position_streams import Stream
    from spark_agent.worker.value_streams import TextStream


def sampled_paths(plan: Plan, partition: int, records_read: Callable[[], int]) -> SampledPaths | None:
    """The sampled paths of a run, None where every value is captured, or none.

    `records_read` says how many records the run has read so far.
    """
    settings = plan.settings
    if not settings.detailed or not settings.follows_paths:
        return None
    return SampledPaths(plan, partition, records_read, chooser(settings, plan.input_node, partition))


class SampledPaths:
    """The sampled paths through one run. Observes its streams of positions."""

    def __init__(
        self, plan: Plan, partition: int, records_read: Callable[[], int], is_chosen: Callable[[int], bool]
    ) -> None:
        self._plan, self._records_read = plan, records_read
        self._head = (Sided if plan.reads_sides else Head)(is_chosen)
        self._inputs: dict[int, MarkedRecords] = {}  # node -> what its function reads
        self._rules: dict[int, Rule] = {}  # node -> how its outputs are decided
        self._outputs: dict[int, MarkedRecords] = {}
        self._early: dict[int, tuple[Stream, str]] = {}  # streams of nodes that are not entered yet

    # -- what the run reads ----------------------------------------------------------------------------

    def read(self, records: Iterable[Any], function: Any) -> MarkedRecords:
        """The input of the chain, whose first function is `function`."""
        return MarkedRecords(records, self._head, keeps_marks=looks_back(function), texts=None)

    def read_batch(self, bits: bytes | None) -> None:
        """The next records are a batch with a header; `bits` if its writer sampled, too."""
        self._head.read_batch(self._records_read(), bits)

    def read_product(self, left: Piece, right: Piece) -> None:
        """The next records are the pairs of two batches: on a path where one of both is."""
        pairs = (a or b for a in _marks(left) for b in _marks(right))
        self._head.read_batch(self._records_read(), pack_bits(pairs))

    # -- through the chain -----------------------------------------------------------------------------

    def inputs_of(self, node: int) -> MarkedRecords:
        """What the function of `node` reads."""
        return self._inputs[node]

    def enter(self, node: int, function: Any, records: Any) -> None:
        """`function` is about to be called with `records`: marked ones, or the very object (a list) that
        a user's function gave, whose records do not pass one by one.
        """
        inputs = records if isinstance(records, MarkedRecords) else next(reversed(self._inputs.values()))
        self._inputs[node] = inputs
        self._rules[node] = AnyRead(inputs) if is_partition_bound(function) else Rule(inputs)
        if node in self._early:
            self.opened(*self._early.pop(node))

    def leave(
        self,
        node: int,
        records: Iterable[Any],
        following: Any,
        texts: TextStream | None,
        *,
        gets_header: bool = False,
    ) -> MarkedRecords:
        """What `node` gave, on its path to the function `following`, or out of the run."""
        keeps_marks = gets_header or looks_back(following)
        outputs = MarkedRecords(records, self._rules[node], keeps_marks=keeps_marks, texts=texts)
        self._outputs[node] = outputs
        return outputs

    def opened(self, stream: Stream, relation: str) -> None:
        """An operator opened a stream: from now on it says how its outputs are decided."""
        inputs = self._inputs.get(stream.node)
        if inputs is None:  # a merge that spilled gives the order of the node behind it
            self._early[stream.node] = stream, relation
            return
        rule: Rule
        if relation == contract.CODES:
            rule = Coded(inputs, stream)
        elif relation in (contract.POSITIONS, contract.GATHER) and inputs.keeps_marks:
            rule = Named(inputs, stream)
        else:
            return
        self._rules[stream.node] = rule
        if stream.node in self._outputs:
            self._outputs[stream.node].rule = rule

    def withdrawn(self, node: int) -> None:
        """It is not known after all which inputs the outputs of `node` come from."""
        rule = self._rules[node] = AnyRead(self._inputs[node])
        if node in self._outputs:
            self._outputs[node].rule = rule

    def flushing(self, stream: Stream) -> None:
        rule = self._rules.get(stream.node)
        if rule is not None:
            rule.flushing(stream.buffers)

    # -- bits for the headers of batches that leave ----------------------------------------------------

    def bits_of_outputs(self, first: int, count: int) -> bytes:
        """Of the next records that leave the run."""
        outputs = self._outputs[self._plan.nodes[-1]]
        bits = pack_bits(outputs.was_on(position) for position in range(first, first + count))
        outputs.forget(first + count)
        return bits

    def bits_of_passthrough(self, first: int, count: int, bits: bytes | None) -> bytes:
        """Of a batch that passes unread, and came with these bits."""
        if bits is not None:
            return bits
        return pack_bits(self._head.chooses(position) for position in range(first, first + count))

    def bits_of_inputs(self, node: int, positions: Sequence[int]) -> bytes:
        """Of inputs of `node` that leave as a batch."""
        return pack_bits(map(self._inputs[node].is_on, positions))

    def drained(self, node: int, position: int) -> None:
        """All inputs of `node` before `position` have left."""
        self._inputs[node].forget(position)


def _marks(piece: Piece) -> list[bool]:
    """Of each record, whether it is on a path; of a writer that did not sample none is."""
    bits = piece.bits
    return [bits is not None and has_bit(bits, index) for index in range(piece.records)]

"""What one topic partition gave, decoded and ready for the stores: a batch is applied whole or not at all.

Decoding sets apart what does not follow the contract, message by message, so that one poison message costs
its neighbours nothing. A batch never spans topic partitions. Knows nothing of Kafka clients and of stores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from lineage_service.decode.rows import BlockRows, EventRow, Texts, row_of_event, rows_of_block
from spark_agent.contract import ContractError

Row = TypeVar("Row", BlockRows, EventRow)

#: A batch ends with the block that brings it to this many rows: some 150 MB while they are
#: sorted and written.
MAX_BATCH_ROWS = 2_000_000
#: Of texts, so many characters weigh as much as a row: while written they take five times their size.
CHARACTERS_A_ROW = 16
#: And with its hundredth application: each has files of its own, which cost 0.35 MB while they are written.
MAX_BATCH_APPLICATIONS = 100
MAX_REASON_CHARACTERS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message as it came, from `offset` of a topic partition. A deleted message has no value.

    `written_ms` is the time that Kafka has of it (Unix time in ms). `fault` says why Kafka's client could not
    give the message at all; then it has neither key nor value.
    """

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    written_ms: int | None = None
    fault: str | None = None

    @property
    def bytes(self) -> int:
        return len(self.value or b"") + len(self.key or b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A message that cannot be used, and why."""

    message: Message
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch(Generic[Row]):
    """The rows of `messages` consecutive messages of one source, each with the message that it came in.

    `source` is the Delta application transaction (`source_of`). `next_offset` is the offset
    after the last message, dead letters included: what a store that has the batch remembers.
    """

    source: str
    next_offset: int
    messages: int
    rows: tuple[tuple[Message, Row], ...]
    dead_letters: tuple[DeadLetter, ...] = ()

    def since(self, offset: int) -> list[Row]:
        """The rows of messages from `offset` on."""
        return [row for message, row in self.rows if message.offset >= offset]


FlowBatch = Batch[BlockRows]
EventBatch = Batch[EventRow]


def source_of(origin: str, topic: str, partition: int) -> str:
    """The name under which the stores remember how far they are in a topic partition.

    `origin` is the topic's id: whichever group reads, the messages are the same, and those of a topic that
    was recreated are others. Where a broker knows no ids it is the group.
    """
    return f"{origin}/{topic}-{partition}"


def flow_batch(source: str, messages: Sequence[Message]) -> FlowBatch:
    """The first of the given messages of `lineage-flow`: at least one, about MAX_BATCH_ROWS rows."""
    return _batch(source, messages, rows_of_block, _weight)


def event_batch(source: str, messages: Sequence[Message]) -> EventBatch:
    """The first of the given messages of `lineage-node`: at least one."""
    return _batch(source, messages, row_of_event, lambda _event: 1)


def _weight(block: BlockRows) -> int:
    texts = block.content.characters // CHARACTERS_A_ROW if isinstance(block.content, Texts) else 0
    return max(block.rows, texts)


def _batch(
    source: str, messages: Sequence[Message], decode: Callable[[bytes], Row], weigh: Callable[[Row], int]
) -> Batch[Row]:
    rows: list[tuple[Message, Row]] = []
    dead_letters: list[DeadLetter] = []
    applications: set[str] = set()
    weight = taken = 0
    for message in messages:
        try:
            if message.value is None:
                raise ContractError(message.fault or "message has no value")
            row = decode(message.value)
        except ContractError as error:
            dead_letters.append(DeadLetter(message=message, reason=str(error)[:MAX_REASON_CHARACTERS]))
        else:
            rows.append((message, row))
            weight += weigh(row)
            applications.add(row.application_id)
        taken += 1
        if weight >= MAX_BATCH_ROWS or len(applications) >= MAX_BATCH_APPLICATIONS:
            break
    return Batch(
        source=source,
        next_offset=messages[taken - 1].offset + 1,
        messages=taken,
        rows=tuple(rows),
        dead_letters=tuple(dead_letters),
    )

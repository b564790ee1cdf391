"""The in-memory twin of a consumer group that is looked at: plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lineage_service.kafka.errors import BrokerUnavailableError
from lineage_service.kafka.group import GroupState, Partition, PartitionState

__all__ = ["MemoryGroup"]


@dataclass(slots=True)
class MemoryGroup:
    """A group of plain values. `stamps` are the times of the messages of a partition, by offset from 0.

    Away, it answers nothing; slow, it gives no times.
    """

    stamps: dict[Partition, list[int]] = field(default_factory=dict)
    committed: dict[Partition, int] = field(default_factory=dict)
    first: dict[Partition, int] = field(default_factory=dict)
    members: int | None = 0
    is_away: bool = False
    is_slow: bool = False
    asked: list[Mapping[Partition, int]] = field(default_factory=list)

    def state(self, topics: Iterable[str], timeout_s: float) -> GroupState:
        self._answer()
        names = set(topics)
        return GroupState(
            members=self.members,
            partitions=tuple(
                PartitionState(
                    topic=place[0],
                    partition=place[1],
                    committed=self.committed.get(place),
                    first=self.first.get(place, 0),
                    next=len(self.stamps[place]),
                )
                for place in sorted(self.stamps)
                if place[0] in names
            ),
        )

    def times(self, offsets: Mapping[Partition, int], timeout_s: float) -> dict[Partition, int]:
        self._answer()
        self.asked.append(offsets)
        return {
            place: self.stamps[place][offset]
            for place, offset in offsets.items()
            if not self.is_slow and offset < len(self.stamps.get(place, ()))
        }

    def _answer(self) -> None:
        if self.is_away:
            raise BrokerUnavailableError("no Kafka broker answers")

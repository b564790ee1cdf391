"""How far the stores are behind the topics."""

from __future__ import annotations

from dataclasses import dataclass, field

from lineage_service.lineage.applications import STATE, ApplicationState
from lineage_service.lineage.results import Result, doc


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLag(Result):
    """The lag of one topic partition."""

    topic: str = field(metadata=doc("Name of the topic."))
    partition: int = field(metadata=doc("Number of the topic partition."))
    committed: int | None = field(metadata=doc("The group's committed offset; null if it never committed."))
    first: int = field(metadata=doc("The first offset that the broker still has."))
    next: int = field(metadata=doc("The offset of the next message."))
    messages: int = field(metadata=doc("Messages from `committed`, else `first`, to `next`."))
    seconds: float | None = field(
        metadata=doc("Age of the first waiting message; 0 if none waits, null if it could not be read.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLag(Result):
    """The lag of the consumer group."""

    name: str = field(metadata=doc("Name of the consumer group."))
    members: int | None = field(
        metadata=doc("Processes of the group; null if Kafka does not know it at the moment.")
    )
    messages: int = field(metadata=doc("Number of waiting messages."))
    seconds: float | None = field(metadata=doc("Age of the oldest waiting message; null if unknown."))
    rate: float | None = field(metadata=doc("Messages per second that the group consumed; null at first."))
    incoming_rate: float | None = field(metadata=doc("Messages per second that arrived; null at first."))
    drain_seconds: float | None = field(
        metadata=doc("Time until no message waits, at these rates; null if the number does not decrease.")
    )
    dead_letters: int = field(metadata=doc("Messages in the dead-letter topic."))
    partitions: tuple[PartitionLag, ...] = field(
        metadata=doc("Partitions of the topics that the group reads.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationLag(Result):
    """An application that is running or incomplete."""

    application_id: str = field(metadata=doc("Spark's `applicationId`."))
    name: str = field(metadata=doc("Spark's `spark.app.name`."))
    state: ApplicationState = field(metadata=STATE)
    messages: int = field(metadata=doc("Announced messages that are not stored and may still arrive."))
    seconds: float = field(metadata=doc("Time since the first of them was announced; 0 if there is none."))
    incomplete_runs: int = field(
        metadata=doc("Accepted task runs of which a block is missing or was dropped.")
    )
    missing_blocks: int = field(
        metadata=doc("Blocks that commit manifests announced and that have not arrived.")
    )
    missing_runs: int = field(metadata=doc("Accepted task runs without a commit manifest."))
    missing_events: int = field(metadata=doc("Other announced events that have not arrived."))
    dropped: int = field(metadata=doc("Blocks that the agent gave up."))
    missing: str = field(metadata=doc("What is missing, for people."))
    gaps: int = field(default=0, metadata=doc("Gaps: things that ran and were not followed."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag(Result):
    """The lag of the stores."""

    group: GroupLag = field(metadata=doc("Lag of the consumer group in Kafka."))
    applications: tuple[ApplicationLag, ...] = field(
        metadata=doc("Applications that are running or incomplete.")
    )
    unread_applications: int = field(
        metadata=doc("Applications that changed and have not been read yet; ask again.")
    )

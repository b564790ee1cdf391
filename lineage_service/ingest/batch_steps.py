"""What is done with a batch, step by step: dead letters, flow store, graph, offset.

`consumer` has the protocol. Each step may be done again, after it failed or after a crash. Knows nothing of
threads, retries and brokers.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, NamedTuple, Protocol

from lineage_service.decode.batches import DeadLetter, EventBatch, FlowBatch
from lineage_service.graph.row_values import GraphDataError
from lineage_service.kafka.dead_letters import DeadLetters
from lineage_service.store.flow_store import FlowStore

__all__ = ["BatchSteps", "Counters", "EventSink", "Step", "Work"]

logger = logging.getLogger(__name__)


class EventSink(Protocol):
    """What the consumer needs of a `graph_store.GraphStore`."""

    def write_events(self, events: Sequence[Mapping[str, Any]]) -> None: ...

    def delete_application(self, application_id: str) -> None: ...


@dataclass(slots=True)
class Counters:
    """What this process did since it started."""

    messages: int = 0
    bytes: int = 0
    batches: int = 0
    blocks: int = 0
    rows: int = 0
    events: int = 0
    repeated: int = 0
    dead_letters: int = 0
    retries: int = 0

    def __str__(self) -> str:
        return ", ".join(
            f"{getattr(self, field.name):,} {field.name.replace('_', ' ')}" for field in fields(self)
        )


class Step(NamedTuple):
    """What brings a batch into one store. One that is quick is done in the thread that polls."""

    store: str
    do: Callable[[], None]
    is_quick: bool = False


@dataclass(slots=True)
class Work:
    """A batch on its way, with the steps that are not done."""

    place: tuple[str, int]
    messages: int
    steps: deque[Step]
    begun: float = 0.0  # the step that is under way


class BatchSteps:
    """Makes the steps of batches. `commit` takes topic, partition and offset."""

    def __init__(
        self,
        store: FlowStore,
        graph: EventSink | None,
        dead_letters: DeadLetters,
        commit: Callable[[str, int, int], None],
        counters: Counters,
    ) -> None:
        self._store = store
        self._graph = graph
        self._dead_letters = dead_letters
        self._commit = commit
        self._counters = counters

    def of_flows(self, place: tuple[str, int], batch: FlowBatch) -> Work:
        return self._work(place, batch, Step("flow_store", partial(self._store_flows, batch)))

    def of_events(self, place: tuple[str, int], batch: EventBatch) -> Work:
        steps = [Step("flow_store", partial(self._store_events, batch))]
        if self._graph is not None and batch.rows:
            steps.append(Step("graph", partial(self._draw, self._graph, batch)))
        return self._work(place, batch, *steps)

    def _work(self, place: tuple[str, int], batch: FlowBatch | EventBatch, *stores: Step) -> Work:
        first = [Step("dead_letters", partial(self._bury, batch.dead_letters))] if batch.dead_letters else []
        last = Step("offsets", partial(self._commit, *place, batch.next_offset), is_quick=True)
        return Work(place, batch.messages, deque([*first, *stores, last]))

    def _store_flows(self, batch: FlowBatch) -> None:
        written = self._store.write_flows(batch)
        self._counters.blocks += len(batch.rows) - written.repeated
        self._counters.rows += written.rows
        self._counters.repeated += written.repeated
        self._counters.batches += 1

    def _store_events(self, batch: EventBatch) -> None:
        written = self._store.write_events(batch)
        self._counters.events += written.rows
        self._counters.repeated += written.repeated
        self._counters.batches += 1

    def _bury(self, letters: Sequence[DeadLetter]) -> None:
        if letters:
            self._dead_letters.send(letters)
            self._counters.dead_letters += len(letters)
            logger.warning(
                "%d messages cannot be used and are dead letters now; the first, %s-%d offset %d: %s",
                len(letters),
                letters[0].message.topic,
                letters[0].message.partition,
                letters[0].message.offset,
                letters[0].reason,
            )

    def _draw(self, graph: EventSink, batch: EventBatch) -> None:
        """Put the events into the graph, but those of deleted applications.

        1. Write them; one that cannot stand there is found by halving.
        2. Delete applications that were marked meanwhile, perhaps by who died of it: whoever deletes may have
           been there before.
        3. Bury what could not be written.
        """
        refused: list[DeadLetter] = []
        applications = {row.application_id for _, row in batch.rows}
        deleted = self._store.deleted(applications)
        pieces = [[entry for entry in batch.rows if entry[1].application_id not in deleted]]
        while pieces:
            piece = pieces.pop()
            if not piece:
                continue
            try:
                graph.write_events([row.event for _, row in piece])
            except GraphDataError as error:
                if len(piece) == 1:
                    refused.append(DeadLetter(message=piece[0][0], reason=str(error)))
                else:
                    middle = len(piece) // 2
                    pieces += [piece[middle:], piece[:middle]]
        for application_id in sorted(self._store.deleted(applications)):
            graph.delete_application(application_id)
        self._bury(refused)

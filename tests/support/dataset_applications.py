"""Applications that read and write datasets, in few words: what their agents would send."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lineage_service.datasets.application_details import details_of
from lineage_service.datasets.application_uses import EVENT_TYPES, uses_of
from lineage_service.datasets.catalogue import Catalogue
from lineage_service.datasets.neighbours import Neighbours
from lineage_service.datasets.pages import CatalogueState
from lineage_service.datasets.uses import ApplicationDetails, ApplicationUses
from lineage_service.decode.batches import event_batch
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from tests.support.id_applications import FileStore
from tests.support.lineage_messages import event, messages


class Job:
    """One application. `time` is that of what it says next."""

    def __init__(self, application_id: str, name: str = "", began: int = 0, **started: Any) -> None:
        self.application_id, self.name, self.time = application_id, name or application_id, began
        self.events: list[bytes] = []
        self._nodes = 0
        self._runs = 0
        self.tell(contract.APPLICATION_STARTED, name=self.name, **started)

    def tell(self, event_type: str, **fields: Any) -> None:
        self.events.append(event(event_type, application_id=self.application_id, time=self.time, **fields))

    def node(self, kind: str, relation: str, parents: Sequence[int] = (), **fields: Any) -> int:
        number, self._nodes = self._nodes, self._nodes + 1
        self.tell(
            contract.NODE_REGISTERED,
            **{"node": number, "kind": kind, "relation": relation, "name": kind, "exact": True, **fields},
        )
        for port, parent in enumerate(parents):
            self.tell(contract.LINK, source=parent, target=number, port=port)
        return number

    def read(self, path: str, files: Sequence[str] = (), rows: int | None = None, **fields: Any) -> int:
        """A source, each file a partition. The rows are in the first."""
        number = self.node("source", contract.SOURCE, **{"dataset": dataset(path), **fields})
        if files:
            parts = [{"split": at, "path": file, "start": 0} for at, file in enumerate(files)]
            self.tell(contract.PARTITIONS, node=number, partitions=parts)
        if rows is not None:
            self.run(number, [], rows, rows)
        return number

    def write(self, path: str, parents: Sequence[int] = (), rows: int | None = None, **fields: Any) -> int:
        """A sink that has ended well."""
        number = self.node("sink", contract.IDENTITY, parents, **{"dataset": dataset(path), **fields})
        if rows is not None:
            self.run(parents[0], [number], rows, rows, action=number)
        self.time += 1
        self.tell(contract.ACTION_ENDED, node=number, state=contract.ACTION_COMPLETE)
        return number

    def run(
        self, input: int, nodes: Sequence[int], inputs: int, outputs: int, split: int = 0, **fields: Any
    ) -> None:
        """A committed task run."""
        self._runs += 1
        numbers = {"run": self._runs, "split": split, "inputs": inputs, "outputs": outputs}
        self.tell(contract.RUN_COMMITTED, input=input, nodes=list(nodes), **numbers, **fields)

    def unfollowed(
        self, sources: Iterable[Mapping[str, Any]], sink: Mapping[str, Any], reason: str = "it is a stream"
    ) -> int:
        """A query that was not followed; its sink."""
        about = {"exact": False, "reason": reason}
        parents = [self.node("source", contract.CARRIED, **about, **source) for source in sources]
        return self.node("sink", contract.CARRIED, parents, **about, **sink)

    def end(self, **fields: Any) -> Job:
        self.time += 1
        self.tell(contract.APPLICATION_ENDED, **{"counters": {"runs": self._runs}, **fields})
        return self

    def uses(self) -> ApplicationUses:
        events = [json.loads(message) for message in self.events]
        return uses_of(self.application_id, [event for event in events if event["type"] in EVENT_TYPES])

    def details(self) -> ApplicationDetails:
        """It is complete."""
        uses = [use.node for use in self.uses().uses]
        return ApplicationDetails(True, details_of([json.loads(message) for message in self.events], uses))


def dataset(path: str, format: str = "text", namespace: str = "file", **more: Any) -> dict[str, Any]:
    return {"namespace": namespace, "name": path, "format": format, **more}


def catalogue(*jobs: Job) -> Catalogue:
    return Catalogue(job.uses() for job in jobs)


def state(*jobs: Job, now_ms: float = 0) -> CatalogueState:
    """All of them are complete."""
    made, by_id = catalogue(*jobs), {job.application_id: job for job in jobs}
    return CatalogueState(
        catalogue=made,
        neighbours=Neighbours(made),
        details_of=lambda name: by_id[name].details(),
        now_ms=now_ms,
    )


def queries_of(*jobs: Job) -> LineageQueries:
    """Over a flow store in memory, which has no files because no flows are in it."""
    store = FileStore(Path("no-folder"))
    store_all(store, *jobs)
    return LineageQueries(store, time_budget_s=60)


def store_all(store: Any, *jobs: Job) -> None:
    """Each on a source of its own, so that an application may be stored again with more."""
    for job in jobs:
        store.write_events(event_batch(f"topic/{job.application_id}", messages(*job.events)))

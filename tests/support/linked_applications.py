"""Applications of which one reads what another wrote."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from lineage_service.decode.batches import event_batch
from lineage_service.lineage import Trace
from lineage_service.queries import TraceQuery
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from tests.support.lineage_messages import event, messages


class Applications:
    """Applications that copy text files row by row, each in as many splits as it is told."""

    def __init__(self, folder: Path) -> None:
        self.store = DeltaFlowStore(folder / "flows")
        self.questions = LineageQueries(self.store, time_budget_s=60)
        self._written = 0
        #: Replays by the application that each ran again.
        self.replays: dict[str, str] = {}

    def copy(
        self,
        application_id: str,
        began: int,
        source: Path,
        output: Path,
        starts: tuple[int, ...] = (0,),
        **manifest: Any,
    ) -> None:
        """The file `output` is as the copy left it. A split begins with the first row behind its start."""
        text = source.read_bytes()
        output.write_bytes(text)
        begins = [0, *(text.index(b"\n", start) + 1 for start in starts[1:])]
        counts = [
            text[first:end].count(b"\n") for first, end in zip(begins, [*begins[1:], len(text)], strict=True)
        ]
        outputs = [output.with_name(f"{output.name}-{at}") for at in range(len(starts))]
        for path, first, end in zip(outputs, begins, [*begins[1:], len(text)], strict=True):
            path.write_bytes(text[first:end])

        self._tell(
            application_id,
            began,
            [
                {"split": at, "start": start, "length": end - start, **described(source)}
                for at, (start, end) in enumerate(pairwise([*starts, len(text)]))
            ],
            [{"split": at, "start": 0, "length": None, **described(path)} for at, path in enumerate(outputs)],
            counts,
            manifest,
        )

    def rewrite(self, application_id: str, began: int, path: str) -> None:
        """Three rows of a file that the driver could not see are written to where it stood."""
        told = {"split": 0, "start": 0, "length": None, "path": path, "size": None, "modified": None}
        self._tell(application_id, began, [told], [told], [3], {})

    def end(self, application_id: str) -> None:
        ended = event(contract.APPLICATION_ENDED, application_id=application_id, counters={"runs": 1})
        self._store(ended)

    def read_unfollowed(self, application_id: str, began: int, place: str) -> None:
        """A query of which nothing is known but that it read there."""
        dataset = {"namespace": "file", "name": place, "format": "text"}
        about = {"application_id": application_id, "time": began}
        read = {"node": 0, "name": "Scan", "kind": "source", "dataset": dataset}
        gave = {"node": 1, "name": "count", "kind": "sink"}
        events = [
            event(contract.APPLICATION_STARTED, name=application_id, **about),
            *(
                event(contract.NODE_REGISTERED, **node, relation=contract.CARRIED, exact=False, **about)
                for node in (read, gave)
            ),
            event(contract.LINK, source=0, target=1, port=0, **about),
            event(contract.APPLICATION_ENDED, **about),
        ]
        self._store(*events)

    def write_unseen(self, application_id: str, began: int, place: str, *, is_followed: bool = True) -> None:
        """Three rows of a list go into a folder, and nobody knows into which files."""
        dataset = {"namespace": "file", "name": place, "format": "text"}
        about = {"application_id": application_id, "time": began}
        sink: dict[str, Any] = {"relation": contract.IDENTITY, "exact": True, "reason": "nobody knows"}
        if is_followed:
            dataset = {**dataset, "unknown_files": True}
        else:
            sink.update(relation=contract.CARRIED, exact=False)
        events = [
            event(contract.APPLICATION_STARTED, name=application_id, **about),
            event(
                contract.NODE_REGISTERED,
                node=0,
                name="list",
                kind="source",
                relation=contract.SOURCE,
                exact=True,
                **about,
            ),
            event(
                contract.NODE_REGISTERED, node=1, name="write", kind="sink", dataset=dataset, **sink, **about
            ),
            event(contract.LINK, source=0, target=1, port=0, **about),
            event(
                contract.RUN_COMMITTED,
                run=began,
                split=0,
                input=0,
                nodes=[1],
                inputs=3,
                outputs=3,
                **about,
            ),
            event(contract.APPLICATION_ENDED, counters={"runs": 1}, **about),
        ]
        self._store(*events)

    def _store(self, *events: bytes) -> None:
        self.store.write_events(event_batch("topic/0", messages(*events, first=self._written)))
        self._written += len(events)

    def _tell(
        self,
        application_id: str,
        began: int,
        read: list[dict[str, Any]],
        written: list[dict[str, Any]],
        counts: list[int],
        manifest: dict[str, Any],
    ) -> None:
        def told(event_type: str, **fields: Any) -> bytes:
            return event(event_type, application_id=application_id, time=began, **fields)

        def registered(number: int, kind: str, relation: str, path: str) -> bytes:
            dataset = {"namespace": "file", "name": path, "format": "text"}
            return told(
                contract.NODE_REGISTERED,
                node=number,
                name=kind,
                kind=kind,
                relation=relation,
                exact=True,
                dataset=dataset,
            )

        events = [
            told(contract.APPLICATION_STARTED, name=application_id, **self._replay(application_id)),
            registered(0, "source", contract.SOURCE, str(read[0]["path"])),
            registered(1, "sink", contract.IDENTITY, str(written[0]["path"])),
            told(contract.LINK, source=0, target=1, port=0),
            told(contract.PARTITIONS, node=0, partitions=read),
            told(contract.PARTITIONS, node=1, partitions=written),
        ]
        events += [
            told(
                contract.RUN_COMMITTED,
                run=began + at,
                split=at,
                input=0,
                nodes=[1],
                inputs=count,
                outputs=count,
                **manifest,
            )
            for at, count in enumerate(counts)
        ]
        self._store(*events)

    def _replay(self, application_id: str) -> dict[str, Any]:
        original = self.replays.get(application_id)
        return {} if original is None else {"replay": {"of": original}}

    def trace(self, application_id: str, **query: Any) -> Trace:
        return self.questions.trace(application_id, TraceQuery(**query))


def described(path: Path) -> dict[str, Any]:
    status = path.stat()
    return {"path": str(path), "size": status.st_size, "modified": status.st_mtime_ns // 1_000_000}

"""What is stored of an application whose tasks failed: a file of four lines, mapped and collected."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from lineage_service.decode.batches import event_batch, flow_batch
from lineage_service.lineage import Failures
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from tests.support.file_applications import APP, MAP, SINK, SOURCE, questions_of, splits_of
from tests.support.lineage_messages import event, messages

__all__ = ["ERROR", "QUERY", "SCAN", "StoredFailures", "run_failed"]

#: A query beside it.
SCAN, QUERY = 20, 21
ERROR = {"type": "ValueError", "message": "no number: 'c'", "frame": "/jobs/etl.py:41"}


def run_failed(run: int, attempt: int, **fields: Any) -> bytes:
    told: dict[str, Any] = {
        "time": 10 + attempt,
        "run": run,
        "split": 0,
        "attempt": attempt,
        "stage": 2,
        "action": SINK,
        "input": SOURCE,
        "nodes": [MAP, SINK],
        "inputs": 3,
        "outputs": 2,
        "failed_node": MAP,
        "position": 2,
        "certain": True,
        "error": "ValueError",
        "message": "no number: 'c'",
        "frame": "/jobs/etl.py:41",
    }
    return event(contract.RUN_FAILED, **{**told, **fields})


class StoredFailures:
    """An application that read the lines of a file, and what is stored of it beside that.

    `rows`: so many lines that are compressed well, instead of four that are not compressed.
    """

    def __init__(self, folder: Path, counts: list[int], *starts: int, rows: int = 0) -> None:
        self.path = folder / ("in.txt.gz" if rows else "in.txt")
        text = "".join(f"the row {row}\n" for row in range(rows)) or "a\nb\nc\nd\n"
        self.path.write_bytes(gzip.compress(text.encode()) if rows else text.encode())
        splits = splits_of(self.path, *((0, *starts) if starts else ()))
        self.queries: LineageQueries = questions_of(folder, splits, counts)
        self._store, self._batches = DeltaFlowStore(folder / "flows"), 0

    def add(self, *events: bytes, blocks: tuple[bytes, ...] = ()) -> None:
        self._batches += 1
        if events:
            self._store.write_events(event_batch(f"more/node-{self._batches}", messages(*events)))
        if blocks:
            self._store.write_flows(flow_batch(f"more/flow-{self._batches}", messages(*blocks)))

    @property
    def failures(self) -> Failures:
        return self.queries.failures(APP)

    def register_query(self) -> None:
        dataset = {"namespace": "file", "name": "input", "format": "text"}
        self.add(
            event(contract.NODE_REGISTERED, node=SCAN, name="Scan text", kind="source",
                  relation=contract.SOURCE, exact=True, by_id=True, dataset=dataset),
            event(contract.NODE_REGISTERED, node=QUERY, name="collect", kind="sink", relation=contract.FLOWS,
                  exact=True, by_id=True),
            event(contract.LINK, source=SCAN, target=QUERY),
            event(contract.LINK, source=SCAN, target=QUERY, ids=True),
        )  # fmt: skip

    def add_killed(self, task: str, node: int = SINK) -> None:
        """An action whose task said nothing: `2 in stage 5.0`."""
        error = {"type": "SparkException", "message": f"Job aborted due to stage failure: Task {task} failed"}
        self.add(event(contract.ACTION_ENDED, node=node, state=contract.ACTION_FAILED, time=9, error=error))

    def add_query(self, **fields: Any) -> None:
        """A query whose only task failed: nothing of it was committed."""
        self.register_query()
        status = self.path.stat()
        part = {"path": str(self.path), "start": 0, "length": status.st_size, "first": 0}
        part |= {"size": status.st_size, "modified": status.st_mtime_ns // 1_000_000}
        self.add(
            run_failed(1, 0, action=QUERY, input=SCAN, nodes=[], failed_node=QUERY, parts=[part], **fields),
            event(contract.ACTION_ENDED, node=QUERY, state=contract.ACTION_FAILED, time=30, error=ERROR),
        )  # fmt: skip

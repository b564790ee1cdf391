"""A small real flow store for tests of the API: a program that told all, and one that is not complete.

`sums-of-orders`, the newer one, is examples/own_program.py over the orders below; nothing but its broker is
replaced. Of `half-told` all flows were lost.
"""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from examples import own_program
from lineage_api.access import Access
from lineage_api.app import create_app
from lineage_api.etags import etag_function
from lineage_service.decode.batches import event_batch, flow_batch
from lineage_service.graph_export.trace_writer import Materializer
from lineage_service.monitoring.incomplete_applications import IncompleteWatch
from lineage_service.monitoring.lag import LagWatch
from lineage_service.monitoring.metrics import LagMetrics, new_registry
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.testing.graph import MemoryGraph
from lineage_service.testing.group import MemoryGroup
from lineage_service.tracing.query.service import LineageQueries
from lineage_service.triggering.stored_jobs import StoredJobs
from spark_agent import contract
from spark_agent.emitter.lineage_api import LineageApi
from tests.support.lineage_messages import messages
from tests.support.own_program import Wire, cut_wire

APP, HALF = "sums-of-orders", "half-told"
ORDERS = "shop,state,amount\nNorth,paid,10\nSouth,paid,7\nNorth,open,90\nNorth,paid,5\n"


def build(folder: Path) -> DeltaFlowStore:
    """Writes `orders.csv` and `sums.csv` into the folder, and the store into its `flows`."""
    (folder / "orders.csv").write_text(ORDERS)
    store = DeltaFlowStore(folder / "flows")
    with pytest.MonkeyPatch.context() as patch:
        name = told(store, patch, HALF, lost=contract.FLOW_TOPIC)
        with LineageApi(name, "Half told") as lineage:
            lineage.register(0, "read")
            lineage.register(1, "write")
            lineage.link(0, 1)
            for row in range(3):
                lineage.capture(f"0#{row}", f"read#0#{row}", f"row {row}")
                lineage.capture(f"1#{row}", f"row {row}", f"write#0#{row}")
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()):
        own_program.main(str(folder / "orders.csv"), str(folder / "sums.csv"), told(store, patch, APP))
    return store


def service(store: DeltaFlowStore, access: Access | None = None) -> FastAPI:
    """The API over the store, with twins of Kafka and Neo4j."""
    questions = LineageQueries(store, time_budget_s=60)
    topic = contract.FLOW_TOPIC
    watch = LagWatch(
        MemoryGroup(stamps={(topic, 0): [990_000, 995_000]}, committed={(topic, 0): 1}, members=2),
        IncompleteWatch(lambda: store),
        name="lineage",
        topics=[topic],
        dead_letter_topic=contract.DEAD_LETTER_TOPIC,
        now=lambda: 1_000.0,
    )
    return create_app(
        questions,
        materialize=Materializer(questions, MemoryGraph(), 100),
        read_lag=watch.look,
        jobs=StoredJobs(store),
        metrics=new_registry(LagMetrics(watch)),
        etag_of=etag_function(store, "1"),
        access=access,
    )


class _Stored(Wire):
    """Kafka and the consumer in one: each message is stored as it comes."""

    def __init__(self, store: DeltaFlowStore, application_id: str, lost: str) -> None:
        super().__init__()
        self.lost = lost
        self._store, self._application_id, self._sent = store, application_id, 0

    def send(self, topic: str, partition: int, key: bytes, message: bytes, delivery: Any) -> None:
        if topic == self.lost:
            delivery.fail("lost")
            return
        source, self._sent = f"test/{self._application_id}-{topic}", self._sent + 1
        if topic == contract.NODE_TOPIC:
            self._store.write_events(event_batch(source, messages(message, first=self._sent)))
        else:
            self._store.write_flows(flow_batch(source, messages(message, first=self._sent)))


def told(store: DeltaFlowStore, patch: pytest.MonkeyPatch, application_id: str, lost: str = "") -> str:
    cut_wire(patch, _Stored(store, application_id, lost))
    return application_id

"""What is stored beside flows and texts: traces and lists are the same with and without it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from lineage_service.decode.batches import event_batch, flow_batch
from lineage_service.graph.event_rows import event_rows
from lineage_service.queries import RecordQuery, TraceQuery
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from tests.support.file_applications import MAP, SINK, SOURCE, questions_of, splits_of
from tests.support.lineage_messages import APP, block, event, messages

RUN = 100  # of `questions_of`
LATER = event(contract.ALIVE, time=7, more=[1]).replace(b'"type":"alive"', b'"type":"type_of_later"')
EVENTS = (
    LATER,
    event(contract.ALIVE, time=8),
    event(contract.COLUMNS, time=8, node=SINK, fields={"a": [{"node": SOURCE}]}),
    event(contract.DRIVER, time=8, source=SINK, target=MAP),
    event(contract.BATCH_COMMITTED, time=8, query="q", batch=1, node=SINK),
)


def answers(asked: LineageQueries) -> dict[str, Any]:
    def traced(direction: str, node: int) -> Any:
        query = TraceQuery(direction=direction, node=str(node), partition=0, offset=1)  # type: ignore[arg-type]
        return asdict(asked.trace(APP, query))

    application = asdict(asked.application(APP))
    application["counters"].pop("blocks")
    return {
        "application": application,
        "graph": asdict(asked.graph(APP)),
        "records": [asdict(asked.records(APP, RecordQuery(node=str(node)))) for node in (SOURCE, MAP, SINK)],
        "backward": traced("backward", SINK),
        "forward": traced("forward", SOURCE),
    }


@pytest.fixture
def asked(tmp_path: Path) -> LineageQueries:
    (tmp_path / "in.txt").write_text("a\nb\nc\nd\n")
    return questions_of(tmp_path, splits_of(tmp_path / "in.txt"), [4])


def test_blocks_and_events_that_no_trace_uses_change_no_answer(asked: LineageQueries, tmp_path: Path) -> None:
    before = answers(asked)
    assert before["application"]["complete"]
    assert before["backward"]["nodes"]
    store = DeltaFlowStore(tmp_path / "flows")
    unused = [
        block(RUN, 90 + at, relation, columns, node=node)
        for node in (SOURCE, MAP, SINK)
        for at, (relation, columns) in enumerate(
            [
                (contract.WINNERS, {"out": [0, 1], "in": [3, 3]}),
                (contract.DIGESTS, {"digest": [1, 2]}),
                (contract.GROUPS, {"count": [4]}),
            ],
            start=3 * node,
        )
    ]
    written = store.write_flows(flow_batch("more/flow-0", messages(*unused)))
    assert (written.rows, written.repeated) == (3 * 4, 0)
    assert len(store.receipts(APP)) == len(unused)
    store.write_events(event_batch("more/node-0", messages(*EVENTS)))
    assert {message["type"] for message in store.events(APP)} >= {"type_of_later", "alive", "columns"}
    assert answers(asked) == before


def test_the_graph_takes_nothing_of_events_that_it_does_not_know(
    asked: LineageQueries, tmp_path: Path
) -> None:
    stored = DeltaFlowStore(tmp_path / "flows").events(APP)
    decoded = [row for _, row in event_batch("more/node-0", messages(*EVENTS)).rows]
    assert event_rows([*stored, *(row.event for row in decoded)]) == event_rows(stored)

"""Results of perf.ingest, as a run writes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from perf.ingest import report
from perf.ingest.report import Cost, Measured
from spark_agent import contract


def measured(**given: Any) -> Measured:
    return Measured(
        **{
            "kind": report.WAITING,
            "case": "wordcount",
            "title": "WordCount",
            "megabytes": 500.0,
            "consumers": 1,
            "stores": report.FLOW_STORE,
            "input_bytes": 1_000,
            "messages": 10,
            "topic_bytes": 400,
            "seconds": 20.0,
            "committed_s": 19.0,
            "costs": [Cost(cpu_s=15.0, peak_mib=300.0)],
            "flows": 1_000,
            "rows": 1_100,
            "store_bytes": {"flows": 300, "records": 50, "blocks": 40, "events": 10},
            "files": {"flows": 2, "records": 1, "blocks": 2, "events": 1},
            "commits": 6,
            "load": 1.0,
            **given,
        }
    )


def grown(*seconds: float) -> list[Measured]:
    return [
        measured(kind=report.GROWN, times=10**at, flows=1_000 * 10**at, seconds=each)
        for at, each in enumerate(seconds)
    ]


APP = "app-1"


def events(blocks: int) -> list[dict[str, Any]]:
    committed = {
        "attempt": 0, "stage": 0, "action": 9, "input": 0, "nodes": [1], "dropped": 0, "inputs": 1,
        "outputs": 1,
    }  # fmt: skip
    fields: Sequence[tuple[str, dict[str, Any]]] = [
        (contract.APPLICATION_STARTED, {"name": "small", "detailed": False}),
        (contract.RUN_COMMITTED, {**committed, "run": 1 << 40, "split": 3, "blocks": blocks}),
        (contract.PARTITIONS, {"node": 0, "partitions": []}),
        (contract.APPLICATION_ENDED, {"counters": {"runs": 1, "blocks": blocks, "dropped": 0}}),
    ]
    return [
        json.loads(contract.encode_event(kind, APP, 1, {**given, "event": at}))
        for at, (kind, given) in enumerate(fields)
    ]

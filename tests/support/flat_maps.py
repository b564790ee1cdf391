"""A job that reads a text file and gives some outputs for each of its lines, as a flow store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lineage_service.decode.batches import event_batch, flow_batch
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from tests.support.file_applications import splits_of
from tests.support.lineage_messages import APP, block, event, messages

SOURCE, FLAT_MAP, SINK = 0, 1, 2
RUN = 100
STARTED_MS = 1_732_200_000_000

__all__ = ["APP", "FLAT_MAP", "RUN", "SINK", "SOURCE", "STARTED_MS", "add_flat_map", "store_of"]


def store_of(folder: Path) -> DeltaFlowStore:
    return DeltaFlowStore(folder / "flows")


def add_flat_map(
    folder: Path,
    lines: Sequence[Sequence[str]],
    counts: Sequence[Sequence[int]],
    *,
    application_id: str = APP,
    started_ms: int = STARTED_MS,
    extra: Sequence[bytes] = (),
) -> LineageQueries:
    """`lines` and `counts` by partition. The file is `in.csv` in the folder; `extra` are more events."""
    path = folder / "in.csv"
    path.write_text("".join(f"{line}\n" for partition in lines for line in partition))
    # A partition begins with the first line behind its first byte.
    ends = [sum(len(line) + 1 for part in lines[: at + 1] for line in part) for at in range(len(lines) - 1)]
    starts = [0, *(end - 1 for end in ends)]

    def said(kind: str, /, **fields: Any) -> bytes:
        return event(kind, application_id=application_id, time=started_ms, **fields)

    def node(number: int, name: str, kind: str, relation: str, **fields: Any) -> bytes:
        site = f"/jobs/lines.py:{10 + number}"
        about = {"node": number, "name": name, "kind": kind, "relation": relation, "call_site": site}
        return said(contract.NODE_REGISTERED, exact=True, **about, **fields)

    dataset = {"namespace": "file", "name": str(path), "format": "text"}
    events = [
        said(contract.APPLICATION_STARTED, name="lines"),
        node(SOURCE, "textFile", "source", contract.SOURCE, dataset=dataset),
        node(FLAT_MAP, "flatMap", "operator", contract.FLOWS),
        node(SINK, "collect", "sink", contract.IDENTITY),
        said(contract.LINK, source=SOURCE, target=FLAT_MAP),
        said(contract.LINK, source=FLAT_MAP, target=SINK),
        said(contract.PARTITIONS, node=SOURCE, partitions=splits_of(path, *starts)),
    ]
    blocks = []
    for partition, of_partition in enumerate(counts):
        run = RUN + partition
        about = {"run": run, "split": partition, "action": SINK, "input": SOURCE, "nodes": [FLAT_MAP, SINK]}
        sizes = {"inputs": len(of_partition), "outputs": sum(of_partition), "blocks": 1}
        events.append(said(contract.RUN_COMMITTED, **about, **sizes))
        blocks.append(
            block(
                run,
                0,
                contract.COUNTS,
                {"count": list(of_partition)},
                application_id=application_id,
                node=FLAT_MAP,
                split=partition,
            )
        )
    events += [*extra, said(contract.APPLICATION_ENDED, state="succeeded")]
    store = store_of(folder)
    store.write_events(event_batch(f"{application_id}/node-0", messages(*events)))
    store.write_flows(flow_batch(f"{application_id}/flow-0", messages(*blocks)))
    return LineageQueries(store, time_budget_s=30)

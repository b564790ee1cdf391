"""A job over rows `key,number`: the smallest of each key, those that are kept, and these by key once more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lineage_service.decode.batches import event_batch, flow_batch
from lineage_service.store.flow_store import DeltaFlowStore
from spark_agent import contract
from tests.support.file_applications import splits_of
from tests.support.lineage_messages import block, event, messages

__all__ = ["FIRST", "KEPT", "ROWS", "SECOND", "SINK", "store_keyed"]

ROWS, FIRST, KEPT, SECOND, SINK = range(5)
_RUN = 7


def store_keyed(
    store: DeltaFlowStore,
    path: Path,
    rows: Sequence[str],
    *,
    application_id: str,
    keeps: Callable[[str], bool] = lambda _: True,
    exact: bool = True,
) -> None:
    """What an agent tells of it. `keeps` decides on a key; the filter is an upper bound unless `exact`."""
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{row}\n" for row in rows))
    keys = list(dict.fromkeys(row.split(",")[0] for row in rows))
    number = {row: int(text.split(",")[1]) for row, text in enumerate(rows)}
    codes = [keys.index(row.split(",")[0]) for row in rows]
    winners = [
        min((at for at in number if codes[at] == code), key=lambda at: (number[at], at))
        for code in range(len(keys))
    ]
    kept = [at for at, key in enumerate(keys) if keeps(key)]

    def blocks() -> Sequence[tuple[int, str, Mapping[str, Any]]]:
        return [
            (FIRST, contract.CODES, {"code": codes}),
            (FIRST, contract.WINNERS, {"out": list(range(len(keys))), "in": winners}),
            (FIRST, contract.KEYS, {"text": [("str", key) for key in keys]}),
            *([(KEPT, contract.POSITIONS, {"in": kept})] if exact else []),
            (SECOND, contract.CODES, {"code": list(range(len(kept)))}),
            (SECOND, contract.KEYS, {"text": [("str", keys[at]) for at in kept]}),
        ]

    sent = [
        block(_RUN, seq, relation, columns, node=node, application_id=application_id)
        for seq, (node, relation, columns) in enumerate(blocks())
    ]

    def told(event_type: str, **fields: Any) -> bytes:
        return event(event_type, application_id=application_id, **fields)

    def node(number: int, name: str, kind: str, relation: str, **fields: Any) -> bytes:
        about = {"node": number, "name": name, "kind": kind, "relation": relation, "exact": True}
        about["site"] = {"path": [f"job.py:{number}@4"], "loops": [], "visit": 0}
        return told(contract.NODE_REGISTERED, **{**about, "call_site": f"/jobs/job.py:{number}", **fields})

    dataset = {"namespace": "file", "name": str(path), "format": "text"}
    links = [told(contract.LINK, source=source, target=source + 1) for source in (ROWS, FIRST, KEPT, SECOND)]
    events = [
        told(contract.APPLICATION_STARTED, name=application_id),
        node(ROWS, "textFile", "source", contract.SOURCE, dataset=dataset),
        node(FIRST, "reduceByKey", "operator", contract.FLOWS),
        node(KEPT, "filter", "operator", contract.FLOWS)
        if exact
        else node(KEPT, "filter", "operator", contract.PARTITION, exact=False, reason="unseen"),
        node(SECOND, "reduceByKey", "operator", contract.FLOWS),
        node(SINK, "collect", "sink", contract.IDENTITY),
        *links,
        told(contract.PARTITIONS, node=ROWS, partitions=splits_of(path)),
        told(
            contract.RUN_COMMITTED,
            **{"run": _RUN, "split": 0, "action": SINK, "input": ROWS, "nodes": [FIRST, KEPT, SECOND, SINK]},
            **{"inputs": len(rows), "outputs": len(kept), "blocks": len(sent)},
        ),
        told(contract.APPLICATION_ENDED, time=1 << 41),
    ]
    store.write_events(event_batch(f"{application_id}/node-0", messages(*events)))
    store.write_flows(flow_batch(f"{application_id}/flow-0", messages(*sent)))

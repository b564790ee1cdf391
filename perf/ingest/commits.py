"""What a batch with next to nothing in it costs the flow store: the price of a commit, and its growth."""

from __future__ import annotations

import os
import time
from pathlib import Path

from lineage_service.decode.batches import Message, flow_batch
from lineage_service.store.flow_store import DeltaFlowStore
from perf.ingest.report import CommitCost
from spark_agent import contract
from spark_agent.contract import Block

_SOURCES, _FLOWS = 30, 1_000


def commit_costs(folder: Path, batches: int, every: int) -> list[CommitCost]:
    """One block of a thousand flows a batch, thirty partitions in turn, into a store of its own.

    A batch is two commits: flows and receipts.
    """
    store, costs = DeltaFlowStore(folder), []
    began, cpu = time.perf_counter(), _cpu_s()
    for number in range(batches):
        split = number % _SOURCES
        message = Message(
            topic="flow", partition=split, offset=number // _SOURCES, key=None, value=_block(number, split)
        )
        store.write_flows(flow_batch(f"measured/flow-{split}", [message]))
        if (number + 1) % every == 0:
            now, cpu_now = time.perf_counter(), _cpu_s()
            costs.append(
                CommitCost(
                    batches=number + 1,
                    ms=round(1000 * (now - began) / every, 2),
                    cpu_ms=round(1000 * (cpu_now - cpu) / every, 2),
                )
            )
            began, cpu = time.perf_counter(), _cpu_s()
    return costs


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system


def _block(run: int, split: int) -> bytes:
    return contract.encode_block(
        Block(
            application_id="measured",
            node=1,
            run=run,
            split=split,
            seq=0,
            relation=contract.CODES,
            columns={"code": list(range(_FLOWS))},
        )
    )

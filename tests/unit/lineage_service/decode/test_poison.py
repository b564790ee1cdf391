"""Every kind of poison is refused with its reason, in bounded time and memory."""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import pytest

from lineage_service.decode.batches import MAX_REASON_CHARACTERS, event_batch, flow_batch
from spark_agent import contract
from tests.support.lineage_messages import block, event, messages
from tests.support.poison import BLOCKS, EVENTS

#: For a message of a megabyte. JSON is what takes the most: some fifty times its size, while it is decoded.
MAX_MEMORY = 64 * 2**20
MAX_CPU_SECONDS = 5.0

CASES = [
    *[pytest.param(flow_batch, block(), *case, id=f"block: {name}") for name, case in BLOCKS.items()],
    *[
        pytest.param(event_batch, event(contract.LINK), *case, id=f"event: {name}")
        for name, case in EVENTS.items()
    ],
]


@pytest.mark.parametrize(("make", "good", "poison", "reason"), CASES)
def test_poison_is_refused_and_its_neighbours_are_kept(
    make: Any, good: bytes, poison: bytes, reason: str
) -> None:
    batch = make("source", messages(good, poison, good))
    assert [message.offset for message, _ in batch.rows] == [0, 2]
    [letter] = batch.dead_letters
    assert letter.message.offset == 1
    assert reason in letter.reason
    assert letter.reason.isprintable()
    assert len(letter.reason) <= MAX_REASON_CHARACTERS


@pytest.mark.parametrize(("make", "good", "poison", "reason"), CASES)
def test_poison_costs_little_time_and_memory(make: Any, good: bytes, poison: bytes, reason: str) -> None:
    given = messages(poison)
    tracemalloc.start()
    try:
        started = time.thread_time()
        make("source", given)
        cpu_seconds, peak = time.thread_time() - started, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MAX_MEMORY
    assert cpu_seconds < MAX_CPU_SECONDS

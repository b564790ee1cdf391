"""Every kind of poison through a real Kafka and a real `lineage consume`, between what is good."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from spark_agent import contract
from tests.support.consumers import Bench, bench_of, flows_of, manifest, some_blocks, stored_flows, wait_until
from tests.support.lineage_messages import APP, event
from tests.support.poison import BLOCKS, EVENTS

#: What poison may add to the peak of the memory that good messages take. The largest kinds unpack to 40 MB.
MARGIN_MB = 200


class Peak:
    """The most memory that a process took, looked at every few milliseconds."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = psutil.Process(process.pid)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.megabytes = 0.0

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _look(self) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):  # whoever waits for it says why it died
            while not self._is_over.wait(0.01):
                self.megabytes = max(self.megabytes, self._process.memory_info().rss / 1e6)


@pytest.fixture
def bench(kafka: Any, tmp_path: Path, topic: str) -> Iterator[Bench]:
    yield from bench_of(kafka, tmp_path, topic)


@pytest.fixture
def clean_bench(kafka: Any, tmp_path: Path, topic: str) -> Iterator[Bench]:
    yield from bench_of(kafka, tmp_path / "clean", f"{topic}-clean")


def test_every_kind_of_poison_is_buried_and_all_that_is_good_is_kept(
    bench: Bench, clean_bench: Bench
) -> None:
    blocks, events = list(BLOCKS.values()), list(EVENTS.values())
    peaks = {each: consumed(each, is_poisoned=each is bench) for each in (clean_bench, bench)}
    assert stored_flows(bench.store) == flows_of(1, len(blocks) + 1)
    assert len(bench.store.events(APP)) == len(events) + 2
    letters = bench.dead_letters(len(blocks) + len(events) + 2)
    found = Counter((letter.value() or b"")[:1000] for letter in letters)
    assert found == Counter(value[:1000] for value, _ in [*blocks, *events, (bytes(1000), ""), (b"", "")])
    for letter in letters:
        headers = {name: text.decode() for name, text in letter.headers()}
        assert headers["reason"].isprintable()
        assert {"topic", "partition", "offset", "time"} <= headers.keys()
        assert ("written" in headers) is (headers.get("cut") != "unknown")
    print(f"peak of memory: {peaks[clean_bench]:.0f} MB, with poison {peaks[bench]:.0f} MB")
    assert peaks[bench] < peaks[clean_bench] + MARGIN_MB


def consumed(bench: Bench, *, is_poisoned: bool) -> float:
    """Good messages, with or without poison between them, are consumed; the peak of memory in MB."""
    blocks, events = (
        some_blocks(1, len(BLOCKS) + 1),
        [event(contract.NODE_REGISTERED, node=node) for node in range(len(EVENTS))],
    )
    for good, (bad, _) in zip(blocks, BLOCKS.values(), strict=False):
        bench.send_blocks(good)
        if is_poisoned:
            bench.send_bombs("zstd", bad)
    for good, (bad, _) in zip(events, EVENTS.values(), strict=True):
        bench.send_events(good)
        if is_poisoned:
            bench.send_bombs("zstd", bad, topic=bench.node_topic)
    if is_poisoned:
        bench.send_bombs("zstd", bytes(40_000_000))
        bench.send_bombs("gzip", bytes(40_000_000))
    process = bench.consume()
    with Peak(process) as peak:
        bench.send_blocks(blocks[-1])
        bench.send_events(manifest(1, len(blocks)), event(contract.APPLICATION_ENDED))
        wait_until(lambda: len(bench.store.receipts(APP)) == len(blocks), process)
        wait_until(lambda: len(bench.store.events(APP)) == len(events) + 2, process)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=240)
    assert process.returncode == 0, out
    assert all(line.isprintable() for line in out.splitlines())
    return peak.megabytes

"""Unions of unions that are all kept: what a task had of them is made of what other tasks had."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from lineage_service.tracing.topology import Topology, read_topology
from spark_agent import contract

SPLITS, RECORDS = 3, 10


def events_of(rounds: int) -> list[dict[str, Any]]:
    """Each round adds the lines of a kept RDD to a kept union once more, and saves that."""
    events: list[dict[str, Any]] = []
    numbers, attempts = count(2), count(1)

    def tell(what: str, **fields: Any) -> None:
        at = len(events)
        events.append({"type": what, "application_id": "a", "time": at, "event": at, **fields})

    def node(number: int, kind: str, relation: str, *parents: int) -> int:
        named = {"name": kind, "description": "", "kind": kind, "relation": relation, "exact": True}
        tell(contract.NODE_REGISTERED, node=number, **named)
        for port, parent in enumerate(parents):
            tell(contract.LINK, source=parent, target=number, port=port)
        return number

    def made_of(number: int, parents: list[list[list[int]]]) -> None:
        partitions = [{"split": split, "parents": each} for split, each in enumerate(parents)]
        tell(contract.PARTITIONS, node=number, partitions=partitions)
        tell(contract.PERSISTED, node=number, how=contract.CACHED)

    def run(split: int, reads: int, makes: list[int], size: int, **task: int) -> None:
        told = {
            "split": split,
            "task": split,
            "input": reads,
            "nodes": makes,
            "inputs": size,
            "outputs": size,
        }
        tell(contract.RUN_COMMITTED, run=len(events) + 1, blocks=0, dropped=0, whole=True, **told, **task)

    tell(contract.APPLICATION_STARTED, name="a", detailed=False, master="local[2]")
    kept = node(1, "operator", contract.IDENTITY, node(0, "source", contract.SOURCE))
    tell(contract.PERSISTED, node=kept, how=contract.CACHED)
    before = kept
    for at in range(rounds):
        union = node(next(numbers), "operator", contract.STATIC, before, kept)
        made_of(union, [[[port, split]] for port in (0, 1) for split in range(SPLITS)])
        before = node(next(numbers), "operator", contract.STATIC, union)
        made_of(before, [[[0, split], [0, split + SPLITS]] for split in range(SPLITS)])
        mapped = node(next(numbers), "operator", contract.IDENTITY, before)
        sink = node(next(numbers), "sink", contract.IDENTITY, mapped)
        began = len(events)
        for split in range(SPLITS):
            task = {"attempt": next(attempts), "stage": at, "action": sink, "began": began}
            if at == 0:
                run(split, 0, [kept], RECORDS, **task)
            run(split, before, [mapped, sink], (at + 2) * RECORDS, **task)
    tell(contract.APPLICATION_ENDED, counters={})
    return events


def sources_of(topology: Topology, run: int) -> list[int]:
    """The runs that an input of the run leads to, through what the JVM put together, in order."""
    found: list[tuple[int, list[int]]] = []
    for link in topology.links:
        if link.run == run:
            of_jvm = link.parent_run < 0
            found.append((link.start, sources_of(topology, link.parent_run) if of_jvm else [link.parent_run]))
    return [each for _, runs in sorted(found) for each in runs]


def test_what_each_task_read_is_what_the_first_tasks_have_computed() -> None:
    topology = read_topology("a", events_of(9), ())
    assert not topology.unplaced
    computed = {run.split: run.number for run in topology.runs.values() if run.nodes == (1,)}
    sinks = [number for number, node in topology.nodes.items() if node.kind == "sink"]
    for run in topology.runs.values():
        if run.nodes and run.nodes[-1] in sinks:
            assert sources_of(topology, run.number) == [computed[run.split]] * (run.inputs // RECORDS)


@pytest.mark.timeout(60)
def test_where_too_many_tasks_are_to_be_asked_what_was_read_is_not_known() -> None:
    topology = read_topology("a", events_of(80), ())
    assert topology.unplaced
    assert len(topology.unplaced) < 80 * SPLITS

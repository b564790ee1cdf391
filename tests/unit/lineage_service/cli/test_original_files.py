"""Which inputs of an application are not what it read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lineage_service.cli.original_files import changed_inputs
from lineage_service.decode.batches import event_batch
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from tests.support.file_applications import splits_of
from tests.support.lineage_messages import APP, event, messages


def queries_of(folder: Path, path: Path, states: Sequence[tuple[str, str]]) -> LineageQueries:
    """Of an application with a source or sink of `path` for each state: its kind, and what the file says."""
    told = [event(contract.APPLICATION_STARTED, name="job")]
    for node, (kind, text) in enumerate(states):
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        relation = {"relation": contract.SOURCE} if kind == "source" else {}
        dataset = {"namespace": "file", "name": str(path), "format": "text"}
        fields: dict[str, Any] = {"name": kind, "kind": kind, "exact": True, "dataset": dataset, **relation}
        told.append(event(contract.NODE_REGISTERED, node=node, **fields))
        told.append(event(contract.PARTITIONS, node=node, partitions=splits_of(path)))
    store = DeltaFlowStore(folder / "flows")
    store.write_events(event_batch("group/node-0", messages(*told, event(contract.APPLICATION_ENDED))))
    return LineageQueries(store, time_budget_s=5.0)


@pytest.mark.parametrize(
    "states",
    [
        [("sink", "a\n"), ("source", "a\n")],
        [("sink", "a\n"), ("source", "a\n"), ("source", "a\n")],
        [("sink", "a\n"), ("source", "a\n"), ("sink", "a, b\n"), ("source", "a, b\n")],
    ],
)
def test_what_the_job_wrote_before_it_read_it_has_not_changed(
    tmp_path: Path, states: list[tuple[str, str]]
) -> None:
    path = tmp_path / "between.txt"
    queries = queries_of(tmp_path, path, states)
    path.unlink()
    assert changed_inputs(queries, APP) is None
    path.write_text("another text\n")
    assert changed_inputs(queries, APP) is None


@pytest.mark.parametrize(
    "states",
    [
        [("source", "a\n")],
        [("source", "a\n"), ("sink", "a, b\n")],
        [("source", "a\n"), ("sink", "a, b\n"), ("source", "a, b\n")],
        [("sink", "a\n"), ("source", "a, b\n")],
    ],
)
def test_what_others_wrote_before_it_was_read_has_changed(
    tmp_path: Path, states: list[tuple[str, str]]
) -> None:
    path = tmp_path / "between.txt"
    queries = queries_of(tmp_path, path, states)
    path.unlink()
    assert f"{path} is not what the run read" in (changed_inputs(queries, APP) or "")

"""The flows that a walk carries with it against a second walk between what is listed, and against loops."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineage_service.lineage import Trace
from lineage_service.queries import TraceQuery
from lineage_service.tracing.query.service import LineageQueries
from lineage_service.tracing.walk import local_engine
from tests.support.id_applications import FileStore
from tests.support.lineage_messages import APP
from tests.support.random_runs import applications
from tests.support.run_applications import Place, RunApplication

pytestmark = pytest.mark.thorough


def _place(flow_id: str) -> Place:
    _, node, *_, split, offset = flow_id.split("#")
    return int(node), int(split), int(offset)


def listed(trace: Trace) -> set[Place]:
    return {
        (int(node.node_id.rpartition("#")[2]), record.partition, record.offset)
        for node in trace.nodes
        for record in node.records
    }


def flows(trace: Trace) -> list[tuple[Place, Place]]:
    return [(_place(flow.hash_in), _place(flow.hash_out)) for flow in trace.flows]


def asked(store: FileStore, place: Place, direction: Any, limit: int) -> list[Trace]:
    """All pages."""
    questions = LineageQueries(store, time_budget_s=60)
    node, split, offset = place
    query = {"direction": direction, "node": str(node), "partition": split, "offset": offset, "limit": limit}
    pages = [questions.trace(APP, TraceQuery(**query))]
    while pages[-1].next is not None:
        pages.append(questions.trace(APP, TraceQuery(**query, cursor=pages[-1].next)))
    return pages


@settings(max_examples=150)
@given(st.data())
def test_what_is_carried_is_what_lies_between(data: st.DataObject) -> None:
    application = data.draw(applications())
    ways = application.ways()
    places = sorted(ways)
    if not places:
        return
    direction = data.draw(st.sampled_from(["backward", "forward"]))
    start = data.draw(st.sampled_from(places))
    limit = data.draw(st.sampled_from([1, 2, 5, 100]))
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        store = FileStore(Path(folder), row_group=data.draw(st.integers(1, 20)))
        store.tell(*application.told())
        pages = asked(store, start, direction, limit)
        for page in pages:
            those = listed(page)
            assert len(flows(page)) == len(set(flows(page)))
            assert set(flows(page)) == {
                (source, made) for made in those for source in ways[made] if source in those
            }
        # As much as is drawn may be carried; and nothing is, so that a second walk finds the flows.
        for most in (data.draw(st.integers(0, 8)), -1):
            patched.setattr(local_engine, "MOST", most)
            assert asked(store, start, direction, limit) == pages


@settings(max_examples=40)
@given(applications())
def test_flows_are_carried_unless_several_runs_hold_a_record(application: RunApplication) -> None:
    """Were they never, the test above would compare a second walk with itself."""
    if any(stage.copies or len(stage.actions) + stage.is_read > 1 for stage in application.stages):
        return
    if any(stage.kind == "cache" for stage in application.stages):
        return
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        store = FileStore(Path(folder))
        store.tell(*application.told())
        patched.setattr(local_engine, "flows_between", None)
        for direction in ("backward", "forward"):
            for place in application.ways():
                asked(store, place, direction, 100)

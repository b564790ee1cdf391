"""Row sets of any records of any application against loops over what it was made of."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lineage_service.lineage import RowSet, Trace
from lineage_service.queries import RowSetQuery, StartQuery, TraceQuery
from lineage_service.result_json import json_bytes
from lineage_service.tracing.query.row_sets import ranges_of
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from spark_agent.contract import row_sets
from tests.support.id_applications import FileStore
from tests.support.lineage_messages import APP, event
from tests.support.random_runs import applications
from tests.support.run_applications import Place, RunApplication


def text_of(place: Place) -> str:
    return "row {} {} {}".format(*place)


def written(application: RunApplication, folder: Path) -> list[bytes]:
    """A file for each split of each source, and what an agent tells of them."""
    told = []
    for stage in application.stages:
        if stage.kind != "file":
            continue
        partitions = []
        for split, size in enumerate(stage.sizes):
            path = folder / f"source-{stage.begin}-{split}"
            path.write_text("".join(f"{text_of((stage.begin, split, at))}\n" for at in range(size)))
            length = path.stat().st_size
            partitions.append({"split": split, "path": str(path), "start": 0, "length": length})
        told.append(event(contract.PARTITIONS, node=stage.begin, partitions=partitions))
    return told


def origins(application: RunApplication, places: Iterable[Place]) -> set[Place]:
    """All records that these were made of, and they themselves."""
    made, seen = application.made(), set(places)
    frontier = seen
    while frontier:
        frontier = {before for place in frontier for before in made[place]} - seen
        seen = seen | frontier
    return seen


def nodes_behind(application: RunApplication, nodes: Iterable[int]) -> set[int]:
    parents: dict[int, set[int]] = {}
    for stage in application.stages:
        if stage.kind != "cache":
            parents.setdefault(stage.begin, set()).update(stage.parents)
        before = stage.begin
        for operator in stage.operators:
            parents.setdefault(operator.node, set()).add(before)
            before = operator.node
        for sink in stage.actions:
            parents.setdefault(sink, set()).add(before)
    seen = set(nodes)
    frontier = seen
    while frontier:
        frontier = {parent for node in frontier for parent in parents.get(node, ())} - seen
        seen = seen | frontier
    return seen


def numbers(ranges: Iterable[tuple[int, int]]) -> list[int]:
    return [number for first, count in ranges for number in range(first, first + count)]


def places_of(row_set: RowSet) -> set[Place]:
    return {
        (source.node, split.split, at)
        for source in row_set.sources
        for split in source.splits
        for at in numbers(split.positions)
    }


def listed(trace: Trace) -> set[Place]:
    return {
        (int(node.node_id.rpartition("#")[2]), record.partition, record.offset)
        for node in trace.nodes
        for record in node.records
    }


def start(place: Place) -> StartQuery:
    node, split, offset = place
    return StartQuery(node=str(node), partition=split, offset=offset)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_a_row_set_is_what_its_records_were_made_of(data: st.DataObject) -> None:
    application = data.draw(applications())
    places = sorted(application.ways())
    if not places:
        return
    chosen = data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=4))
    with TemporaryDirectory() as name:
        folder = Path(name)
        store = FileStore(folder)
        events, blocks = application.told()
        store.tell([*events, *written(application, folder)], blocks)
        questions = LineageQueries(store, time_budget_s=60)
        row_set = questions.row_set(APP, RowSetQuery(starts=tuple(map(start, chosen)), limit=100))
        row_sets.decode_row_set(json_bytes(row_set))
        files = {stage.begin for stage in application.stages if stage.kind == "file"}
        behind = nodes_behind(application, (node for node, _, _ in chosen))
        expected = {place for place in origins(application, chosen) if place[0] in files}
        assert row_set.exact
        assert [source.node for source in row_set.sources] == sorted(files)
        assert {source.node for source in row_set.sources if source.whole} == files - behind
        assert places_of(row_set) == expected
        for source in row_set.sources:
            texts = sorted(text_of(place) for place in expected if place[0] == source.node)
            assert sorted(str(row.text) for row in source.listed) == texts
            rows = [
                Path(file.path).read_text().splitlines()[row]
                for file in source.files
                for row in numbers(file.rows)
            ]
            assert sorted(rows) == texts
        assert {(asked.node, asked.record_id.split("#")[-1]) for asked in row_set.asked} == {
            (node, str(offset)) for node, _, offset in chosen
        }


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_a_trace_of_several_starts_is_all_of_their_traces(data: st.DataObject) -> None:
    application = data.draw(applications())
    places = sorted(application.ways())
    if not places:
        return
    chosen = data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=4))
    direction = data.draw(st.sampled_from(["backward", "forward"]))
    with TemporaryDirectory() as folder:
        store = FileStore(Path(folder))
        store.tell(*application.told())
        questions = LineageQueries(store, time_budget_s=60)
        several = questions.trace(APP, TraceQuery(direction=direction, starts=tuple(map(start, chosen))))
        single = [
            questions.trace(
                APP, TraceQuery(direction=direction, node=str(node), partition=split, offset=offset)
            )
            for node, split, offset in chosen
        ]
        assert listed(several) == set().union(*map(listed, single))
        assert several.exact == all(trace.exact for trace in single)
        assert several.complete == all(trace.complete for trace in single)
        flows = {(flow.hash_in, flow.hash_out) for flow in several.flows}
        assert flows >= {(flow.hash_in, flow.hash_out) for trace in single for flow in trace.flows}
        assert {record.record_id for begin in several.starts for record in begin.records} == {
            record.record_id for trace in single for record in trace.start
        }


@given(st.sets(st.integers(0, 60)))
def test_ranges_hold_each_number_once_in_order_and_do_not_touch(chosen: set[int]) -> None:
    ranges = ranges_of(np.array(sorted(chosen), np.int64))
    assert numbers(ranges) == sorted(chosen)
    assert all(count > 0 for _, count in ranges)
    assert all(first + count < following for (first, count), (following, _) in pairwise(ranges))
    assert [list(pair) for pair in ranges] == row_sets.ranges_of(chosen)

"""Explanations of groups of queries of which few rows count, against loops over what is said of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from lineage_service.tracing.columns.application import open_application, stored_files
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.explain.explainer import explain
from lineage_service.tracing.explain.explanation import Explanation
from lineage_service.tracing.walk.result import Position
from spark_agent import contract
from tests.support.id_applications import (
    AGGREGATE,
    GROUPS,
    OUTPUT,
    Id,
    IdApplication,
    Task,
    source_id,
    stored,
    tap,
)
from tests.support.lineage_messages import APP

_SOURCES = {0: {0: 4, 1: 3}, 1: {0: 2}}
_IDS = [
    source_id(node, split, at) for node, of in _SOURCES.items() for split, n in of.items() for at in range(n)
]
_KEYS = (0, 7, (1 << 63) - 1)
_LAST = 1
_GROUPINGS = 2


@dataclass(frozen=True)
class Truth:
    """What explains an id, by what an application says."""

    application: IdApplication

    def rows(self, ids: Sequence[Id]) -> set[Id]:
        explaining: set[Id] = set()
        for node, number in ids:
            if node in _SOURCES:
                explaining.add((node, number))
            else:
                explaining |= self.rows(self.of_group((node - GROUPS) // 10 - 1, number))
        return explaining

    def of_group(self, grouping: int, key: int) -> list[Id]:
        decided = self.application.decided.get(grouping)
        if decided == contract.BY_WINNERS:
            columns = self.application.winners.get(grouping, ())
            named = [(source, ids[key]) for source, ids in columns if key in ids]
            if named:
                return named
        rows = list(self.rows_of_group(grouping, key))
        kept = rows if decided == contract.BY_ALL else rows[:1]
        return [one for row in kept for one in row]

    def rows_of_group(self, grouping: int, key: int) -> Iterator[Sequence[Id]]:
        for _, task in sorted(self.application.taps[grouping].items()):
            codes = {code for of_key, code in task.keys if of_key == key}
            yield from (row for row, code in zip(task.rows, task.codes, strict=True) if code in codes)


@st.composite
def groupings(draw: st.DrawFn, ids: Sequence[Id]) -> dict[int, Task]:
    """Tasks whose rows have one id or two; a task may have a key under two codes."""
    tasks = {}
    for split in draw(st.sets(st.sampled_from([0, 1, 700]), min_size=1)):
        rows = draw(st.lists(st.lists(st.sampled_from(ids), min_size=1, max_size=2), min_size=1, max_size=6))
        codes = [draw(st.integers(0, 2)) for _ in rows]
        tasks[split] = Task(
            rows=rows, codes=codes, keys=[(draw(st.sampled_from(_KEYS)), code) for code in sorted({*codes})]
        )
    return tasks


@st.composite
def applications(draw: st.DrawFn) -> IdApplication:
    ids, taps = _IDS, []
    for at in range(_GROUPINGS):
        taps.append(draw(groupings(ids)))
        ids = [
            (tap(at, GROUPS), key)
            for key in sorted({key for task in taps[-1].values() for key, _ in task.keys})
        ]
    application = IdApplication(sources=_SOURCES, taps=taps, output={0: Task(rows=[[one] for one in ids])})
    decided = {at: draw(st.sampled_from(contract.DECISIONS)) for at in range(_GROUPINGS)}
    winners = {
        at: draw(columns_of_winners(Truth(application), at))
        for at, decision in decided.items()
        if decision == contract.BY_WINNERS
    }
    return replace(application, decided=decided, winners=winners)


@st.composite
def columns_of_winners(draw: st.DrawFn, truth: Truth, grouping: int) -> list[tuple[int, dict[int, int]]]:
    """Of some groups one row, or two, by the nodes of their ids."""
    columns: list[tuple[int, dict[int, int]]] = []
    for _ in range(draw(st.integers(1, 2))):
        by_node: dict[int, dict[int, int]] = {}
        for key in _KEYS:
            rows = list(truth.rows_of_group(grouping, key))
            row = draw(st.sampled_from(rows)) if rows and draw(st.integers(0, 4)) else ()
            for node, number in row:
                by_node.setdefault(node, {})[key] = number
        columns += by_node.items()
    return columns[:5]


def explained(application: IdApplication, row: int) -> tuple[Snapshot, Explanation]:
    with TemporaryDirectory() as folder:
        store = stored(application, Path(folder))
        snapshot = open_application(stored_files(store, APP), APP, store.events(APP)).snapshot
        runs = snapshot.graph.holders_of(OUTPUT, 0, "backward")
        starts = [Position(OUTPUT, 0, row, run.number) for run in runs]
        return snapshot, explain(snapshot, starts, lambda: None)


def ids_of(rows: Mapping[int, Mapping[int, Sequence[int]]]) -> set[Id]:
    return {
        source_id(node, split, int(at))
        for node, by_split in rows.items()
        for split, offsets in by_split.items()
        for at in offsets
    }


@given(applications(), st.data())
def test_an_explanation_has_the_rows_that_are_said_to_count(
    application: IdApplication, data: st.DataObject
) -> None:
    row = data.draw(st.integers(0, len(application.output[0].rows) - 1))
    _, explanation = explained(application, row)
    assert ids_of(explanation.rows) == Truth(application).rows(application.output[0].rows[row])
    in_trace = application.sources_of(application.output[0].rows[row], is_direct=False)
    assert ids_of(explanation.rows) <= in_trace
    assert explanation.is_captured
    assert explanation.reasons == ()
    for rule in explanation.rules:
        assert rule.rule == "winner"
        assert 0 < rule.kept <= rule.of


@given(applications())
def test_what_says_nothing_is_a_bound_with_all_rows(application: IdApplication) -> None:
    silent = replace(application, decided={0: contract.BY_ALL})
    _, explanation = explained(silent, 0)
    assert not explanation.is_captured
    assert any(f"n{tap(_LAST, AGGREGATE)} " in reason for reason in explanation.reasons)
    rows = application.output[0].rows[0]
    assert ids_of(explanation.rows) == application.sources_of(rows, is_direct=False)

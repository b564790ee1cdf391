"""The steps of a replay are the ways to what was asked for, and nothing else; by a job computed in loops."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from lineage_service.lineage import AskedRecord, ReplayStep
from lineage_service.replays.arrival import Arrival
from lineage_service.replays.specification import Plan
from lineage_service.replays.steps import AskedOutput, StepReader
from tests.support.own_words import (
    LINES,
    ORIGINAL,
    REPLAY,
    SINK,
    SOURCE,
    Line,
    Lineages,
    RecordId,
    Run,
    source_of,
)


def asked_output(run: Run, text: str, is_: str | None) -> AskedOutput:
    record = AskedRecord(node=SINK, record_id=run.texts[text][1], path="/out", row=0, text=text, key=None)
    return AskedOutput(record, SINK, is_)


def reader(lineages: Lineages) -> StepReader:
    return StepReader(lineages, ORIGINAL, Arrival(lineages, wait_s=1))  # type: ignore[arg-type]


def plan_of(rows: Iterable[int], count: int, mode: str) -> Plan:
    source = source_of(rows, count)
    if mode == "only":
        return Plan(mode="only", sources=(source,), has_steps=True)
    return Plan(mode="all", sources=(), strategy="watch", watched=(source,), has_steps=True)


def shown(steps: Iterable[ReplayStep]) -> tuple[dict[RecordId, str | None], set[tuple[RecordId, RecordId]]]:
    """The values of all records, and what each is made of."""
    values, pairs = {}, set()
    for step in steps:
        node = int(step.node_id.rpartition("#")[2])
        assert step.total == len(step.records)
        for record in step.records:
            assert record.record_id is not None
            values[node, record.record_id] = record.value
            for name in record.made_of:
                application, parent, record_id = name.split("#", 2)
                assert application == REPLAY
                pairs.add(((node, record.record_id), (int(parent), record_id)))
    return values, pairs


@settings(max_examples=80)
@given(LINES, st.sets(st.integers(0, 24)), st.sampled_from(["only", "all"]))
def test_what_came_out_again_is_shown_with_all_that_it_was_made_of(
    lines: list[Line], more: set[int], mode: str
) -> None:
    lineages = Lineages(lines)
    original = lineages.runs[ORIGINAL]
    for text, record in original.texts.items():
        lineage = {original.rows[r] for r in original.reached([record], forward=False) if r[0] == SOURCE}
        rows = sorted({row for row in more if row < len(lines)} | lineage)
        run = Run([(row, lines[row]) for row in (rows if mode == "only" else range(len(lines)))])
        lineages.runs[REPLAY] = run
        plan = plan_of(rows if mode == "only" else lineage, len(lines), mode)
        is_ = text if text in run.texts else None
        stepped = reader(lineages).steps(plan, REPLAY, [asked_output(original, text, is_)], None)
        if is_ is None:
            # Another count of the same document stands in its place, if there is one.
            [standing] = [out for out in run.texts if out.split(",")[0] == text.split(",")[0]]
            assert stepped.steps is not None
            assert "found by its input rows" in stepped.notes[0]
        else:
            standing = text
            assert stepped.steps is not None
            assert stepped.notes == ()
        way = run.reached([run.texts[standing]], forward=False)
        values, pairs = shown(stepped.steps)
        assert values == {record: run.values[record] for record in way}
        assert pairs == {(record, parent) for record in way for parent in run.parents[record]}
        numbers = [int(step.node_id.rpartition("#")[2]) for step in stepped.steps]
        assert numbers == sorted(numbers)


@settings(max_examples=30)
@given(LINES, st.sets(st.integers(0, 24), min_size=1))
def test_rows_alone_are_followed_to_all_that_they_went_into(lines: list[Line], some: set[int]) -> None:
    lineages = Lineages(lines)
    rows = sorted(row for row in some if row < len(lines)) or [0]
    run = lineages.runs[REPLAY] = Run([(row, lines[row]) for row in rows])
    stepped = reader(lineages).steps(plan_of(rows, len(lines), "only"), REPLAY, [], None)
    assert stepped.steps is not None
    values, _ = shown(stepped.steps)
    assert values == run.values


def test_a_row_that_did_not_come_out_has_no_steps() -> None:
    lineages = Lineages([(0, "a"), (1, "b")])
    original = lineages.runs[ORIGINAL]
    lineages.runs[REPLAY] = Run([(1, (1, "b"))])
    plan = plan_of([1], 2, "only")
    stepped = reader(lineages).steps(plan, REPLAY, [asked_output(original, "0,1", None)], None)
    assert stepped.steps is None
    assert stepped.notes == ("no steps of /out:1: no record of the replay stands for it",)
    assert reader(lineages).steps(plan, None, [], None).steps is None

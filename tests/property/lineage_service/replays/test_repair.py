"""Repair, on the job of which the lineage alone reproduces nothing: words that one document only has."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings

from lineage_service.lineage import AskedRecord
from lineage_service.replays.arrival import Arrival
from lineage_service.replays.repair import RowRepair
from lineage_service.replays.specification import Plan
from spark_agent.contract.row_sets import count_rows, rows_in
from tests.support.own_words import (
    LINES,
    NAMES,
    ORIGINAL,
    REPLAY,
    SINK,
    Line,
    Lineages,
    Run,
    source_of,
)


def replayed(lineages: Lineages, plan: Plan) -> Run:
    [source] = plan.sources
    numbers = [row for split in source["splits"] for row in rows_in(split["positions"])]
    assert numbers == [row for file in source["files"] for row in rows_in(file["rows"])]
    return Run([(number, lineages.lines[number]) for number in numbers])


@settings(max_examples=150)
@given(LINES)
def test_rows_are_added_until_each_output_comes_out_again(lines: list[Line]) -> None:
    lineages = Lineages(lines)
    original = lineages.runs[ORIGINAL]
    repair = RowRepair(lineages, ORIGINAL, lineages, Arrival(lineages, wait_s=1))  # type: ignore[arg-type]
    for text, record in original.texts.items():
        reached = original.reached([record], forward=False)
        plan = Plan(
            mode="only", sources=(source_of((original.rows[r] for r in reached if r[0] == 0), len(lines)),)
        )
        traced, rounds = plan.rows, 1
        asked = AskedRecord(node=SINK, record_id=record[1], path=None, row=None, text=text, key=None)
        while text not in (run := replayed(lineages, plan)).texts:
            lineages.runs[REPLAY] = run
            added = repair.more(plan, REPLAY, [asked])
            assert added.plan is not None, (added.why, text, plan)
            assert added.plan.rows > plan.rows
            plan = added.plan
            rounds += 1
        assert count_rows(plan.sources[0]) <= len(lines)
        # Each wrong word needs one row of another document, and is found in the first further run.
        assert rounds <= 2 + len(NAMES)
        assert plan.rows <= traced + 8 * rounds


@pytest.mark.parametrize("documents", [1_200, pytest.param(3_000, marks=pytest.mark.thorough)])
def test_few_of_many_documents_are_enough_for_words_of_one_alone(documents: int) -> None:
    """Each document is a line, and its common words have to be seen elsewhere, too."""
    chosen = random.Random(9)
    words = [f"w{number}" for number in range(4_000)]
    weights = [1 / (rank + 1) for rank in range(len(words))]
    lines: list[Line] = [
        (document, " ".join(chosen.choices(words, weights, k=25))) for document in range(documents)
    ]
    lineages = Lineages(lines)
    original = lineages.runs[ORIGINAL]
    text = max((text for text in original.texts), key=lambda text: int(text.partition(",")[2]))
    record = original.texts[text]
    repair = RowRepair(lineages, ORIGINAL, lineages, Arrival(lineages, wait_s=1))  # type: ignore[arg-type]
    rows = {original.rows[r] for r in original.reached([record], forward=False) if r[0] == 0}
    plan = Plan(mode="only", sources=(source_of(rows, len(lines)),))
    asked = AskedRecord(node=SINK, record_id=record[1], path=None, row=None, text=text, key=None)
    runs = 1
    while text not in (run := replayed(lineages, plan)).texts:
        lineages.runs[REPLAY] = run
        added = repair.more(plan, REPLAY, [asked])
        assert added.plan is not None, added.why
        plan = added.plan
        runs += 1
    assert runs <= 3
    assert plan.rows <= len(lines) // 100


@settings(max_examples=60)
@given(LINES)
def test_a_replay_with_the_same_groups_gets_no_rows(lines: list[Line]) -> None:
    lineages = Lineages(lines)
    lineages.runs[REPLAY] = Run(list(enumerate(lines)))
    plan = Plan(mode="only", sources=(source_of(range(len(lines)), len(lines)),))
    asked = [
        AskedRecord(node=SINK, record_id=record[1], path=None, row=None, text=text, key=None)
        for text, record in lineages.runs[ORIGINAL].texts.items()
    ]
    added = RowRepair(lineages, ORIGINAL, lineages, Arrival(lineages, wait_s=1)).more(plan, REPLAY, asked)  # type: ignore[arg-type]
    assert added.plan is None
    assert added.why == "both runs went the same way, so no rows are known that lack"


@settings(max_examples=60)
@given(LINES)
def test_records_that_lack_though_their_rows_are_there_are_said_to(lines: list[Line]) -> None:
    """As where a program compares them with what it has computed of all rows."""
    lineages = Lineages(lines)
    lineages.runs[REPLAY] = Run([(0, (lines[0][0], "")), *list(enumerate(lines))[1:]])
    plan = Plan(mode="only", sources=(source_of(range(len(lines)), len(lines)),))
    original = lineages.runs[ORIGINAL]
    [first] = [record for record, number in original.rows.items() if number == 0]
    asked = [
        AskedRecord(node=SINK, record_id=record[1], path=None, row=None, text=text, key=None)
        for text, record in original.texts.items()
        if first in original.reached([record], forward=False)
    ]
    if not asked:
        return
    added = RowRepair(lineages, ORIGINAL, lineages, Arrival(lineages, wait_s=1)).more(plan, REPLAY, asked)  # type: ignore[arg-type]
    assert added.plan is None
    assert added.why.startswith("records lack at "), added.why

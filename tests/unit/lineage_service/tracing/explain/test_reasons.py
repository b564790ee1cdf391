"""Why an explanation lists more than it might, in its own words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lineage_service.tracing.columns.application import open_application, stored_files
from lineage_service.tracing.explain.explainer import explain
from lineage_service.tracing.explain.explanation import Explanation
from lineage_service.tracing.walk.result import Position
from tests.support.id_applications import FileStore
from tests.support.label_propagation import Label, Propagation, told_propagation
from tests.support.lineage_messages import APP
from tests.support.run_applications import Operator, RunApplication, Stage

PATH = [(0, 1), (1, 2), (0, 2)]


def explained(told: Propagation, label: Label, folder: Path) -> Explanation:
    store = FileStore(folder)
    store.tell(*told.application.runs.told())
    snapshot = open_application(stored_files(store, APP), APP, store.events(APP)).snapshot
    node, split, at = told.labels[-1][label]
    runs = snapshot.graph.holders_of(node, split, "backward")
    return explain(snapshot, [Position(node, split, at, run.number) for run in runs], lambda: None)


def reasons(told: Propagation, folder: Path) -> tuple[str, ...]:
    return explained(told, (2, 0), folder).reasons


def with_operators(told: Propagation, stages: list[Stage]) -> Propagation:
    return replace(told, application=replace(told.application, runs=RunApplication(stages)))


def test_all_is_said_where_all_was_captured(tmp_path: Path) -> None:
    explanation = explained(told_propagation(range(3), PATH, 3), (2, 0), tmp_path)
    assert explanation.exact
    assert not [reason for reason in explanation.reasons if "says nothing" not in reason]  # X0 has no site


def test_without_digests_it_is_not_known_what_stayed(tmp_path: Path) -> None:
    told = told_propagation(range(3), PATH, 3, has_digests=False)
    [reason] = [reason for reason in reasons(told, tmp_path) if "stayed as they were" in reason]
    assert "the loop at job.py:1 " in reason


def test_a_task_that_said_nothing_of_its_choices_is_named(tmp_path: Path) -> None:
    told = told_propagation(range(4), PATH, 3)
    stages = list(told.application.runs.stages)
    merge, passed_on = stages[-1].operators
    spilled = replace(merge, winners=[{}, *merge.winners[1:]])  # where node 2 is
    of_spilled = with_operators(told, [*stages[:-1], replace(stages[-1], operators=[spilled, passed_on])])
    [reason] = [reason for reason in reasons(of_spilled, tmp_path) if reason.startswith("A task of ")]
    assert f"{merge.node} (n{merge.node}" in reason


def test_of_a_merge_that_never_chooses_nothing_is_missing(tmp_path: Path) -> None:
    told = told_propagation(range(4), PATH, 3)
    stages = list(told.application.runs.stages)
    merge, passed_on = stages[-1].operators
    added = replace(merge, winners=[])
    of_sums = with_operators(told, [*stages[:-1], replace(stages[-1], operators=[added, passed_on])])
    assert not [reason for reason in reasons(of_sums, tmp_path) if reason.startswith("A task of ")]


def test_a_loop_that_changes_all_in_each_turn_says_so_where_no_rule_helps(tmp_path: Path) -> None:
    """Not of labels, most of which stay, nor where it is not known what stayed."""
    labels = told_propagation(range(4), PATH, 3)
    ranks = [
        replace(stage, operators=[_changing(operator, number) for operator in stage.operators])
        for number, stage in enumerate(labels.application.runs.stages)
    ]
    unknown = told_propagation(range(4), PATH, 3, has_digests=False)
    said = []
    for told in (with_operators(labels, ranks), labels, unknown):
        (folder := tmp_path / str(len(said))).mkdir()
        said.append([reason for reason in reasons(told, folder) if "no turn could" in reason])
    assert said == [
        ["Each turn of the loop at job.py:1 changed the records on the way, so no turn could be left out."],
        [],
        [],
    ]


def _changing(operator: Operator, number: int) -> Operator:
    """It sums, and its records are never those of another one."""
    digests = [{at: 1_000 * number + at for at in of_split} for of_split in operator.digests]
    return replace(operator, winners=[], digests=digests)


def test_an_application_without_any_of_it_is_a_plain_trace(tmp_path: Path) -> None:
    told = told_propagation(range(3), PATH, 1, has_digests=False)
    stages = [
        replace(
            stage,
            site="",
            operators=[replace(operator, site="", winners=[]) for operator in stage.operators],
        )
        for stage in told.application.runs.stages
    ]
    explanation = explained(with_operators(told, stages), (2, 0), tmp_path)
    assert not explanation.is_captured
    [reason] = explanation.reasons
    assert reason.startswith("Nothing was captured")
    assert explanation.total == 5  # node 2, those that an edge leads from to it, and these edges

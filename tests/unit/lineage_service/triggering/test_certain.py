from __future__ import annotations

from dataclasses import replace

import pytest

from lineage_service.triggering.certain.answers import certain_answer, refusal
from lineage_service.triggering.certain.evidence import Evidence, command_hash
from lineage_service.triggering.certain.given_inputs import GivenInput, WrittenOutput
from lineage_service.triggering.certain.source_code import Unsteady
from lineage_service.triggering.waves.question import Question
from tests.support.triggering import (
    BEGAN,
    ENDED,
    INPUTS,
    NOW,
    OUTPUTS,
    WRITTEN,
    execution,
    look,
    others,
    seen,
    unchanged,
    wave,
    with_look,
)

NO_FILE = GivenInput(node=1, name="jdbc orders", is_file=False, why="is no file")
OWN_CODE = Question(job="nightly", code="v2")
COMMAND = Question(job="nightly", command=("python", "job.py"))
DAY = "/in/2026-11-18"
TWICE = (execution(), execution(application_id="app-0"))


def asked(evidence: Evidence, question: Question) -> Evidence:
    return replace(evidence, question=question)


def test_what_has_not_changed_is_skipped() -> None:
    answer = certain_answer(unchanged())
    assert (answer.decision, answer.reason) == ("skip", "unchanged")
    assert "2 files of /in" in answer.why


@pytest.mark.parametrize(
    ("reason", "evidence"),
    [
        ("never_ran", unchanged(executions=())),
        ("clock", unchanged(now_ms=BEGAN - 60_000)),
        ("clock", unchanged(waves=(wave(time=NOW + 60_000),))),
        ("code", unchanged(code="sha256:2")),
        ("code", unchanged(code=None)),
        ("code", unchanged(executions=(execution(code=None, code_files=()),))),
        ("code", asked(unchanged(), OWN_CODE)),
        ("code", asked(unchanged(waves=(wave(code="v1"),)), OWN_CODE)),
        ("code", asked(unchanged(waves=(wave(code="v2", decision="skip"),)), OWN_CODE)),
        ("code", asked(unchanged(), COMMAND)),
        ("code", asked(unchanged(waves=(wave(command=command_hash(["python", "other.py"])),)), COMMAND)),
        ("failed", unchanged(executions=(execution(state="failed"),))),
        ("failed", unchanged(executions=(execution(state="lost", ended=None),))),
        ("running", unchanged(executions=(execution(state="running", ended=None),))),
        ("unsteady", unchanged(unsteady=Unsteady("/jobs/job.py", 3, "time.time"))),
        ("unsteady", unchanged(unsteady="its code cannot be read here")),
        ("no_file", unchanged(inputs=(*unchanged().inputs, NO_FILE))),
        ("unknown_input", unchanged(inputs=(GivenInput(node=0, name="Scan csv", why="has several paths"),))),
        ("unknown_input", with_look(unchanged(), "/in has more than 100,000 files")),
        ("no_input", unchanged(inputs=())),
        ("other_input", unchanged(inputs=others([DAY]), looks={DAY: look(DAY, {})})),
        ("other_input", unchanged(executions=TWICE, earlier_inputs=others(["/elsewhere"]))),
        ("too_old", asked(unchanged(), Question(job="nightly", at_least_every_s=3_600))),
        ("unknown_output", unchanged(outputs=())),
        ("unknown_output", unchanged(outputs=(WrittenOutput(node=2, name="foreach", path=None, why="x"),))),
        ("output_changed", with_look(unchanged(), look("/out", {}), "/out")),
        ("output_changed", with_look(unchanged(), look("/out", {"/out/x": (5, ENDED)}), "/out")),
        ("output_changed", with_look(unchanged(), look("/out", {"/out/part-00000": (6, ENDED)}), "/out")),
        ("output_changed", with_look(unchanged(), look("/out", {**OUTPUTS, "/out/b": (1, NOW)}), "/out")),
        ("written", with_look(unchanged(), look("/in", {**INPUTS, "/in/c": (1, NOW - 500)}))),
        ("changed", with_look(unchanged(), look("/in", {**INPUTS, "/in/c": (1, BEGAN + 1)}))),
    ],
)
def test_doubt_means_run(reason: str, evidence: Evidence) -> None:
    answer = certain_answer(evidence)
    assert (answer.decision, answer.reason) == ("run", reason), answer.why


def test_an_incomplete_execution_is_run_again() -> None:
    last = execution()
    incomplete = replace(last, completeness=replace(last.completeness, gaps=("a stream",)))
    answer = certain_answer(unchanged(executions=(incomplete,)))
    assert answer.reason == "incomplete"
    assert "a stream" in answer.why


@pytest.mark.parametrize(
    "files",
    [
        {"/in/a": (10, WRITTEN)},
        {**INPUTS, "/in/c": (1, WRITTEN)},
        {**INPUTS, "/in/a": (11, WRITTEN)},
        {**INPUTS, "/in/a": (10, WRITTEN - 1)},
        {},
    ],
    ids=["gone", "new", "larger", "older", "empty"],
)
@pytest.mark.parametrize("waves", [(), (wave(),)], ids=["by events", "by an earlier look"])
def test_any_other_files_are_a_change(files: dict[str, tuple[int, int]], waves: tuple[object, ...]) -> None:
    answer = certain_answer(with_look(unchanged(waves=waves), look("/in", files)))
    assert (answer.decision, answer.reason, answer.is_final) == ("run", "changed", False)


def test_a_file_that_was_not_read_is_no_change_where_it_was_seen_before() -> None:
    """As one in a folder of partitions that a filter left out."""
    pruned = replace(unchanged().inputs[0], files={"/in/a": INPUTS["/in/a"]})
    assert certain_answer(unchanged(inputs=(pruned,))).reason == "changed"
    assert certain_answer(unchanged(inputs=(pruned,), waves=(wave(),))).decision == "skip"


def test_a_look_that_was_not_settled_proves_nothing() -> None:
    restless = wave(inputs={"/in": seen(INPUTS, is_settled=False)})
    unread = replace(unchanged().inputs[0], files={})
    assert certain_answer(unchanged(inputs=(unread,), waves=(restless,))).reason == "changed"


def test_a_look_after_the_execution_began_proves_nothing() -> None:
    late = wave("late", BEGAN + 1)
    unread = replace(unchanged().inputs[0], files={})
    assert certain_answer(unchanged(inputs=(unread,), waves=(late,))).reason == "changed"


def test_the_wave_that_an_execution_names_is_the_one_that_it_followed() -> None:
    """Whatever the clocks of two machines say."""
    own = wave("w1", BEGAN + 1_000)
    unread = replace(unchanged().inputs[0], files={})
    evidence = unchanged(inputs=(unread,), waves=(own,), executions=(execution(wave="w1"),))
    assert certain_answer(evidence).decision == "skip"


def test_a_delta_table_is_known_by_its_version() -> None:
    table = look("/in", {"5.json": (100, WRITTEN)}, version=5)
    read = replace(unchanged().inputs[0], files={"/in/part-1.parquet": (1, WRITTEN)})
    assert certain_answer(with_look(unchanged(inputs=(read,)), table)).decision == "skip"
    newer = look("/in", {"6.json": (100, BEGAN + 1)}, version=6)
    assert certain_answer(with_look(unchanged(inputs=(read,)), newer)).reason == "changed"


def test_a_version_of_the_code_stands_for_its_files() -> None:
    evidence = unchanged(code=None, waves=(wave(code="v2"),))
    assert certain_answer(asked(evidence, OWN_CODE)).decision == "skip"


def test_a_command_that_is_the_same_may_be_skipped() -> None:
    evidence = unchanged(waves=(wave(command=command_hash(COMMAND.command)),))
    assert certain_answer(asked(evidence, COMMAND)).decision == "skip"


def output(path: str, **changes: object) -> tuple[WrittenOutput, ...]:
    return (WrittenOutput(node=2, name=path, path=path, **changes),)  # type: ignore[arg-type] # some of its fields


TABLE_THAT_GROWS = look("/out", OUTPUTS, version=3, commit="WRITE Append", replaces=False)


def test_a_table_is_replaced_if_its_last_commit_says_so() -> None:
    table = replace(TABLE_THAT_GROWS, commit="WRITE Overwrite", replaces=True)
    assert certain_answer(with_look(unchanged(), table, "/out")).decision == "skip"
    for commit in ("OPTIMIZE", ""):
        unknown = with_look(unchanged(), replace(table, commit=commit, replaces=None), "/out")
        assert refusal(unknown) is None
        assert certain_answer(unknown)[:2] == ("run", "unknown_output")
        fine = asked(unknown, Question(job="nightly", missing_is_fine=True))
        assert certain_answer(fine).decision == "skip"


@pytest.mark.parametrize(
    ("evidence", "word"),
    [
        (unchanged(outputs=output("/out", appends=True)), "appends"),
        (unchanged(outputs=output("/out", replaces_part=True)), "changes a part of /out"),
        (unchanged(outputs=output("/out/dt=2026-11-18")), "each day"),
        (
            unchanged(executions=TWICE, outputs=output("/out/2"), earlier_outputs=output("/out/1")),
            "the time before",
        ),
        (with_look(unchanged(), look("/out", {**OUTPUTS, "/out/x": (1, WRITTEN)}), "/out"), "/out/x"),
        (with_look(unchanged(), TABLE_THAT_GROWS, "/out"), "is WRITE Append"),
    ],
)
def test_a_job_whose_skipped_waves_would_be_missing_is_refused(evidence: Evidence, word: str) -> None:
    sentence = refusal(evidence)
    assert sentence is not None
    assert word in sentence
    assert refusal(asked(evidence, Question(job="nightly", missing_is_fine=True))) is None


def test_two_jobs_of_one_name_are_refused() -> None:
    other = execution(application_id="app-0", code_files=("/jobs/other.py",))
    evidence = unchanged(
        executions=(execution(), other), earlier_inputs=others(["/in"]), earlier_outputs=output("/other")
    )
    for question in (evidence.question, Question(job="nightly", missing_is_fine=True)):
        sentence = refusal(asked(evidence, question))
        assert sentence is not None
        assert "spark.lineage.job" in sentence


def test_a_job_that_replaces_its_output_is_not_refused() -> None:
    assert refusal(unchanged()) is None
    assert refusal(unchanged(executions=())) is None
    assert refusal(unchanged(earlier_outputs=(), earlier_inputs=())) is None


def test_a_job_that_was_changed_to_write_elsewhere_is_not_refused() -> None:
    """Else it would be refused until somebody runs it by hand."""
    before = execution(application_id="app-0", code="sha256:0")
    evidence = unchanged(
        executions=(execution(), before), earlier_outputs=output("/old"), earlier_inputs=others(["/old-in"])
    )
    assert refusal(evidence) is None
    assert certain_answer(evidence).decision == "skip"

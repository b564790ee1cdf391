"""Who behaves oddly, from what is stored: the evidence, the ranks, and what is said of their limits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lineage_service.errors import InvalidQueryError, NotFoundError
from lineage_service.lineage import Suspects
from lineage_service.queries import StartQuery, SuspectsQuery
from tests.support.flat_maps import APP, FLAT_MAP, SINK, SOURCE, STARTED_MS, add_flat_map
from tests.support.newt_suspects import Fault, NewtJob, join_node, map_node

FAULTS = (Fault(2, 77, 10), Fault(1, 1234, 10))


def lines(partitions: int, size: int) -> list[list[str]]:
    return [[f"{partition},{at}" for at in range(size)] for partition in range(partitions)]


def with_counts(folder: Path, counts: list[list[int]]) -> Suspects:
    queries = add_flat_map(folder, lines(len(counts), len(counts[0])), counts)
    return queries.suspects(APP, SuspectsQuery())


def test_an_input_that_gave_far_more_than_others_is_named_with_its_row(tmp_path: Path) -> None:
    counts = [[1 + at % 3 for at in range(40)] for _ in range(8)]
    counts[3][17] = 57
    suspects = with_counts(tmp_path, counts)
    first = suspects.suspects[0]
    assert first.why == (
        "flatMap lines.py:11, partition 3: input 0#read#3#17 (in.csv:138) gave 57 outputs; "
        "the other 319 gave 1 to 3"
    )
    assert (first.rank, first.unusual, first.feature) == (1, True, "outputs")
    assert (first.value, first.low, first.high, first.others) == (57, 1, 3, 319)
    assert first.node_id == f"{APP}#{FLAT_MAP}"
    assert first.record is not None
    assert (first.record.node_id, first.record.record_id) == (f"{APP}#{SOURCE}", "read#3#17")
    assert [(row.row, row.text) for row in first.sources] == [(137, "3,17")]
    assert first.leads_to_bad is None
    assert suspects.complete
    assert not any(other.unusual for other in suspects.suspects[1:])


def test_the_only_input_that_gave_nothing_is_named(tmp_path: Path) -> None:
    counts = [[4] * 40 for _ in range(8)]
    counts[5][39] = 0
    first = with_counts(tmp_path, counts).suspects[0]
    assert (first.why.split(": ")[1], first.unusual) == (
        "input 0#read#5#39 (in.csv:240) gave 0 outputs; the other 319 gave 4",
        True,
    )


def test_a_task_that_drops_more_than_others_is_named_by_its_share(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    counts = [(random.random(500) < 0.9).astype(int).tolist() for _ in range(12)]
    counts[7] = (random.random(500) < 0.2).astype(int).tolist()
    first = with_counts(tmp_path, counts).suspects[0]
    assert (first.partition, first.feature, first.unusual, first.record) == (7, "dropped", True, None)
    assert "of the inputs gave no output; the other 11 partitions" in first.why


def test_equal_tasks_have_no_suspect(tmp_path: Path) -> None:
    suspects = with_counts(tmp_path, [[2] * 30 for _ in range(6)])
    assert (suspects.suspects, suspects.total) == ((), 0)


def test_equal_scores_share_a_rank(tmp_path: Path) -> None:
    counts = [[1] * 40 for _ in range(9)]
    counts[2][0] = counts[6][9] = 5
    first, second = with_counts(tmp_path, counts).suspects[:2]
    assert (first.rank, second.rank, first.score) == (1, 1, second.score)
    assert (first.partition, second.partition) == (2, 6)


def test_an_operation_that_keeps_another_share_than_in_earlier_runs_has_drifted(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    for run in range(8):
        kept = 0.9 if run == 7 else 0.1
        counts = [(random.random(300) < kept).astype(int).tolist() for _ in range(2)]
        started = STARTED_MS + 1000 * run
        queries = add_flat_map(tmp_path, lines(2, 300), counts, application_id=f"r{run}", started_ms=started)
    suspects = queries.suspects("r7", SuspectsQuery())
    drifted = [suspect for suspect in suspects.suspects if suspect.feature == "drift"]
    assert suspects.earlier == 7
    assert [(one.node_id, one.partition, one.unusual) for one in drifted] == [(f"r7#{FLAT_MAP}", None, True)]
    assert "outputs per input; in the 7 runs before" in drifted[0].why
    assert queries.suspects("r2", SuspectsQuery()).earlier == 2


@pytest.mark.parametrize(("selectivity", "magnitude"), [("constant", 5), ("binomial", 20)])
def test_faulty_maps_of_newts_job_come_first(tmp_path: Path, selectivity: str, magnitude: int) -> None:
    faults = (Fault(2, 77, magnitude), Fault(1, 1234, magnitude))
    job = NewtJob(tmp_path, 5, selectivity, faults)  # type: ignore[arg-type]
    suspects = job.queries.suspects("newt", SuspectsQuery(limit=5))
    named = {(suspect.node_id, suspect.partition) for suspect in suspects.suspects}
    assert {job.faulty_task(fault) for fault in faults} <= named
    people = {suspect.sources_total for suspect in suspects.suspects if suspect.record is not None}
    assert people == {1}


def test_with_bad_and_good_outputs_only_their_lineages_count(tmp_path: Path) -> None:
    job = NewtJob(tmp_path, 6, "binomial", FAULTS)
    bad = StartQuery(record=job.outputs_of(77)[0])
    good = [StartQuery(record=job.outputs_of(person)[0]) for person in (1, 2, 5, 8, 9, 13)]
    suspects = job.queries.suspects("newt", SuspectsQuery(bad=(bad,), good=tuple(good)))
    named = {(suspect.node_id, suspect.partition): suspect for suspect in suspects.suspects[:3]}
    assert named[job.faulty_task(FAULTS[0])].leads_to_bad
    assert (suspects.bad, suspects.good) == (1, 6)
    assert all(suspect.leads_to_bad for suspect in suspects.suspects)


def test_with_a_bad_output_alone_its_tasks_are_compared_with_all(tmp_path: Path) -> None:
    job = NewtJob(tmp_path, 6, "constant", FAULTS)
    bad = StartQuery(record=job.outputs_of(77)[0])
    suspects = job.queries.suspects("newt", SuspectsQuery(bad=(bad,)))
    named = {(suspect.node_id, suspect.partition): suspect.leads_to_bad for suspect in suspects.suspects}
    assert named[job.faulty_task(FAULTS[0])]
    other = job.faulty_task(FAULTS[1])
    assert not named.get(other)


def test_newts_rule_scores_0_to_2(tmp_path: Path) -> None:
    job = NewtJob(tmp_path, 7, "constant", FAULTS)
    suspects = job.queries.suspects("newt", SuspectsQuery(method="newt"))
    assert suspects.threshold is None
    scores = {(suspect.node_id, suspect.partition): suspect.score for suspect in suspects.suspects}
    assert set(scores.values()) <= {1, 2}
    assert all(scores[job.faulty_task(fault)] for fault in FAULTS)
    assert not any(suspect.unusual for suspect in suspects.suspects)


def test_newts_rule_among_lineages_counts_the_inputs_there(tmp_path: Path) -> None:
    job = NewtJob(tmp_path, 7, "constant", FAULTS)
    outputs = [StartQuery(record=job.outputs_of(person)[0]) for person in (77, *range(12))]
    query = SuspectsQuery(method="newt", bad=tuple(outputs[:1]), good=tuple(outputs[1:]))
    suspects = job.queries.suspects("newt", query)
    nodes = {suspect.node_id for suspect in suspects.suspects}
    assert nodes <= {f"newt#{map_node(source)}" for source in range(4)} | {
        f"newt#{join_node(join)}" for join in range(3)
    }


def test_the_answer_says_what_it_cannot_say(tmp_path: Path) -> None:
    suspects = with_counts(tmp_path, [[1, 2, 3]] * 3)
    assert "1 in 20" in suspects.how[0]
    assert "give far more than most" in suspects.how[1]


@pytest.mark.parametrize(
    ("query", "error", "words"),
    [
        (SuspectsQuery(good=(StartQuery(record="write#0#0"),)), InvalidQueryError, "name a bad one"),
        (SuspectsQuery(bad=(StartQuery(record=f"{SINK}#write#9#0"),)), NotFoundError, "partition 9"),
        (SuspectsQuery(bad=(StartQuery(failure=1),)), InvalidQueryError, "a failure is no output"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    tmp_path: Path, query: SuspectsQuery, error: type[Exception], words: str
) -> None:
    queries = add_flat_map(tmp_path, lines(2, 3), [[1, 1, 1]] * 2)
    with pytest.raises(error, match=words):
        queries.suspects(APP, query)


def test_an_answer_is_the_same_twice(tmp_path: Path) -> None:
    job = NewtJob(tmp_path, 8, "binomial", FAULTS)
    assert job.queries.suspects("newt", SuspectsQuery()) == job.queries.suspects("newt", SuspectsQuery())

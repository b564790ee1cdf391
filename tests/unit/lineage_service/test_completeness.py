from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lineage_service.completeness import Receipt, completeness, lost_rows
from spark_agent import contract
from spark_agent.contract.event_checks import decode_event
from tests.support.lineage_messages import event


def decoded(event_type: str, **fields: Any) -> dict[str, Any]:
    return decode_event(event(event_type, **fields))


STARTED = decoded(contract.APPLICATION_STARTED)


def committed(run: int, blocks: int, dropped: int = 0) -> dict[str, Any]:
    return decoded(contract.RUN_COMMITTED, run=run, blocks=blocks, dropped=dropped, split=4)


def ended(**counters: Any) -> dict[str, Any]:
    return decoded(contract.APPLICATION_ENDED, counters=counters)


def test_all_blocks_of_all_runs_and_the_end_make_it_complete() -> None:
    found = completeness([STARTED, committed(7, 2), ended(runs=1)], [(7, 0), (7, 1)])
    assert found.is_complete
    assert found.missing_blocks == 0
    assert found.describe() == ""


def test_a_missing_block_is_counted_and_named() -> None:
    found = completeness([STARTED, committed(7, 3), committed(8, 1), ended()], [(7, 0), (7, 2), (8, 0)])
    assert not found.is_complete
    assert found.missing_blocks == 1
    assert [(run.run, run.missing) for run in found.runs] == [(7, 1), (8, 0)]
    assert (
        found.describe()
        == "missing blocks: 1, of 1 of 2 task runs (task run 7 of partition 4: 2 of 3 are stored)"
    )


def test_a_block_that_is_stored_twice_counts_once() -> None:
    assert completeness([committed(7, 2), ended()], [(7, 0), (7, 0)]).missing_blocks == 1


def test_a_manifest_that_came_twice_counts_once() -> None:
    assert completeness([committed(7, 1), committed(7, 1), ended(runs=1)], [(7, 0)]).is_complete


def test_two_executions_under_one_id_are_not_told_apart_and_say_so() -> None:
    again = decoded(contract.APPLICATION_STARTED, time=9)
    found = completeness([STARTED, STARTED, again, committed(7, 1), ended(runs=1)], [(7, 0)])
    assert not found.is_complete
    assert found.describe() == ("2 executions have this id, and their records are mixed: give each its own")
    assert completeness([STARTED, STARTED, ended()], []).is_complete


def test_blocks_of_runs_that_were_not_accepted_do_not_count() -> None:
    found = completeness([committed(7, 1), ended()], [(7, 0), (99, 0), (99, 1)])
    assert found.is_complete
    assert [run.run for run in found.runs] == [7]


def test_a_block_beyond_the_manifest_does_not_stand_for_another() -> None:
    assert completeness([committed(7, 2), ended()], [(7, 0), (7, 5)]).missing_blocks == 1


def test_a_gap_makes_it_incomplete_for_ever_and_says_why() -> None:
    gap = decoded(contract.GAP, reason="no jar:\nDataFrames are not captured", node=None)
    found = completeness([STARTED, gap, gap, ended()], [])
    assert not found.is_complete
    assert found.gaps == ("no jar:\nDataFrames are not captured",)
    assert found.describe() == "not followed: no jar: DataFrames are not captured"


def test_of_many_gaps_each_reason_is_told_once_and_not_all() -> None:
    reasons = ["a", "b", "a", "c" * 1_000, "d", "e"]
    gaps = [decoded(contract.GAP, reason=reason, node=at) for at, reason in enumerate(reasons)]
    found = completeness([STARTED, *gaps, ended()], [])
    assert found.gaps == ("a", "b", "c" * 1_000, "d", "e")
    assert found.describe() == f"not followed: a; b; {'c' * 299}…; and 2 more"


def test_queries_that_failed_make_it_incomplete_though_an_older_agent_told_of_no_gap() -> None:
    assert completeness([STARTED, ended(queries_failed=0)], []).is_complete
    found = completeness([STARTED, ended(queries_failed=2)], [])
    assert not found.is_complete
    assert "not followed: queries whose plans could not be rewritten: 2" in found.describe()
    gap = decoded(contract.GAP, reason="a query could not be followed", node=1)
    assert completeness([STARTED, gap, ended(queries_failed=2)], []).gaps == (
        "a query could not be followed",
    )


def test_a_lost_gap_is_a_lost_event() -> None:
    found = completeness([decoded(contract.APPLICATION_STARTED, event=0), {**ended(), "event": 2}], [])
    assert found.missing_events == 1


def test_signs_of_life_and_events_of_later_types_are_not_missed_and_not_counted() -> None:
    alive = [decoded(contract.ALIVE, time=at) for at in range(3)]
    later = {**alive[0], "type": "type_of_later", "event": 1}
    numbered = [decoded(contract.APPLICATION_STARTED, event=0), later, {**ended(), "event": 2}]
    found = completeness([*numbered, *alive], [])
    assert found.is_complete
    assert found.events == 3


def test_blocks_of_relations_that_no_answer_uses_make_their_run_complete() -> None:
    receipts = [
        Receipt(run=7, seq=0, node=1, relation=contract.POSITIONS, rows=4),
        Receipt(run=7, seq=1, node=1, relation=contract.GROUPS, rows=0),
    ]
    assert lost_rows(receipts, {"flows": 4}) == {}
    pairs = [(receipt_row.run, receipt_row.seq) for receipt_row in receipts]
    assert completeness([STARTED, committed(7, 2), ended(runs=1)], pairs).is_complete


def test_lost_rows_of_each_table_are_counted() -> None:
    receipts = [
        Receipt(run=7, seq=0, node=1, relation=contract.CODES, rows=4),
        Receipt(run=7, seq=1, node=1, relation=contract.WINNERS, rows=2),
        Receipt(run=7, seq=2, node=1, relation=contract.DIGESTS, rows=3),
        Receipt(run=7, seq=3, node=1, relation=contract.KEYS, rows=1),
    ]
    assert lost_rows(receipts, {"flows": 4, "records": 1, "annotations": 5}) == {}
    assert lost_rows(receipts, {"flows": 4, "records": 1, "annotations": 4}) == {"annotations": 1}
    assert lost_rows(receipts, {}) == {"flows": 4, "records": 1, "annotations": 5}
    # An earlier service has stored the receipt alone.
    assert lost_rows([Receipt(run=7, seq=1, node=1, relation=contract.WINNERS, rows=0)], {}) == {}


def test_a_run_that_failed_is_no_run_that_counts() -> None:
    failed = decoded(contract.RUN_FAILED, run=8, blocks=5, position=None, frame=None)
    assert completeness([STARTED, failed, ended(runs=0)], []).is_complete


def test_a_dropped_block_makes_it_incomplete_for_ever() -> None:
    found = completeness([committed(7, 2, dropped=1), ended()], [(7, 0), (7, 1)])
    assert not found.is_complete
    assert found.dropped == 1
    assert found.describe() == "blocks that the agent dropped: 1"


def test_without_its_end_it_is_not_complete() -> None:
    found = completeness([STARTED, committed(7, 1)], [(7, 0)])
    assert not found.is_complete
    assert found.describe() == "its end has not arrived"


def test_a_manifest_that_is_lost_is_noticed() -> None:
    found = completeness([committed(7, 0), ended(runs=3)], [])
    assert not found.is_complete
    assert found.missing_runs == 2
    assert found.describe() == "missing manifests of committed runs: 2"


def test_a_lost_event_of_an_agent_that_numbers_them_is_noticed() -> None:
    numbered = [
        {**each, "event": number}
        for number, each in enumerate(
            [STARTED, decoded(contract.NODE_REGISTERED), committed(7, 0), committed(8, 0), ended(runs=2)]
        )
    ]
    assert completeness(numbered, []).is_complete
    assert completeness([*numbered, *numbered], []).is_complete
    for lost, said in (
        ([0], "missing events (nodes, links, partitions): 1"),
        ([1], "missing events (nodes, links, partitions): 1"),
        ([2], "missing manifests of committed runs: 1"),
        ([1, 3], "missing manifests of committed runs: 1; missing events (nodes, links, partitions): 1"),
    ):
        found = completeness([each for each in numbered if each["event"] not in lost], [])
        assert not found.is_complete
        assert found.describe() == said


def test_the_agents_own_words_say_why_it_dropped_blocks() -> None:
    run = {**committed(7, 2, dropped=2), "problem": "Kafka at kafka:9092 does not take them"}
    said = completeness([run, ended()], []).describe()
    assert said.endswith("; blocks that the agent dropped: 2 (Kafka at kafka:9092 does not take them)")


def test_a_block_that_arrives_after_the_agent_gave_it_up_is_not_dropped() -> None:
    run = {**committed(7, 4, dropped=3), "unconfirmed": 2}
    late = completeness([run, ended()], [(7, 0), (7, 1), (7, 2)])
    assert (late.missing_blocks, late.dropped, late.is_complete) == (1, 1, False)
    never = completeness([run, ended()], [(7, 0)])
    assert (never.missing_blocks, never.dropped) == (3, 3)
    run["dropped"] = 2
    assert completeness([run, ended()], [(7, seq) for seq in range(4)]).is_complete


def test_blocks_that_wait_on_a_disk_are_said_with_their_host_until_they_have_come() -> None:
    first = {**committed(7, 4), "spooled": 3, "host": "worker-1"}
    second = {**committed(8, 2), "spooled": 1, "host": "worker-2"}
    waiting = completeness([first, second, ended(runs=2)], [(7, 0), (8, 1)])
    assert not waiting.is_complete
    assert waiting.describe() == (
        "3 blocks wait on worker-1 to be delivered (operations.md#the-spool); "
        "1 blocks wait on worker-2 to be delivered (operations.md#the-spool)"
    )
    # Of one more nobody knows where it is.
    lacking = completeness([{**first, "spooled": 2}, ended()], [(7, 0)])
    assert (lacking.missing_blocks, lacking.waiting_blocks) == (3, 2)
    assert "missing blocks: 1, of 1 of 1 task runs" in lacking.describe()
    arrived = [(7, seq) for seq in range(4)] + [(8, 0), (8, 1)]
    assert completeness([first, second, ended(runs=2)], arrived).is_complete


def test_nothing_at_all_is_said_so() -> None:
    found = completeness([], [])
    assert not found.is_complete
    assert found.describe() == "nothing of it has arrived"


def test_counters_of_another_agent_do_not_matter() -> None:
    assert completeness([{**ended(), "counters": {"runs": "many"}}], []).is_complete
    assert completeness([ended()], []).is_complete


@given(
    st.dictionaries(st.integers(0, 5), st.integers(0, 4), max_size=4),
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 5))),
    st.randoms(),
)
def test_order_and_repetition_change_nothing(
    blocks: dict[int, int], receipts: list[Any], random: Any
) -> None:
    events = [STARTED, *(committed(run, count) for run, count in blocks.items()), ended(runs=len(blocks))]
    before = completeness(events, receipts)
    again = events + random.choices(events, k=2)
    random.shuffle(again)
    assert completeness(again, receipts + receipts[::-1]) == before
    wanted = {(run, seq) for run, count in blocks.items() for seq in range(count)}
    assert before.missing_blocks == len(wanted - set(receipts))
    assert before.is_complete == (not wanted - set(receipts))


def receipt(seq: int, relation: str, rows: int) -> Receipt:
    return Receipt(run=7, seq=seq, node=1, relation=relation, rows=rows)


def test_rows_that_receipts_speak_of_and_that_are_not_there_are_lost() -> None:
    receipts = [receipt(0, contract.PAIRS, 5), receipt(1, contract.KEYS, 3), receipt(2, contract.VALUES, 2)]
    assert lost_rows(receipts, {"flows": 5, "records": 5}) == {}
    assert lost_rows(receipts + receipts, {"flows": 9, "records": 5}) == {}  # more are on their way
    assert lost_rows(receipts, {"flows": 4}) == {"flows": 1, "records": 5}
    found = completeness([STARTED, committed(7, 3), ended(runs=1)], [(7, 0), (7, 1), (7, 2)], {"flows": 1})
    assert not found.is_complete
    assert found.describe().startswith("rows that the flow store has lost: 1 of flows (")

from __future__ import annotations

from dataclasses import replace

import pytest

from lineage_service.decode import batches
from lineage_service.decode.batches import event_batch, flow_batch, source_of
from spark_agent import contract
from tests.support.lineage_messages import block, event, messages


def test_a_source_names_group_topic_and_partition() -> None:
    assert source_of("lineage", "lineage-flow", 7) == "lineage/lineage-flow-7"


def test_a_batch_keeps_the_offsets_of_its_rows() -> None:
    batch = flow_batch("s", messages(block(seq=0), block(seq=1), first=40))
    assert [message.offset for message, _ in batch.rows] == [40, 41]
    assert batch.next_offset == 42
    assert [row.seq for row in batch.since(41)] == [1]


def test_what_cannot_be_decoded_is_set_apart_with_the_reason() -> None:
    batch = flow_batch("s", messages(block(seq=0), b"poison", None, block(seq=1)))
    assert [(letter.message.offset, letter.reason) for letter in batch.dead_letters] == [
        (1, "block of 6 bytes is shorter than its preamble"),
        (2, "message has no value"),
    ]
    assert [row.seq for _, row in batch.rows] == [0, 1]
    assert batch.next_offset == 4


def test_poison_at_the_end_moves_the_offset_too() -> None:
    assert event_batch("s", messages(event(contract.LINK), b"{}", first=5)).next_offset == 7


def test_a_batch_ends_when_it_has_enough_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MAX_BATCH_ROWS", 4)
    given = messages(*(block(seq=seq) for seq in range(5)))
    first = flow_batch("s", given)
    assert (first.messages, first.next_offset) == (2, 2)
    assert flow_batch("s", given[first.messages :]).next_offset == 4


def test_a_batch_ends_with_its_hundredth_application() -> None:
    given = messages(*(block(application_id=f"app-{number}") for number in range(250)))
    assert flow_batch("s", given).messages == 100
    given = messages(*(event(contract.LINK, application_id=f"app-{number}") for number in range(250)))
    assert event_batch("s", given).messages == 100


def test_texts_that_are_long_when_written_out_weigh_more_than_their_rows() -> None:
    long = block(relation=contract.VALUES, columns={"text": [("str", "x" * 4_096)], "code": [0] * 10_000})
    assert flow_batch("s", messages(long, long)).messages == 1


def test_what_could_not_be_read_is_a_letter_that_says_why() -> None:
    [unread] = messages(None)
    [letter] = flow_batch("s", [replace(unread, fault="cannot be unpacked")]).dead_letters
    assert letter.reason == "cannot be unpacked"


def test_a_batch_has_at_least_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MAX_BATCH_ROWS", 1)
    assert flow_batch("s", messages(block(columns={"in": [1, 2, 3]}))).messages == 1


@pytest.mark.parametrize(
    "application_id", ["", "..", "a/b", "a b", "a#1", "x" * 201, "a\0", "ä", "-a", "a\n", "a" + 21 * ":"]
)
def test_an_application_id_that_cannot_name_a_folder_is_poison(application_id: str) -> None:
    flow = flow_batch("s", messages(block(application_id=application_id)))
    node = event_batch("s", messages(event(contract.LINK, application_id=application_id)))
    assert "application_id" in flow.dead_letters[0].reason
    assert "application_id" in node.dead_letters[0].reason


@pytest.mark.parametrize(
    "application_id",
    [
        "local-1763718000000",
        "application_1763718000000_0001",
        "app-20251121100000-0000",
        "spark-0a1b",
        "a:b.c",
        "a" * 180 + ":" * 20,
    ],
)
def test_ids_that_spark_makes_are_accepted(application_id: str) -> None:
    assert not flow_batch("s", messages(block(application_id=application_id))).dead_letters

"""What goes back and what is remembered, with a twin of the topic instead of Kafka."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineage_service.decode.batches import DeadLetter, Message
from lineage_service.ingest import redelivery
from lineage_service.ingest.letters import Letter, Redelivered, RedeliveryError, Selection, letter_of
from lineage_service.ingest.redelivery import redeliver
from lineage_service.kafka.dead_letters import headers

FLOW, NODE = "flow", "node"


def letter(offset: int, **fields: Any) -> Letter:
    given = {
        "partition": 0,
        "topic": FLOW,
        "from_partition": 1,
        "from_offset": 100 + offset,
        "reason": "why",
        "buried_ms": 1,
        "written_ms": 1,
        "cut": None,
        "key": None,
        "value": b"v",
    }
    return Letter(offset=offset, **{**given, **fields})


class MemoryTopic:
    """Letters in a list, in one partition that begins at offset `first`."""

    def __init__(self, *letters: Letter, first: int = 0) -> None:
        self.kept, self.first = list(letters), first
        self.memory: dict[int, Redelivered] = {}
        self.sent: list[int] = []
        self.errors: dict[int, str] = {}

    def bounds(self) -> Mapping[int, tuple[int, int]]:
        return {0: (self.first, self.kept[-1].offset + 1 if self.kept else self.first)}

    def letters(self, partition: int, first: int, end: int) -> Iterator[Letter]:
        return (each for each in self.kept if first <= each.offset < end)

    def redelivered(self) -> Mapping[int, Redelivered]:
        return self.memory

    def remember(self, partition: int, redelivered: Redelivered) -> None:
        self.memory[partition] = Redelivered.of(redelivered.before, redelivered.as_text())

    def partitions_of(self, topics: Sequence[str]) -> Mapping[str, int]:
        return {topic: {FLOW: 3, NODE: 1}.get(topic, 0) for topic in topics}

    def send(self, letters: Sequence[Letter]) -> list[str | None]:
        self.sent += [dead_letter.offset for dead_letter in letters if dead_letter.offset not in self.errors]
        return [self.errors.get(dead_letter.offset) for dead_letter in letters]


def run(topic: MemoryTopic, selection: Selection | None = None, **flags: bool) -> tuple[list[int], list[str]]:
    """(what was sent, what was told)."""
    told: list[str] = []
    topic.sent.clear()
    redeliver(topic, selection or Selection(), (FLOW, NODE), say=told.append, **flags)
    return topic.sent[:], told


def test_each_letter_goes_back_once() -> None:
    topic = MemoryTopic(letter(5), letter(6), first=5)
    assert run(topic) == ([5, 6], [])
    assert run(topic) == ([], [])
    topic.kept.append(letter(7))
    assert run(topic) == ([7], [])
    assert run(topic, is_again=True) == ([5, 6, 7], [])
    assert topic.memory == {0: Redelivered(8)}


def test_what_was_chosen_out_of_turn_is_remembered_beside_the_rest() -> None:
    topic = MemoryTopic(*map(letter, range(6)))
    assert run(topic, Selection(offset=103))[0] == [3]
    assert run(topic, Selection(topic=FLOW, partition=1, offset=103))[0] == []
    assert run(topic, Selection(offset=103), is_again=True)[0] == [3]
    assert run(topic, Selection(topic=NODE))[0] == []
    assert run(topic)[0] == [0, 1, 2, 4, 5]
    assert topic.memory == {0: Redelivered(6)}


def test_a_dry_run_sends_and_remembers_nothing() -> None:
    topic = MemoryTopic(letter(0))
    assert run(topic, is_dry=True) == ([], ["would send: flow-1 offset 100 (1 bytes): why"])
    assert topic.memory == {}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"cut": "300000"}, "only 1 of its 300000 bytes were kept"),
        ({"topic": None}, "does not say where it came from"),
        ({"from_offset": None}, "does not say where it came from"),
        ({"topic": "other"}, "neither --node-topic nor --flow-topic"),
        ({"from_partition": 3}, "has 3 partitions now"),
    ],
)
def test_a_letter_that_cannot_go_back_is_told_and_passed_over(fields: dict[str, Any], why: str) -> None:
    topic = MemoryTopic(letter(0), letter(1, **fields), letter(2))
    sent, [told] = run(topic)
    assert sent == [0, 2]
    assert why in told
    assert run(topic) == ([], [])


def test_what_was_delivered_before_a_failure_is_remembered() -> None:
    topic = MemoryTopic(*map(letter, range(4)))
    topic.errors = {1: "no answer in time"}
    with pytest.raises(
        RedeliveryError, match="1 of 4 letters were not sent back, the first flow-1 offset 101: no answer"
    ):
        run(topic)
    topic.errors = {}
    assert run(topic)[0] == [1]


def test_a_topic_that_was_made_anew_is_read_from_its_beginning() -> None:
    topic = MemoryTopic(letter(0))
    topic.memory = {0: Redelivered(9)}
    assert run(topic)[0] == [0]


def test_letters_are_sent_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redelivery, "CHUNK_LETTERS", 2)
    topic = MemoryTopic(*map(letter, range(5)))
    topic.errors = {4: "gone"}
    with pytest.raises(RedeliveryError, match=r"1 of 1 letters were not sent back.*4 in all"):
        run(topic)
    assert topic.memory == {0: Redelivered(4)}


@given(st.integers(0, 9), st.sets(st.integers(0, 30)), st.sets(st.integers(0, 30)))
def test_what_is_remembered_is_what_was_done(before: int, some: set[int], more: set[int]) -> None:
    done = Redelivered(before).also(some).also(more)
    again = Redelivered.of(done.before, done.as_text())
    for offset in range(40):
        assert (offset in again) == (offset < before or offset in some | more)


def test_too_much_to_remember_is_said_before_anything_is_sent() -> None:
    odd = [letter(offset, topic=NODE if offset % 2 else FLOW, from_partition=0) for offset in range(4000)]
    topic = MemoryTopic(*odd)
    with pytest.raises(RedeliveryError, match="out of turn"):
        run(topic, Selection(topic=NODE))
    assert len(topic.sent) < 1000


@pytest.mark.parametrize("text", ["x", "1-", "-1", "5,x", "0-99999999999", "1" * 30])
def test_a_memory_that_somebody_else_wrote_is_none(text: str) -> None:
    assert Redelivered.of(3, text) == Redelivered(3)


class Sent:
    """A Kafka message."""

    def __init__(self, headers: list[tuple[str, bytes | None]] | None) -> None:
        self._headers = headers

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return self._headers

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return 7

    def key(self) -> bytes:
        return b"key"

    def value(self) -> None:
        return None


def test_a_letter_says_what_was_written_on_it() -> None:
    message = Message(topic=FLOW, partition=3, offset=17, key=b"k", value=b"v", written_ms=5)
    found = letter_of(Sent([*headers(DeadLetter(message=message, reason="no ä"), 9)]))
    assert (found.topic, found.from_partition, found.from_offset) == (FLOW, 3, 17)
    assert (found.reason, found.buried_ms, found.written_ms, found.cut) == ("no ä", 9, 5, None)


def test_a_letter_of_a_message_that_could_not_be_read_says_so() -> None:
    message = Message(topic=FLOW, partition=3, offset=17, key=None, value=None, fault="broken")
    found = letter_of(Sent([*headers(DeadLetter(message=message, reason="broken"), 9)]))
    assert (found.cut, found.written_ms) == ("unknown", None)


@pytest.mark.parametrize(
    "strange",
    [
        None,
        [("topic", None), ("partition", b"-1"), ("offset", b"1e9"), ("time", "²".encode())],
        [("topic", b"\xff\x1b[2J"), ("partition", b"9" * 40), ("reason", b"a\nb")],
    ],
)
def test_headers_that_a_stranger_wrote_are_read_with_care(
    strange: list[tuple[str, bytes | None]] | None,
) -> None:
    found = letter_of(Sent(strange))
    assert found.from_partition is None
    assert found.buried_ms is None
    assert ((found.topic or "") + found.reason).isprintable()

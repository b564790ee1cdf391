"""What comes between a Kafka client and a subscription's owner, with a client that follows a script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from lineage_service.kafka import group_member, group_owner, pending_commits, topic_ids
from lineage_service.kafka.group_member import KafkaSubscription
from lineage_service.kafka.group_owner import GroupTakenError, memory_of
from lineage_service.kafka.subscription import Assignment

Event = Callable[["Client"], "Message | None"]


class Message:
    def __init__(self, offset: int, partition: int = 0) -> None:
        self._place = partition, offset

    def topic(self) -> str:
        return "flow"

    def partition(self) -> int:
        return self._place[0]

    def offset(self) -> int:
        return self._place[1]

    def error(self) -> None:
        return None

    def key(self) -> None:
        return None

    def value(self) -> bytes:
        return b""

    def timestamp(self) -> tuple[int, int]:
        return 1, 0


class Client:
    """Gives what the script says for each poll, in its order: messages, and calls of the group."""

    script: Sequence[Sequence[Event | Message]] = ()
    topic_id = "one"
    memory: str | None = None  # what the group has kept with its offsets; None: it has none

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.assigned: list[tuple[int, int]] = []
        self.commits: list[tuple[int, int]] = []
        self.mine: set[int] = set()
        self.paused: set[int] = set()  # as the real one: also of what is not its own any more
        self._polls = iter(self.script)

    def subscribe(self, _topics: list[str], **callbacks: Any) -> None:
        self.callbacks = callbacks

    def consume(self, _most: int, _timeout_s: float) -> list[Any]:
        given = []
        for each in next(self._polls, ()):
            if isinstance(each, Message):
                given.append(each)
            else:
                each(self)
        return given

    def committed(self, partitions: list[Any], timeout: float) -> list[Any]:
        if self.memory is None:
            return []
        return [
            TopicPartition(partition.topic, partition.partition, 3, self.memory) for partition in partitions
        ]

    def get_watermark_offsets(self, _partition: Any, timeout: float) -> tuple[int, int]:
        return 0, 100

    def incremental_assign(self, partitions: list[Any]) -> None:
        self.assigned += [(partition.partition, partition.offset) for partition in partitions]
        self.mine |= {partition.partition for partition in partitions}

    def incremental_unassign(self, partitions: list[Any]) -> None:
        self.mine -= {partition.partition for partition in partitions}

    def assignment(self) -> list[Any]:
        return [TopicPartition("flow", number) for number in self.mine]

    def pause(self, partitions: list[Any]) -> None:
        self.paused |= {partition.partition for partition in partitions}

    def resume(self, partitions: list[Any]) -> None:
        self.paused -= {partition.partition for partition in partitions}

    def commit(self, offsets: list[Any], asynchronous: bool) -> None:
        self.commits += [(offset.partition, offset.offset) for offset in offsets]

    # -- of the admin client ---------------------------------------------------------------------------

    def describe_topics(self, topics: Any, request_timeout: float) -> dict[str, Future[Any]]:
        found: Future[Any] = Future()
        found.set_result(SimpleNamespace(topic_id=self.topic_id))
        return {"flow": found}


class Reader:
    """An owner that reads on from 3, and notes what it loses."""

    def __init__(self) -> None:
        self.places: list[Assignment] = []
        self.lost: list[int] = []

    def start_at(self, place: Assignment) -> int:
        self.places.append(place)
        return 3

    def revoked(self, _topic: str, partition: int) -> None:
        self.lost.append(partition)


def assign(*numbers: int) -> Event:
    def call(client: Client) -> None:
        client.callbacks["on_assign"](client, [TopicPartition("flow", number) for number in numbers])

    return call


def revoke(*numbers: int) -> Event:
    def call(client: Client) -> None:
        client.callbacks["on_revoke"](client, [TopicPartition("flow", number) for number in numbers])
        client.mine -= set(numbers)

    return call


@pytest.fixture
def subscribe(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[KafkaSubscription, Client, Reader]]:
    def made(
        *script: Sequence[Event | Message],
        topic_id: str = "one",
        store_id: str = "",
        memory: str | None = None,
    ) -> tuple[KafkaSubscription, Client, Reader]:
        class Scripted(Client):
            pass

        Scripted.script = script
        Scripted.topic_id = topic_id
        Scripted.memory = memory
        monkeypatch.setattr(group_member, "Consumer", Scripted)
        monkeypatch.setattr(group_member, "AdminClient", Scripted)
        reader = Reader()
        member = KafkaSubscription("nowhere", "group", ["flow"], reader, store_id=store_id)
        return member, member._consumer, reader

    return made


def offsets(messages: Sequence[Any]) -> list[tuple[int, int]]:
    return [(message.partition, message.offset) for message in messages]


def test_messages_of_what_is_taken_away_in_the_same_poll_are_not_given(subscribe: Any) -> None:
    member, _, reader = subscribe(
        [assign(0, 1), Message(3), Message(3, partition=1)],
        [Message(4), Message(4, partition=1), revoke(0)],
        [Message(5, partition=1)],
    )
    assert offsets(member.poll(0)) == [(0, 3), (1, 3)]
    # Its owner forgot offset 3 of partition 0 when it was taken away: 4 without it would leave a gap.
    assert offsets(member.poll(0)) == [(1, 4)]
    assert reader.lost == [0]
    assert offsets(member.poll(0)) == [(1, 5)]


def test_what_is_taken_away_and_comes_back_in_one_poll_is_read_from_its_start(subscribe: Any) -> None:
    member, client, _ = subscribe([assign(0), Message(3)], [Message(4), revoke(0), assign(0), Message(3)])
    member.poll(0)
    assert member.poll(0) == []
    assert client.assigned == [(0, 3), (0, 3), (0, 3)]


def test_what_was_taken_away_while_paused_is_read_when_it_comes_back(subscribe: Any) -> None:
    member, client, _ = subscribe([assign(0)], [revoke(0)], [assign(0, 1)], [revoke(1)], [assign(1)])
    member.poll(0)
    member.pause()
    assert client.paused == {0}
    member.poll(0)
    member.resume()
    member.poll(0)
    assert client.paused == set()
    member.pause()
    member.poll(0)
    member.poll(0)
    assert client.paused == {0, 1}


def test_offsets_that_come_again_are_those_of_another_topic(subscribe: Any) -> None:
    member, client, reader = subscribe([assign(0), Message(3), Message(4)], [Message(0), Message(1)])
    member.poll(0)
    type(client).topic_id = "two"
    assert member.poll(0) == []
    assert reader.lost == [0]
    assert [place.topic_id for place in reader.places] == ["one", "two"]


def test_a_topic_that_was_made_anew_is_noticed_without_a_message(
    subscribe: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_ids, "_LOOK_UP_S", 0.0)
    member, client, reader = subscribe([assign(0), Message(3)])
    member.poll(0)
    type(client).topic_id = "two"
    for _ in range(4):  # the answer that is on its way, the next question, its answer
        member.poll(0)
    assert [place.topic_id for place in reader.places] == ["one", "two"]


def test_a_commit_that_was_refused_is_made_again_while_it_is_the_last(
    subscribe: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending_commits, "_COMMIT_AGAIN_S", 0.0)
    refused = SimpleNamespace(fatal=lambda: False, code=lambda: -1, str=lambda: "no")
    member, client, _ = subscribe([assign(0, 1)])
    member.poll(0)
    client.commits.clear()  # that the stores were at 3
    for partition, offset in ((0, 7), (1, 8), (1, 9)):
        member.commit("flow", partition, offset)
    on_commit = client.options["on_commit"]
    on_commit(refused, [TopicPartition("flow", 0, 7), TopicPartition("flow", 1, 8)])
    member.poll(0)
    assert client.commits == [(0, 7), (1, 8), (1, 9), (0, 7)]
    on_commit(refused, [TopicPartition("flow", 0, 7)])
    revoke(0)(client)
    member.poll(0)
    assert len(client.commits) == 4


def test_a_broker_that_knows_no_topic_ids_says_none(subscribe: Any) -> None:
    member, _, reader = subscribe([assign(0)], topic_id="A" * 22)
    member.poll(0)
    assert [place.topic_id for place in reader.places] == [None]


def test_a_topic_id_that_is_known_is_not_forgotten(subscribe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_ids, "_LOOK_UP_S", 0.0)
    member, client, reader = subscribe([assign(0), Message(3)], [assign(1)])
    type(client).topic_id = "A" * 22
    for _ in range(4):
        member.poll(0)
    assert [place.topic_id for place in reader.places] == ["one", "one"]


def test_a_group_without_a_store_is_claimed_by_the_member_that_has_its_first_partition(
    subscribe: Any,
) -> None:
    member, client, _ = subscribe([assign(1)], [assign(0)], store_id="mine", memory="")
    member.poll(0)
    assert client.commits == []
    member.poll(0)
    assert client.commits == [(0, 3)]


def test_what_a_member_claimed_it_claims_once(subscribe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_owner, "_LOOK_UP_S", 0.0)
    member, client, _ = subscribe([assign(0)], store_id="mine", memory=memory_of("mine"))
    for _ in range(3):
        member.poll(0)
    assert client.commits == []


@pytest.mark.parametrize("partition", [0, 1])
def test_a_member_of_another_store_is_refused_and_tells_the_group_nothing(
    subscribe: Any, partition: int
) -> None:
    member, client, _ = subscribe([assign(partition)], store_id="mine", memory=memory_of("theirs"))
    with pytest.raises(GroupTakenError, match="its id is theirs, this one's is mine"):
        member.poll(0)
    assert client.commits == []


def test_a_store_that_came_at_the_same_moment_is_noticed_later(
    subscribe: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_owner, "_LOOK_UP_S", 0.0)
    member, client, _ = subscribe([assign(1)], store_id="mine", memory="")
    member.poll(0)
    type(client).memory = memory_of("theirs")
    with pytest.raises(GroupTakenError):
        member.poll(0)

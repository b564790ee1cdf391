"""Sees that a consumer group is the store's before anybody joins it, and resets a group on demand.

Looking moves nothing: no membership, no rebalance, no commit. `group_owner` says what is looked at, and why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from lineage_service.errors import LineageError
from lineage_service.kafka.client import NO_OPTIONS, SESSION, client_of
from lineage_service.kafka.errors import TRANSIENT_ERRORS, request_error
from lineage_service.kafka.group_owner import GroupTakenError, memory_of, other_owner

__all__ = ["GroupBusyError", "claim"]

_TIMEOUT_S = 10.0
#: What a group with members says to a commit of somebody who is none.
_FROM_MEMBERS_ONLY = frozenset(
    {KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS}
)
_Answer = TypeVar("_Answer")


class GroupBusyError(LineageError):
    """Somebody consumes in the group that is to be reset."""


def claim(
    bootstrap_servers: str,
    group: str,
    topics: Sequence[str],
    store_id: str,
    *,
    options: Mapping[str, str] = NO_OPTIONS,
    is_reset: bool = False,
) -> None:
    """See that the group is the store's.

    `is_reset`: it becomes the store's, and its offsets in `topics` begin again; the store leaves out what it
    has. `options` are further ones of the client. Raises GroupTakenError, GroupBusyError,
    BrokerUnavailableError, BrokerRefusedError.
    """
    client: Any = client_of(
        Consumer,
        {
            **SESSION,
            **options,
            "bootstrap.servers": bootstrap_servers,
            "group.id": group,
            "client.id": "lineage-consume",
            "enable.auto.commit": False,
            "log_level": 0,
            "error_cb": lambda _error: None,
        },
    )
    with closing(client):
        try:
            places = _places(client, topics)
            if not places:
                return
            if is_reset:
                _reset(client, group, places, memory_of(store_id))
                return
            [first] = _patiently(lambda: client.committed(places[:1], timeout=_TIMEOUT_S))
        except KafkaException as error:
            raise request_error(bootstrap_servers, error) from error
    if owner := other_owner(first.metadata, store_id):
        raise GroupTakenError(group, owner, store_id)


def _places(client: Any, topics: Sequence[str]) -> list[TopicPartition]:
    """All partitions, the one that says whose the group is first; none where its topic is not there."""
    existing = client.list_topics(timeout=_TIMEOUT_S).topics
    if topics[0] not in existing:
        return []
    return [
        TopicPartition(name, number)
        for name in topics
        if name in existing
        for number in sorted(existing[name].partitions)
    ]


def _reset(client: Any, group: str, places: Sequence[TopicPartition], memory: str) -> None:
    offsets = []
    for place in places:
        first, _ = _patiently(partial(client.get_watermark_offsets, place, timeout=_TIMEOUT_S))
        offsets.append(TopicPartition(place.topic, place.partition, first, memory))
    try:
        committed = _patiently(lambda: client.commit(offsets=offsets, asynchronous=False))
        errors = [offset.error for offset in committed if offset.error is not None]
    except KafkaException as error:
        errors = [error.args[0]]
    if errors and errors[0].code() in _FROM_MEMBERS_ONLY:
        raise GroupBusyError(
            f"somebody consumes in group {group}: stop all of its processes, then use --reset-group again"
        )
    if errors:
        raise KafkaException(errors[0])


def _patiently(request: Callable[[], _Answer]) -> _Answer:
    """A broker that has just started, or never had a group, looks for its coordinator first."""
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        try:
            return request()
        except KafkaException as error:
            if error.args[0].code() not in TRANSIENT_ERRORS or time.monotonic() > deadline:
                raise
            time.sleep(0.1)

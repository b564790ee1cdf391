"""Makes the service's topics with their partition counts. Topics that are there already stay as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from lineage_service.errors import LineageError
from lineage_service.kafka.client import NO_OPTIONS, client_of, silent_log
from spark_agent import contract

if TYPE_CHECKING:
    from lineage_service.settings import Settings

_TIMEOUT_S = 30.0


class TopicError(LineageError):
    """The broker did not make a topic."""


def topic_partitions(settings: Settings) -> dict[str, int]:
    """Each topic's name with the number of its partitions."""
    return {
        settings.node_topic: contract.NODE_PARTITIONS,
        settings.flow_topic: contract.FLOW_PARTITIONS,
        settings.dead_letter_topic: 1,
    }


def create_topics(
    bootstrap_servers: str,
    partitions: Mapping[str, int],
    *,
    options: Mapping[str, Any] = NO_OPTIONS,
    timeout_s: float = _TIMEOUT_S,
) -> list[str]:
    """Makes those topics that are missing and returns their names, once the broker has them.

    `options` are further ones of the client: TLS, passwords.

    Raises TopicError when the broker refuses or does not answer within `timeout_s`.
    """
    if not partitions:
        return []
    admin = client_of(AdminClient, {**options, "bootstrap.servers": bootstrap_servers}, logger=silent_log)
    futures = admin.create_topics(
        [NewTopic(name, num_partitions=count) for name, count in partitions.items()],
        operation_timeout=timeout_s,
        request_timeout=timeout_s,
    )
    created = []
    for name, future in futures.items():
        try:
            future.result(timeout=timeout_s + 1)
            created.append(name)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise TopicError(
                    f"the broker at {bootstrap_servers} did not make topic {name}: {error.args[0].str()}"
                ) from error
    return created

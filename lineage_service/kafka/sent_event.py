"""Sends one event of an application to Kafka, and waits until the broker has it.

Promises an answer within `TIMEOUT_S`, and that an error says which broker was asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lineage_service.kafka.client import client_of, options

if TYPE_CHECKING:
    from lineage_service.settings import Settings

__all__ = ["TIMEOUT_S", "send_event"]

TIMEOUT_S = 10.0


def send_event(settings: Settings, application_id: str, message: bytes) -> None:
    """To the topic of nodes, with the key that all events of the application have.

    Raises BrokerUnavailableError, BrokerRefusedError, KafkaConfigError.
    """
    from confluent_kafka import KafkaException, Producer

    from lineage_service.kafka.errors import BrokerUnavailableError, request_error

    servers = settings.kafka_bootstrap_servers
    errors: list[Any] = ["no answer in time"]
    client: Any = client_of(
        Producer,
        {
            **options(settings),
            "bootstrap.servers": servers,
            "client.id": "lineage-explain",
            "log_level": 0,
            "error_cb": lambda _error: None,
            "enable.idempotence": True,
            "message.timeout.ms": int(TIMEOUT_S * 1000),
        },
    )

    def delivered(error: Any, _message: object) -> None:
        errors[:] = [] if error is None else [error]

    try:
        client.produce(settings.node_topic, message, application_id.encode(), on_delivery=delivered)
        client.flush(TIMEOUT_S)
    except KafkaException as error:
        raise request_error(servers, error) from error
    if errors:
        raise BrokerUnavailableError(f"no Kafka broker at {servers} took it ({errors[0]})")

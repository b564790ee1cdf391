"""How the service's Kafka clients reach the broker: TLS and passwords, from the file that the settings name.

Knows no client and no broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lineage_service.answers import LineageError
from spark_agent import brokers, kafka_config

if TYPE_CHECKING:
    from lineage_service.settings import Settings

__all__ = ["NO_OPTIONS", "KafkaConfigError", "options", "with_ports"]

NO_OPTIONS: Mapping[str, str] = {}


class KafkaConfigError(LineageError):
    """The file of client options cannot be used."""


def with_ports(bootstrap_servers: str) -> str:
    """The addresses, each with the port that is used: Kafka's own where none is named.

    Raises KafkaConfigError.
    """
    parts = [part.strip() for part in bootstrap_servers.split(",") if part.strip()]
    found = {part: brokers.address(part) for part in parts}
    for part, address in found.items():
        if address is None:
            raise KafkaConfigError(
                f"--kafka-bootstrap-servers: {part!r} is no host:port of a broker, such as "
                f"broker.example.org:{brokers.PORT}"
            )
    return ",".join(filter(None, found.values()))


def options(settings: Settings) -> dict[str, str]:
    """Options of the client beside the broker's address; values may be secrets. Raises KafkaConfigError."""
    try:
        return dict(kafka_config.read(settings.kafka_config)) if settings.kafka_config else {}
    except ValueError as error:
        raise KafkaConfigError(f"--kafka-config: {error}") from None

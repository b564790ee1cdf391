"""How the service's Kafka clients reach the broker: TLS and passwords, from the file that the settings name.

Knows no client and no broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lineage_service.answers import LineageError
from spark_agent import kafka_config

if TYPE_CHECKING:
    from lineage_service.settings import Settings

__all__ = ["NO_OPTIONS", "KafkaConfigError", "options", "with_ports"]

NO_OPTIONS: Mapping[str, str] = {}
_KAFKA_PORT = 9092
_MAX_PORT = 65_535


class KafkaConfigError(LineageError):
    """The file of client options cannot be used."""


def with_ports(bootstrap_servers: str) -> str:
    """The addresses, each with the port that is used: Kafka's own where none is named.

    Raises KafkaConfigError.
    """
    addresses = [address.strip() for address in bootstrap_servers.split(",") if address.strip()]
    return ",".join(map(_with_port, addresses))


def _with_port(address: str) -> str:
    host, separator, port = address.rpartition(":")
    is_bare = not separator or port.endswith("]") or port.startswith("//")  # [::1], SSL://host
    if is_bare:
        return f"{address}:{_KAFKA_PORT}"
    if host and port.isascii() and port.isdigit() and 0 < int(port[:6]) <= _MAX_PORT:
        return address
    raise KafkaConfigError(
        f"--kafka-bootstrap-servers: {address!r} is no host:port of a broker, such as broker.example.org:9092"
    )


def options(settings: Settings) -> dict[str, str]:
    """Options of the client beside the broker's address; values may be secrets. Raises KafkaConfigError."""
    try:
        return dict(kafka_config.read(settings.kafka_config)) if settings.kafka_config else {}
    except ValueError as error:
        raise KafkaConfigError(f"--kafka-config: {error}") from None

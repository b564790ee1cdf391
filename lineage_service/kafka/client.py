"""How the service's Kafka clients reach the broker: TLS and passwords, from the file that the settings name.

Promises that what librdkafka refuses of these options is said in one line. Knows no broker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lineage_service.errors import UnavailableError
from spark_agent.contract import broker_addresses, kafka_config

if TYPE_CHECKING:
    from lineage_service.settings import Settings

__all__ = ["NO_OPTIONS", "SESSION", "KafkaConfigError", "client_of", "options", "silent_log", "with_ports"]

#: For Kafka clients: keeps their remarks about a broker that just starts or stops off the terminal.
silent_log = logging.getLogger(__name__)
silent_log.addHandler(logging.NullHandler())
silent_log.propagate = False

NO_OPTIONS: Mapping[str, str] = {}
#: A member that was killed is replaced after this time; the default is 45 s. Every consumer has it, also one
#: that only asks: librdkafka takes no `max.poll.interval.ms` below it, and the settings' file may name one.
SESSION: Mapping[str, object] = {"session.timeout.ms": 10_000}


class KafkaConfigError(UnavailableError):
    """The file of client options cannot be used, so no broker is reached."""


def with_ports(bootstrap_servers: str) -> str:
    """The addresses, each with the port that is used: Kafka's own where none is named.

    Raises KafkaConfigError.
    """
    parts = [part.strip() for part in bootstrap_servers.split(",") if part.strip()]
    addresses = {part: broker_addresses.address(part) for part in parts}
    for part, address in addresses.items():
        if address is None:
            raise KafkaConfigError(
                f"--kafka-bootstrap-servers: {part!r} is no host:port of a broker, such as "
                f"broker.example.org:{broker_addresses.PORT}"
            )
    return ",".join(filter(None, addresses.values()))


def options(settings: Settings) -> dict[str, str]:
    """Options of the client beside the broker's address; values may be secrets. Raises KafkaConfigError."""
    try:
        return dict(kafka_config.read(settings.kafka_config)) if settings.kafka_config else {}
    except ValueError as error:
        raise KafkaConfigError(f"--kafka-config: {error}") from None


def client_of(kind: Callable[..., Any], options: Mapping[str, Any], **arguments: Any) -> Any:
    """A client of confluent_kafka: `kind` called with `options`, which hold those of the settings' file.

    Raises KafkaConfigError where librdkafka does not take them: an option that it does not know, a value that
    is out of range, two that do not go together.
    """
    from confluent_kafka import KafkaException

    try:
        return kind(dict(options), **arguments)
    except KafkaException as error:
        raise KafkaConfigError(f"--kafka-config: {error.args[0].str()}") from None
    except (TypeError, ValueError) as error:  # what the Python part of the client refuses
        raise KafkaConfigError(f"--kafka-config: {error}") from None

"""What Kafka's errors mean here: they pass, a person has to change something, or no broker answers."""

from __future__ import annotations

import logging
import time
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from lineage_service.errors import LineageError, UnavailableError

__all__ = [
    "TRANSIENT_ERRORS",
    "BrokerRefusedError",
    "BrokerUnavailableError",
    "ErrorLog",
    "is_refusal",
    "no_broker",
    "refusal",
    "request_error",
]

logger = logging.getLogger(__name__)

#: Partitions get their leaders, and a group its coordinator, a moment after they were made: ask again.
TRANSIENT_ERRORS = frozenset(
    {
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
_REFUSALS = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.INVALID_GROUP_ID,
    }
)
#: The same error is logged once in so many seconds.
_REPEAT_S = 30.0


class BrokerUnavailableError(UnavailableError):
    """Kafka does not answer; the same call may succeed later."""


class BrokerRefusedError(LineageError):
    """Kafka answers and refuses; a person has to change something first."""


def is_refusal(error: Any) -> bool:
    """Is it of no use to try again?"""
    return error.code() in _REFUSALS


def refusal(error: Any) -> BrokerRefusedError:
    """What to say when the broker refuses."""
    return BrokerRefusedError(f"Kafka refuses: {error.str()}; see the broker's settings and rights")


def no_broker(bootstrap_servers: str, error: KafkaException) -> BrokerUnavailableError:
    """What to say when nobody answers at all."""
    return BrokerUnavailableError(
        f"no Kafka broker answers at {bootstrap_servers} ({error.args[0].str()}); start one with "
        "`lineage up`, or say where it is with --kafka-bootstrap-servers"
    )


def request_error(bootstrap_servers: str, error: KafkaException) -> LineageError:
    """What to say when a request failed: the broker refuses, or it does not answer."""
    kafka_error = error.args[0]
    return refusal(kafka_error) if is_refusal(kafka_error) else no_broker(bootstrap_servers, error)


class ErrorLog:
    """Logs errors that the client gets over by itself, each of them now and then."""

    def __init__(self) -> None:
        self._logged_at: dict[object, float] = {}  # by the error's code

    def add(self, error: Any) -> None:
        now = time.monotonic()
        if now >= self._logged_at.get(error.code(), 0.0) + _REPEAT_S:
            self._logged_at[error.code()] = now
            logger.warning("Kafka: %s", error.str())

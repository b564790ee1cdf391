"""Why Kafka did not take a message, in words for the people who run the job: which broker, and what to do.

Promises one sentence for every error of the client. Knows nothing of how messages are sent.
"""

from __future__ import annotations

import sys
from typing import Any

#: Kafka's own default of `max.message.bytes`; the agent's batches stay below it.
MESSAGE_BYTES = 1_048_588

_REFUSED = ("TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED", "SASL_AUTHENTICATION_FAILED")
_TOO_LARGE = ("MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE")
_NO_TOPIC = ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "TOPIC_EXCEPTION")


def is_of_message(error: Any) -> bool:
    """Is it the message itself that no broker will take, now or later?"""
    return _name(error) in _TOO_LARGE or (error is not None and not hasattr(error, "name"))


def is_purge(error: Any) -> bool:
    """Was the message taken from the client, which had not delivered it?"""
    return _name(error) in ("_PURGE_QUEUE", "_PURGE_INFLIGHT")


def explain(error: Any, topic: str, servers: str) -> str:
    """What an error of the Kafka client about a message to `topic` means, and what to do."""
    kind = _name(error)
    if kind in _REFUSED:
        return (
            f"Kafka at {servers} does not let this application write to topic {topic} ({_text(error)}): "
            "grant its user Write and Describe on the topic"
        )
    if kind in _TOO_LARGE:
        return (
            f"topic {topic} of Kafka at {servers} refuses messages as too large: set the topic's "
            f"max.message.bytes to {MESSAGE_BYTES}, which is Kafka's default, or more"
        )
    if kind in _NO_TOPIC:
        return no_topic(error, topic, servers)
    return silent(servers, of_connection(error, ""))


def no_topic(error: Any, topic: str, servers: str) -> str:
    """The topic is not there and could not be made."""
    return (
        f"Kafka at {servers} has no topic {topic} and does not let this application make it "
        f"({_text(error)}): create it, or name another with spark.lineage.topic.node and "
        "spark.lineage.topic.flow"
    )


def silent(servers: str, last_error: str) -> str:
    """Nothing came back, with the last thing that the client noticed about its connections."""
    return (
        f"Kafka at {servers} does not take them ({last_error or 'it does not answer'}): see that it runs and "
        "that spark.lineage.kafka.bootstrap.servers names it"
    )


def slow(servers: str) -> str:
    return (
        f"Kafka at {servers} takes them more slowly than the job makes them: "
        "give the job longer with spark.lineage.delivery.timeout, or Kafka more room"
    )


def missing_client() -> str:
    return (
        f"confluent-kafka is not installed for {sys.executable}; "
        "install it with `pip install confluent-kafka`"
    )


def _name(error: Any) -> str:
    return str(error.name()) if hasattr(error, "name") else ""


def _text(error: Any) -> str:
    """`Connection refused`, without the client's address and time."""
    text = str(error.str() if hasattr(error, "str") else error)
    for cause in ("Connection refused", "Connection reset by peer", "Name or service not known"):
        if cause in text:
            return cause
    return text.removeprefix("Broker: ").removeprefix("Local: ")[:200]


def of_connection(error: Any, before: str) -> str:
    """The last thing noticed about the connections: `error`, or `before` where it says more."""
    return before if _name(error) in ("_ALL_BROKERS_DOWN", "_TIMED_OUT") else _text(error)


def of_request(error: Any, noticed: str) -> str:
    """Why a request had no answer: that the connection failed says less than why it did."""
    return noticed if _name(error) in ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT") else _text(error)

"""What people read when Kafka did not take a message: which broker, why, and what to do."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from spark_agent.delivery import kafka_errors

SERVERS, TOPIC = "kafka:9092", "lineage-flow"


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "grant its user Write and Describe"),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, "grant its user Write and Describe"),
        (KafkaError.MSG_SIZE_TOO_LARGE, "max.message.bytes to 1048588"),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, "create it, or name another with spark.lineage.topic.node"),
        (KafkaError.TOPIC_EXCEPTION, "create it, or name another with spark.lineage.topic.node"),
        (KafkaError._MSG_TIMED_OUT, "see that it runs and that spark.lineage.kafka.bootstrap.servers"),
        (KafkaError._RESOLVE, "see that it runs and that spark.lineage.kafka.bootstrap.servers"),
    ],
)
def test_every_error_names_the_broker_and_what_to_do(code: int, advice: str) -> None:
    said = kafka_errors.explain(KafkaError(code), TOPIC, SERVERS)
    assert SERVERS in said
    assert advice in said


def test_an_error_that_is_none_of_kafkas_is_told_as_it_is() -> None:
    assert "(no more memory)" in kafka_errors.explain(MemoryError("no more memory"), TOPIC, SERVERS)


def test_why_a_connection_failed_is_told_rather_than_that_it_did() -> None:
    refused = KafkaError(
        KafkaError._TRANSPORT,
        "kafka:9092/bootstrap: Connect to ipv4#127.0.0.1:9092 failed: Connection refused (after 0ms)",
    )
    noticed = kafka_errors.of_connection(refused, "")
    assert noticed == "Connection refused"
    assert kafka_errors.of_connection(KafkaError(KafkaError._ALL_BROKERS_DOWN), noticed) == noticed
    assert kafka_errors.of_request(KafkaError(KafkaError._TRANSPORT), noticed) == noticed
    assert "it does not answer" in kafka_errors.silent(SERVERS, kafka_errors.of_request(KafkaError(-185), ""))

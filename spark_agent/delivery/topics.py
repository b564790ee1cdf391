"""The topics of an application: creates those that are missing, and reports their partitions.

Promises to take no longer than it may, and never to raise. What the broker refuses comes back
as a sentence for people.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from spark_agent.contract import kafka_config
from spark_agent.delivery import kafka_errors
from spark_agent.delivery.log import logger
from spark_agent.delivery.settings import AgentSettings


def create_missing_topics(
    settings: AgentSettings, partitions: Mapping[str, int], within_s: float | None = None
) -> tuple[dict[str, int], str]:
    """Create missing topics with their partition counts where the broker allows it.

    Takes `within_s` at most, by default `delivery_timeout_s`. Returns the partitions of the topics that are
    there, and why others are not.
    """
    deadline = time.monotonic() + (settings.delivery_timeout_s if within_s is None else within_s)
    servers, existing, problem, noticed = settings.bootstrap_servers, {}, "", [""]

    def note(error: Any) -> None:
        noticed[0] = kafka_errors.of_connection(error, noticed[0])

    def left_s() -> float:
        return max(0.01, deadline - time.monotonic())

    try:
        from concurrent.futures import TimeoutError as NoAnswerError

        from confluent_kafka import KafkaError
        from confluent_kafka.admin import AdminClient, NewTopic

        options: dict[str, Any] = {"bootstrap.servers": servers, "log_level": 0, "error_cb": note}
        if within_s is not None:
            options |= kafka_config.patience(within_s)
        admin = AdminClient({**dict(settings.client), **options})
        listed = admin.list_topics(timeout=left_s()).topics
        existing = {name: len(listed[name].partitions) for name in partitions if name in listed}
        missing = [NewTopic(name, count) for name, count in partitions.items() if name not in existing]
        for name, future in (admin.create_topics(missing) if missing else {}).items():
            try:
                future.result(left_s())
                existing[name] = partitions[name]
            except NoAnswerError:  # it may still be made
                problem = problem or kafka_errors.silent(servers, noticed[0])
            except Exception as error:  # noqa: BLE001 - the other topic may be allowed
                cause = error.args[0] if error.args else error
                if isinstance(cause, KafkaError) and cause.code() == KafkaError.TOPIC_ALREADY_EXISTS:
                    existing[name] = partitions[name]  # another agent made it just now
                    continue
                logger.warning("topic %s was not created: %s", name, error)
                problem = problem or kafka_errors.no_topic(cause, name, servers)
    except ImportError:
        problem = kafka_errors.missing_client()
    except Exception as error:  # noqa: BLE001 - any other client error means: no broker now
        cause = error.args[0] if error.args else error
        problem = kafka_errors.silent(servers, kafka_errors.of_request(cause, noticed[0]))
    return existing, problem

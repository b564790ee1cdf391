"""A worker's Kafka client without its package, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SEND = """
client = kafka_client.producer({"bootstrap.servers": "127.0.0.1:9", "log_level": 0})
reports = []
client.produce("topic", b"message", on_delivery=lambda *report: reports.append(report))
client.purge()
client.poll(10)
[(error, message)] = reports
assert message.topic() == "topic" and error.name() == "_PURGE_QUEUE"
"""


def run(code: str, *path: Path) -> None:
    places = os.pathsep.join(map(str, (*path, *filter(None, sys.path))))
    subprocess.run(
        [sys.executable, "-c", f"import sys\nfrom spark_agent.delivery import kafka_client\n{code}"],
        env={**os.environ, "PYTHONPATH": places},
        check=True,
    )


def test_it_sends_and_nothing_of_the_package_is_loaded() -> None:
    run(f"""
kafka_client.load_alone()
{SEND}
assert not {{"confluent_kafka", "confluent_kafka.cimpl", "asyncio"}} & set(sys.modules)
""")


def test_a_job_that_imports_the_package_gets_all_of_it_with_the_same_classes() -> None:
    run(f"""
kafka_client.load_alone()
{SEND}
import confluent_kafka
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
assert confluent_kafka.cimpl.Producer is confluent_kafka.Producer is type(client)
assert type(error) is KafkaError
{SEND}
""")


def test_a_package_that_is_loaded_already_is_used() -> None:
    run(f"""
import confluent_kafka
kafka_client.load_alone()
assert "confluent_kafka.cimpl" in sys.modules and kafka_client._extension is None
{SEND}
""")


@pytest.mark.parametrize(
    "files",
    [
        {"confluent_kafka.py": "raise ImportError('none of it here')"},
        {"confluent_kafka/__init__.py": "raise ImportError('none of it here')"},
        {"confluent_kafka/__init__.py": "from .cimpl import Producer", "confluent_kafka/cimpl.py": "x = 1"},
        {
            "confluent_kafka/__init__.py": "from .cimpl import Producer",
            "confluent_kafka/cimpl.py": "import none",
        },
    ],
    ids=["a module", "an empty package", "no producer in it", "cannot be loaded"],
)
def test_where_there_is_none_that_is_said_when_something_is_to_be_sent(
    files: dict[str, str], tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    run(
        """
kafka_client.load_alone()
try:
    kafka_client.producer({})
except ImportError:
    pass
else:
    raise AssertionError
""",
        tmp_path,
    )

"""A group that is looked at while its broker is killed, again and again."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from lineage_service.devstack.errors import DownloadError, JavaError
from perf.delivery.brokers import Broker

#: A process of its own: what Kafka's client does wrong would end this one.
_LOOKS = """
import sys, threading, time
from lineage_service.kafka.errors import BrokerUnavailableError
from lineage_service.kafka.group import KafkaGroup

group, end, states = KafkaGroup(sys.argv[1], "group"), time.monotonic() + float(sys.argv[2]), []

def look():
    while time.monotonic() < end:
        try:
            states.append(group.state(["topic"], 1.0))
        except BrokerUnavailableError:
            states.append(None)
        time.sleep(0.02)

threads = [threading.Thread(target=look) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len([state for state in states if state]), states.count(None), group.state(["topic"], 60.0).members)
"""


@pytest.mark.thorough
def test_looks_survive_a_broker_that_is_killed(
    tmp_path: Path, jar_folder: Path, cannot_have: Callable[[str], NoReturn]
) -> None:
    try:
        with Broker(tmp_path, jar_folder) as broker:
            looks = subprocess.Popen(
                [sys.executable, "-c", _LOOKS, broker.servers, "60"],
                stdout=subprocess.PIPE,
                text=True,
            )
            while looks.poll() is None:
                time.sleep(5)
                broker.kill()
                time.sleep(3)
                broker.revive()
            answered, refused, members = map(int, looks.communicate()[0].split())
    except (DownloadError, JavaError) as error:
        cannot_have(f"no kafka: {error}")
    assert looks.returncode == 0
    assert answered > 0
    assert refused > 0
    assert members == 0

"""Kafka as one process: broker and controller in one (KRaft), loopback only, no authentication."""

from __future__ import annotations

import base64
import socket
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from lineage_service.devstack.errors import ServerError
from lineage_service.devstack.ports import HOST
from lineage_service.devstack.server import Place, java_command
from lineage_service.kafka.client import silent_log

_OPTIONS = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    # Only the quick compiler: starts in 2.4 s of CPU instead of 3.8, and carries 256 MB of 64 KB messages in
    # and out with 1.0 s instead of 1.7. A broker mostly moves bytes that others made.
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss,SSS",
    "-Dorg.slf4j.simpleLogger.showThreadName=false",
    # These print each of some 300 settings, twice, at every start.
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.config.AbstractConfig=warn",
    "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaConfig=warn",
)

#: For one broker on one machine: no copies, few partitions of what Kafka keeps for itself, no wait before a
#: group's first rebalance. A broker that was killed is let in again only when its old session is over: up
#: after 13 s with Kafka's own 9 s, after 7 to 8 s with this.
_SETTINGS = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://{host}:{broker},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{broker}
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers={host}:{controller}
log.dirs={data}
default.replication.factor=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=4
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=4000
"""


class Kafka:
    """The broker of the local stack."""

    name = "kafka"
    title = "Kafka"
    version = "4.1.0"
    ports: Mapping[str, int] = {"broker": 9092, "controller": 9093}

    def addresses(self, ports: Mapping[str, int]) -> dict[str, str]:
        return {"bootstrap_servers": f"{HOST}:{ports['broker']}"}

    def logs(self, place: Place) -> Sequence[Path]:
        return [place.logs / "kafka.log"]

    def prepare(self, java: Path, jars: Sequence[Path], place: Place, ports: Mapping[str, int]) -> list[str]:
        settings = place.folder / "server.properties"
        data = place.folder / "data"
        settings.write_text(_SETTINGS.format(host=HOST, data=data, **ports))
        if not (data / "meta.properties").exists():
            self._format(java, jars, place, settings)
        return java_command(java, place, _OPTIONS, jars, ["kafka.Kafka", str(settings)])

    def _format(self, java: Path, jars: Sequence[Path], place: Place, settings: Path) -> None:
        """Makes the data folder. Its controller port is not final: the broker also starts with another."""
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        tool = ["kafka.tools.StorageTool", "format", "--standalone", "--ignore-formatted"]
        tool += ["-t", f"L{cluster[1:]}", "-c", str(settings)]  # an id must not begin with a dash
        command = java_command(java, place, _OPTIONS, jars, tool)
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            said = (result.stderr.strip() or result.stdout.strip() or "nothing").splitlines()[-1]
            raise ServerError(f"Kafka cannot make its data folder in {place.folder}: {said[:300]}")

    def is_ready(self, addresses: Mapping[str, str]) -> bool:
        # Not at the top: `lineage status` of a stack that is down needs no Kafka client.
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        bootstrap_servers = addresses["bootstrap_servers"]
        if not accepts(bootstrap_servers):
            return False
        admin = AdminClient({"bootstrap.servers": bootstrap_servers}, logger=silent_log)
        try:
            return bool(admin.list_topics(timeout=3).brokers)
        except KafkaException:
            return False


def accepts(address: str) -> bool:
    """True if something listens on `host:port`: spares the clients their retries and their warnings."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True

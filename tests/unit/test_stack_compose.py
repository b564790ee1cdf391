from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from lineage_service.settings import Settings
from lineage_service.stack.servers import SERVERS
from lineage_service.stack.topics import topic_partitions

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    body: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    return body


def test_every_image_is_pinned(services: dict[str, Any]) -> None:
    for service in services.values():
        tag = service["image"].partition(":")[2]
        assert tag
        assert tag != "latest"


def test_everything_is_published_on_this_machine_only(services: dict[str, Any]) -> None:
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert len(ports) == 4
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_versions_are_those_of_the_local_stack(services: dict[str, Any]) -> None:
    for server in SERVERS:
        assert services[server.name]["image"].partition(":")[2].startswith(server.version)


def test_the_topics_are_those_of_the_local_stack(services: dict[str, Any]) -> None:
    script = services["topics"]["command"][0]
    for name, partitions in topic_partitions(Settings()).items():
        assert f"create {name} {partitions}\n" in script


def test_neo4js_password_is_the_users(services: dict[str, Any]) -> None:
    assert "${LINEAGE_NEO4J_PASSWORD:?" in services["neo4j"]["environment"]["NEO4J_AUTH"]
    for name in ("consumer", "api"):
        assert services[name]["environment"]["LINEAGE_NEO4J_PASSWORD"].startswith(
            "${LINEAGE_NEO4J_PASSWORD:?"
        )


def test_what_is_long_lived_is_started_again_and_watched(services: dict[str, Any]) -> None:
    for name in ("kafka", "neo4j", "api"):
        assert services[name]["restart"] == "unless-stopped"
        assert services[name]["healthcheck"]["test"][0] == "CMD"

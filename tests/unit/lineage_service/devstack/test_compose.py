from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from lineage_service.devstack.servers import SERVERS
from lineage_service.kafka.topics import topic_partitions
from lineage_service.settings import Settings
from scripts import jvm, page

ROOT = Path(__file__).parents[4]


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
    assert len(ports) == 6
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


def test_the_apis_token_is_the_users_and_stands_on_no_command_line(services: dict[str, Any]) -> None:
    secrets = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["secrets"]
    assert secrets == {"api-token": {"environment": "LINEAGE_API_TOKEN"}}
    command = services["api"]["command"]
    assert command[command.index("--api-token-file") + 1] == f"/run/secrets/{services['api']['secrets'][0]}"
    assert "--api-token" not in command


def test_what_is_long_lived_is_started_again_and_watched(services: dict[str, Any]) -> None:
    for name in ("kafka", "neo4j", "api"):
        assert services[name]["restart"] == "unless-stopped"
        assert services[name]["healthcheck"]["test"][0] == "CMD"


def test_prometheus_and_grafana_are_there_only_for_who_asks(services: dict[str, Any]) -> None:
    asked_for = {name for name, service in services.items() if service.get("profiles")}
    assert asked_for == {"prometheus", "grafana"}


def test_what_is_mounted_into_prometheus_and_grafana_is_there(services: dict[str, Any]) -> None:
    for name in ("prometheus", "grafana"):
        mounts = [volume for volume in services[name]["volumes"] if volume.startswith("./")]
        assert mounts
        for mount in mounts:
            assert (ROOT / mount.split(":")[0]).exists(), mount
            assert mount.endswith(":ro")


def test_prometheus_asks_the_services_at_their_ports(services: dict[str, Any]) -> None:
    jobs = yaml.safe_load((ROOT / "ops" / "prometheus.yml").read_text())["scrape_configs"]
    [api] = [job["static_configs"][0]["targets"] for job in jobs if "static_configs" in job]
    [consumers] = [job["dns_sd_configs"][0] for job in jobs if "dns_sd_configs" in job]
    assert api == ["api:" + services["api"]["command"][-1]]
    [token_file] = [job["authorization"]["credentials_file"] for job in jobs if "authorization" in job]
    assert token_file == f"/run/secrets/{services['prometheus']['secrets'][0]}"
    assert consumers["names"] == ["consumer"]
    assert consumers["port"] == Settings.model_fields["metrics_port"].default
    assert services["consumer"]["command"][-2:] == ["--metrics-host", "0.0.0.0"]


# -- the image -------------------------------------------------------------------------------------------

DOCKERFILE = (ROOT / "Dockerfile").read_text()


def test_every_image_that_ours_is_built_from_is_pinned() -> None:
    images = re.findall(r"^FROM (\S+)", DOCKERFILE, re.M)
    assert len(images) == 4
    assert [image for image in images if not re.search(r":\d+\.\d+", image)] == []


def test_the_image_installs_the_wheel_that_it_holds_and_the_documentation_names_its_place() -> None:
    place = "/usr/share/lineage-master"
    _, build, image = DOCKERFILE.rsplit("FROM python:", 2)
    assert "RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheel .\n" in build
    assert f"COPY --from=wheel /wheel {place}\n" in image
    assert f'pip install --no-cache-dir "$(echo {place}/*.whl)[service]"' in image
    for name in ("docs/install.md", "docker-compose.yml"):
        assert f"docker compose cp api:{place}/. wheels" in (ROOT / name).read_text()


def test_the_image_has_the_tools_that_build_the_wheel_whole() -> None:
    node = re.search(r"^FROM node:(\d+)\.(\d+)", DOCKERFILE, re.M)
    jdk = re.search(r"^FROM eclipse-temurin:(\d+)", DOCKERFILE, re.M)
    assert node is not None
    assert jdk is not None
    assert (int(node[1]), int(node[2])) >= page.NEEDED
    assert int(jdk[1]) >= jvm.OLDEST_JDK


def test_nothing_that_was_built_here_gets_into_the_image() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert {".cache", "dist", "ui/lineage_page/dist", "ui/node_modules", "spark_agent/jvm/lineage.*"} <= {
        *ignored
    }

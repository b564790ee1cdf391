"""Every query of the dashboard and every alert, answered by a real Prometheus that scrapes real processes.

Prometheus is the `prometheus` on the PATH. Where there is none these tests are skipped, and with
LINEAGE_TEST_PROMETHEUS=required they fail.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml

from lineage_service.devstack.ports import HOST, choose_port
from lineage_service.triggering.learning.drift import BROKEN, KEPT, RUN, SKIPPED, Looks
from lineage_service.triggering.learning.phases import Policy, Progress
from lineage_service.triggering.waves.wave_history import Wave, WaveHistory
from lineage_service.triggering.weighing.experience import Experience
from spark_agent import contract
from tests.support.consumers import Bench, bench_of, manifest, metrics_url, serving, some_blocks, wait_until
from tests.support.lineage_messages import event

pytestmark = pytest.mark.thorough

OPS = Path(__file__).parents[3] / "ops"


@pytest.fixture
def bench(kafka: Any, tmp_path: Path, topic: str) -> Iterator[Bench]:
    yield from bench_of(kafka, tmp_path, topic)


@pytest.fixture
def program(without: Callable[[str, str], NoReturn]) -> str:
    found = shutil.which("prometheus")
    if found is None:
        without("PROMETHEUS", "no prometheus on the PATH")
    return found


@pytest.fixture
def start(program: str, tmp_path: Path) -> Iterator[Any]:
    """start(job=its target) -> URL of a Prometheus with the configuration of ops/, that looks each second."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(**targets: str) -> str:
        config = yaml.safe_load((OPS / "prometheus.yml").read_text("utf-8"))
        config["global"] |= {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
        config["rule_files"] = [str(OPS / "rules.yml")]
        for job in config["scrape_configs"]:
            job.pop("dns_sd_configs", None)
            job["static_configs"] = [{"targets": [targets[job["job_name"].replace("-", "_")]]}]
            if "authorization" in job:
                job["authorization"]["credentials_file"] = str(tmp_path / "token")
        file = tmp_path / "prometheus.yml"
        file.write_text(yaml.safe_dump(config))
        port = choose_port("Prometheus", [])
        command = [program, f"--config.file={file}", f"--storage.tsdb.path={tmp_path / 'tsdb'}"]
        with (tmp_path / "prometheus.log").open("wb") as log:
            process = subprocess.Popen(
                [*command, f"--web.listen-address={HOST}:{port}"], stdout=log, stderr=log
            )
        processes.append(process)
        url = f"http://{HOST}:{port}"
        wait_until(lambda: process.poll() is not None or is_ready(url))
        assert process.poll() is None, (tmp_path / "prometheus.log").read_text()
        return url

    yield start
    for process in processes:
        process.kill()
        process.wait()


def is_ready(url: str) -> bool:
    """It listens before it answers queries."""
    try:
        with urllib.request.urlopen(f"{url}/-/ready", timeout=60):
            return True
    except OSError:
        return False


def asked(url: str, path: str, **parameters: str) -> Any:
    query = urllib.parse.urlencode(parameters)
    with urllib.request.urlopen(f"{url}/api/v1/{path}?{query}", timeout=60) as answer:
        body = json.load(answer)
    assert body["status"] == "success", body
    return body["data"]


def values(url: str, expression: str) -> list[float]:
    """Of each series of an instant query; those that are no number are left out."""
    found = [float(each["value"][1]) for each in asked(url, "query", query=expression)["result"]]
    return [value for value in found if not math.isnan(value)]


def address_of(url: str) -> str:
    return urllib.parse.urlsplit(url).netloc


def answer(number: int) -> Wave:
    """One that rests on a model, of a job that keeps its bound less often than is wanted."""
    looks = Looks(recent=SKIPPED * 6 + RUN * 6 + KEPT * 6 + BROKEN * 2)
    progress = Progress(phase="application", looks=looks)
    return Wave(
        job="takings",
        wave=f"w{number}",
        number=number - 1,
        time=number,
        phase="application",
        decision="skip",
        reason="tolerated",
        why="its output would hardly change",
        bound=0.05,
        confidence=0.95,
        probability=0.04,
        compliance=0.985,
        compliance_lower=0.96,
        seconds=0.02,
        learned=Experience(terms="", policy=Policy(bound=0.05), progress=progress).to_json(),
    )


def test_no_panel_is_empty_and_every_alert_can_be_evaluated(bench: Bench, neo4j: Any, start: Any) -> None:
    dashboard = json.loads((OPS / "grafana" / "dashboards" / "lineage.json").read_text("utf-8"))
    empty = {target["expr"] for panel in dashboard["panels"] for target in panel["targets"]}
    alerts = {
        rule["alert"]: rule
        for group in yaml.safe_load((OPS / "rules.yml").read_text("utf-8"))["groups"]
        for rule in group["rules"]
    }
    graph = {"neo4j_uri": neo4j.uri, "neo4j_user": neo4j.user, "neo4j_password": neo4j.password}
    consumer = bench.consume(metrics_port=0, **graph)
    metrics = metrics_url(consumer)
    bench.send_events(event(contract.APPLICATION_STARTED, name="job"), manifest(1, 3))
    bench.send_events(event(contract.APPLICATION_ENDED, counters={"runs": 2}))
    sent = 0
    token = bench.folder / "token"
    token.write_text("a-token-that-prometheus-has\n")
    with serving(bench, api_token_file=str(token)) as served:
        url = start(lineage_serve=address_of(served), lineage_consume=address_of(metrics))

        history = WaveHistory(bench.store.location)

        def none_is_empty() -> bool:
            """Rates need something new between two scrapes, so there is always something new."""
            nonlocal sent
            sent += 1
            bench.send_blocks(*some_blocks(sent, 1), b"poison")
            history.add(answer(sent), sent - 1)
            for expression in sorted(empty):
                if values(url, expression):
                    empty.discard(expression)
            return not empty

        try:
            wait_until(none_is_empty, consumer)
        finally:
            assert empty == set()
        assert values(url, "sum(kafka_consumergroup_lag_total)") == []  # a name that there is not
        rules = {rule["name"]: rule for group in asked(url, "rules")["groups"] for rule in group["rules"]}
        assert set(rules) == set(alerts)
        assert {rule["health"] for rule in rules.values()} == {"ok"}, rules

        def is_firing() -> bool:
            found = [alert for alert in asked(url, "alerts")["alerts"] if alert["state"] == "firing"]
            names = {each["labels"]["alertname"] for each in found}
            return {"LineageDeadLetters", "LineageTriggerCompliance"} <= names

        wait_until(is_firing, consumer)
        summaries = [alert["annotations"]["summary"] for alert in asked(url, "alerts")["alerts"]]
        late = "By its audits, the job takings keeps its bound in 92.5% of waves, and more is wanted."
        assert late in summaries
        [alert] = [
            alert
            for alert in asked(url, "alerts")["alerts"]
            if alert["labels"]["alertname"] == "LineageDeadLetters"
        ]
        said = f"Consumer {address_of(metrics)} found messages that nobody can read."
        assert alert["annotations"]["summary"] == said
        assert values(url, "max(lineage_dead_letters)")[0] > 0

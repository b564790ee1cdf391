"""Dashboard and alerts speak of metrics that there are, and alerts say what to do."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from lineage_service.monitoring.metric_table import METRICS

OPS = Path(__file__).parents[4] / "ops"
PROCESS = {"process_resident_memory_bytes"}
HISTOGRAM = ("_bucket", "_sum", "_count")


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((OPS / "grafana" / "dashboards" / "lineage.json").read_text("utf-8"))
    return found


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load((OPS / "rules.yml").read_text("utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def expressions() -> list[str]:
    panels = [target["expr"] for panel in dashboard()["panels"] for target in panel["targets"]]
    return panels + [alert["expr"] for alert in alerts()]


@pytest.mark.parametrize("expression", expressions())
def test_every_metric_and_label_of_an_expression_is_one_of_the_table(expression: str) -> None:
    names = {metric.name for metric in METRICS if metric.kind != "histogram"} | PROCESS
    names |= {metric.name + part for metric in METRICS if metric.kind == "histogram" for part in HISTOGRAM}
    used = set(re.findall(r"\b(?:lineage|kafka|process)_\w+", re.sub(r"\"[^\"]*\"", "", expression)))
    labels = {label for metric in METRICS for label in metric.labels} | {"instance", "job", "le"}
    used -= labels
    assert used
    assert used <= names
    grouped = re.findall(r"\b(?:by|on) \(([^)]*)\)", expression)
    assert {label.strip() for each in grouped for label in each.split(",")} <= labels
    assert expression.count("(") == expression.count(")")


def test_panels_do_not_cover_each_other_and_say_their_unit() -> None:
    taken: set[tuple[int, int]] = set()
    panels = dashboard()["panels"]
    for panel in panels:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        assert panel["fieldConfig"]["defaults"]["unit"]
        taken |= cells
    assert len({panel["id"] for panel in panels}) == len(panels)


#: Where a question of the documentation or an alert is answered by another metric.
NOT_DRAWN = {
    "kafka_topic_partitions": "the same all the time",
    "kafka_topic_partition_current_offset": "kafka_consumergroup_lag_sum draws what waits",
    "kafka_topic_partition_oldest_offset": "kafka_consumergroup_lag_sum draws what waits",
    "kafka_consumergroup_lag": "kafka_consumergroup_lag_sum draws what waits",
    "kafka_consumergroup_current_offset": "kafka_consumergroup_lag_sum draws what waits",
    "lineage_applications_unread": "the next scrape goes on with them",
    "lineage_trigger_jobs_unread": "the next scrape goes on with them, or they are not asked about",
    "lineage_consumer_batches_total": "lineage_consumer_batch_bytes draws batches",
    "lineage_consumer_batch_messages": "lineage_consumer_batch_bytes draws batches",
}


def test_the_dashboard_draws_every_metric_but_those_with_a_reason() -> None:
    drawn = " ".join(target["expr"] for panel in dashboard()["panels"] for target in panel["targets"])
    ends = {"histogram": "_(bucket|sum|count)"}
    left_out = {
        metric.name
        for metric in METRICS
        if not re.search(rf"\b{metric.name}{ends.get(metric.kind, '')}\b", drawn)
    }
    assert left_out == NOT_DRAWN.keys()


def test_what_may_be_empty_says_why() -> None:
    """Rates and the drain need two looks, and the drain something that gets less."""
    for panel in dashboard()["panels"]:
        expressions = " ".join(target["expr"] for target in panel["targets"])
        if panel["type"] == "stat" and re.search("_per_second|drain", expressions):
            assert panel["fieldConfig"]["defaults"]["noValue"]


def test_every_alert_says_what_is_wrong_and_what_to_do() -> None:
    for alert in alerts():
        assert alert["labels"]["severity"] in ("warning", "critical")
        assert set(alert["annotations"]) == {"summary", "action"}


def test_the_dashboard_reads_from_the_data_source_that_is_provisioned() -> None:
    folder = OPS / "grafana" / "provisioning" / "datasources"
    [source] = yaml.safe_load((folder / "prometheus.yml").read_text("utf-8"))["datasources"]
    assert {panel["datasource"]["uid"] for panel in dashboard()["panels"]} == {source["uid"]}

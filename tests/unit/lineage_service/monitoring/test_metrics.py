"""The table of metrics, its page, and the values that Prometheus' own parser reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from lineage_service.decode.batches import event_batch
from lineage_service.graph.connection import GraphCounters
from lineage_service.ingest.consumer import Consumer
from lineage_service.ingest.gathered_messages import Limits
from lineage_service.lineage import ModelInCharge
from lineage_service.lineage.trigger_totals import JobTotals, TriggerTotals
from lineage_service.monitoring.incomplete_applications import IncompleteWatch
from lineage_service.monitoring.lag import LagWatch
from lineage_service.monitoring.metrics import (
    METRICS,
    BatchMetrics,
    ConsumerMetrics,
    GraphMetrics,
    LagMetrics,
    TriggerMetrics,
    exposition,
    new_registry,
)
from lineage_service.store.errors import StoreUnavailableError
from lineage_service.store.flow_store import FlowStore
from lineage_service.testing.dead_letters import MemoryDeadLetters
from lineage_service.testing.flow_store import MemoryFlowStore
from lineage_service.testing.group import MemoryGroup
from lineage_service.testing.subscription import MemoryLog, MemorySubscription
from spark_agent import contract
from tests.support.lineage_messages import block, event, messages

PAGE = Path(__file__).parents[4] / "docs" / "metrics.md"
Labels = tuple[tuple[str, str], ...]


def scraped(registry: CollectorRegistry) -> dict[str, dict[Labels, float]]:
    """Sample name -> labels -> value."""
    found: dict[str, dict[Labels, float]] = {}
    text = exposition(registry, None)[0].decode()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def table() -> Iterator[str]:
    yield "| metric | type | labels | of | meaning |"
    yield "|---|---|---|---|---|"
    for metric in METRICS:
        labels = ", ".join(f"`{label}`" for label in metric.labels) or "none"
        yield f"| `{metric.name}` | {metric.kind} | {labels} | `lineage {metric.command}` | {metric.help} |"


def lag_registry(group: MemoryGroup, store: FlowStore) -> CollectorRegistry:
    watch = LagWatch(
        group,
        IncompleteWatch(lambda: store, now=lambda: 1_000.0),
        name="g",
        topics=["flow", "node"],
        dead_letter_topic="dead",
        now=lambda: 1_000.0,
    )
    return new_registry(LagMetrics(watch), TriggerMetrics(lambda: TriggerTotals(jobs=(), unread=0)))


class ConsumerBench:
    def __init__(self, store: MemoryFlowStore) -> None:
        self.log = MemoryLog()
        self.registry = new_registry()
        self.consumer = Consumer(
            lambda owner: MemorySubscription(self.log, owner),
            store,
            None,
            MemoryDeadLetters(),
            group="g",
            node_topic="node",
            limits=Limits(max_bytes=10**6, max_seconds=0.0),
            observer=BatchMetrics(self.registry),
        )
        self.registry.register(ConsumerMetrics(self.consumer))
        self.registry.register(GraphMetrics(GraphCounters()))

    def run(self, turns: int) -> None:
        left = iter(range(turns))
        self.consumer.run(lambda: next(left, None) is None)


def test_the_page_holds_the_table_of_metrics() -> None:
    made = "\n".join(table())
    assert made in PAGE.read_text(encoding="utf-8"), f"docs/metrics.md must hold:\n\n{made}"


def test_each_process_has_exactly_its_metrics_of_the_table() -> None:
    bench = ConsumerBench(MemoryFlowStore())
    bench.log.append("flow", 0, block())
    bench.run(2)
    group = MemoryGroup(stamps={("flow", 0): [0]}, committed={("flow", 0): 0})
    for command, registry in (
        ("consume", bench.registry),
        ("serve", lag_registry(group, MemoryFlowStore())),
    ):
        text = exposition(registry, None)[0].decode()
        families = [
            text_string_to_metric_family
            for text_string_to_metric_family in text_string_to_metric_families(text)
            if not text_string_to_metric_family.name.startswith("process_")
        ]
        named = {
            family.name + ("_total" if family.type == "counter" else ""): (family.type, family.documentation)
            for family in families
            if not family.name.endswith("_created")
        }
        assert named == {
            metric.name: (metric.kind, metric.help) for metric in METRICS if metric.command == command
        }


def test_labels_are_those_of_the_table() -> None:
    group = MemoryGroup(stamps={("flow", 0): [0]}, committed={("flow", 0): 0}, members=1)
    found = scraped(lag_registry(group, MemoryFlowStore()))
    for metric in METRICS:
        for labels in found.get(metric.name, {}):
            assert {name for name, _ in labels} == set(metric.labels), metric.name


def test_the_lag_is_asked_for_when_prometheus_asks() -> None:
    group = MemoryGroup(
        stamps={("flow", 0): [990_000, 993_000], ("node", 0): [], ("dead", 0): [0, 0]},
        committed={("flow", 0): 1},
        members=3,
    )
    store = MemoryFlowStore()
    store.write_events(
        event_batch(
            "g/node-0",
            messages(
                event(contract.RUN_COMMITTED, run=1, blocks=3, dropped=1),
                event(contract.APPLICATION_ENDED, counters={"runs": 2}),
                event(contract.APPLICATION_STARTED, application_id="other"),
            ),
        )
    )
    found = scraped(lag_registry(group, store))
    place = (("consumergroup", "g"), ("partition", "0"), ("topic", "flow"))
    assert found["kafka_consumergroup_lag"][place] == 1
    assert found["lineage_consumergroup_lag_seconds"][place] == 7
    assert list(found["kafka_consumergroup_current_offset"]) == [place]  # the group committed nothing else
    assert found["kafka_topic_partition_current_offset"][place[1:]] == 2
    assert found["kafka_consumergroup_members"] == {place[:1]: 3}
    assert found["kafka_consumergroup_lag_sum"] == {
        (place[0], ("topic", "flow")): 1,
        (place[0], ("topic", "node")): 0,
    }
    assert found["lineage_applications_unfinished"] == {
        (("state", "running"),): 1,
        (("state", "ended"),): 1,
        (("state", "failed"),): 0,
        (("state", "lost"),): 0,
    }
    single = {name: values[()] for name, values in found.items() if () in values}
    assert (single["lineage_kafka_up"], single["lineage_flow_store_up"]) == (1, 1)
    assert (single["lineage_dead_letters"], single["lineage_blocks_missing"]) == (2, 3)
    assert (single["lineage_blocks_dropped"], single["lineage_manifests_missing"]) == (1, 1)
    assert single["process_resident_memory_bytes"] > 10**6


def test_kafka_or_a_store_that_is_away_has_no_old_numbers() -> None:
    store = MemoryFlowStore()
    found = scraped(lag_registry(MemoryGroup(is_away=True), store))
    assert found["lineage_kafka_up"] == {(): 0}
    assert "kafka_consumergroup_lag" not in found
    assert found["lineage_flow_store_up"] == {(): 1}
    store.version = _away  # type: ignore[method-assign]
    found = scraped(lag_registry(MemoryGroup(), store))
    assert found["lineage_flow_store_up"] == {(): 0}
    assert "lineage_blocks_missing" not in found


def test_what_was_decided_about_jobs_is_said_of_each() -> None:
    counts = (2, 1, *[0] * 7, 3)
    takings = JobTotals(
        job="takings",
        decisions={("run", "changed"): 2, ("skip", "tolerated"): 4},
        phase="application",
        probability=0.04,
        tested_compliance=0.978,
        in_charge=ModelInCharge(
            waves=50, skips=30, audits=3, broken=0, compliance=0.99, compliance_lower=0.62
        ),
        confidence=0.95,
        seconds=counts,
        saved_seconds=360.5,
        spent_seconds=1.25,
    )
    unknown = dict.fromkeys(("probability", "tested_compliance", "in_charge", "confidence"))
    certain = replace(takings, job='a "b"\n', phase="certain", saved_seconds=0.0, **unknown)
    totals = TriggerTotals(jobs=(takings, certain), unread=7)
    found = scraped(new_registry(TriggerMetrics(lambda: totals)))
    for metric in METRICS:
        if metric.kind != "histogram":
            assert {name for labels in found.get(metric.name, {}) for name, _ in labels} <= set(metric.labels)
    job = ("lineage_job", "takings")
    decisions = {
        labels: value for labels, value in found["lineage_trigger_decisions_total"].items() if job in labels
    }
    assert decisions == {
        (("decision", "run"), job, ("reason", "changed")): 2,
        (("decision", "skip"), job, ("reason", "tolerated")): 4,
    }
    phases = {labels: value for labels, value in found["lineage_trigger_phase"].items() if job in labels}
    assert {dict(labels)["phase"]: value for labels, value in phases.items()} == {
        "certain": 0,
        "training": 0,
        "application": 1,
    }
    for name, value in (
        ("compliance", 0.99),
        ("compliance_lower", 0.62),
        ("tested_compliance", 0.978),
        ("confidence", 0.95),
        ("probability", 0.04),
    ):
        assert found[f"lineage_trigger_{name}"] == {(job,): value}  # what is not known is absent
    other = ("lineage_job", 'a "b"\n')
    assert found["lineage_trigger_saved_seconds_total"] == {(job,): 360.5, (other,): 0}
    assert found["lineage_trigger_spent_seconds_total"] == {(job,): 1.25, (other,): 1.25}
    buckets = {
        dict(labels)["le"]: value
        for labels, value in found["lineage_trigger_decision_seconds_bucket"].items()
    }
    assert (buckets["0.01"], buckets["0.03"], buckets["100.0"], buckets["+Inf"]) == (4, 6, 6, 12)
    assert found["lineage_trigger_decision_seconds_count"] == {(): 12}
    assert found["lineage_trigger_decision_seconds_sum"] == {(): 2.5}
    assert found["lineage_trigger_jobs_unread"] == {(): 7}


def test_a_store_that_is_away_has_no_old_sums() -> None:
    found = scraped(new_registry(TriggerMetrics(_away)))
    assert not [name for name in found if name.startswith("lineage_trigger")]


def _away(*_: object) -> tuple[int, ...]:
    raise StoreUnavailableError("away")


def test_a_consumer_counts_and_times_what_it_did() -> None:
    bench = ConsumerBench(MemoryFlowStore())
    bench.log.append("flow", 0, block(seq=0), block(seq=1), b"poison")
    bench.log.append("node", 0, event(contract.LINK))
    bench.run(4)
    found = scraped(bench.registry)
    counted = {
        name.removeprefix("lineage_consumer_").removesuffix("_total"): values[()]
        for name, values in found.items()
        if name.endswith("_total") and name.startswith("lineage_consumer_")
    }
    assert counted.pop("bytes") == sum(
        message.bytes for partition in bench.log.messages.values() for message in partition
    )
    assert counted == {
        "messages": 4,
        "batches": 2,
        "blocks": 2,
        "rows": 4,
        "events": 1,
        "repeated": 0,
        "dead_letters": 1,
        "retries": 0,
    }
    stores = {labels[0][1]: value for labels, value in found["lineage_consumer_store_seconds_count"].items()}
    assert stores == {"flow_store": 2, "dead_letters": 1, "offsets": 2}
    assert found["lineage_consumer_batch_messages_sum"] == {(("topic", "flow"),): 3, (("topic", "node"),): 1}
    assert found["lineage_consumer_batch_bytes_sum"][("topic", "flow"),] > 100
    assert found["lineage_consumer_gathered_bytes"] == {(): 0}


def test_a_consumer_whose_store_is_away_says_that_it_waits() -> None:
    store = MemoryFlowStore()
    store.write_flows = _away  # type: ignore[method-assign, assignment]
    bench = ConsumerBench(store)
    bench.log.append("flow", 0, block(), block(seq=1))
    bench.run(2)
    found = scraped(bench.registry)
    assert found["lineage_consumer_waiting"] == {(): 1}
    assert found["lineage_consumer_retries_total"] == {(): 1}
    assert "lineage_consumer_store_seconds_count" not in found

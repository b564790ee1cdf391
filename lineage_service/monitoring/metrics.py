"""What Prometheus scrapes: the collectors that give the values of `metric_table`.

Promises that what can be read when somebody asks is read then, so consuming pays for two observations a
batch and no more. Knows nothing of HTTP.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, TypeVar, get_args

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from lineage_service.errors import UnavailableError
from lineage_service.lineage import GroupLag, TriggerPhase
from lineage_service.lineage.trigger_totals import DECISION_SECONDS, TriggerTotals
from lineage_service.monitoring.incomplete_applications import IncompleteApplications
from lineage_service.monitoring.metric_table import METRICS

if TYPE_CHECKING:
    from lineage_service.graph.connection import GraphCounters
    from lineage_service.ingest.consumer import Consumer
    from lineage_service.monitoring.lag import LagWatch

__all__ = [
    "TEXT_FORMAT",
    "BatchMetrics",
    "ConsumerMetrics",
    "GraphMetrics",
    "LagMetrics",
    "TriggerMetrics",
    "exposition",
    "new_registry",
]

TEXT_FORMAT = "text/plain"
_T = TypeVar("_T")


_PHASES = get_args(TriggerPhase)
_BY_NAME = {metric.name: metric for metric in METRICS}

_BUCKETS = {
    "lineage_consumer_batch_bytes": (1e3, 1e4, 1e5, 1e6, 4e6, 8e6, 16e6, 32e6, 64e6, 128e6),
    "lineage_consumer_batch_messages": (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000),
    "lineage_consumer_store_seconds": (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
}


def new_registry(*collectors: Collector) -> CollectorRegistry:
    """What this process answers: the collectors', and its own CPU, memory and open files (`process_*`)."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    for collector in collectors:
        registry.register(collector)
    return registry


def exposition(registry: CollectorRegistry, accept: str | None) -> tuple[bytes, str]:
    """The metrics as text, and its content type: OpenMetrics for who accepts it, else Prometheus' own."""
    encode, content_type = choose_encoder(accept or "")
    return encode(registry), content_type


class ConsumerMetrics(Collector):
    """What a consumer counts, read when asked."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    def collect(self) -> Iterator[Metric]:
        yield from _counted("lineage_consumer_", self._consumer.counters)
        yield _single("lineage_consumer_waiting", self._consumer.is_waiting)
        yield _single("lineage_consumer_gathered_bytes", self._consumer.gathered_bytes)


class GraphMetrics(Collector):
    """What a graph counts, read when asked."""

    def __init__(self, counters: GraphCounters) -> None:
        self._counters = counters

    def collect(self) -> Iterator[Metric]:
        yield from _counted("lineage_graph_", self._counters)


class BatchMetrics:
    """The `consumer.Observer` that keeps sizes of batches and times of stores."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._bytes, self._messages, self._seconds = (
            Histogram(name, _BY_NAME[name].help, _BY_NAME[name].labels, registry=registry, buckets=buckets)
            for name, buckets in _BUCKETS.items()
        )

    def batch(self, topic: str, messages: int, size: int) -> None:
        self._bytes.labels(topic).observe(size)
        self._messages.labels(topic).observe(messages)

    def step(self, store: str, seconds: float) -> None:
        self._seconds.labels(store).observe(seconds)


class LagMetrics(Collector):
    """What waits for the group and what applications lack, looked at when asked."""

    def __init__(self, watch: LagWatch) -> None:
        self._watch = watch

    def collect(self) -> Iterator[Metric]:
        yield from _if_up("lineage_kafka_up", self._watch.group, _group_metrics)
        yield from _if_up("lineage_flow_store_up", self._watch.applications, _application_metrics)


class TriggerMetrics(Collector):
    """What was decided about jobs, looked at when asked. Nothing where the flow store is away."""

    def __init__(self, look: Callable[[], TriggerTotals]) -> None:
        """`look` may raise UnavailableError."""
        self._look = look

    def collect(self) -> Iterator[Metric]:
        try:
            totals = self._look()
        except UnavailableError:
            return
        yield from _trigger_metrics(totals)


def _trigger_metrics(totals: TriggerTotals) -> Iterator[Metric]:
    jobs = [((job.job,), job) for job in totals.jobs]
    yield _counter(
        "lineage_trigger_decisions_total",
        (
            ((*names, *answer), count)
            for names, job in jobs
            for answer, count in sorted(job.decisions.items())
        ),
    )
    yield _gauge(
        "lineage_trigger_phase",
        (((*names, phase), phase == job.phase) for names, job in jobs for phase in _PHASES),
    )
    yield _gauge("lineage_trigger_probability", ((names, job.probability) for names, job in jobs))
    models = [(names, job.in_charge) for names, job in jobs if job.in_charge is not None]
    yield _gauge("lineage_trigger_compliance", ((names, model.compliance) for names, model in models))
    yield _gauge(
        "lineage_trigger_compliance_lower", ((names, model.compliance_lower) for names, model in models)
    )
    yield _gauge("lineage_trigger_tested_compliance", ((names, job.tested_compliance) for names, job in jobs))
    yield _gauge("lineage_trigger_confidence", ((names, job.confidence) for names, job in jobs))
    yield _counter("lineage_trigger_saved_seconds_total", ((names, job.saved_seconds) for names, job in jobs))
    yield _counter("lineage_trigger_spent_seconds_total", ((names, job.spent_seconds) for names, job in jobs))
    classes = [sum(counts) for counts in zip(*(job.seconds for job in totals.jobs), strict=True)]
    counts = list(accumulate(classes or [0] * (len(DECISION_SECONDS) + 1)))
    name = "lineage_trigger_decision_seconds"
    yield HistogramMetricFamily(
        name,
        _BY_NAME[name].help,
        buckets=[
            (bound, count) for bound, count in zip((*map(str, DECISION_SECONDS), "+Inf"), counts, strict=True)
        ],
        sum_value=sum(job.spent_seconds for job in totals.jobs),
    )
    yield _single("lineage_trigger_jobs_unread", totals.unread)


def _if_up(name: str, look: Callable[[], _T], metrics: Callable[[_T], Iterable[Metric]]) -> Iterator[Metric]:
    try:
        state = look()
    except UnavailableError:
        yield _single(name, 0)
    else:
        yield _single(name, 1)
        yield from metrics(state)


def _group_metrics(group: GroupLag) -> Iterator[Metric]:
    names = (group.name,)
    partitions = [((lag.topic, str(lag.partition)), lag) for lag in group.partitions]
    topics = sorted({lag.topic for lag in group.partitions})
    waiting = Counter[str]()
    for lag in group.partitions:
        waiting[lag.topic] += lag.messages
    counts = Counter(lag.topic for lag in group.partitions)
    yield _gauge("kafka_topic_partitions", (((topic,), counts[topic]) for topic in topics))
    yield _gauge("kafka_topic_partition_current_offset", ((place, lag.next) for place, lag in partitions))
    yield _gauge("kafka_topic_partition_oldest_offset", ((place, lag.first) for place, lag in partitions))
    yield _gauge("kafka_consumergroup_members", [(names, group.members)])
    yield _gauge(
        "kafka_consumergroup_current_offset",
        (((*names, *place), lag.committed) for place, lag in partitions),
    )
    yield _gauge("kafka_consumergroup_lag", (((*names, *place), lag.messages) for place, lag in partitions))
    yield _gauge("kafka_consumergroup_lag_sum", (((*names, topic), waiting[topic]) for topic in topics))
    yield _gauge(
        "lineage_consumergroup_lag_seconds", (((*names, *place), lag.seconds) for place, lag in partitions)
    )
    yield _gauge("lineage_consumergroup_messages_per_second", [(names, group.rate)])
    yield _gauge("lineage_consumergroup_incoming_messages_per_second", [(names, group.incoming_rate)])
    yield _gauge("lineage_consumergroup_drain_seconds", [(names, group.drain_seconds)])
    yield _single("lineage_dead_letters", group.dead_letters)


def _application_metrics(incomplete: IncompleteApplications) -> Iterator[Metric]:
    states = Counter(lag.state for lag in incomplete.applications)
    yield _gauge(
        "lineage_applications_unfinished",
        (((name,), states[name]) for name in ("running", "ended", "failed", "lost")),
    )
    yield _single("lineage_applications_failed", incomplete.failed)
    yield _single("lineage_applications_unread", incomplete.unread)
    for name, field in (
        ("lineage_runs_incomplete", "incomplete_runs"),
        ("lineage_manifests_missing", "missing_runs"),
        ("lineage_blocks_missing", "missing_blocks"),
        ("lineage_events_missing", "missing_events"),
        ("lineage_blocks_dropped", "dropped"),
        ("lineage_gaps", "gaps"),
    ):
        yield _single(name, sum(getattr(lag, field) for lag in incomplete.applications))


def _gauge(name: str, samples: Iterable[tuple[Sequence[str], float | None]]) -> GaugeMetricFamily:
    """One sample for each combination of labels whose value is known."""
    family = GaugeMetricFamily(name, _BY_NAME[name].help, labels=_BY_NAME[name].labels)
    for labels, value in samples:
        if value is not None:
            family.add_metric(labels, value)
    return family


def _counter(name: str, samples: Iterable[tuple[Sequence[str], float]]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, _BY_NAME[name].help, labels=_BY_NAME[name].labels)
    for labels, value in samples:
        family.add_metric(labels, value)
    return family


def _counted(prefix: str, counters: object) -> Iterator[CounterMetricFamily]:
    """The counters of the table whose names begin so, each a field of `counters`."""
    for metric in METRICS:
        if metric.kind == "counter" and metric.name.startswith(prefix):
            value = getattr(counters, metric.name.removeprefix(prefix).removesuffix("_total"))
            yield CounterMetricFamily(metric.name, metric.help, value=value)


def _single(name: str, value: float) -> GaugeMetricFamily:
    return _gauge(name, [((), value)])

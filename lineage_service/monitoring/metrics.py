"""What Prometheus scrapes: the one table of all metrics, and the collectors that give their values.

Promises that what can be read when somebody asks is read then, so consuming pays for two observations a
batch and no more. Names of kafka_exporter where it has one for the same thing, `lineage_*` otherwise; the
table of docs/metrics.md is made from METRICS and a test compares the two. Knows nothing of HTTP.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lineage_service.errors import UnavailableError
from lineage_service.lineage import GroupLag
from lineage_service.monitoring.incomplete import UnfinishedApplications

if TYPE_CHECKING:
    from lineage_service.graph.connection import GraphCounters
    from lineage_service.ingest.consumer import Consumer
    from lineage_service.monitoring.lag import LagWatch

__all__ = [
    "METRICS",
    "TEXT_FORMAT",
    "BatchMetrics",
    "ConsumerMetrics",
    "GraphMetrics",
    "LagMetrics",
    "exposition",
    "new_registry",
]

TEXT_FORMAT = "text/plain"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Described:
    """One metric: which command has it, and what it says."""

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    command: Literal["serve", "consume"]
    help: str
    labels: tuple[str, ...] = ()


_GROUP = ("consumergroup",)
_PARTITION = ("topic", "partition")
_GROUP_PARTITION = (*_GROUP, *_PARTITION)

METRICS = (
    Described("lineage_kafka_up", "gauge", "serve", "1 if Kafka reported the group's position, else 0."),
    Described("kafka_topic_partitions", "gauge", "serve", "Partitions of the topic.", ("topic",)),
    Described(
        "kafka_topic_partition_current_offset",
        "gauge",
        "serve",
        "The offset that the next message will get.",
        _PARTITION,
    ),
    Described(
        "kafka_topic_partition_oldest_offset",
        "gauge",
        "serve",
        "The first offset that the broker still has.",
        _PARTITION,
    ),
    Described(
        "kafka_consumergroup_members", "gauge", "serve", "Processes of the group, if Kafka knows.", _GROUP
    ),
    Described(
        "kafka_consumergroup_current_offset",
        "gauge",
        "serve",
        "The offset that the group has committed; absent if it never committed.",
        _GROUP_PARTITION,
    ),
    Described(
        "kafka_consumergroup_lag",
        "gauge",
        "serve",
        "Waiting messages; all messages of the broker if the group never committed.",
        _GROUP_PARTITION,
    ),
    Described(
        "kafka_consumergroup_lag_sum",
        "gauge",
        "serve",
        "Waiting messages of the topic.",
        (*_GROUP, "topic"),
    ),
    Described(
        "lineage_consumergroup_lag_seconds",
        "gauge",
        "serve",
        "Age of the first waiting message; 0 if none waits, absent if it could not be read in time.",
        _GROUP_PARTITION,
    ),
    Described(
        "lineage_consumergroup_messages_per_second",
        "gauge",
        "serve",
        "Messages that the group consumed, between two looks.",
        _GROUP,
    ),
    Described(
        "lineage_consumergroup_incoming_messages_per_second",
        "gauge",
        "serve",
        "Messages that arrived, between two looks.",
        _GROUP,
    ),
    Described(
        "lineage_consumergroup_drain_seconds",
        "gauge",
        "serve",
        "Seconds until no message waits, at these rates; absent if the number does not decrease.",
        _GROUP,
    ),
    Described("lineage_dead_letters", "gauge", "serve", "Messages in the topic of dead letters."),
    Described("lineage_flow_store_up", "gauge", "serve", "1 if the flow store could be read, else 0."),
    Described(
        "lineage_applications_unfinished",
        "gauge",
        "serve",
        "Applications that run or are lost, or that ended or failed and are incomplete.",
        ("state",),
    ),
    Described(
        "lineage_applications_failed",
        "gauge",
        "serve",
        "Stored applications that failed, complete or not.",
    ),
    Described(
        "lineage_applications_unread",
        "gauge",
        "serve",
        "Applications that one look had no time for; the next scrape continues with them.",
    ),
    Described(
        "lineage_runs_incomplete",
        "gauge",
        "serve",
        "Accepted task runs with a missing or dropped block, of all applications.",
    ),
    Described("lineage_manifests_missing", "gauge", "serve", "Accepted task runs without a manifest yet."),
    Described(
        "lineage_blocks_missing", "gauge", "serve", "Blocks of accepted task runs that have not arrived."
    ),
    Described(
        "lineage_events_missing",
        "gauge",
        "serve",
        "Other events that applications counted and that have not arrived.",
    ),
    Described("lineage_blocks_dropped", "gauge", "serve", "Blocks that agents report as dropped."),
    Described("lineage_gaps", "gauge", "serve", "Reasons why something that ran was not followed."),
    Described("lineage_consumer_messages_total", "counter", "consume", "Messages taken from Kafka."),
    Described("lineage_consumer_bytes_total", "counter", "consume", "Bytes of these messages."),
    Described(
        "lineage_consumer_batches_total", "counter", "consume", "Batches that were stored in the flow store."
    ),
    Described("lineage_consumer_blocks_total", "counter", "consume", "Blocks that were stored."),
    Described(
        "lineage_consumer_rows_total", "counter", "consume", "Rows that these blocks made in the flow store."
    ),
    Described("lineage_consumer_events_total", "counter", "consume", "Events that were stored."),
    Described(
        "lineage_consumer_repeated_total",
        "counter",
        "consume",
        "Repeated blocks and events, which were left out.",
    ),
    Described(
        "lineage_consumer_dead_letters_total",
        "counter",
        "consume",
        "Unusable messages that were sent to the dead letters.",
    ),
    Described(
        "lineage_consumer_retries_total",
        "counter",
        "consume",
        "How often a store was away and a step was repeated.",
    ),
    Described(
        "lineage_consumer_waiting",
        "gauge",
        "consume",
        "1 while a store is away or slow, so that no messages are taken, else 0.",
    ),
    Described(
        "lineage_consumer_gathered_bytes",
        "gauge",
        "consume",
        "Bytes of messages that are not yet in a batch.",
    ),
    Described(
        "lineage_graph_transactions_total", "counter", "consume", "Transactions that Neo4j has committed."
    ),
    Described(
        "lineage_graph_retries_total",
        "counter",
        "consume",
        "Transactions that were repeated because Neo4j was away or busy.",
    ),
    Described(
        "lineage_graph_deadlocks_total",
        "counter",
        "consume",
        "Transactions that Neo4j ended because of a deadlock.",
    ),
    Described("lineage_consumer_batch_bytes", "histogram", "consume", "Size of a batch.", ("topic",)),
    Described("lineage_consumer_batch_messages", "histogram", "consume", "Messages of a batch.", ("topic",)),
    Described(
        "lineage_consumer_store_seconds",
        "histogram",
        "consume",
        "Time of one batch in one store: flow_store, graph, dead_letters, or offsets (the commit).",
        ("store",),
    ),
)
_BY_NAME = {each.name: each for each in METRICS}

_BUCKETS = {
    "lineage_consumer_batch_bytes": (1e3, 1e4, 1e5, 1e6, 4e6, 8e6, 16e6, 32e6, 64e6, 128e6),
    "lineage_consumer_batch_messages": (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000),
    "lineage_consumer_store_seconds": (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
}


def new_registry(*collectors: Collector) -> CollectorRegistry:
    """What this process answers: the collectors', and its own CPU, memory and open files (`process_*`)."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    for each in collectors:
        registry.register(each)
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


def _if_up(name: str, look: Callable[[], _T], metrics: Callable[[_T], Iterable[Metric]]) -> Iterator[Metric]:
    try:
        found = look()
    except UnavailableError:
        yield _single(name, 0)
    else:
        yield _single(name, 1)
        yield from metrics(found)


def _group_metrics(group: GroupLag) -> Iterator[Metric]:
    names = (group.name,)
    places = [((each.topic, str(each.partition)), each) for each in group.partitions]
    topics = sorted({each.topic for each in group.partitions})
    waiting = Counter[str]()
    for each in group.partitions:
        waiting[each.topic] += each.messages
    counts = Counter(each.topic for each in group.partitions)
    yield _gauge("kafka_topic_partitions", (((topic,), counts[topic]) for topic in topics))
    yield _gauge("kafka_topic_partition_current_offset", ((place, each.next) for place, each in places))
    yield _gauge("kafka_topic_partition_oldest_offset", ((place, each.first) for place, each in places))
    yield _gauge("kafka_consumergroup_members", [(names, group.members)])
    yield _gauge(
        "kafka_consumergroup_current_offset", (((*names, *place), each.committed) for place, each in places)
    )
    yield _gauge("kafka_consumergroup_lag", (((*names, *place), each.messages) for place, each in places))
    yield _gauge("kafka_consumergroup_lag_sum", (((*names, topic), waiting[topic]) for topic in topics))
    yield _gauge(
        "lineage_consumergroup_lag_seconds", (((*names, *place), each.seconds) for place, each in places)
    )
    yield _gauge("lineage_consumergroup_messages_per_second", [(names, group.rate)])
    yield _gauge("lineage_consumergroup_incoming_messages_per_second", [(names, group.incoming_rate)])
    yield _gauge("lineage_consumergroup_drain_seconds", [(names, group.drain_seconds)])
    yield _single("lineage_dead_letters", group.dead_letters)


def _application_metrics(found: UnfinishedApplications) -> Iterator[Metric]:
    states = Counter(each.state for each in found.applications)
    yield _gauge(
        "lineage_applications_unfinished",
        (((name,), states[name]) for name in ("running", "ended", "failed", "lost")),
    )
    yield _single("lineage_applications_failed", found.failed)
    yield _single("lineage_applications_unread", found.unread)
    for name, field in (
        ("lineage_runs_incomplete", "incomplete_runs"),
        ("lineage_manifests_missing", "missing_runs"),
        ("lineage_blocks_missing", "missing_blocks"),
        ("lineage_events_missing", "missing_events"),
        ("lineage_blocks_dropped", "dropped"),
        ("lineage_gaps", "gaps"),
    ):
        yield _single(name, sum(getattr(each, field) for each in found.applications))


def _gauge(name: str, samples: Iterable[tuple[Sequence[str], float | None]]) -> GaugeMetricFamily:
    """One sample for each combination of labels whose value is known."""
    family = GaugeMetricFamily(name, _BY_NAME[name].help, labels=_BY_NAME[name].labels)
    for labels, value in samples:
        if value is not None:
            family.add_metric(labels, value)
    return family


def _counted(prefix: str, counters: object) -> Iterator[CounterMetricFamily]:
    """The counters of the table whose names begin so, each a field of `counters`."""
    for name, described in _BY_NAME.items():
        if described.kind == "counter" and name.startswith(prefix):
            value = getattr(counters, name.removeprefix(prefix).removesuffix("_total"))
            yield CounterMetricFamily(name, described.help, value=value)


def _single(name: str, value: float) -> GaugeMetricFamily:
    return _gauge(name, [((), value)])

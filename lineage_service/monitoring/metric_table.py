"""The one table of all metrics: which command has them, their labels, and what they say.

Names of kafka_exporter where it has one for the same thing, `lineage_*` otherwise. The table of
docs/metrics.md is made from METRICS, and a test compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["METRICS", "MetricSpec"]


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One metric: which command has it, and what it says."""

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    command: Literal["serve", "consume"]
    help: str
    labels: tuple[str, ...] = ()


_GROUP = ("consumergroup",)
_PARTITION = ("topic", "partition")
_GROUP_PARTITION = (*_GROUP, *_PARTITION)
#: Not `job`: that is Prometheus' own label, and it would rename ours to `exported_job`.
_JOB = ("lineage_job",)

METRICS = (
    MetricSpec("lineage_kafka_up", "gauge", "serve", "1 if Kafka reported the group's position, else 0."),
    MetricSpec("kafka_topic_partitions", "gauge", "serve", "Partitions of the topic.", ("topic",)),
    MetricSpec(
        "kafka_topic_partition_current_offset",
        "gauge",
        "serve",
        "The offset that the next message will get.",
        _PARTITION,
    ),
    MetricSpec(
        "kafka_topic_partition_oldest_offset",
        "gauge",
        "serve",
        "The first offset that the broker still has.",
        _PARTITION,
    ),
    MetricSpec(
        "kafka_consumergroup_members", "gauge", "serve", "Processes of the group, if Kafka knows.", _GROUP
    ),
    MetricSpec(
        "kafka_consumergroup_current_offset",
        "gauge",
        "serve",
        "The offset that the group has committed; absent if it never committed.",
        _GROUP_PARTITION,
    ),
    MetricSpec(
        "kafka_consumergroup_lag",
        "gauge",
        "serve",
        "Waiting messages; all messages of the broker if the group never committed.",
        _GROUP_PARTITION,
    ),
    MetricSpec(
        "kafka_consumergroup_lag_sum",
        "gauge",
        "serve",
        "Waiting messages of the topic.",
        (*_GROUP, "topic"),
    ),
    MetricSpec(
        "lineage_consumergroup_lag_seconds",
        "gauge",
        "serve",
        "Age of the first waiting message; 0 if none waits, absent if it could not be read in time.",
        _GROUP_PARTITION,
    ),
    MetricSpec(
        "lineage_consumergroup_messages_per_second",
        "gauge",
        "serve",
        "Messages that the group consumed, between two looks.",
        _GROUP,
    ),
    MetricSpec(
        "lineage_consumergroup_incoming_messages_per_second",
        "gauge",
        "serve",
        "Messages that arrived, between two looks.",
        _GROUP,
    ),
    MetricSpec(
        "lineage_consumergroup_drain_seconds",
        "gauge",
        "serve",
        "Seconds until no message waits, at these rates; absent if the number does not decrease.",
        _GROUP,
    ),
    MetricSpec("lineage_dead_letters", "gauge", "serve", "Messages in the topic of dead letters."),
    MetricSpec("lineage_flow_store_up", "gauge", "serve", "1 if the flow store could be read, else 0."),
    MetricSpec(
        "lineage_applications_unfinished",
        "gauge",
        "serve",
        "Applications that run or are lost, or that ended or failed and are incomplete.",
        ("state",),
    ),
    MetricSpec(
        "lineage_applications_failed",
        "gauge",
        "serve",
        "Stored applications that failed, complete or not.",
    ),
    MetricSpec(
        "lineage_applications_unread",
        "gauge",
        "serve",
        "Applications that one look had no time for; the next scrape continues with them.",
    ),
    MetricSpec(
        "lineage_runs_incomplete",
        "gauge",
        "serve",
        "Accepted task runs with a missing or dropped block, of all applications.",
    ),
    MetricSpec("lineage_manifests_missing", "gauge", "serve", "Accepted task runs without a manifest yet."),
    MetricSpec(
        "lineage_blocks_missing", "gauge", "serve", "Blocks of accepted task runs that have not arrived."
    ),
    MetricSpec(
        "lineage_events_missing",
        "gauge",
        "serve",
        "Other events that applications counted and that have not arrived.",
    ),
    MetricSpec("lineage_blocks_dropped", "gauge", "serve", "Blocks that agents report as dropped."),
    MetricSpec("lineage_gaps", "gauge", "serve", "Reasons why something that ran was not followed."),
    MetricSpec(
        "lineage_trigger_decisions_total",
        "counter",
        "serve",
        "Answers of `lineage trigger` about a job, those of commands included.",
        (*_JOB, "decision", "reason"),
    ),
    MetricSpec(
        "lineage_trigger_phase",
        "gauge",
        "serve",
        "1 for what the job's answers rest on: `certain` (no model), `training` or `application`, else 0.",
        (*_JOB, "phase"),
    ),
    MetricSpec(
        "lineage_trigger_probability",
        "gauge",
        "serve",
        "In the last answer of a model: how likely the output changes by more than the bound.",
        _JOB,
    ),
    MetricSpec(
        "lineage_trigger_compliance",
        "gauge",
        "serve",
        "Share of waves within the bound since a model is in charge, by audits; absent before the first.",
        _JOB,
    ),
    MetricSpec(
        "lineage_trigger_compliance_lower",
        "gauge",
        "serve",
        "The lower bound of that share, at 95 %.",
        _JOB,
    ),
    MetricSpec(
        "lineage_trigger_tested_compliance",
        "gauge",
        "serve",
        "Share of waves within the bound in the test of the model; absent before a test was passed.",
        _JOB,
    ),
    MetricSpec(
        "lineage_trigger_confidence",
        "gauge",
        "serve",
        "The share that is wanted; absent without a bound.",
        _JOB,
    ),
    MetricSpec(
        "lineage_trigger_saved_seconds_total",
        "counter",
        "serve",
        "For each skip the duration of the execution before it, if it is known.",
        _JOB,
    ),
    MetricSpec(
        "lineage_trigger_spent_seconds_total",
        "counter",
        "serve",
        "How long the answers about the job took, as far as that was kept.",
        _JOB,
    ),
    MetricSpec("lineage_trigger_decision_seconds", "histogram", "serve", "Time of one answer, of all jobs."),
    MetricSpec(
        "lineage_trigger_jobs_unread",
        "gauge",
        "serve",
        "Jobs that are left out: beyond the 200 asked about last, or one look had no time for them.",
    ),
    MetricSpec("lineage_consumer_messages_total", "counter", "consume", "Messages taken from Kafka."),
    MetricSpec("lineage_consumer_bytes_total", "counter", "consume", "Bytes of these messages."),
    MetricSpec(
        "lineage_consumer_batches_total", "counter", "consume", "Batches that were stored in the flow store."
    ),
    MetricSpec("lineage_consumer_blocks_total", "counter", "consume", "Blocks that were stored."),
    MetricSpec(
        "lineage_consumer_rows_total", "counter", "consume", "Rows that these blocks made in the flow store."
    ),
    MetricSpec("lineage_consumer_events_total", "counter", "consume", "Events that were stored."),
    MetricSpec(
        "lineage_consumer_repeated_total",
        "counter",
        "consume",
        "Repeated blocks and events, which were left out.",
    ),
    MetricSpec(
        "lineage_consumer_dead_letters_total",
        "counter",
        "consume",
        "Unusable messages that were sent to the dead letters.",
    ),
    MetricSpec(
        "lineage_consumer_retries_total",
        "counter",
        "consume",
        "How often a store was away and a step was repeated.",
    ),
    MetricSpec(
        "lineage_consumer_waiting",
        "gauge",
        "consume",
        "1 while a store is away or slow, so that no messages are taken, else 0.",
    ),
    MetricSpec(
        "lineage_consumer_gathered_bytes",
        "gauge",
        "consume",
        "Bytes of messages that are not yet in a batch.",
    ),
    MetricSpec(
        "lineage_graph_transactions_total", "counter", "consume", "Transactions that Neo4j has committed."
    ),
    MetricSpec(
        "lineage_graph_retries_total",
        "counter",
        "consume",
        "Transactions that were repeated because Neo4j was away or busy.",
    ),
    MetricSpec(
        "lineage_graph_deadlocks_total",
        "counter",
        "consume",
        "Transactions that Neo4j ended because of a deadlock.",
    ),
    MetricSpec("lineage_consumer_batch_bytes", "histogram", "consume", "Size of a batch.", ("topic",)),
    MetricSpec("lineage_consumer_batch_messages", "histogram", "consume", "Messages of a batch.", ("topic",)),
    MetricSpec(
        "lineage_consumer_store_seconds",
        "histogram",
        "consume",
        "Time of one batch in one store: flow_store, graph, dead_letters, or offsets (the commit).",
        ("store",),
    ),
)

"""What the events of one application say of its nodes and task runs.

The order in which they came does not matter, nor how often each one came.
Pure: takes decoded events, gives values. Does not decide which of several task runs counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lineage_service.datasets.event_datasets import dataset_of, schema_of
from lineage_service.outcomes import NodeOutcome, actions_of
from lineage_service.tracing.model.elements import (
    FailedRun,
    PartitionInfo,
    Scanned,
    Site,
    TaskRun,
    TopologyNode,
)
from spark_agent import contract
from spark_agent.contract.dataset_names import location_of

__all__ = ["EventLog", "add_partitions", "read_events"]

Event = Mapping[str, Any]


@dataclass(slots=True)
class EventLog:
    """The events by what they are about."""

    registered: dict[int, Event] = field(default_factory=dict)  # node -> its registration
    ports: dict[int, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    partitions: dict[int, dict[int, PartitionInfo]] = field(default_factory=lambda: defaultdict(dict))
    outcomes: Mapping[int, NodeOutcome] = field(default_factory=dict)
    id_links: set[tuple[int, int]] = field(default_factory=set)
    committed: dict[int, TaskRun] = field(default_factory=dict)
    #: Task runs that have left something in a cache, and what they reported of it.
    cached: dict[int, TaskRun] = field(default_factory=dict)
    cache_events: dict[int, Event] = field(default_factory=dict)
    #: Task runs that an error has ended.
    failed: dict[int, FailedRun] = field(default_factory=dict)
    #: What was found by running the job on rows that explain something.
    checked: list[Event] = field(default_factory=list)
    persisted_nodes: set[int] = field(default_factory=set)
    reports_persisted: bool = False

    @property
    def persisted(self) -> set[int] | None:
        """The nodes that were ever persisted; None where the application does not report it."""
        return self.persisted_nodes if self.reports_persisted else None

    def nodes(self) -> dict[int, TopologyNode]:
        """As they were registered, with their parents and partitions."""
        return {number: self._node(number, event) for number, event in self.registered.items()}

    def with_files_of_cached(self, node: TopologyNode, run: TaskRun) -> TopologyNode:
        """With what a cached run has read of files; where the driver says as much, its word counts."""
        return _with_parts(node, run.partition, self.cache_events[run.number].get("parts") or ())

    def with_files_of_failed(self, node: TopologyNode, scan: Scanned) -> TopologyNode:
        """The same of a scan of a run that failed."""
        return _with_parts(node, scan.partition, scan.parts)

    # -- one handler for each type of event ----------------------------------------------------------

    def on_started(self, event: Event) -> None:
        self.reports_persisted = contract.reports_persisted(event)

    def on_node(self, event: Event) -> None:
        self.registered[event["node"]] = event

    def on_link(self, event: Event) -> None:
        if event.get("ids"):
            self.id_links.add((event["source"], event["target"]))
        else:
            self.ports[event["target"]][event["port"]] = event["source"]

    def on_partitions(self, event: Event) -> None:
        add_partitions(self.partitions[event["node"]], event["partitions"])

    def on_committed(self, event: Event) -> None:
        self.committed.setdefault(event["run"], _task_run(event))

    def on_cached(self, event: Event) -> None:
        self.cached.setdefault(event["run"], _task_run(event))
        self.cache_events.setdefault(event["run"], event)

    def on_failed(self, event: Event) -> None:
        record = event.get("record")
        failed = FailedRun(
            run=replace(_task_run(event), action=None),  # it has given the action nothing
            node=event["failed_node"],
            position=event["position"],
            is_certain=event["certain"],
            error=event["error"],
            message=event["message"],
            frame=event["frame"],
            record=None if record is None else (record[0], record[1]),
            time=event["time"],
            event=event.get("event", 0),
            blocks=event["blocks"],
            action=event["action"],
            first=event.get("first"),
            reason=event.get("reason") or "",
            scans=tuple(_scans(event)),
        )
        self.failed.setdefault(failed.run.number, failed)

    def on_persisted(self, event: Event) -> None:
        self.persisted_nodes.add(event["node"])

    def on_checked(self, event: Event) -> None:
        if event not in self.checked:
            self.checked.append(event)

    # -- values --------------------------------------------------------------------------------------

    def _node(self, number: int, event: Event) -> TopologyNode:
        ports, dataset = self.ports[number], event.get("dataset")
        return TopologyNode(
            number=number,
            name=event["name"],
            description=event["description"],
            kind=event["kind"],
            relation=event["relation"],
            exact=event["exact"],
            reason=event.get("reason") or "",
            call_site=event.get("call_site") or "",
            dataset=dataset_of(dataset),
            parents=tuple(ports[port] for port in sorted(ports)),
            partitions=self.partitions[number],
            by_id=event.get("by_id") is True,
            limit=event.get("limit"),
            operation=event.get("operation"),
            outcome=self.outcomes.get(number),
            location=location_of(dataset) if isinstance(dataset, Mapping) else None,
            schema=schema_of(event.get("schema")),
            schema_note=event.get("schema_note") or "",
            options=dataset.get("options") if isinstance(dataset, Mapping) else None,
            expressions=event.get("expressions"),
            site=_site(event.get("site")),
            has_unknown_files=isinstance(dataset, Mapping) and dataset.get("unknown_files") is True,
            operation_of_rows=dataset.get("operation") if isinstance(dataset, Mapping) else None,
            decided_by=event.get("decided_by"),
        )


_HANDLERS: Mapping[str, Callable[[EventLog, Event], None]] = {
    contract.APPLICATION_STARTED: EventLog.on_started,
    contract.NODE_REGISTERED: EventLog.on_node,
    contract.LINK: EventLog.on_link,
    contract.PARTITIONS: EventLog.on_partitions,
    contract.RUN_COMMITTED: EventLog.on_committed,
    contract.RUN_KEPT: EventLog.on_cached,
    contract.RUN_FAILED: EventLog.on_failed,
    contract.PERSISTED: EventLog.on_persisted,
    contract.EXPLANATION_CHECKED: EventLog.on_checked,
}


def read_events(events: Iterable[Event]) -> EventLog:
    """The log of these events. Other types of events say nothing of nodes and runs."""
    in_order = sorted(events, key=lambda event: (event["time"], event.get("event", 0)))
    log = EventLog(outcomes=actions_of(in_order))
    for event in in_order:
        handle = _HANDLERS.get(event["type"])
        if handle is not None:
            handle(log, event)
    return log


def add_partitions(partitions: dict[int, PartitionInfo], infos: Iterable[PartitionInfo]) -> None:
    """Put what a later event says of partitions in place of what is there.

    A run that read less (of a limit, say) reports fewer parts of a partition: the first of those of the run
    that counts.
    """

    def reach(info: PartitionInfo) -> int:
        return max((int(part["first"]) for part in info.get("parts", ())), default=0)

    for info in infos:
        partition = info["split"]
        if partition not in partitions or reach(info) >= reach(partitions[partition]):
            partitions[partition] = info


def _scans(event: Event) -> Iterator[Scanned]:
    """What a run that failed had read: that of its input, and others of the same task."""
    if event.get("parts"):
        yield Scanned(event["input"], event["split"], event["inputs"], event["parts"])
    for scan in event.get("scans") or ():
        yield Scanned(scan["node"], scan["split"], scan["rows"], scan.get("parts") or ())


def _site(site: Event | None) -> Site | None:
    if site is None or not site.get("path"):
        return None
    return Site(tuple(site["path"]), tuple(site.get("loops") or ()))


def _with_parts(node: TopologyNode, partition: int, parts: Sequence[Mapping[str, Any]]) -> TopologyNode:
    if not parts:
        return node
    partitions: dict[int, PartitionInfo] = {partition: {"split": partition, "parts": parts}}
    add_partitions(partitions, node.partitions.values())
    return replace(node, partitions=partitions)


def _task_run(event: Event) -> TaskRun:
    return TaskRun(
        number=event["run"],
        partition=event["split"],
        attempt=event["attempt"],
        action=event["action"],
        input=event["input"],
        nodes=tuple(event["nodes"]),
        overridden=frozenset(event.get("overridden") or ()),
        inputs=event["inputs"],
        outputs=event["outputs"],
        counts={int(node): count for node, count in (event.get("counts") or {}).items()},
        execution=event.get("execution", 0),
        stage=event.get("stage"),
        is_whole=event.get("whole") is True,
        read=tuple((run, first, count) for run, first, count in event.get("read") or ()),
        slow=tuple((node, position, ms) for node, position, ms in event.get("slow") or ()),
    )

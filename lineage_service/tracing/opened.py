"""One application, read from the flow store: what it is, its snapshot, and what people call its parts.

Knows nothing of how a trace is walked; keeps nothing between versions of the store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import duckdb

from lineage_service.answers import Application, InvalidQueryError, NotFoundError
from lineage_service.completeness import Completeness, completeness
from lineage_service.tables import TABLES
from lineage_service.tracing.flow_files import ColumnCache
from lineage_service.tracing.snapshot import Receipt, Snapshot, open_snapshot
from lineage_service.tracing.topology import Run, TopologyNode, read_topology
from spark_agent import contract
from spark_agent.contract import ContractError


class StoreReader(Protocol):
    """What the questions read of a flow store."""

    def version(self) -> object: ...

    def applications(self) -> Sequence[str]: ...

    def events(self, application_id: str) -> Sequence[Mapping[str, Any]]: ...

    def files(self, table: str, application_id: str) -> Sequence[str]: ...


class OpenedApplication:
    """One application, read."""

    def __init__(
        self,
        application: Application,
        snapshot: Snapshot,
        *,
        is_detailed: bool = False,
        values_sample: float = 1.0,
    ) -> None:
        """`values_sample` is the fraction of input records whose ways have values, where values are kept."""
        self.application = application
        self.snapshot = snapshot
        self.is_detailed, self.values_sample = is_detailed, values_sample

    def node(self, text: str) -> TopologyNode:
        """A node by its id or its number. Raises NotFoundError."""
        application_id, _, number = text.rpartition("#")
        known = self.snapshot.topology.nodes
        if number.isascii() and number.isdigit() and application_id in ("", self.application.application_id):
            found = known.get(int(number))
            if found is not None:
                return found
        raise NotFoundError(f"application {self.application.application_id} has no node {text}")

    def parse_record(self, text: str, node: str | None) -> tuple[TopologyNode, int, int]:
        """A record id, alone where it is not ambiguous, or behind its node's id (a flow id)."""
        parts = text.split("#")
        if node is None and len(parts) >= 4 and parts[0] == self.application.application_id:
            node, text = f"{parts[0]}#{parts[1]}", "#".join(parts[2:])
        try:
            kind, split, offset = contract.parse_record_id(text)
        except ContractError as error:
            raise InvalidQueryError(str(error)) from None
        if node is not None:
            return self.node(node), split, offset
        if kind is None:
            raise InvalidQueryError(f"record {text} stands at many nodes; give node too")
        nodes = [
            each
            for each in self.snapshot.topology.nodes.values()
            if each.kind == kind and any(run.split == split for run in self.holders(each.number))
        ]
        if len(nodes) == 1:
            return nodes[0], split, offset
        if not nodes:
            raise NotFoundError(f"no {kind} of this application has a partition {split}")
        named = ", ".join(f"{each.number} ({each.name} {each.description})".strip() for each in nodes)
        raise InvalidQueryError(f"record {text} stands at several {kind}s: {named}; give node too")

    def holders(self, node: int) -> list[Run]:
        """One run for each split of a node: the one whose records are shown."""
        by_split: dict[int, Run] = {}
        topology = self.snapshot.topology
        for number in topology.runs_of.get(node, ()):
            run = topology.runs[number]
            if number in self.snapshot.effective:
                by_split.setdefault(run.split, run)
        return [by_split[split] for split in sorted(by_split)]

    def holders_of(self, node: int, split: int, direction: str) -> list[Run]:
        """The runs that a trace from a record starts in.

        Backward from one computation only, never from a mixture; forward from all that an output was made
        from, so that every action over a shared RDD is reached.
        """
        runs = [
            run
            for run in self.snapshot.topology.runs_at(node, split)
            if run.number in self.snapshot.effective
        ]
        return runs[:1] if direction == "backward" else runs

    def flows(self, node: int) -> int | None:
        """How many (input, output) pairs a node has; None where that is a bound."""
        relation = self.snapshot.topology.nodes[node].relation
        if node in self.snapshot.flows_of and node not in self.snapshot.spanning:
            return self.snapshot.flows_of[node]
        if relation == contract.AGGREGATE:
            parents = self.snapshot.topology.nodes[node].parents
            entered = self.snapshot.topology.entered.get(node, ())
            return sum(self.snapshot.count(parent, run) for parent in parents for run in entered)
        if relation in (contract.IDENTITY, contract.FLOWS, contract.STATIC, contract.ZIP, contract.PRODUCT):
            return sum(self.snapshot.count(node, run.number) for run in self.holders(node))
        return None


def stored_files(store: StoreReader, application_id: str) -> dict[str, tuple[str, ...]]:
    """Table -> the files that hold something of the application."""
    return {name: tuple(sorted(store.files(name, application_id))) for name in TABLES}


def open_application(
    files: Mapping[str, Sequence[str]],
    application_id: str,
    events: Sequence[Mapping[str, Any]],
    columns: ColumnCache | None = None,
) -> OpenedApplication:
    """`files` are those of each table that hold something of the application, on this machine."""
    topology = read_topology(application_id, events)
    receipts = _receipts(files["blocks"])
    snapshot = open_snapshot(topology, files["flows"], files["records"], receipts, columns)
    complete = completeness(events, ((each.run, each.seq) for each in receipts))
    started: Mapping[str, Any] = next(
        (event for event in events if event["type"] == contract.APPLICATION_STARTED), {}
    )
    return OpenedApplication(
        _application(application_id, events, complete, receipts),
        snapshot,
        # A program without Spark may say nothing of it, and send values.
        is_detailed=bool(started.get("detailed")) or bool(snapshot.valued),
        values_sample=_fraction(started.get("values_sample")),
    )


def _fraction(value: object) -> float:
    return float(value) if isinstance(value, int | float) and 0 <= value <= 1 else 1.0


def _receipts(files: Sequence[str]) -> list[Receipt]:
    if not files:
        return []
    rows = duckdb.execute(
        "SELECT DISTINCT run, seq, node, relation, rows FROM read_parquet(?, hive_partitioning = false)",
        [list(files)],
    ).fetchall()
    return [Receipt(*row) for row in rows]


def _application(
    application_id: str,
    events: Sequence[Mapping[str, Any]],
    complete: Completeness,
    receipts: Sequence[Receipt],
) -> Application:
    started = [event for event in events if event["type"] == contract.APPLICATION_STARTED]
    ended = [event for event in events if event["type"] == contract.APPLICATION_ENDED]
    committed = {event["run"]: event for event in events if event["type"] == contract.RUN_COMMITTED}
    texts = (contract.KEYS, contract.VALUES)
    flows = {(each.run, each.seq): each.rows for each in receipts if each.relation not in texts}
    return Application(
        application_id=application_id,
        name=str(started[0]["name"]) if started else application_id,
        state="ended" if ended else "running",
        started=started[0]["time"] if started else min(event["time"] for event in events),
        ended=ended[0]["time"] if ended else None,
        complete=complete.is_complete,
        missing_blocks=complete.missing_blocks,
        missing=complete.describe(),
        counters={
            **(_reported(ended[0]) if ended else {}),
            "runs": len(complete.runs),
            "blocks": len({(each.run, each.seq) for each in receipts}),
            "flows": sum(flows.values()),
            "dropped": complete.dropped,
            "missing_runs": complete.missing_runs,
            "missing_events": complete.missing_events,
            **{name: sum(run.get(name, 0) for run in committed.values()) for name in ("cut", "withheld")},
        },
    )


def _reported(ended: Mapping[str, Any]) -> dict[str, int]:
    """What the agent counted itself."""
    counters = ended["counters"].items()
    return {name: value for name, value in counters if type(value) is int and abs(value) < contract.MAX_RUN}

"""The graph that people explore: applications, their nodes, and traced records, in Neo4j.

Whatever is written twice or in another order ends in the same graph. A transaction is retried while Neo4j is
briefly away or busy; an error says whether trying later helps. Knows nothing of Kafka and of how a trace is
found. The statements are files in `cypher/`, the rows come from `event_rows`, `trace_rows` and
`application_rows`; `connection` retries.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import neo4j

import lineage_cypher
from lineage_service.graph.application_rows import ApplicationGraph, flows_on_request
from lineage_service.graph.application_writer import ApplicationWriter, ClaimLostError, claim_parameters
from lineage_service.graph.connection import GraphCounters, Neo4jConnection
from lineage_service.graph.event_rows import count_rows, event_rows
from lineage_service.graph.graph_store import GraphRefusedError
from lineage_service.graph.row_values import BATCH_ROWS, EdgeCounts, NodeCounts, Row
from lineage_service.graph.statements import Step
from lineage_service.graph.trace_rows import GraphRecord, link_batches, record_batches
from lineage_service.settings import Settings

__all__ = ["Neo4jGraph", "from_settings"]


def from_settings(settings: Settings) -> Neo4jGraph | None:
    """The graph that the settings name, or None when they name none. Connects on first use."""
    if not settings.neo4j_uri:
        return None
    return Neo4jGraph(
        settings.neo4j_uri,
        user=settings.neo4j_user,
        password=_password(settings),
        database=settings.neo4j_database,
        authorities=settings.neo4j_ca,
    )


def _password(settings: Settings) -> str:
    path = settings.neo4j_password_file
    if not path:
        return settings.neo4j_password.get_secret_value()
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise GraphRefusedError(f"--neo4j-password-file: {path} cannot be read: {reason}") from None
    return lines[0] if lines else ""


#: A migration that another process applied a moment ago fails with one of these; the schema stands.
_ALREADY_THERE = frozenset(
    f"Neo.ClientError.Schema.{what}AlreadyExists" for what in ("EquivalentSchemaRule", "Constraint", "Index")
)

#: Neo4j died while it made a constraint: the index is there without it, and in its way for ever. This is said
#: of no constraint that somebody else makes right now: for that one Neo4j waits.
_LEFT_OVER = "Neo.ClientError.Schema.IndexWithNameAlreadyExists"

#: Before datasets are changed: applications share them.
_DATASETS: Step = ("dataset/lock", {"migration": "migrations/0013_dataset_name"})

#: So many ids are looked at in one pass; they are decided soon, or wait for what their agents lost.
PENDING_APPLICATIONS = 10_000


class Neo4jGraph:
    """The GraphStore in a Neo4j 5.6 or later, Community will do. No APOC needed. Threads may share it."""

    def __init__(
        self,
        uri: str,
        *,
        user: str = "neo4j",
        password: str = "",
        database: str = "neo4j",
        authorities: str = "",
        retry_seconds: float = 15.0,
        connect_seconds: float = 5.0,
    ) -> None:
        """Without a password there is no authentication. `authorities` is a file of certificates for TLS.

        Raises GraphRefusedError if `uri` is no address.
        """
        self._connection = Neo4jConnection(
            uri,
            user=user,
            password=password,
            database=database,
            authorities=authorities,
            retry_seconds=retry_seconds,
            connect_seconds=connect_seconds,
        )
        self._is_migrated = False

    @property
    def counters(self) -> GraphCounters:
        """What this process did since it started."""
        return self._connection.counters

    def migrate(self) -> tuple[str, ...]:
        """Each migration is a transaction of its own, since Neo4j keeps schema and data apart:

        1. read which are recorded; 2. apply what is missing, in order, each written so that twice is once;
        3. record it; 4. wait until the indexes can be used. A crash between 2 and 3 repeats 2.
        """
        names = lineage_cypher.migrations()
        recorded = {
            row["name"] for row in self._connection.run([("migration/applied", {"names": list(names)})])
        }
        missing = tuple(name for name in names if name not in recorded)
        for name in missing:
            self._apply_schema(name)
            self._connection.run([("migration/record", {"name": name})])
        self._connection.run([("migration/await_indexes", {"seconds": 300})])
        self._is_migrated = True
        return missing

    def write_events(self, events: Sequence[Mapping[str, Any]]) -> None:
        batches = [event_rows(events[at : at + BATCH_ROWS]) for at in range(0, len(events), BATCH_ROWS)]
        for rows in batches:
            steps: list[Step] = [
                ("application/start", {"applications": rows.started}),
                ("application/end", {"applications": rows.ended}),
                ("node/upsert", {"nodes": rows.nodes}),
                ("node/mark", {"nodeIds": rows.registered}),
                ("node/link", {"targets": rows.links}),
            ]
            with_rows = [(name, parameters) for name, parameters in steps if any(parameters.values())]
            self._write(rows.applications, with_rows)
            # Records that were traced before their node was known. Every later trace finds the node.
            describe: Step = ("flow/describe", {"nodeIds": rows.registered, "limit": BATCH_ROWS})
            if rows.registered:
                self._write_bounded(rows.applications, describe)
                nodes: Row = {"nodeIds": rows.registered}
                self._write(
                    rows.applications, [_DATASETS, ("dataset/upsert", nodes), ("dataset/release", nodes)]
                )

    def write_counts(self, application_id: str, records: NodeCounts, flows: EdgeCounts) -> None:
        nodes, counted, links = count_rows(application_id, records, flows)
        if nodes:
            self._write(
                [application_id],
                [
                    ("node/upsert", {"nodes": nodes}),
                    ("node/count_records", {"nodes": counted}),
                    ("node/count_flows", {"targets": links}),
                ],
            )

    def write_trace(
        self, application_id: str, records: Sequence[GraphRecord], links: Sequence[tuple[str, str]]
    ) -> None:
        """One transaction a batch: a crash leaves a part of the trace, and writing it again completes it."""
        record_rows, link_rows = record_batches(application_id, records), link_batches(records, links)
        for groups in record_rows:
            self._write(
                [application_id], [("flow/upsert", {"applicationId": application_id, "groups": groups})]
            )
        for targets in link_rows:
            self._write(
                [application_id],
                [
                    ("application/traced", {"applicationId": application_id}),
                    ("flow/link", {"targets": targets}),
                ],
            )

    def pending(self, max_flows: int) -> tuple[str, ...]:
        self._migrate_once()
        parameters = {"maxFlows": max_flows, "limit": PENDING_APPLICATIONS}
        rows = self._connection.run([("application/pending", parameters)])
        return tuple(row["applicationId"] for row in rows)

    def claim(self, application_id: str, max_flows: int) -> str | None:
        claim = uuid.uuid4().hex
        parameters = {**claim_parameters(application_id, claim), "maxFlows": max_flows}
        return claim if self._connection.run([("application/claim", parameters)]) else None

    def count_application(
        self, application_id: str, claim: str, records: NodeCounts, flows: EdgeCounts
    ) -> bool:
        _, counted, links = count_rows(application_id, records, flows)
        return self._write_claimed(
            application_id,
            claim,
            ("node/count_records", {"nodes": counted}),
            ("node/count_flows", {"targets": links}),
        )

    def write_application(self, application_id: str, claim: str, graph: ApplicationGraph) -> bool:
        """The protocol is `application_writer`."""
        try:
            ApplicationWriter(self._connection.transact, application_id, claim).write(graph)
        except ClaimLostError:
            return False
        return True

    def leave_application(self, application_id: str, claim: str, records: int, max_flows: int) -> bool:
        properties = {"applicationId": application_id, **flows_on_request(records, max_flows)}
        return self._write_claimed(application_id, claim, ("application/settle", properties))

    def _write_claimed(self, application_id: str, claim: str, *steps: Step) -> bool:
        try:
            ApplicationWriter(self._connection.transact, application_id, claim).write_steps(*steps)
        except ClaimLostError:
            return False
        return True

    def delete_application(self, application_id: str) -> None:
        self._connection.run([("application/forget", {"applicationId": application_id})])
        parameters = {"applicationId": application_id, "limit": BATCH_ROWS}
        self._write_bounded([application_id], ("flow/delete", parameters))
        self._write_bounded([application_id], ("node/delete", parameters), _DATASETS)
        self._connection.run([("application/delete", {"applicationId": application_id})])

    def ping(self) -> None:
        self._connection.ping()

    def close(self) -> None:
        self._connection.close()

    def _write(self, applications: Sequence[str], steps: Sequence[Step]) -> list[neo4j.Record]:
        """One transaction. It begins by locking its applications, sorted, so that no two writers deadlock."""
        if not applications:
            return []
        self._migrate_once()
        return self._connection.run([("application/lock", {"applicationIds": applications}), *steps])

    def _migrate_once(self) -> None:
        if not self._is_migrated:  # no write without constraints, or two writers could make one thing twice
            self.migrate()

    def _write_bounded(self, applications: Sequence[str], step: Step, *before: Step) -> None:
        """Repeat a statement that changes up to `limit` rows until nothing is left."""
        while self._write(applications, [*before, step])[0]["changed"] == step[1]["limit"]:
            pass

    def _apply_schema(self, name: str) -> None:
        try:
            self._connection.run([(name, {})])
        except GraphRefusedError as error:
            code = getattr(error.__cause__, "code", None)
            if code == _LEFT_OVER:
                self._connection.run([("migration/drop_index", {"name": lineage_cypher.schema_name(name)})])
                self._connection.run([(name, {})])
            elif code not in _ALREADY_THERE:
                raise

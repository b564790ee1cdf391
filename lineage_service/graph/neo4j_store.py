"""The graph that people explore: applications, their nodes, and traced records, in Neo4j.

Whatever is written twice or in another order ends in the same graph. A transaction is retried while Neo4j is
briefly away or busy; an error says whether trying later helps. Knows nothing of Kafka and of how a trace is
found. The statements are files in `cypher/`, the rows come from `graph_rows`.
"""

from __future__ import annotations

import random
import ssl
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import neo4j
from neo4j.exceptions import DatabaseError, DriverError, Neo4jError, ServiceUnavailable

import lineage_cypher
from lineage_service.errors import UnavailableError
from lineage_service.graph.rows import (
    BATCH_ROWS,
    EdgeCounts,
    GraphDataError,
    GraphRecord,
    NodeCounts,
    WholeRun,
    count_rows,
    event_rows,
    flows_on_request,
    link_batches,
    record_batches,
)
from lineage_service.graph.run_writer import ClaimLostError, RunWriter, claimed
from lineage_service.graph.statements import Step, run_steps
from lineage_service.settings import Settings

__all__ = [
    "GraphCounters",
    "GraphDataError",
    "GraphRecord",
    "GraphRefusedError",
    "GraphStore",
    "GraphUnavailableError",
    "Neo4jGraph",
    "from_settings",
]


class GraphUnavailableError(UnavailableError):
    """Neo4j does not answer or is in trouble; the same call may succeed later."""


class GraphRefusedError(UnavailableError):
    """Neo4j answers and refuses (password, database, schema); a person has to change something first."""


class GraphStore(Protocol):
    """Where lineage is written for people to explore. `graph_memory.MemoryGraph` is the in-memory twin.

    Every method but `close` raises GraphUnavailableError or GraphRefusedError, and those that are given data
    raise GraphDataError before anything is written.
    """

    def migrate(self) -> tuple[str, ...]:
        """Bring the schema up to date; returns what was applied. Many processes may do so at once.

        The first write does it too: calling it at the start only finds trouble earlier.
        """

    def write_events(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Decoded `lineage-node` events (`contract.event_checks`). Partitions and runs are passed over."""

    def write_counts(self, application_id: str, records: NodeCounts, flows: EdgeCounts) -> None:
        """How many records each node has, how many flows went from (source, target). The last count stays."""

    def write_trace(
        self, application_id: str, records: Sequence[GraphRecord], links: Sequence[tuple[str, str]]
    ) -> None:
        """Traced records and which became which: (source flow_id, target flow_id), both among `records`."""

    def pending(self, max_flows: int) -> tuple[str, ...]:
        """Ended applications that nobody has looked at with so large a budget of flows."""

    def claim(self, application_id: str, max_flows: int) -> str | None:
        """A token for `write_run`, or None: someone else has the application, or it is no longer pending.

        Who has the token and does not write for CLAIM_S loses it.
        """

    def count_run(self, application_id: str, claim: str, records: NodeCounts, flows: EdgeCounts) -> bool:
        """As `write_counts`, of nodes that stand already, under the claim. False: the claim was lost."""

    def write_run(self, application_id: str, claim: str, run: WholeRun) -> bool:
        """All flows of an application. False: the claim was lost, so another one writes them, or nobody may.

        Part of them may be there then, and writing all again completes them.
        """

    def leave_run(self, application_id: str, claim: str, records: int, max_flows: int) -> bool:
        """The application has more flows than `max_flows`: say so. False: the claim was lost."""

    def delete_application(self, application_id: str) -> None:
        """Everything of one application, in bounded transactions. Events that come later begin it anew."""

    def ping(self) -> None:
        """Return at once if the store answers."""

    def close(self) -> None:
        """Give back the connections."""


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

_DEADLOCK = "Neo.TransientError.Transaction.DeadlockDetected"
_RETRY_FIRST_S, _RETRY_LAST_S = 0.5, 4.0

#: So many ids are looked at in one pass; they are decided soon, or wait for what their agents lost.
PENDING_APPLICATIONS = 10_000


@dataclass(slots=True)
class GraphCounters:
    """What this process did since it started. A retry: Neo4j could not finish a transaction at once."""

    transactions: int = 0
    retries: int = 0
    deadlocks: int = 0


_SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")


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
        self._address = _without_user(uri)
        self._password = password
        self._database = database
        self._is_migrated = False
        self._retry_s = retry_seconds
        self.counters = GraphCounters()
        if fault := _fault_of(uri):
            raise self._told(ValueError(fault))
        address, security = _secured(uri, authorities)
        with self._errors_told():
            self._driver = neo4j.GraphDatabase.driver(
                address,
                auth=(user, password) if password else None,
                **security,
                connection_timeout=connect_seconds,
                connection_acquisition_timeout=connect_seconds + retry_seconds,
                # After a restart of Neo4j the pool holds dead connections: ask the idle ones before use.
                liveness_check_timeout=1.0,
                # Hints for people who write statements ("no such property yet"), on every first write.
                notifications_min_severity="OFF",
                telemetry_disabled=True,
                user_agent="lineage-master",
            )

    def migrate(self) -> tuple[str, ...]:
        """Each migration is a transaction of its own, since Neo4j keeps schema and data apart:

        1. read which are recorded; 2. apply what is missing, in order, each written so that twice is once;
        3. record it; 4. wait until the indexes can be used. A crash between 2 and 3 repeats 2.
        """
        names = lineage_cypher.migrations()
        recorded = {row["name"] for row in self._run([("migration/applied", {"names": list(names)})])}
        missing = tuple(name for name in names if name not in recorded)
        for name in missing:
            self._apply_schema(name)
            self._run([("migration/record", {"name": name})])
        self._run([("migration/await_indexes", {"seconds": 300})])
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
            self._write(rows.applications, [(name, given) for name, given in steps if any(given.values())])
            # Records that were traced before their node was known. Every later trace finds the node.
            describe: Step = ("flow/describe", {"nodeIds": rows.registered, "limit": BATCH_ROWS})
            if rows.registered:
                self._write_bounded(rows.applications, describe)

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
        self._see_to_schema()
        found = self._run([("application/pending", {"maxFlows": max_flows, "limit": PENDING_APPLICATIONS})])
        return tuple(row["applicationId"] for row in found)

    def claim(self, application_id: str, max_flows: int) -> str | None:
        claim = uuid.uuid4().hex
        given = {**claimed(application_id, claim), "maxFlows": max_flows}
        return claim if self._run([("application/claim", given)]) else None

    def count_run(self, application_id: str, claim: str, records: NodeCounts, flows: EdgeCounts) -> bool:
        _, counted, links = count_rows(application_id, records, flows)
        return self._write_held(
            application_id,
            claim,
            ("node/count_records", {"nodes": counted}),
            ("node/count_flows", {"targets": links}),
        )

    def write_run(self, application_id: str, claim: str, run: WholeRun) -> bool:
        """The protocol is `run_writer`."""
        try:
            RunWriter(self._transact, application_id, claim).write(run)
        except ClaimLostError:
            return False
        return True

    def leave_run(self, application_id: str, claim: str, records: int, max_flows: int) -> bool:
        properties = {"applicationId": application_id, **flows_on_request(records, max_flows)}
        return self._write_held(application_id, claim, ("application/settle", properties))

    def _write_held(self, application_id: str, claim: str, *steps: Step) -> bool:
        try:
            RunWriter(self._transact, application_id, claim).write_steps(*steps)
        except ClaimLostError:
            return False
        return True

    def delete_application(self, application_id: str) -> None:
        self._run([("application/forget", {"applicationId": application_id})])
        parameters = {"applicationId": application_id, "limit": BATCH_ROWS}
        self._write_bounded([application_id], ("flow/delete", parameters))
        self._write_bounded([application_id], ("node/delete", parameters))
        self._run([("application/delete", {"applicationId": application_id})])

    def ping(self) -> None:
        with self._errors_told(), self._driver.session(database=self._database) as session:
            session.run(lineage_cypher.statement("ping")).consume()

    def close(self) -> None:
        self._driver.close()

    def _write(self, applications: Sequence[str], steps: Sequence[Step]) -> list[neo4j.Record]:
        """One transaction. It begins by locking its applications, sorted, so that no two writers deadlock."""
        if not applications:
            return []
        self._see_to_schema()
        return self._run([("application/lock", {"applicationIds": applications}), *steps])

    def _see_to_schema(self) -> None:
        if not self._is_migrated:  # no write without constraints, or two writers could make one thing twice
            self.migrate()

    def _write_bounded(self, applications: Sequence[str], step: Step) -> None:
        """Repeat a statement that changes up to `limit` rows until nothing is left."""
        while self._write(applications, [step])[0]["changed"] == step[1]["limit"]:
            pass

    def _run(self, steps: Sequence[Step]) -> list[neo4j.Record]:
        """The steps in one transaction; the records of the last one."""
        return self._transact(lambda it: run_steps(it, steps))

    def _transact(self, work: Callable[[neo4j.Transaction], list[neo4j.Record]]) -> list[neo4j.Record]:
        """`work` in a transaction, again and again while Neo4j is briefly away or busy.

        As the driver's `execute_write`, which does not tell how often and why.
        """
        deadline, pause = time.monotonic() + self._retry_s, _RETRY_FIRST_S
        with self._errors_told():
            while True:
                try:
                    with self._driver.session(database=self._database) as session:
                        with session.begin_transaction() as transaction:
                            found = work(transaction)
                            transaction.commit()
                    self.counters.transactions += 1
                    return found
                except (Neo4jError, DriverError) as error:
                    self.counters.deadlocks += getattr(error, "code", None) == _DEADLOCK
                    if not error.is_retryable() or time.monotonic() + pause > deadline:
                        raise
                    self.counters.retries += 1
                time.sleep(pause * random.uniform(0.8, 1.2))
                pause = min(2 * pause, _RETRY_LAST_S)

    def _apply_schema(self, name: str) -> None:
        try:
            self._run([(name, {})])
        except GraphRefusedError as error:
            code = getattr(error.__cause__, "code", None)
            if code == _LEFT_OVER:
                self._run([("migration/drop_index", {"name": lineage_cypher.schema_name(name)})])
                self._run([(name, {})])
            elif code not in _ALREADY_THERE:
                raise

    @contextmanager
    def _errors_told(self) -> Iterator[None]:
        try:
            yield
        except (Neo4jError, DriverError) as error:
            raise self._told(error) from error

    def _told(self, error: Exception) -> UnavailableError:
        """The error in our words. No password: not the one in the settings, not one in the address."""
        message = error.message if isinstance(error, Neo4jError) else None
        reason = " ".join((message or str(error)).split())[:300]
        if self._password:
            reason = reason.replace(self._password, "***")
        where = f"Neo4j at {self._address}, database {self._database!r}"
        if _is_of_a_certificate(error):
            return GraphRefusedError(
                f"{where}, has a certificate that nobody here vouches for: {reason} - Name the file of its "
                f"authorities with LINEAGE_NEO4J_CA. No password was sent."
            )
        may_pass = isinstance(error, (ServiceUnavailable, DatabaseError)) or (
            isinstance(error, (Neo4jError, DriverError)) and error.is_retryable()
        )
        if may_pass:
            return GraphUnavailableError(
                f"{where}, does not answer: {reason} - Check that it runs (`lineage up` starts a local one) "
                f"and that LINEAGE_NEO4J_URI is right. What was to be written can be written again."
            )
        return GraphRefusedError(
            f"{where}, refuses: {reason} - Check LINEAGE_NEO4J_URI, LINEAGE_NEO4J_USER, "
            f"LINEAGE_NEO4J_PASSWORD and LINEAGE_NEO4J_DATABASE. Trying again changes nothing."
        )


def _is_of_a_certificate(error: BaseException | None) -> bool:
    """True if a certificate that was not believed is somewhere behind the error."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error is not None


def _fault_of(uri: str) -> str | None:
    """Why this is no address, in words that do not repeat it: it may hold a password."""
    if uri.partition("://")[0] not in _SCHEMES:
        return f"an address begins with one of {', '.join(_SCHEMES)}, then ://host:port"
    if "@" in uri:
        return "an address holds no user name and no password; they are settings of their own"
    try:
        urlsplit(uri).port  # noqa: B018 - reading it is the check
    except ValueError:
        return "the port is no number from 0 to 65535"
    return None


def _secured(uri: str, authorities: str) -> tuple[str, dict[str, Any]]:
    """Address and driver options. The driver takes authorities of one's own with plain schemes only."""
    scheme, _, rest = uri.partition("://")
    if not authorities or not scheme.endswith("+s"):
        return uri, {}
    trusted = neo4j.TrustCustomCAs(authorities)
    return f"{scheme.removesuffix('+s')}://{rest}", {"encrypted": True, "trusted_certificates": trusted}


def _without_user(uri: str) -> str:
    scheme, separator, rest = uri.partition("://")
    return scheme + separator + rest.rpartition("@")[2]

"""A connection to Neo4j: transactions that are retried, and errors that say what to do.

A transaction is retried while Neo4j is briefly away or busy; an error says whether trying later helps. No
error has a password in it. Knows nothing of what is written.
"""

from __future__ import annotations

import random
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import neo4j
from neo4j.exceptions import DatabaseError, DriverError, Neo4jError, ServiceUnavailable

import lineage_cypher
from lineage_service.errors import UnavailableError
from lineage_service.graph.graph_store import GraphRefusedError, GraphUnavailableError
from lineage_service.graph.statements import Step, run_steps

__all__ = ["GraphCounters", "Neo4jConnection"]

_DEADLOCK = "Neo.TransientError.Transaction.DeadlockDetected"
_RETRY_FIRST_S, _RETRY_LAST_S = 0.5, 4.0
_SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")


@dataclass(slots=True)
class GraphCounters:
    """What this process did since it started. A retry: Neo4j could not finish a transaction at once."""

    transactions: int = 0
    retries: int = 0
    deadlocks: int = 0


class Neo4jConnection:
    """A pool of connections to one database. Threads may share it."""

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
        self._retry_s = retry_seconds
        self.counters = GraphCounters()
        if fault := _address_fault(uri):
            raise self._translated(ValueError(fault))
        address, security = _secured(uri, authorities)
        with self._translated_errors():
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

    def run(self, steps: Sequence[Step]) -> list[neo4j.Record]:
        """The steps in one transaction; the records of the last one."""
        return self.transact(lambda transaction: run_steps(transaction, steps))

    def transact(self, work: Callable[[neo4j.Transaction], list[neo4j.Record]]) -> list[neo4j.Record]:
        """`work` in a transaction, again and again while Neo4j is briefly away or busy.

        As the driver's `execute_write`, which does not report how often and why.
        """
        deadline, pause = time.monotonic() + self._retry_s, _RETRY_FIRST_S
        with self._translated_errors():
            while True:
                try:
                    with self._driver.session(database=self._database) as session:
                        with session.begin_transaction() as transaction:
                            records = work(transaction)
                            transaction.commit()
                    self.counters.transactions += 1
                    return records
                except (Neo4jError, DriverError) as error:
                    self.counters.deadlocks += getattr(error, "code", None) == _DEADLOCK
                    if not error.is_retryable() or time.monotonic() + pause > deadline:
                        raise
                    self.counters.retries += 1
                time.sleep(pause * random.uniform(0.8, 1.2))
                pause = min(2 * pause, _RETRY_LAST_S)

    def ping(self) -> None:
        """Return at once if the database answers."""
        with self._translated_errors(), self._driver.session(database=self._database) as session:
            session.run(lineage_cypher.statement("ping")).consume()

    def close(self) -> None:
        self._driver.close()

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except (Neo4jError, DriverError) as error:
            raise self._translated(error) from error

    def _translated(self, error: Exception) -> UnavailableError:
        """The error with what to do. No password: not the one in the settings, not one in the address."""
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


def _address_fault(uri: str) -> str | None:
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

"""Where lineage is written for people to explore: the seam between the service and a graph database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from lineage_service.errors import UnavailableError
from lineage_service.graph.application_rows import ApplicationGraph
from lineage_service.graph.row_values import EdgeCounts, NodeCounts
from lineage_service.graph.trace_rows import GraphRecord

__all__ = ["GraphRefusedError", "GraphStore", "GraphUnavailableError"]


class GraphUnavailableError(UnavailableError):
    """Neo4j does not answer or is in trouble; the same call may succeed later."""


class GraphRefusedError(UnavailableError):
    """Neo4j answers and refuses (password, database, schema); a person has to change something first."""


class GraphStore(Protocol):
    """Applications, their nodes and records. `testing.graph.MemoryGraph` is the in-memory twin.

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
        """A token for `write_application`; None: someone else has the application, or it is not pending.

        Who has the token and does not write for CLAIM_S loses it.
        """

    def count_application(
        self, application_id: str, claim: str, records: NodeCounts, flows: EdgeCounts
    ) -> bool:
        """As `write_counts`, of nodes that stand already, under the claim. False: the claim was lost."""

    def write_application(self, application_id: str, claim: str, graph: ApplicationGraph) -> bool:
        """All flows of an application. False: the claim was lost, so another one writes them, or nobody may.

        Part of them may be there then, and writing all again completes them.
        """

    def leave_application(self, application_id: str, claim: str, records: int, max_flows: int) -> bool:
        """The application has more flows than `max_flows`: say so. False: the claim was lost."""

    def delete_application(self, application_id: str) -> None:
        """Everything of one application, in bounded transactions. Events that come later begin it again."""

    def ping(self) -> None:
        """Return at once if the store answers."""

    def close(self) -> None:
        """Give back the connections."""

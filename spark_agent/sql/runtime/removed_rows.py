"""The rows of whole files that a statement has removed, as a source and a sink of their own.

No task reports them, since nobody reads them. Promises that where they are not known, a query that was not
followed stands for them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_agent import contract
from spark_agent.delivery.log import logger
from spark_agent.sql.rewrite.plan_nodes import PlanNode, publish
from spark_agent.sql.runtime.coarse_queries import CoarseQueries
from spark_agent.sql.runtime.file_partitions import FilePartitions
from spark_agent.sql.table_formats.row_operations import deleted_by, sink_name
from spark_agent.sql.table_formats.whole_files import Partition
from spark_agent.sql.tables import Endpoint

if TYPE_CHECKING:
    from spark_agent.driver.session import Session

_FILES = "whole files"


@dataclass(frozen=True, slots=True)
class Removal:
    """A statement that removes whole files. `source` and `sink` are the nodes that its rows get."""

    statement: str
    source: int
    sink: int
    call_site: str


class RemovedRows:
    """Publishes those of one application."""

    def __init__(self, session: Session, coarse_queries: CoarseQueries) -> None:
        self._session, self._coarse_queries = session, coarse_queries
        self._partitions = FilePartitions(session.events.emit)

    def removal(self, statement: str, call_site: str) -> Removal:
        """One that is about to run."""
        next_number = self._session.scope.next_number
        return Removal(statement, next_number(), next_number(), call_site)

    def publish(
        self,
        removal: Removal,
        label: str,
        dataset: Mapping[str, Any],
        version: str,
        removed: Sequence[Partition],
    ) -> None:
        """`label` is what people call the table, `version` the one that is without the rows."""
        self._publish_nodes(removal, label, dict(dataset), version)
        self._publish_rows(removal, removed)

    def _publish_nodes(self, removal: Removal, label: str, dataset: dict[str, Any], version: str) -> None:
        source = PlanNode(
            removal.source,
            _FILES,
            label,
            kind="source",
            relation=contract.SOURCE,
            call_site=removal.call_site,
            dataset=dataset,
        )
        sink = PlanNode(
            removal.sink,
            sink_name(removal.statement),
            label,
            kind="sink",
            relation=contract.IDENTITY,
            reason=deleted_by(str(dataset["name"]), version),
            call_site=removal.call_site,
            dataset={**dataset, "operation": "delete", "version": version},
            parents=[removal.source],
        )
        publish(self._session.events.emit, [source, sink])

    def _publish_rows(self, removal: Removal, removed: Sequence[Partition]) -> None:
        events = self._session.events
        self._partitions.publish(
            removal.source,
            [{"split": split, "parts": list(partition.parts)} for split, partition in enumerate(removed)],
        )
        for split, partition in enumerate(removed):
            events.publish_manifest(
                {
                    "run": int.from_bytes(os.urandom(8), "little") % (contract.MAX_RUN - 1) + 1,
                    "split": split,
                    "attempt": 0,
                    "stage": 0,
                    "action": removal.sink,
                    "input": removal.source,
                    "nodes": [removal.sink],
                    "blocks": 0,
                    "dropped": 0,
                    "unconfirmed": 0,
                    "problem": "",
                    "whole": True,
                    "inputs": partition.rows,
                    "outputs": partition.rows,
                }
            )
        events.emit(contract.ACTION_ENDED, node=removal.sink, state=contract.ACTION_COMPLETE)

    def not_known(self, removal: Removal, label: str, dataset: Mapping[str, Any] | None, why: str) -> None:
        """Let a query stand for it that was not followed. None: not even the table is known. Never raises."""
        reason = f"which rows this {removal.statement} removed with whole files is not known ({why})"
        if dataset is None:
            self._session.events.gap(reason)
            return
        try:
            self._coarse_queries.publish(
                Endpoint(removal.statement, label, dict(dataset)),
                [Endpoint(_FILES, label, dict(dataset))],
                reason,
                call_site=removal.call_site,
            )
        except Exception:  # noqa: BLE001 - the JVM has gone, say
            logger.debug("a DELETE has no node", exc_info=True)
            self._session.events.gap(reason)

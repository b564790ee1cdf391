"""Writes the graph of a claimed application into Neo4j: its records, then the links between them.

Creating costs less than merging, and would double what is there already. So, under the claim:

1. The claim sets `linksWritten` of the application to 0 (application/claim).
2. Records are created, a batch a transaction. Where one of a batch is there, the constraint refuses the
   batch: it is merged, and all links will be. A record that was created after the claim had no link then.
3. Each batch of links begins with what `linksWritten` was (application/hold), under the application's lock:
   - as many as were created before this batch: nobody else made one. The batch is created, and `linksWritten`
     counts it in the same transaction (application/advance);
   - as many as with this batch: it is there, only the answer to its commit was lost. Nothing is to be done;
   - none: a trace brought links meanwhile and took it away (application/traced). The batch is merged.
4. The end of the claim takes `linksWritten` away. Who claims after a holder that died finds its records
   there, and merges: step 2.

Knows nothing of how the graph is read and of how a transaction is tried again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import neo4j
from neo4j.exceptions import ConstraintError

from lineage_service.graph.application_rows import (
    ApplicationGraph,
    all_flows,
    application_link_batches,
    application_record_batches,
)
from lineage_service.graph.row_values import Row
from lineage_service.graph.statements import Step, Transact, run_steps

__all__ = ["CLAIM_S", "ApplicationWriter", "ClaimLostError", "claim_parameters"]

#: A consumer that died is waited for so long. A batch takes a second or two, also on a busy machine.
CLAIM_S = 60.0


class ClaimLostError(Exception):
    """The claim is another one's, or nobody's: the transaction leaves no trace."""


class _RecordExistsError(Exception):
    """Some records of a batch are in the graph already: a trace, or a writer that died, brought them."""


def claim_parameters(application_id: str, claim: str) -> Row:
    """The parameters of application/claim and application/hold."""
    return {"applicationId": application_id, "claim": claim, "milliseconds": int(1000 * CLAIM_S)}


class ApplicationWriter:
    """The holder of one claim. Every method that writes raises ClaimLostError, and what `transact` raises."""

    def __init__(self, transact: Transact, application_id: str, claim: str) -> None:
        self._transact = transact
        self._application_id = application_id
        self._claim = claim
        self._are_new = False  # all records: created after the claim

    def write(self, graph: ApplicationGraph) -> None:
        """One transaction a batch; the last one says that all is there, and ends the claim."""
        self.write_links(graph, self.write_records(graph))
        self.write_steps(("application/settle", {"applicationId": self._application_id, **all_flows(graph)}))

    def write_records(self, graph: ApplicationGraph) -> list[str]:
        """What Neo4j calls each record, in the order of the graph's columns."""
        element_ids: list[str] = []
        batches = application_record_batches(self._application_id, graph)
        self._are_new = True
        for groups in batches:
            parameters = {"applicationId": self._application_id, "groups": groups}
            try:
                rows = self._create(parameters)
            except _RecordExistsError:
                self._are_new = False
                rows = self.write_steps(("flow/upsert", parameters))
            element_ids += _in_order(groups, rows)
        return element_ids

    def write_links(self, graph: ApplicationGraph, element_ids: Sequence[str]) -> None:
        """The links between records that `write_records` of this holder has written."""
        start = 0
        for links in application_link_batches(graph, element_ids):
            self._write_links(links, start, start + len(links["targets"]))
            start += len(links["targets"])

    def write_steps(self, *steps: Step) -> list[neo4j.Record]:
        """The steps in one transaction, under the claim; the records of the last one."""

        def work(transaction: neo4j.Transaction) -> list[neo4j.Record]:
            self._hold(transaction)
            return run_steps(transaction, steps)

        return self._transact(work)

    def _create(self, parameters: Row) -> list[neo4j.Record]:
        def work(transaction: neo4j.Transaction) -> list[neo4j.Record]:
            self._hold(transaction)
            try:
                return run_steps(transaction, [("flow/create", parameters)])
            except ConstraintError as error:
                raise _RecordExistsError from error

        return self._transact(work)

    def _write_links(self, links: Row, start: int, end: int) -> None:
        def work(transaction: neo4j.Transaction) -> list[neo4j.Record]:
            written = self._hold(transaction)
            if not self._are_new or written not in (start, end):
                return run_steps(transaction, [("flow/link_elements", links)])
            if written == end:
                return []
            advanced = {"applicationId": self._application_id, "linksWritten": end}
            return run_steps(transaction, [("flow/create_links", links), ("application/advance", advanced)])

        self._transact(work)

    def _hold(self, transaction: neo4j.Transaction) -> int | None:
        """Lock the application and renew the claim; `linksWritten` of it."""
        step = ("application/hold", claim_parameters(self._application_id, self._claim))
        records = run_steps(transaction, [step])
        if not records:
            raise ClaimLostError
        written: int | None = records[0]["linksWritten"]
        return written


def _in_order(groups: Iterable[Row], rows: Iterable[neo4j.Record]) -> list[str]:
    """The element ids that flow/create or flow/upsert said of `groups`, in their order."""
    row_of_node = {row["nodeId"]: row for row in rows}
    element_ids: list[str] = []
    for group in groups:
        row = row_of_node[group["nodeId"]]
        by_place = dict(zip(row["ks"], row["elementIds"], strict=True))
        element_ids += [by_place[k] for k in range(len(group["flowIds"]))]
    return element_ids

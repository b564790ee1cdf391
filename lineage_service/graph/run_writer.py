"""Writes all flows of a claimed application into Neo4j: its records, then the links between them.

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

Knows nothing of how a run is found and of how a transaction is tried again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import neo4j
from neo4j.exceptions import ConstraintError

from lineage_service.graph.rows import Row, WholeRun, all_flows, run_batches, run_link_batches
from lineage_service.graph.statements import Step, Transact, run_steps

__all__ = ["CLAIM_S", "ClaimLostError", "RunWriter", "claimed"]

#: A consumer that died is waited for so long. A batch takes a second or two, also on a busy machine.
CLAIM_S = 60.0


class ClaimLostError(Exception):
    """The claim is another one's, or nobody's: the transaction leaves no trace."""


class _IsThereError(Exception):
    """Some records of a batch are in the graph already: a trace, or a writer that died, brought them."""


def claimed(application_id: str, claim: str) -> Row:
    """The parameters of application/claim and application/hold."""
    return {"applicationId": application_id, "claim": claim, "milliseconds": int(1000 * CLAIM_S)}


class RunWriter:
    """The holder of one claim. Every method that writes raises ClaimLostError, and what `transact` raises."""

    def __init__(self, transact: Transact, application_id: str, claim: str) -> None:
        self._transact = transact
        self._application_id = application_id
        self._claim = claim
        self._are_new = False  # all records of the run: created after the claim

    def write(self, run: WholeRun) -> None:
        """One transaction a batch; the last one says that all is there, and ends the claim."""
        self.write_links(run, self.write_records(run))
        self.write_steps(("application/settle", {"applicationId": self._application_id, **all_flows(run)}))

    def write_records(self, run: WholeRun) -> list[str]:
        """What Neo4j calls each record, in the order of the run."""
        element_ids: list[str] = []
        batches = run_batches(self._application_id, run)
        self._are_new = True
        for groups in batches:
            given = {"applicationId": self._application_id, "groups": groups}
            try:
                rows = self._create(given)
            except _IsThereError:
                self._are_new = False
                rows = self.write_steps(("flow/upsert", given))
            element_ids += _in_order(groups, rows)
        return element_ids

    def write_links(self, run: WholeRun, element_ids: Sequence[str]) -> None:
        """The links between records that `write_records` of this holder has written."""
        start = 0
        for links in run_link_batches(run, element_ids):
            self._write_links(links, start, start + len(links["targets"]))
            start += len(links["targets"])

    def write_steps(self, *steps: Step) -> list[neo4j.Record]:
        """The steps in one transaction, under the claim; the records of the last one."""

        def work(transaction: neo4j.Transaction) -> list[neo4j.Record]:
            self._hold(transaction)
            return run_steps(transaction, steps)

        return self._transact(work)

    def _create(self, given: Row) -> list[neo4j.Record]:
        def work(transaction: neo4j.Transaction) -> list[neo4j.Record]:
            self._hold(transaction)
            try:
                return run_steps(transaction, [("flow/create", given)])
            except ConstraintError as error:
                raise _IsThereError from error

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
        held = run_steps(transaction, [("application/hold", claimed(self._application_id, self._claim))])
        if not held:
            raise ClaimLostError
        written: int | None = held[0]["linksWritten"]
        return written


def _in_order(groups: Iterable[Row], rows: Iterable[neo4j.Record]) -> list[str]:
    """The element ids that flow/create or flow/upsert said of `groups`, in their order."""
    told = {row["nodeId"]: row for row in rows}
    element_ids: list[str] = []
    for group in groups:
        row = told[group["nodeId"]]
        by_place = dict(zip(row["ks"], row["elementIds"], strict=True))
        element_ids += [by_place[k] for k in range(len(group["flowIds"]))]
    return element_ids

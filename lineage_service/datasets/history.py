"""The history of a dataset: which application wrote it when, and which ones read it. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from lineage_service.datasets.catalogue import Entry, Placed
from lineage_service.datasets.summaries import DetailsOf, state_of
from lineage_service.datasets.uses import UseDetails
from lineage_service.lineage import DatasetUse
from spark_agent import contract

__all__ = ["Key", "history", "use_of"]

Key = tuple[int, str, int, str]
"""(time, application id, node, `write` or `read`): of a read the node of its first source."""


def history(entry: Entry) -> Mapping[Key, Sequence[Placed]]:
    """Newest first. Each write by itself, and all reads of one application together."""
    uses: dict[Key, list[Placed]] = {}
    for write in entry.writes:
        uses[write.use.at, write.application.application_id, write.use.node, "write"] = [write]
    by_application: dict[str, list[Placed]] = defaultdict(list)
    for read in entry.reads:
        by_application[read.application.application_id].append(read)
    for application_id, reads in by_application.items():
        reads.sort(key=lambda read: read.use.node)
        uses[min(read.use.at for read in reads), application_id, reads[0].use.node, "read"] = reads
    return dict(sorted(uses.items(), reverse=True))


def use_of(uses: Sequence[Placed], details_of: DetailsOf, now_ms: float) -> DatasetUse:
    """One line of the history. `now_ms` is Unix time."""
    first, application = uses[0].use, uses[0].application
    details = details_of(application.application_id)
    all_of = [details.uses.get(used.use.node, UseDetails()) for used in uses]
    counts = [one.rows for one in all_of]
    unclear = next((one for one in all_of if not one.exact), None)
    return DatasetUse(
        kind="write" if first.is_write else "read",
        application_id=application.application_id,
        name=application.name,
        node_ids=tuple(contract.node_id(application.application_id, used.use.node) for used in uses),
        operation=first.operation,
        call_site=first.call_site,
        at=min(used.use.at for used in uses),
        rows=None if None in counts else sum(count for count in counts if count is not None),
        state=state_of(uses[0], now_ms),
        complete=details.complete,
        exact=unclear is None,
        reason="" if unclear is None else unclear.reason,
        error=None if first.outcome is None else first.outcome.error,
    )

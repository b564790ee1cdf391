"""Earlier runs of the same job: applications of one name that ended well and are complete, and no replays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice

from lineage_service.errors import UnknownApplicationError
from lineage_service.lineage import Application
from lineage_service.store.errors import StoreUnavailableError
from lineage_service.tracing.query.open_applications import OpenApplications, Opened

__all__ = ["earlier_runs"]

#: With the run itself, as many as stay open.
_MOST = 7
#: Applications of any name that are looked at.
_MOST_LOOKED_AT = 1_000


def earlier_runs(
    opened: Opened, newest_first: Iterable[Application], applications: OpenApplications
) -> Iterator[Opened]:
    """The newest ones first. Those whose files cannot be read are left out."""
    run = opened.application
    earlier = (
        other
        for other in islice(newest_first, _MOST_LOOKED_AT)
        if other.name == run.name
        and other.started < run.started
        and other.complete
        and other.state == "ended"
        and other.replay_of is None
    )
    for other in islice(earlier, _MOST):
        with suppress(StoreUnavailableError, UnknownApplicationError):
            yield applications.open(other.application_id)

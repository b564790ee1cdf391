"""Which of several operators left a row out, where more is known than what flows say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lineage_service.tracing.columns.application import OpenedApplication
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.missing.droppers import Candidate
from lineage_service.tracing.model.elements import TopologyNode

__all__ = ["EndedRecord", "dropped_at"]


@dataclass(frozen=True, slots=True)
class EndedRecord:
    """The last record with an id that a row became: of a scan, of a cache, or of a group.

    `columns` are those of its row; None if it has none, or its file cannot be read.
    """

    node: TopologyNode
    partition: int
    offset: int
    columns: Mapping[str, Any] | None = None
    key: str | None = None


def dropped_at(
    opened: OpenedApplication[Snapshot], record: EndedRecord, candidates: Sequence[Candidate]
) -> Candidate | None:
    """The one of the candidates, in the order in which rows pass them; None if it is not known.

    What it gives is promised to be exact.
    """
    return None

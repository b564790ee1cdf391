"""What all answers about jobs come to, for who watches them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lineage_service.lineage.triggers import ModelInCharge, TriggerPhase

__all__ = ["DECISION_SECONDS", "JobTotals", "TriggerTotals"]

#: Upper bounds of the classes into which the times of answers are sorted, in seconds.
DECISION_SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTotals:
    """Of one job.

    `decisions` are counts by (decision, reason). `probability` and `tested_compliance` are those of the last
    answer that has them under the bound of the last answer; `in_charge` is what came since that test.
    `seconds` counts answers by the first of DECISION_SECONDS that they stay within, and one more for those
    beyond; answers whose time was not kept are in none. `saved_seconds` and `spent_seconds` are of what is
    known.
    """

    job: str
    decisions: Mapping[tuple[str, str], int]
    phase: TriggerPhase
    probability: float | None
    tested_compliance: float | None
    in_charge: ModelInCharge | None
    confidence: float | None
    seconds: tuple[int, ...]
    saved_seconds: float
    spent_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerTotals:
    """`unread` jobs are left out: there are too many, or one look had no time for them."""

    jobs: tuple[JobTotals, ...]
    unread: int

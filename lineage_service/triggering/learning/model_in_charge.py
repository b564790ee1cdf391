"""What has come of a model since it decides: from what is kept with the answers, and without a forest."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Protocol

from lineage_service.lineage import ModelInCharge
from lineage_service.triggering.learning.phases import APPLICATION, progress_of_json

__all__ = ["Learned", "in_charge"]


class Learned(Protocol):
    """What is needed of an answer, as in `Wave`."""

    @property
    def number(self) -> int: ...

    @property
    def bound(self) -> float | None: ...

    @property
    def learned(self) -> str | None: ...


def in_charge(waves: Iterable[Learned], retrained: int | None) -> ModelInCharge | None:
    """After these answers of a job, which may be the latest alone. None: no model is in charge.

    `retrained` is the number of the first answer after somebody asked for another training.
    """
    latest_first = sorted(waves, key=lambda wave: -wave.number)
    if not latest_first or latest_first[0].bound is None:
        return None
    newest = next((wave for wave in latest_first if wave.learned is not None), None)
    if newest is None or (retrained is not None and newest.number < retrained):
        return None
    try:
        progress = progress_of_json(json.loads(newest.learned or "")["progress"])
    except (ValueError, TypeError, KeyError):  # another version has written it
        return None
    if progress.phase != APPLICATION:
        return None
    seen = progress.looks.in_charge()
    is_known = seen.waves > 0 and not math.isnan(seen.compliance)
    return ModelInCharge(
        waves=seen.waves,
        skips=seen.skips,
        audits=seen.audits,
        broken=seen.broken,
        compliance=seen.compliance if is_known else None,
        compliance_lower=seen.lower if seen.waves else None,
    )

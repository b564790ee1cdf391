"""The lineage of air quality in one job, known by construction: each detector goes into its zone.

What the product learns of a real job by one walk forward is here written down, and its own code makes the
same features of it. The zones that are 0 are those that the step over the reference left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lineage_service.triggering.changes.changed_elements import Changes, Elements
from lineage_service.triggering.changes.impact import Features
from lineage_service.triggering.dependence.lineage_features import PREFIX, Lineage, lineage_features
from lineage_service.triggering.dependence.read_rows import Codes, ReadRows
from lineage_service.triggering.dependence.relation import Relation
from lineage_service.triggering.learning.feature_choice import feature_choice
from lineage_service.triggering.learning.phases import Policy
from perf.trigger import air_quality, waves
from perf.trigger.waves import Further, Job

WORKFLOW = "air quality with lineage"
#: Numbers that are the same for every execution: detectors neither come nor go.
_ROWS = np.arange(air_quality.DETECTORS)


def jobs(count: int, horizon: int, seed: int) -> list[Job]:
    """The steps of one job, with the names that they have without lineage."""
    hours = air_quality.hours(count, seed)
    detectors, zones, hotspots, indices = (
        [step(values) for values in hours]
        for step in (air_quality.concentrations, air_quality.zones, air_quality.hotspots, air_quality.index)
    )
    steps = {"3a zones": zones, "zones over the reference": hotspots, "index": indices}
    return [
        waves.seen(["concentration"], detectors, horizon, waves.hourly, _further(detectors, outputs)).job(
            WORKFLOW, name, outputs
        )
        for name, outputs in steps.items()
    ]


def _further(detectors: Sequence[Elements], outputs: Sequence[Elements]) -> Further:
    relation = _relation(len(outputs[0]))
    nothing = Codes((), np.zeros((0, 0), np.uint64))
    ends = np.array([0, air_quality.DETECTORS])
    rows = ReadRows(("/detectors",), ends, detectors[0].keys, _ROWS[:0], nothing)

    def further(reference: int, wave: int, changes: Changes) -> Features:
        then, written = detectors[reference], outputs[reference].values[:, 0]
        lineage = Lineage(rows, relation, None, then, written)
        return lineage_features(["concentration"], lineage, changes, nothing).features

    return further


def _relation(outputs: int) -> Relation:
    """To zones, or to the index."""
    width = air_quality.SIDE // air_quality.ZONES_OF_SIDE
    down, across = np.divmod(_ROWS, air_quality.SIDE)
    zone = down // width * air_quality.ZONES_OF_SIDE + across // width
    everywhere = np.ones(air_quality.DETECTORS, bool)
    return Relation(air_quality.DETECTORS, outputs, _ROWS, zone if outputs > 1 else _ROWS * 0, everywhere)


def chosen(job: Job, policy: Policy, training: int) -> tuple[Job, bool | None]:
    """With the features that the training showed to be worth it; are those of lineage among them?

    None: the job has none.
    """
    if not any(name.startswith(PREFIX) for name in job.pairs.names):
        return job, None
    choice = feature_choice(job.pairs.among(range(training)), policy, [PREFIX])
    return replace(job, pairs=job.pairs.with_features(choice.names)), choice.needs(PREFIX)

"""Which tasks and operations of an application behave oddly, with the records that show it.

Profiles are cached with the application as it is stored: they are read again only if more of it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat
from threading import Lock
from weakref import WeakKeyDictionary

from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import Suspect, SuspectFeature, Suspects
from lineage_service.queries import SuspectsQuery
from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.columns.time_budget import time_budget
from lineage_service.tracing.debugging.candidates import Candidate, candidates_of, less_explained
from lineage_service.tracing.debugging.consequences import MOST_FOLLOWED, origins_of
from lineage_service.tracing.debugging.drift import Drift, drifts, kept_by
from lineage_service.tracing.debugging.evidence import drift_evidence, evidence_of, operation_in_words
from lineage_service.tracing.debugging.findings import (
    FALSE_ALARMS,
    Finding,
    Findings,
    graded,
    threshold,
)
from lineage_service.tracing.debugging.lineage_findings import in_lineages, profile_of_lineages
from lineage_service.tracing.debugging.lineages import Lineages, lineages_of
from lineage_service.tracing.debugging.newt import newt
from lineage_service.tracing.debugging.profiles import Profile, profile_of, task_count
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.query.named_outputs import MOST_OUTPUTS, StartsOf, outputs_named
from lineage_service.tracing.query.open_applications import Opened
from lineage_service.tracing.query.suspect_units import NO_UNIT, ShownUnit, UnitPlaces, shown_units
from spark_agent import contract

__all__ = ["SuspectReader"]

#: Suspects whose records are looked for.
_MOST_TRACED = 100

EarlierRuns = Callable[[Opened], Iterator[Opened]]
"""Earlier runs of the same job, the newest first."""


class SuspectReader:
    """Reads them from open applications. Threads may share it."""

    def __init__(
        self,
        locations: RecordLocations,
        starts_of: StartsOf,
        earlier_runs: EarlierRuns,
        *,
        time_budget_s: float,
    ) -> None:
        self._locations, self._starts_of, self._earlier_runs = locations, starts_of, earlier_runs
        self._time_budget_s = time_budget_s
        self._lock = Lock()
        self._profiles: WeakKeyDictionary[Snapshot, Profile] = WeakKeyDictionary()

    def suspects(self, opened: Opened, query: SuspectsQuery) -> Suspects:
        """Raises InvalidQueryError, NotFoundError, TimeBudgetError."""
        if query.good and not query.bad:
            raise InvalidQueryError("good outputs are compared with bad ones: name a bad one, too")
        snapshot = opened.snapshot
        with time_budget(None, self._time_budget_s) as check:
            named = [
                outputs_named(opened, starts, self._starts_of, check) for starts in (query.bad, query.good)
            ]
            bad, good = lineages_of(snapshot, [one.outputs for one in named], check)
            findings = self._findings(snapshot, query, bad, good, check)
            drifted, earlier = self._drifts(opened, query)
            tests = findings.tests + len(drifted)
            candidates = candidates_of(opened.graph, findings, drifted)
            places = UnitPlaces(snapshot, bad, check)
            if query.method == "graded":
                candidates = _less_explained(snapshot, candidates, places, check)
            needed = None if query.method == "newt" else threshold(tests)
            units = shown_units(opened, self._locations, candidates[: query.limit][:_MOST_TRACED], places)
            listed = [
                _shown(opened, candidate, candidates, needed, bad, unit)
                for candidate, unit in zip(
                    candidates[: query.limit], chain(units, repeat(NO_UNIT)), strict=False
                )
            ]
        return Suspects(
            application_id=opened.application.application_id,
            name=opened.application.name,
            method=query.method,
            suspects=tuple(listed),
            total=len(candidates),
            tasks=task_count(opened.graph),
            tests=tests,
            threshold=None if needed is None else round(needed, 3),
            bad=bad.count,
            good=good.count,
            earlier=earlier,
            complete=opened.application.complete,
            how=tuple(_limits(opened, query, bad, good, tests)),
        )

    def _findings(
        self, snapshot: Snapshot, query: SuspectsQuery, bad: Lineages, good: Lineages, check: Check
    ) -> Findings:
        def is_among(node: int, run: int) -> bool:
            return not bad.count or bad.has(node, run)

        if bad.count and good.count:
            if query.method == "graded":
                return in_lineages(snapshot, bad, good)
            return newt(profile_of_lineages(snapshot, bad, good), is_among)
        return (newt if query.method == "newt" else graded)(self._profile(snapshot, check), is_among)

    def _profile(self, snapshot: Snapshot, check: Check) -> Profile:
        with self._lock:
            profile = self._profiles.get(snapshot)
        if profile is None:
            profile = profile_of(snapshot, check)
            with self._lock:
                self._profiles[snapshot] = profile
        return profile

    def _drifts(self, opened: Opened, query: SuspectsQuery) -> tuple[list[Drift], int]:
        """Operations unlike in earlier runs, and how many runs these are. Not where outputs are named."""
        if query.bad or query.method == "newt":
            return [], 0
        before = [kept_by(run.graph) for run in self._earlier_runs(opened)]
        return drifts(kept_by(opened.graph), before), len(before)


def _shown(
    opened: Opened,
    candidate: Candidate,
    candidates: Sequence[Candidate],
    needed: float | None,
    bad: Lineages,
    unit: ShownUnit,
) -> Suspect:
    topology, strongest = opened.graph.topology, candidate.strongest
    node = topology.nodes[candidate.node]
    partition = None if candidate.run is None else candidate.partition
    operation = operation_in_words(node, partition)
    feature: SuspectFeature
    if isinstance(strongest, Drift):
        evidence, feature = drift_evidence(strongest, operation), "drift"
    else:
        evidence, feature = evidence_of(strongest, operation, unit.words), strongest.feature
    leads_to_bad = unit.leads_to_bad
    if bad.count and unit.record is None:
        leads_to_bad = candidate.run is not None and bad.has(candidate.node, candidate.run)
    return Suspect(
        rank=candidate.rank,
        node_id=contract.node_id(topology.application_id, node.number),
        name=node.name,
        call_site=node.call_site,
        partition=partition,
        score=candidate.score,
        unusual=needed is not None and candidate.origin is None and strongest.bits >= needed,
        feature=feature,
        value=evidence.value,
        low=evidence.low,
        high=evidence.high,
        others=evidence.others,
        why=evidence.why,
        record=unit.record,
        sources=unit.sources,
        sources_total=unit.sources_total,
        leads_to_bad=leads_to_bad,
        follows_from=None if candidate.origin is None else _rank_of(candidate.origin, candidates),
    )


def _rank_of(origin: Candidate, candidates: Sequence[Candidate]) -> int | None:
    """The rank that it has now."""
    return next(
        (one.rank for one in candidates if (one.node, one.run) == (origin.node, origin.run)),
        None,
    )


def _less_explained(
    snapshot: Snapshot, candidates: Sequence[Candidate], places: UnitPlaces, check: Check
) -> list[Candidate]:
    """Where the unit of one of the first follows from that of another, only the rest of its score counts."""
    units = {}
    for at, candidate in enumerate(candidates[:MOST_FOLLOWED]):
        place = places.of(candidate)
        if place is not None:
            assert isinstance(candidate.strongest, Finding)
            units[at] = candidate.strongest, place
    return less_explained(candidates, origins_of(snapshot, units, check))


def _limits(opened: Opened, query: SuspectsQuery, bad: Lineages, good: Lineages, tests: int) -> Iterator[str]:
    """What such scores can say, and what not."""
    if query.method == "newt":
        yield _NEWT
    else:
        yield _CHANCE
        yield _HEAVY_TAILS
        if not tests:
            yield _NOTHING_COUNTED
    if query.bad and not query.good:
        yield _NO_GOOD
    if max(bad.count, good.count) == MOST_OUTPUTS:
        yield f"At most {MOST_OUTPUTS} bad and {MOST_OUTPUTS} good outputs are looked at."
    if not (bad.is_exact and good.is_exact):
        yield _UPPER_BOUND
    if not opened.application.complete:
        yield _OPEN


_CHANCE = (
    f"A score is bits of surprise. By chance 1 in {FALSE_ALARMS} applications without anything odd has an "
    "unusual suspect; the others are listed for comparison."
)
_HEAVY_TAILS = (
    "Where a few records give far more than most by nature, small errors do not stand out: name bad and good "
    "outputs, or use contrast."
)
_NEWT = (
    "Newt's rule scores innocent tasks, too, where inputs give unequal numbers of outputs. It is here to "
    "compare with."
)
_NO_GOOD = "With good outputs, too, only what bad and good ones are made of is compared."
_OPEN = "The lineage of the application is not complete: records may be missing."
_UPPER_BOUND = "The lineages of these outputs are an upper bound: they may name more than took part."
_NOTHING_COUNTED = (
    "Nothing can be compared: each input of its operations gave one output, or how many is not stored, as in "
    "queries of DataFrames."
)

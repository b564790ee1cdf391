"""Proves an explanation by running the unmodified command, in sandboxes, with the fences of every replay.

1. `sufficient_rows` finds rows on which the command gives the outputs again.
2. `minimal_rows` leaves out what is not needed, if that is asked for.
3. The rows are saved as files, and the command runs on these files alone. Only this sets `verified`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lineage_service.errors import LineageError
from lineage_service.lineage import AskedRecord, Replay
from lineage_service.queries import Queries
from lineage_service.replays.explain.asked_outputs import AskedOutputs
from lineage_service.replays.explain.chosen_rows import chosen_rows
from lineage_service.replays.explain.minimal_rows import minimal_rows
from lineage_service.replays.explain.saved_copy import SavedCopy
from lineage_service.replays.explain.sufficient_rows import (
    FirstRows,
    ProofRequest,
    first_rows,
    sufficient_rows,
)
from lineage_service.replays.joined_rows import without_places
from lineage_service.replays.original import Original
from lineage_service.replays.places import tells_partitions
from lineage_service.replays.replay_runs import Repair, ReplayRuns
from lineage_service.replays.sandbox import Sandbox
from lineage_service.replays.sift.candidate_sets import SourceRows
from lineage_service.replays.sift.guarded_runs import GuardedRuns, JobOptions
from lineage_service.replays.sift.job_runs import JobRuns
from lineage_service.replays.specification import Source, with_places
from lineage_service.tracing.query.row_extraction import Extraction
from spark_agent.contract.smallest_rows import OutOfTimeError

__all__ = ["Extract", "Proof", "Proofs"]

Extract = Callable[[Mapping[str, Any], Path], Extraction]
"""Writes the rows of a row set into files below a new folder."""

_SAVED = "saved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What running has shown. `why_not`: why the rows are not verified; empty where they are.

    `is_whole`: the rows are all of the inputs. `added`: how many were added to the first ones.
    """

    sources: tuple[Source, ...]
    asked: tuple[AskedRecord, ...]
    is_whole: bool
    runs: int
    added: int
    is_minimal: bool
    why_not: str
    is_refused: bool
    notes: tuple[str, ...]
    #: What was written of the rows; None where that was not come to.
    extraction: Extraction | None = None


class Proofs:
    """Of one application. `runs_with` makes the replays of a repair, `extract` writes rows as files."""

    def __init__(
        self,
        original: Original,
        queries: Queries,
        texts: SourceRows,
        repair: Repair,
        runs_with: Callable[[Repair], ReplayRuns],
        guarded: GuardedRuns,
        extract: Extract,
    ) -> None:
        self._original, self._queries, self._texts = original, queries, texts
        self._repair, self._runs_with = repair, runs_with
        self._guarded, self._extract = guarded, extract

    def first(self, request: ProofRequest) -> FirstRows:
        """Raises LineageError."""
        return first_rows(self._original, self._queries, self._texts, request)

    def proof(self, request: ProofRequest, *, is_minimal: bool, folder: Path | None) -> Proof:
        """`folder`: where rows are saved. Raises LineageError, ReplayInterrupted, RunsInterruptedError."""
        began = time.monotonic()
        first = self.first(request)
        enough = sufficient_rows(self._original, self._repair, self._texts, self._runs_with, first, request)
        before = first.decided
        sources = self._all_rows(first.bound) if enough.is_whole else enough.sources
        proof = Proof(
            sources=sources,
            asked=first.asked,
            is_whole=enough.is_whole,
            runs=enough.replay.rounds,
            added=_count(sources) - len(before),
            is_minimal=False,
            why_not=enough.why_not,
            is_refused=enough.replay.verdict == "refused",
            notes=_notes(enough.replay),
        )
        if enough.why_not:
            return proof
        left = max(request.seconds - (time.monotonic() - began), _LEAST_SECONDS)
        options = JobOptions(
            words=request.words,
            template=request.template,
            seconds=left,
            is_kept=request.is_kept,
            is_shown=request.is_shown,
        )
        with self._guarded.begun(options) as (sandbox, runs):
            runs.can_be_compact = not tells_partitions(self._queries.graph(self._original.application_id))
            if is_minimal:
                proof = self._smaller(proof, first, runs, request)
                runs.until = max(runs.until, time.monotonic() + _LEAST_SECONDS)
            proof = self._checked(proof, runs, sandbox, folder, request)
        return replace(proof, runs=enough.replay.rounds + runs.count)

    def _all_rows(self, bound: Sequence[Source]) -> tuple[Source, ...]:
        """All rows of the sources of a plain trace."""
        original = self._original
        sources = []
        for source in bound:
            node = source["node"]
            counts = [
                (split, original.records(node, split)) for split in sorted(original.sources[node].partitions)
            ]
            splits = [{"split": split, "positions": [[0, count]]} for split, count in counts if count]
            sources.append(source if source["whole"] else {**source, "splits": splits})
        return tuple(sources)

    def _smaller(self, proof: Proof, first: FirstRows, runs: JobRuns, request: ProofRequest) -> Proof:
        application_id = self._original.application_id
        placed = with_places(application_id, list(map(without_places, proof.sources)), self._texts)
        most = max(request.runs - proof.runs - 1, 1)
        minimal = minimal_rows(runs, placed, first.needed, AskedOutputs(first.asked), request.template, most)
        if minimal.rows is None:
            note = "the job's own process did not give it again on these rows, so none was left out"
            return replace(proof, notes=(*proof.notes, note))
        before = first.decided
        notes = () if minimal.is_minimal else (f"not all rows were left out in {request.runs:,} runs",)
        return replace(
            proof,
            sources=tuple(chosen_rows(application_id, proof.sources, minimal.rows, self._texts)),
            is_whole=False,
            added=len(set(minimal.rows) - before),
            is_minimal=minimal.is_minimal,
            notes=(*proof.notes, *notes),
        )

    def _checked(
        self, proof: Proof, runs: JobRuns, sandbox: Sandbox, folder: Path | None, request: ProofRequest
    ) -> Proof:
        """With the rows saved, and the command run on the files."""
        row_set = {
            "application": self._original.application_id,
            "sources": [without_places(source) for source in proof.sources],
        }
        try:
            extraction = self._extract(row_set, folder or sandbox.folder / _SAVED)
        except LineageError as error:
            return replace(
                proof, why_not=f"these rows cannot be saved as files, so nothing ran on them: {error}"
            )
        copies = {file.path: file.target for file in extraction.files}
        copy = SavedCopy(self._original, copies, extraction.left_out)
        try:
            checked = copy.check(runs, AskedOutputs(proof.asked), request.template)
        except OutOfTimeError:
            return replace(
                proof, extraction=extraction, why_not="the time was over before the saved rows ran"
            )
        notes = list(proof.notes)
        if checked.verdict == "close":
            notes.append(
                "numbers of it differ by less than 1e-9 of their size: they were added in another order"
            )
        return replace(proof, extraction=extraction, why_not=checked.why_not, notes=tuple(notes))


#: For the run on the saved rows, however long the others took.
_LEAST_SECONDS = 60.0


def _count(sources: Sequence[Source]) -> int:
    return sum(
        count for source in sources for split in source.get("splits", ()) for _, count in split["positions"]
    )


def _notes(replay: Replay) -> tuple[str, ...]:
    refused = [
        f"refused: {refusal.what}{f': {refusal.path}' if refusal.path else ''}"
        f"{f' at {refusal.where}' if refusal.where else ''}"
        for refusal in replay.refused or ()
    ]
    return (*replay.notes, *refused)

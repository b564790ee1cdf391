"""`lineage explain --sufficient`, `--minimal` and `--save`: an explanation that running the job proves."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lineage_service.cli.job_flags import add_run_flags
from lineage_service.cli.original_files import changed_inputs, input_paths, output_paths
from lineage_service.cli.query.start import store_queries, whole_number
from lineage_service.cli.stores import open_lineage
from lineage_service.errors import InvalidQueryError, LineageError
from lineage_service.kafka.sent_event import send_event
from lineage_service.lineage import ExplainedRow, Explanation, Verification
from lineage_service.newest_application import application_named
from lineage_service.queries import ExplanationQuery, RowSetQuery, StartQuery
from lineage_service.replays.arrival import Arrival
from lineage_service.replays.errors import ReplayError
from lineage_service.replays.explain.checked_event import checked_event
from lineage_service.replays.explain.proofs import Proof, Proofs
from lineage_service.replays.explain.saved_job import save_job
from lineage_service.replays.explain.sufficient_rows import ProofRequest
from lineage_service.replays.original import Original
from lineage_service.replays.repair import RowRepair
from lineage_service.replays.replay_runs import Repair, ReplayInterrupted, ReplayRuns
from lineage_service.replays.sift.guarded_runs import GuardedRuns, RunsInterruptedError
from lineage_service.replays.specification import Plan, Source, asked_records, row_set_json
from lineage_service.settings import Settings
from lineage_service.store.flow_store import existing_store
from lineage_service.tracing.query.row_extraction import Extraction
from lineage_service.tracing.query.service import LineageQueries

__all__ = ["add_proof_flags", "is_proved", "proved"]

_REFUSED, _NOT_REACHED, _INTERRUPTED = 1, 3, 130
_PROVED = "say which command runs the job, behind two dashes: -- spark-submit job.py"


def add_proof_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sufficient",
        action="store_true",
        help="run the command on these rows alone, and add rows until the output row comes out again",
    )
    parser.add_argument(
        "--minimal",
        action="store_true",
        help="the same, and leave out each row without which it comes out as well",
    )
    parser.add_argument(
        "--save",
        type=Path,
        metavar="DIR",
        help="write the rows into files of the same shape, below a new folder, with a run.sh of the command",
    )
    parser.add_argument(
        "--runs", type=whole_number(1), default=50, metavar="N", help="run the command so often at most"
    )
    parser.add_argument(
        "--seconds", type=whole_number(1), default=600, metavar="N", help="begin no run after so long"
    )
    add_run_flags(parser)


def is_proved(options: argparse.Namespace) -> bool:
    """Is more asked for than what the store says?"""
    is_run = bool(options.sufficient or options.minimal)
    if options.words and not is_run and options.save is None:
        raise InvalidQueryError("a command goes with --sufficient, --minimal or --save")
    if is_run and (options.same is not None or options.compare is not None):
        raise InvalidQueryError("--sufficient is asked of records of one run: leave out --same and --compare")
    if options.demanded and options.save is not None and not is_run:
        raise InvalidQueryError("--save alone writes what decided: with --with, ask --sufficient, too")
    if options.cursor is not None and (is_run or options.save is not None):
        raise InvalidQueryError("--cursor shows further rows of the store: leave it out with --sufficient")
    return is_run or options.save is not None


def proved(
    settings: Settings, options: argparse.Namespace, query: ExplanationQuery
) -> tuple[Explanation, int]:
    """(the explanation, the exit code). Raises LineageError."""
    is_run = bool(options.sufficient or options.minimal)
    if is_run and not options.words:
        raise InvalidQueryError(_PROVED)
    with store_queries(settings):
        queries = open_lineage(settings)
        application_id = application_named(queries, options.application)
        original = Original(existing_store(settings), application_id)
        explanation = queries.explanation(application_id, query)
        if options.save is not None:
            queries.extraction.check_folder(application_id, options.save)
        if not is_run:
            return _saved(queries, original, explanation, query, options), 0
        changed = changed_inputs(queries, application_id)
        if changed is not None and not options.anyway:
            raise ReplayError(f"{changed}. Put it back, or go on with --anyway")
        try:
            proof = _proofs(settings, queries, original, options).proof(
                _request(options, query), is_minimal=options.minimal, folder=options.save
            )
        except (ReplayInterrupted, RunsInterruptedError) as interrupted:
            sys.stderr.write(f"lineage: {interrupted}\n")
            raise SystemExit(_INTERRUPTED) from None
        notes = [] if changed is None else [changed]
        if options.save is not None and proof.extraction is not None:
            notes += _with_job(original, options.save, proof, options)
        # What others have recorded before is no answer to what this command has run.
        answer = _answer(queries, explanation.unchecked(), proof, query.limit, notes)
        if answer.verified is not None and changed is None:
            _record(settings, queries, application_id, query, proof)
    return answer, _REFUSED if proof.is_refused else 0 if answer.verified else _NOT_REACHED


def _record(
    settings: Settings,
    queries: LineageQueries,
    application_id: str,
    query: ExplanationQuery,
    proof: Proof,
) -> None:
    """For others, by way of Kafka. Where that fails, one line says so."""
    try:
        records = queries.positions(application_id, query.starts)
        message = checked_event(application_id, records, proof, int(time.time() * 1000))
        send_event(settings, application_id, message)
    except LineageError as error:
        sys.stderr.write(f"lineage: not recorded, so others do not see that it is verified: {error}\n")


def _proofs(
    settings: Settings, queries: LineageQueries, original: Original, options: argparse.Namespace
) -> Proofs:
    inputs, outputs = input_paths(queries, original), output_paths(queries, original)
    arrival = Arrival(queries, wait_s=settings.trace_seconds)

    def runs_with(repair: Repair) -> ReplayRuns:
        return ReplayRuns(original, settings.home, inputs, outputs, repair)

    def extract(row_set: Mapping[str, Any], folder: Path) -> Extraction:
        return queries.extraction.extract(row_set, folder, takes_changed=options.anyway)

    return Proofs(
        original,
        queries,
        queries.source_files,
        RowRepair(queries, original.application_id, queries.source_files, arrival),
        runs_with,
        GuardedRuns(original, settings.home, inputs, outputs),
        extract,
    )


def _request(options: argparse.Namespace, query: ExplanationQuery) -> ProofRequest:
    return ProofRequest(
        starts=query.starts,
        words=tuple(options.words),
        template=Plan(
            mode="only",
            sources=(),
            runs_foreach=options.run_foreach,
            allows_processes=options.allow_processes,
        ),
        included=tuple(
            (start.path, start.row)
            for start in query.demanded
            if start.path is not None and start.row is not None
        ),
        runs=options.runs,
        seconds=options.seconds,
        is_kept=options.keep,
        is_shown=options.show,
    )


# -- the answer ----------------------------------------------------------------------------------------


def _answer(
    queries: LineageQueries, explanation: Explanation, proof: Proof, limit: int, notes: list[str]
) -> Explanation:
    """The explanation with the rows that were run; with those of the store where that has shown nothing."""
    is_verified = not proof.why_not
    if proof.is_whole and is_verified:
        notes.append("no part of the inputs was found that gives it: all of their rows are meant")
    reasons = [f"{reason[:1].upper()}{reason[1:].rstrip('.')}." for reason in (*proof.notes, *notes)]
    if not is_verified:
        reasons.insert(0, f"Not verified: {proof.why_not.rstrip('.')}.")
    if not is_verified:
        return replace(explanation, reasons=(*reasons, *explanation.reasons))
    rows, total = _rows(queries, explanation.application_id, proof.sources, limit)
    return replace(
        explanation,
        kind="verified",
        rows=rows,
        total=total,
        verified=Verification(runs=proof.runs, added=max(proof.added, 0), minimal=proof.is_minimal),
        reasons=(*reasons, *explanation.reasons),
        next=None,
    )


def _rows(
    queries: LineageQueries, application_id: str, sources: tuple[Source, ...], limit: int
) -> tuple[tuple[ExplainedRow, ...], int]:
    """The first of them, and how many there are."""
    total = sum(count for *_, count in _ranges(sources))
    starts: list[StartQuery] = []
    for node, split, first, count in _ranges(sources):
        positions = range(first, first + min(count, limit - len(starts)))
        starts += [StartQuery(node=str(node), partition=split, offset=position) for position in positions]
    if not starts:
        return (), total
    listed = ExplanationQuery(starts=tuple(starts), plain=False, limit=limit)
    return queries.explanation(application_id, listed).rows, total


def _ranges(sources: tuple[Source, ...]) -> Iterator[tuple[int, int, int, int]]:
    """(node, partition, first, count)."""
    for source in sources:
        for split in source.get("splits", ()):
            for first, count in split["positions"]:
                yield source["node"], split["split"], first, count


# -- saved rows ----------------------------------------------------------------------------------------


def _saved(
    queries: LineageQueries,
    original: Original,
    explanation: Explanation,
    query: ExplanationQuery,
    options: argparse.Namespace,
) -> Explanation:
    """The rows that decided as files, with nothing run."""
    starts = RowSetQuery(starts=query.starts, concise=True)
    row_set = row_set_json(queries.row_set(original.application_id, starts))
    extraction = queries.extraction.extract(row_set, options.save, takes_changed=options.anyway)
    notes = list(_of_extraction(extraction, options.save))
    if options.words:
        copies = {file.path: file.target for file in extraction.files}
        path = save_job(original, options.save, copies, asked_records(row_set), options.words)
        notes.append(f"{path} runs the command on them: nobody has tried whether they are enough.")
    return replace(explanation, reasons=(*explanation.reasons, *notes))


def _with_job(original: Original, folder: Path, proof: Proof, options: argparse.Namespace) -> Iterator[str]:
    assert proof.extraction is not None
    yield from _of_extraction(proof.extraction, folder)
    copies = {file.path: file.target for file in proof.extraction.files}
    yield f"{save_job(original, folder, copies, proof.asked, options.words)} runs the command on them"


def _of_extraction(extraction: Extraction, folder: Path) -> Iterator[str]:
    files = "1 file" if len(extraction.files) == 1 else f"{len(extraction.files):,} files"
    yield f"the rows are saved in {files} below {folder.absolute()}"
    yield from (f"not saved: {what}: {why}" for what, why in extraction.left_out.items())

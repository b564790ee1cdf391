"""`lineage trigger`: whether a job is worth running now, for whatever schedules it.

Exit code 0: run it; 99: skip it, which Airflow's BashOperator takes for that; 2: arguments, and jobs of which
a skip would lose data; 1: only with `--strict`. Behind two dashes stands the command that runs the job: then
it runs or not, and its exit code counts. Whatever goes wrong here is a reason to run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

from rich.console import Console

from lineage_service.cli.arrow import release_memory  # first: before all that imports Arrow
from lineage_service.cli.query.output import Output, moment, plain, print_table, table
from lineage_service.errors import InvalidQueryError, LineageError
from lineage_service.lineage import Job, LeftOut, ModelInCharge, PastTraining, Trigger, Waves
from lineage_service.queries import column_names
from lineage_service.result_json import json_bytes
from lineage_service.result_tables import TRIGGER_COLUMNS, trigger_lines
from lineage_service.settings import Settings
from lineage_service.store.flow_store import existing_store
from lineage_service.triggering.decisions import default_wave, undecided
from lineage_service.triggering.learning.terms import (
    AUDIT,
    CONFIDENCE,
    ERROR,
    FUNCTION,
    HORIZON,
    TRAINING,
    WITHIN,
    terms_of,
)
from lineage_service.triggering.stored_jobs import StoredJobs
from lineage_service.triggering.waves.question import DEFAULT_AGE, Question, seconds_of
from spark_agent.contract.program_code import WAVE_VARIABLE

__all__ = ["command", "configure"]

_SKIP, _STRICT, _REFUSED, _NOTHING_LEARNED = 99, 1, 2, 3
_NOT_EXECUTABLE, _NOT_FOUND, _SIGNALLED = 126, 127, 128
#: Reasons that are faults of ours, or mean that there is nothing to decide upon.
_FAULTS = frozenset(("unavailable", "error", "never_ran"))


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "%(prog)s JOB [--bound E [--error WHAT] [--key COLS] [--probe]] [--wave ID] [--at-least-every 7d] "
        "[--code VERSION] [--input PATH]..  [-- COMMAND...]\n"
        "       %(prog)s show JOB | waves JOB [--csv] | learn JOB --bound E.. | run-next JOB | "
        "label JOB WAVE --error E | retrain JOB | forget JOB"
    )
    parser.add_argument(
        "jobs",
        nargs="+",
        metavar="JOB",
        help="the job: its spark.lineage.job, or the name of its applications; or `show`, `waves`, "
        "`learn`, `run-next`, `retrain` or `forget` and a job, or `label`, a job and a wave",
    )
    parser.add_argument("--wave", metavar="ID", help="the scheduler's id of this run (default: the time)")
    parser.add_argument(
        "--at-least-every",
        default=DEFAULT_AGE,
        metavar="AGE",
        help=f"run if the last execution began so long ago: 30m, 24h, 7d (default: {DEFAULT_AGE})",
    )
    _configure_bound(parser)
    parser.add_argument("--code", metavar="VERSION", help="the version of the code, instead of its files")
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="PATH",
        help="look at this path or folder, too; inputs in it whose paths are not known are looked at with it",
    )
    parser.add_argument(
        "--ignore-input",
        action="append",
        default=[],
        metavar="NAME",
        help="leave this input out: a path, a table, or an operation such as parallelize",
    )
    parser.add_argument(
        "--deterministic",
        action="store_true",
        help="the output depends on inputs and code alone, whatever the code calls",
    )
    parser.add_argument(
        "--missing-is-fine", action="store_true", help="skip also where the output of a wave is missing then"
    )
    parser.add_argument(
        "--strict", action="store_true", help="exit code 1 where it cannot be decided, instead of 0"
    )
    parser.add_argument(
        "--skip-code",
        type=int,
        default=0,
        metavar="N",
        help="with a command: the exit code of a skip (default: 0)",
    )
    formats = parser.add_mutually_exclusive_group()
    formats.add_argument("--json", action="store_true", help="answer as the HTTP API does")
    formats.add_argument("--csv", action="store_true", help="with `waves`: answer as CSV with a header line")


def _configure_bound(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bound",
        default="0",
        metavar="E",
        help="the tolerated error of the output, as 0.05 (default: 0, so nothing may have changed)",
    )
    parser.add_argument(
        "--confidence",
        default=str(CONFIDENCE),
        metavar="C",
        help="the share of waves that keep the bound (default: %(default)s)",
    )
    parser.add_argument(
        "--error",
        default=ERROR,
        metavar="WHAT",
        help="rows (the share of the output's rows that differ), relative:COL, rmse:COL, class:COL, "
        "or MODULE:FUNCTION or FILE.py:FUNCTION, a function of yours (default: %(default)s)",
    )
    parser.add_argument(
        "--key", default="", metavar="COLS", help="the columns that tell rows apart (default: found)"
    )
    parser.add_argument(
        "--value", default="", metavar="COLS", help="the numbers of the inputs to look at (default: found)"
    )
    parser.add_argument(
        "--output",
        action="append",
        default=[],
        metavar="PATH",
        help="compare this output only (default: all)",
    )
    for name, default, about in (
        ("horizon", HORIZON, "run where the last execution is more changes ago"),
        ("training", TRAINING, "run so many waves before the first test"),
        ("audit", AUDIT, "run this share of skips all the same, to see what skips mean"),
    ):
        parser.add_argument(
            f"--{name}", default=str(default), metavar="N", help=f"{about} (default: %(default)s)"
        )
    parser.add_argument(
        "--probe",
        action="store_true",
        help="with a command: before a run, run it in a sandbox on the few rows that can change the output",
    )
    parser.add_argument(
        "--probe-anyway", action="store_true", help="probe also where that takes about as long as the job"
    )
    parser.add_argument(
        "--within",
        default=WITHIN,
        metavar="TIME",
        help="read rows for so long at most (default: %(default)s)",
    )


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Raises LineageError."""
    first, *rest = options.jobs
    if first == "label" and len(rest) == 2:
        return _label(settings, options, *rest)
    if rest:
        if first not in _VERBS or len(rest) > 1:
            few = f"JOB, or one of {', '.join(_VERBS)} and a job, or `label`, a job and a wave"
            sys.stderr.write(f"lineage trigger: {' '.join(rest)!r} is too much: {few}\n")
            return _REFUSED
        return _VERBS[first](settings, options, rest[0])
    try:
        question = _question(options, first)
    except InvalidQueryError as error:
        sys.stderr.write(f"lineage trigger: {error}\n")
        return _REFUSED
    answer = _answer(settings, question, options)
    words = options.words
    _print(answer, is_json=options.json, to_error=bool(words))
    if answer.reason == "arguments" and not words:
        return _REFUSED
    if options.strict and answer.reason in _FAULTS:
        return _STRICT
    if words:
        return _run(words, answer.wave) if answer.run else options.skip_code
    if answer.refused:
        return _REFUSED
    return 0 if answer.run else _SKIP


def _question(options: argparse.Namespace, job: str) -> Question:
    """Raises InvalidQueryError."""
    question = Question(
        job=job,
        wave=options.wave,
        at_least_every_s=seconds_of(options.at_least_every),
        code=options.code,
        inputs=tuple(options.input),
        ignored=tuple(options.ignore_input),
        missing_is_fine=options.missing_is_fine,
        is_steady=options.deterministic,
        command=tuple(options.words),
        terms=terms_of(
            bound=options.bound,
            confidence=options.confidence,
            error=options.error,
            keys=column_names(options.key) if options.key else (),
            values=column_names(options.value) if options.value else (),
            outputs=tuple(options.output),
            horizon=options.horizon,
            training=options.training,
            audit=options.audit,
            within_s=seconds_of(options.within),
        ),
    )
    question.check()
    if question.terms is not None and question.terms.measure == FUNCTION:
        from lineage_service.triggering.changes.error_function import check_function

        check_function(question.terms.error, question.terms.within_s)
    if options.probe or options.probe_anyway:
        _check_probe(question)
    return question


def _check_probe(question: Question) -> None:
    """Raises InvalidQueryError."""
    if question.terms is None:
        raise InvalidQueryError("--probe is for a bound: say which error is tolerated, as --bound 0.05")
    if not question.command:
        raise InvalidQueryError("--probe needs the command of the job, behind two dashes: -- spark-submit ..")


def _answer(settings: Settings, question: Question, options: argparse.Namespace) -> Trigger:
    question = replace(question, wave=question.wave or default_wave())
    assert question.wave is not None
    try:
        jobs = StoredJobs(existing_store(settings), settings.trigger_redact)
    except LineageError as error:
        return undecided(question.job, question.wave, "unavailable", str(error))
    if not (options.probe or options.probe_anyway):
        return jobs.decide(question)
    from lineage_service.cli.probe import run_on_rows

    run = run_on_rows(settings, question.command)
    return jobs.decide(question, run, is_patient=options.probe_anyway)


def _print(answer: Trigger, *, is_json: bool, to_error: bool) -> None:
    stream = sys.stderr if to_error else sys.stdout
    if is_json:
        text = json_bytes(answer).decode()
    else:
        word = "refused" if answer.refused else answer.decision
        again = " · asked before" if answer.repeated else ""
        text = plain(f"{word}  {answer.job} · wave {answer.wave}{again} · {answer.why}").plain
    stream.write(f"{text}\n")
    stream.flush()


def _run(words: list[str], wave: str) -> int:
    """The exit code of the command, as a shell gives it."""
    release_memory()
    try:
        code = subprocess.run(words, env={**os.environ, WAVE_VARIABLE: wave}, check=False).returncode
    except FileNotFoundError:
        sys.stderr.write(f"lineage trigger: there is no command {words[0]}\n")
        return _NOT_FOUND
    except OSError as error:
        sys.stderr.write(f"lineage trigger: {words[0]} cannot be run: {error.strerror or error}\n")
        return _NOT_EXECUTABLE
    return code if code >= 0 else _SIGNALLED - code


# -- what was decided before ------------------------------------------------------------------------------


def _show(settings: Settings, options: argparse.Namespace, name: str) -> int:
    """Raises LineageError."""
    job = StoredJobs(existing_store(settings)).job(name)

    def show(console: Console) -> None:
        ran = "never ran with lineage"
        if job.application_id is not None and job.began is not None:
            lineage = "complete" if job.complete else "not complete"
            ran = f"{job.application_id}  {moment(job.began)}  {job.state}, lineage {lineage}"
        lines = {
            "job": job.job,
            "last execution": ran,
            "inputs": ", ".join(job.inputs) or "none are known",
            "outputs": ", ".join(job.outputs) or "none are known",
            "waves": f"{job.waves:,} asked about: {job.runs:,} run, {job.skips:,} skipped",
        }
        if job.waves:
            lines["time"] = _savings(job)
        if job.in_charge is not None:
            lines["model"] = _charge(job.in_charge)
        if job.last is not None:
            lines["last answer"] = f"{job.last.decision}  wave {job.last.wave} · {job.last.why}"
        if job.run_next:
            lines["next wave"] = "is run: somebody asked for it"
        width = max(map(len, lines))
        for label, text in lines.items():
            console.print(plain(f"{label:{width}}  {text}"), soft_wrap=True)

    options.csv = False
    Output(options).give(job, (), (), show)
    return 0


def _charge(model: ModelInCharge) -> str:
    """What has come of its decisions, and how little that may be."""
    text = f"in charge of {model.waves:,} waves: {model.skips:,} skipped, {model.audits:,} looked at"
    if model.compliance is None or model.compliance_lower is None:
        return f"{text}; how often it keeps the bound is not known"
    return (
        f"{text}, {model.broken:,} of these above the bound; within it in {model.compliance:.1%} "
        f"(95 % lower bound {model.compliance_lower:.1%})"
    )


def _savings(job: Job) -> str:
    """What skips saved and answers took, and what of both is not known."""
    unknown = [
        f"{number:,} {what}"
        for number, what in (
            (job.saved_unknown, "skips of which it is not known how long the execution before took"),
            (job.spent_unknown, "answers of which it was not kept how long they took"),
        )
        if number
    ]
    text = (
        f"{job.saved_seconds:,.1f} s saved by skips - {job.spent_seconds:,.1f} s spent on answers = "
        f"{job.saved_seconds - job.spent_seconds:,.1f} s"
    )
    return f"{text}, without {' and '.join(unknown)}" if unknown else text


def _waves(settings: Settings, options: argparse.Namespace, name: str) -> int:
    """Raises LineageError."""
    waves = StoredJobs(existing_store(settings)).waves(name)
    Output(options).give(
        waves, TRIGGER_COLUMNS, trigger_lines(waves), lambda console: _show_waves(console, waves)
    )
    return 0


def _show_waves(console: Console, waves: Waves) -> None:
    if not waves.waves:
        console.print(plain(f"{waves.job!r} was never asked about"), soft_wrap=True)
        return
    rows = table("asked", "wave", "decision", "reason", "why~")
    for wave in waves.waves:
        rows.add_row(moment(wave.asked), plain(wave.wave), wave.decision, plain(wave.reason), plain(wave.why))
    print_table(console, rows)


def _run_next(settings: Settings, options: argparse.Namespace, name: str) -> int:
    """Raises LineageError."""
    StoredJobs(existing_store(settings)).run_next(name)
    sys.stdout.write(f"the next wave of {name} is run\n")
    return 0


def _learn(settings: Settings, options: argparse.Namespace, name: str) -> int:
    """Exit code 3 if nothing is learned yet. Raises LineageError."""
    try:
        jobs = StoredJobs(existing_store(settings), settings.trigger_redact)
        training = jobs.learn(_question(options, name))
    except InvalidQueryError as error:
        sys.stderr.write(f"lineage trigger learn: {error}\n")
        return _REFUSED
    options.csv = False
    Output(options).give(training, (), (), lambda console: _show_training(console, training))
    return 0 if training.waves else _NOTHING_LEARNED


def _show_training(console: Console, training: PastTraining) -> None:
    lines = [
        f"{training.job}: learned from {training.learned:,} of {training.executions:,} past executions",
    ]
    if training.before:
        lines.append(f"{training.before:,} are not looked at: its training is behind them already")
    by_reason: dict[str, list[LeftOut]] = {}
    for entry in training.left_out:
        by_reason.setdefault(entry.reason, []).append(entry)
    for reason, entries in sorted(by_reason.items(), key=lambda pair: -len(pair[1])):
        last = entries[-1]
        lines.append(f"{len(entries):,} left out, {reason}: as {last.application_id}, {last.why}")
    for line in (*lines, training.why):
        console.print(plain(line), soft_wrap=True)


def _forget(settings: Settings, options: argparse.Namespace, name: str) -> int:
    """Raises LineageError."""
    count = StoredJobs(existing_store(settings)).forget(name)
    sys.stdout.write(
        f"forgot {count:,} wave{'' if count == 1 else 's'} of {name}, and what was learned from them\n"
    )
    return 0


def _retrain(settings: Settings, options: argparse.Namespace, name: str) -> int:
    """Raises LineageError."""
    StoredJobs(existing_store(settings)).retrain(name)
    sys.stdout.write(f"the training of {name} begins anew with its next wave\n")
    return 0


def _label(settings: Settings, options: argparse.Namespace, name: str, wave: str) -> int:
    """`--error` is a number here. Raises LineageError."""
    try:
        error = float(options.error)
    except ValueError:
        sys.stderr.write("lineage trigger label: say the error as a number: --error 0.03\n")
        return _REFUSED
    StoredJobs(existing_store(settings)).label(name, wave, error)
    sys.stdout.write(f"the error of {name} at the wave {wave} is {error:g}\n")
    return 0


_VERBS: dict[str, Callable[[Settings, argparse.Namespace, str], int]] = {
    "show": _show,
    "waves": _waves,
    "learn": _learn,
    "run-next": _run_next,
    "retrain": _retrain,
    "forget": _forget,
}

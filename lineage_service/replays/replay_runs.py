"""One replay from its plan to its result: sandbox, command, verification, and further runs if need be.

Nothing of the original is written. An error before the command starts leaves no sandbox; afterwards it stays,
and what is said names it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from lineage_service.lineage import (
    AskedRecord,
    Failure,
    OutputDifferences,
    Refusal,
    Replay,
    ReplayedOutput,
    ReplayStep,
    Verdict,
)
from lineage_service.replays.affected_rows import AffectedRequest
from lineage_service.replays.agent_report import AgentReport, read_report
from lineage_service.replays.command import Ended, environment_of, run
from lineage_service.replays.differences import have_differences, have_new_rows, output_differences
from lineage_service.replays.errors import ReplayError
from lineage_service.replays.failure_check import checked_failure
from lineage_service.replays.launcher import guarded_words, interpreters_of
from lineage_service.replays.original import Original
from lineage_service.replays.protected_files import changes, snapshot
from lineage_service.replays.read_outputs import FOR_ALIKE, FOR_DIFFERENCES, ReadOutputs
from lineage_service.replays.sandbox import (
    FAILING_FILE,
    RESULT_FILE,
    ROW_SET_FILE,
    SPEC_FILE,
    Sandbox,
    Sandboxes,
)
from lineage_service.replays.specification import Plan, spec_of
from lineage_service.replays.steps import AskedOutput, Stepped
from lineage_service.replays.trials import check_guarded
from lineage_service.replays.verification import Sides, Verified, verified, worst
from lineage_service.result_json import json_bytes
from lineage_service.tracing.files.file_parts import plain_path
from lineage_service.tracing.files.searched_database import searched_database

__all__ = ["Added", "Repair", "RepairLimits", "ReplayInterrupted", "ReplayRuns", "Request", "Steps"]

#: Runs of the command at most, and how many times the rows of the first.
MOST_ROUNDS, MOST_TIMES = 5, 10
#: Of what the command printed, the end that is looked through.
_MOST_PRINTED = 4 << 20
_GOOD: tuple[Verdict, ...] = ("reproduced", "close")


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairLimits:
    """How far repair goes. `times`: how many times the rows of the first run; None: however many."""

    rounds: int = MOST_ROUNDS
    times: int | None = MOST_TIMES
    #: No further run begins then.
    seconds: float = float("inf")
    #: Are rows added, too, where the command failed on too few of them?
    after_failures: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is to be run again. `asked` are output rows that must come out again."""

    plan: Plan
    words: tuple[str, ...]
    row_set: Mapping[str, Any] | None = None
    asked: tuple[AskedRecord, ...] = ()
    failure: Failure | None = None
    #: The plan has only the rows that can be affected, and this says by what.
    affected: AffectedRequest | None = None
    limits: RepairLimits = RepairLimits()
    is_twice: bool = False
    is_kept: bool = False
    is_shown: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Added:
    """A plan with more rows; None where no more can be added, and `why`."""

    plan: Plan | None
    why: str


class Repair(Protocol):
    """Finds the rows that lack (`repair`)."""

    def more(self, plan: Plan, replayed: str | None, missing: Sequence[AskedRecord]) -> Added:
        """After a run, as the application `replayed`, that did not give these rows."""

    def failing(self, replayed: str, records: Sequence[tuple[int, int, int]]) -> dict[str, Any] | str:
        """The input rows of records that a replay left out, as a row set; or why there is none."""


class Steps(Protocol):
    """Shows what went in and came out, operation by operation (`steps`)."""

    def steps(
        self, plan: Plan, replayed: str | None, asked: Sequence[AskedOutput], failure: Failure | None
    ) -> Stepped:
        """Of the last run, as the application `replayed`."""


class ReplayInterrupted(KeyboardInterrupt):
    """Ctrl-C, with a sentence that names the sandbox."""


class ReplayRuns:
    """Replays of one application. `inputs` and `outputs` are the files and folders that it read and wrote."""

    def __init__(
        self,
        original: Original,
        home: Path,
        inputs: Sequence[str],
        outputs: Sequence[str],
        repair: Repair | None = None,
        steps: Steps | None = None,
    ) -> None:
        self.original, self.home, self.steps = original, home, steps
        self.outputs = tuple(dict.fromkeys(outputs))
        self.protected = tuple(dict.fromkeys((*inputs, *outputs)))
        self.repair = repair
        self._sandboxes = Sandboxes(home)

    def replay(self, request: Request) -> Replay:
        """Raises ReplayError, ReplayInterrupted."""
        interpreters = interpreters_of(request.words, os.environ)
        self._sandboxes.expire()
        has_begun = False
        with self._sandboxes.new() as sandbox:
            try:
                environment = environment_of(sandbox, self.home)
                if request.is_kept:
                    sandbox.keep()
                procedure = _Procedure(self, request, sandbox, environment)
                procedure.prepare(request.plan)
                check_guarded(interpreters, environment, sandbox)
                has_begun = True
                replay = procedure.replay()
                sandbox.write_text(RESULT_FILE, json_bytes(replay, indent=2))
                return replay
            except KeyboardInterrupt:
                raise ReplayInterrupted(
                    f"interrupted: no process of the replay is left; its sandbox is {sandbox.folder}, and "
                    f"`lineage replay --clean {sandbox.id}` removes it"
                ) from None
            except ReplayError:
                if not has_begun:
                    sandbox.discard()
                raise


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of the command."""

    ended: Ended
    report: AgentReport
    refused: tuple[Refusal, ...]
    sides: Mapping[int, Sides]
    verified: Verified

    @property
    def missing(self) -> list[int]:
        """The numbers of the outputs that did not come out again."""
        outputs = self.verified.outputs
        return [number for number, output in enumerate(outputs) if output.verdict not in _GOOD]


class _Procedure:
    """One replay in its sandbox."""

    def __init__(
        self, runs: ReplayRuns, request: Request, sandbox: Sandbox, environment: Mapping[str, str]
    ) -> None:
        self._runs, self._request, self._sandbox = runs, request, sandbox
        self._environment = environment
        self._began, self._clock = time.time(), time.monotonic()
        self._plan, self._rounds = request.plan, 0
        self._affected = None if request.affected is None else request.affected.first
        self._notes: dict[str, None] = dict.fromkeys(request.notes)

    def prepare(self, plan: Plan) -> None:
        """Write what the next run of the command reads. Raises ReplayError."""
        self._plan = plan
        original, sandbox = self._runs.original, self._sandbox
        if self._rounds:
            sandbox.next_round(self._rounds)
        paths = self._runs.protected, self._runs.outputs
        spec = spec_of(original, plan, sandbox, self._rounds + 1, *paths)
        sandbox.write(SPEC_FILE, spec)
        if self._request.row_set is not None and not self._rounds:
            sandbox.write(ROW_SET_FILE, self._request.row_set)

    def replay(self) -> Replay:
        """Of the plan that was prepared. Raises ReplayError, KeyboardInterrupt."""
        before, request_affected = snapshot(self._runs.protected), self._request.affected
        with closing(searched_database(())) as database:
            reading = ReadOutputs(self._runs.original, database)
            first = self._run(reading)
            last = first
            if not first.refused and self._request.is_twice:
                self.prepare(self._plan)
                last = self._compared(first, self._run(reading))
            elif not first.refused and request_affected is not None:
                last = self._spread(request_affected, first, reading)
            elif not first.refused:
                last = self._repaired(first, reading)
            self._name_failing(last)
            replay = self._result(last, self._steps(last))
        changed = changes(before, snapshot(self._runs.protected))
        if changed:  # by others, or by what no fence sees: it must be said
            refusals = tuple(Refusal(what=sentence, path=None, where=None) for sentence in changed)
            self._notes["files of the original are not as they were before the replay"] = None
            replay = replace(
                replay,
                verdict="refused",
                refused=(*(replay.refused or ()), *refusals),
                notes=tuple(self._notes),
            )
        return replay

    # -- one run ------------------------------------------------------------------------------------

    def _run(self, reading: ReadOutputs) -> _Run:
        ended = run(
            guarded_words(self._request.words),
            self._environment,
            self._sandbox,
            is_shown=self._request.is_shown,
        )
        self._rounds += 1
        report = read_report(self._sandbox.read(self._sandbox.report.name), self._sandbox.notes())
        is_kept = any(source.way == "kept" for source in report.sources)
        self._plan = replace(self._plan, keeps_positions=is_kept)
        refused = self._refused(ended, report)
        sides: dict[int, Sides] = {}
        checked = Verified((), None)
        if not refused:
            sides, checked = self._checked(ended, report, reading)
        self._say(ended, report, is_refused=bool(refused))
        return _Run(ended, report, refused, sides, checked)

    def _checked(
        self, ended: Ended, report: AgentReport, reading: ReadOutputs
    ) -> tuple[dict[int, Sides], Verified]:
        request = self._request
        if request.failure is not None:
            output = checked_failure(request.failure, ended.exit_code, self._printed())
            return {}, Verified((output,), None)
        if request.asked:
            sides = reading.sides(report, [record.node for record in request.asked], FOR_ALIKE)
            return sides, verified(self._runs.original.application_id, request.asked, sides)
        if self._affected is not None:
            return reading.partial_sides(report, self._affected.outputs), Verified((), None)
        sinks = self._runs.original.sinks
        places = [number for number, sink in sinks.items() if self._runs.original.place_of(sink) is not None]
        return reading.sides(report, places, FOR_DIFFERENCES), Verified((), None)

    def _refused(self, ended: Ended, report: AgentReport) -> tuple[Refusal, ...]:
        if report.refused or report.is_there or ended.exit_code != _CANNOT_BEGIN:
            return report.refused
        said = self._sandbox.stderr.read_bytes().decode(errors="replace").strip().splitlines()
        return (Refusal(what=said[-1] if said else "the guard cannot begin", path=None, where=None),)

    def _printed(self) -> str:
        texts = []
        for path in (self._sandbox.stdout, self._sandbox.stderr):
            with path.open("rb") as file:
                file.seek(max(os.fstat(file.fileno()).st_size - _MOST_PRINTED, 0))
                texts.append(file.read().decode(errors="replace"))
        return "\n".join(texts)

    def _say(self, ended: Ended, report: AgentReport, *, is_refused: bool) -> None:
        notes = [*report.differences]
        for source in report.sources:
            if source.way == "whole" and self._plan.mode != "all":
                notes.append(f"{source.name} was read whole: {source.why or 'its rows could not be chosen'}")
        if report.skipped_total > len(report.skipped):
            notes.append(f"{report.skipped_total:,} records were left out, the first are listed")
        if report.connections:
            notes.append(f"the driver opened connections to {', '.join(report.connections)}: see what it did")
        if not is_refused and not report.is_there:
            notes.append("no application of the command reported lineage, so nothing was replayed")
        if not is_refused and ended.exit_code and self._request.failure is None:
            notes.append(
                f"the command ended with exit code {ended.exit_code}: {self._sandbox.stderr} says why"
            )
        self._notes.update(dict.fromkeys(notes))

    # -- several runs -------------------------------------------------------------------------------

    def _compared(self, first: _Run, second: _Run) -> _Run:
        """What differs between two runs of the same rows is not deterministic."""
        if second.refused:
            return second
        outputs = []
        for one, other in zip(first.verified.outputs, second.verified.outputs, strict=True):
            if (one.verdict, one.is_) == (other.verdict, other.is_):
                outputs.append(one)
                continue
            bad = other if one.verdict in _GOOD else one
            verdict: Verdict = "changed" if bad.verdict in _GOOD else bad.verdict
            why = f"non-deterministic: the two runs gave {_quoted(one.is_)} and {_quoted(other.is_)}"
            outputs.append(replace(bad, verdict=verdict, why=why))
        differing = 0
        for node, sides in first.sides.items():
            others = second.sides.get(node)
            if sides.now is None or others is None or others.now is None:
                continue
            differences = sides.now.differences(others.now, 0)
            differing += max(differences.gone_total, differences.new_total)
        if differing:
            self._notes[f"non-deterministic: {differing:,} output rows differ between the two runs"] = None
        else:
            self._notes["both runs gave the same rows"] = None
        return replace(second, verified=replace(second.verified, outputs=tuple(outputs)))

    def _spread(self, request: AffectedRequest, last: _Run, reading: ReadOutputs) -> _Run:
        """With the groups that changed records enter, until they enter no other."""
        while not (last.refused or last.ended.exit_code):
            assert self._affected is not None
            for source in last.report.sources:
                if source.way == "whole" and source.node in {one["node"] for one in self._plan.restricted}:
                    raise ReplayError(
                        f"--affected cannot be used: {source.name} was read whole: {source.why}"
                    )
            more = request.reader.more(request.left_out, self._affected, last.report.application)
            if more is None:
                break
            if self._rounds >= MOST_ROUNDS:
                raise ReplayError(
                    f"--affected cannot be used: other groups are entered in {MOST_ROUNDS} runs"
                )
            count = len(more.rows) - len(self._affected.rows)
            rows = "1 row" if count == 1 else f"{count:,} rows"
            self._notes[f"affected: {rows} added, whose groups changed records have entered"] = None
            self._affected = more
            self.prepare(more.plan)
            last = self._run(reading)
        if not last.refused and not last.ended.exit_code:
            rows = "1 row was" if self._plan.rows == 1 else f"{self._plan.rows:,} rows were"
            self._notes[f"affected: {rows} run, no other can change"] = None
        return last

    def _repaired(self, last: _Run, reading: ReadOutputs) -> _Run:
        """With more rows, until the outputs come out, or no more can be added."""
        request, repair = self._request, self._runs.repair
        if self._plan.stand_ins:  # what these hold is not that of the original, so runs cannot be compared
            if last.missing and request.asked:
                self._notes["repair: no rows are added where an earlier replay stands in for an input"] = None
            return last
        limits = request.limits
        while (
            last.missing
            and repair is not None
            and request.asked
            and self._plan.mode == "only"
            and (limits.after_failures or not last.ended.exit_code)
        ):
            if self._rounds >= limits.rounds:
                self._notes[f"repair: not reproduced in {limits.rounds} runs"] = None
                break
            if time.monotonic() - self._clock >= limits.seconds:
                self._notes[f"repair: not reproduced within {limits.seconds:g} s"] = None
                break
            missing = [request.asked[number] for number in last.missing]
            replayed = None if last.ended.exit_code else last.report.application
            added = repair.more(self._plan, replayed, missing)
            if added.plan is None:
                self._notes[f"repair: {added.why}"] = None
                break
            if limits.times is not None and added.plan.rows > limits.times * max(request.plan.rows, 1):
                self._notes[f"repair: more than {limits.times} times the rows would be needed"] = None
                break
            self._notes[f"repair: {added.why}"] = None
            self.prepare(added.plan)
            last = self._run(reading)
            if last.refused:
                break
        return last

    def _name_failing(self, last: _Run) -> None:
        """Write a row set of the records that were left out, for a further replay without them."""
        records, replayed = last.report.skipped_records, last.report.application
        if not (self._plan.skips_failing and records and replayed and self._runs.repair):
            return
        rows = self._runs.repair.failing(replayed, records)
        if isinstance(rows, str):
            self._notes[f"no row set of the records that fail: {rows}"] = None
            return
        if any(self._is_own(file["path"]) for source in rows["sources"] for file in source.get("files", ())):
            self._notes["no row set of the records that fail: they are rows of what the replay wrote"] = None
            return
        path = self._sandbox.write(FAILING_FILE, rows)
        self._notes[f"the input rows of what was left out, for --without: {path}"] = None

    def _is_own(self, path: str) -> bool:
        """Has the replay written this file?"""
        return Path(plain_path(path)).is_relative_to(self._sandbox.folder)

    def _steps(self, last: _Run) -> tuple[ReplayStep, ...] | None:
        """From the inputs to what was asked for, if that was."""
        if not self._plan.has_steps or last.refused or self._runs.steps is None:
            return None
        request, replayed = self._request, last.report.application
        outputs = last.verified.outputs if request.asked else ()
        asked = [
            AskedOutput(record, self._sink_in_replay(record.node, last.report), output.is_)
            for record, output in zip(request.asked, outputs, strict=True)
        ]
        stepped = self._runs.steps.steps(self._plan, replayed, asked, request.failure)
        self._notes.update(dict.fromkeys(stepped.notes))
        return stepped.steps

    def _sink_in_replay(self, node: int, report: AgentReport) -> int:
        """Its number there, which is another one if the script was changed."""
        sink = self._runs.original.sinks.get(node)
        reported = None if sink is None else self._runs.original.reported(sink, report.sinks)
        return node if reported is None or reported.node is None else reported.node

    # -- the result ---------------------------------------------------------------------------------

    def _result(self, last: _Run, steps: tuple[ReplayStep, ...] | None) -> Replay:
        request, plan = self._request, self._stated
        outputs: tuple[ReplayedOutput, ...] = last.verified.outputs
        is_checked = bool(request.asked or request.failure)
        diff = None if last.refused or is_checked else self._differences(last)
        return Replay(
            replay=self._sandbox.id,
            of=self._runs.original.application_id,
            application=last.report.application,
            mode=plan.mode,
            strategy=plan.strategy,
            rounds=self._rounds,
            rows=plan.rows,
            total=plan.total,
            verdict=self._verdict(last, diff),
            outputs=outputs,
            extra=last.verified.extra,
            used=self._plan.used(),
            diff=diff if plan.mode != "only" else None,
            skipped=last.report.skipped if plan.skips_failing else None,
            refused=last.refused or None,
            steps=steps,
            exit_code=last.ended.exit_code,
            sandbox=str(self._sandbox.folder),
            began=int(self._began * 1000),
            seconds=round(time.monotonic() - self._clock, 3),
            notes=tuple(self._notes),
        )

    @property
    def _stated(self) -> Plan:
        """What was asked for, whichever rows were run for it."""
        return self._plan if self._request.affected is None else self._request.affected.left_out

    def _differences(self, last: _Run) -> tuple[OutputDifferences, ...]:
        original = self._runs.original
        differing = []
        for node, sides in last.sides.items():
            sink = original.sinks[node]
            reported = original.reported(sink, last.report.sinks)
            to = None if reported is None else reported.to
            of_sink = output_differences(original.place_of(sink) or sink.name, to, sides)
            if self._affected is not None and of_sink.same is not None:
                rest = self._affected.totals[node] - len(self._affected.outputs[node])
                of_sink = replace(of_sink, same=of_sink.same + rest)
            differing.append(of_sink)
        return tuple(differing)

    def _verdict(self, last: _Run, diff: Sequence[OutputDifferences] | None) -> Verdict:
        if last.refused:
            return "refused"
        if diff is None:
            return worst([output.verdict for output in last.verified.outputs])
        if last.ended.exit_code or not last.report.is_there:
            return "no"
        # Of some rows only some outputs can come: these must be rows of the original.
        differs = have_new_rows if self._stated.mode == "only" else have_differences
        return "changed" if any(map(differs, diff)) else "reproduced"


#: Exit code of the guard that cannot begin.
_CANNOT_BEGIN = 3


def _quoted(text: str | None) -> str:
    return "nothing" if text is None else repr(text)

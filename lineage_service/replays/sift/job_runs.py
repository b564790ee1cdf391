"""Runs the command of a sift on one plan after the other, in one sandbox, and gives what came out.

The job's process is started once and runs the job again and again (`driver/replay/rerun.py` of the agent); it
is started again if it dies. A command that is neither Python nor spark-submit is started for each run.
Promises that no process outlives the block, and that each run had the rows of its plan and no others.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from types import TracebackType
from typing import Any, NamedTuple

from lineage_service.replays.agent_report import AgentReport, read_report
from lineage_service.replays.command import Ended, run, started
from lineage_service.replays.errors import ReplayError
from lineage_service.replays.launcher import guarded_words, rerun_words
from lineage_service.replays.original import Original, format_of_replay
from lineage_service.replays.output_rows import OutputRows, files_below
from lineage_service.replays.sandbox import SPEC_FILE, Sandbox
from lineage_service.replays.specification import Plan, spec_of
from lineage_service.tracing.files.file_systems import UnreadableError
from lineage_service.tracing.files.row_formats import row_format_of
from spark_agent.contract.replay_notes import REPLAY_REFUSED
from spark_agent.contract.replay_spec import INFLUENCE, RUN_ENDED, RUNS, RUNS_OVER
from spark_agent.contract.smallest_rows import OutOfTimeError

__all__ = ["JobRun", "JobRuns", "for_short_runs", "last_line"]

_PAUSE_S, _LEAVE_S = 0.004, 15.0
#: Rows of a run with few partitions.
_FEW_ROWS = 10_000
#: Of what a command printed, the end that is looked through.
_MOST_PRINTED = 1 << 20
#: Where spark-submit has options of the driver's JVM from. A job of few rows is over before the second
#: compiler pays.
_JVM_OPTIONS, _SHORT_RUNS = "SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1"
#: The JVM is gone: what a run says of itself then is not the job's.
_LOST = ("Py4JNetworkError", "ConnectionRefusedError", "JAVA_GATEWAY_EXITED")


@dataclass(frozen=True, slots=True)
class JobRun:
    """What came of one run. `rows` are texts, by the sink of the original; none of a run that failed."""

    exit_code: int
    printed: str
    report: AgentReport
    rows: Mapping[int, Sequence[str]]
    #: What the agent has computed of the influence of the rows, where that was asked for.
    influence: Any = None


class _Ended(NamedTuple):
    exit_code: int
    printed: str
    #: May the program have seen how many partitions there were?
    looks: bool = False


class JobRuns:
    """Of one application. `protected` is what it read or wrote, `outputs` what it wrote."""

    def __init__(
        self,
        original: Original,
        sandbox: Sandbox,
        environment: Mapping[str, str],
        words: Sequence[str],
        protected: Sequence[str],
        outputs: Sequence[str],
        *,
        is_shown: bool = False,
    ) -> None:
        self._original, self._sandbox, self.environment = original, sandbox, environment
        self._words, self._rerun_words = tuple(words), rerun_words(words)
        self._protected, self._outputs, self._is_shown = protected, outputs, is_shown
        self._folder = sandbox.folder / RUNS
        self._process: Popen[bytes] | None = None
        self._block = ExitStack()
        #: How often the job ran.
        self.count = 0
        #: Can no operation of the application tell partitions, so that a run on few rows may have few?
        self.can_be_compact = False
        self._reader = OutputRows()
        #: How much the process had printed when the run began, by file.
        self._printed_before: dict[Path, int] = {}
        #: When no further run may begin or go on, of `time.monotonic`.
        self.until = float("inf")

    def __enter__(self) -> JobRuns:
        self._folder.mkdir(0o700)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._leave()
        self._block.__exit__(kind, error, trace)

    @property
    def is_warm(self) -> bool:
        """Does one process run the job again and again?"""
        return self._rerun_words is not None

    def start(self) -> None:
        """Start the job's process, so that it has begun when the first run comes."""
        if self.is_warm:
            self._started()

    def prepare(self, plan: Plan) -> None:
        """Write the spec under which the processes are guarded. Raises ReplayError."""
        self._sandbox.write(SPEC_FILE, self._spec(plan, self._sandbox))

    def run(self, plan: Plan, sinks: Sequence[int]) -> JobRun:
        """Raises OutOfTimeError; ReplayError where something was refused or a source was another one."""
        result = self._run(plan, sinks)
        if result.exit_code and any(sign in result.printed for sign in _LOST):
            self._stop()
            result = self._run(plan, sinks)
        return result

    def _run(self, plan: Plan, sinks: Sequence[int]) -> JobRun:
        if time.monotonic() >= self.until:
            raise OutOfTimeError
        self.count += 1
        return (self._warm if self.is_warm else self._cold)(plan, sinks)

    def _spec(self, plan: Plan, sandbox: Sandbox) -> dict[str, Any]:
        paths = self._protected, self._outputs
        is_compact = self._is_compact(plan)
        return spec_of(
            self._original, plan, sandbox, self.count, *paths, is_silent=True, is_compact=is_compact
        )

    def _is_compact(self, plan: Plan) -> bool:
        are_lines = all(not source["whole"] and "texts" in source for source in plan.sources)
        is_few = plan.mode == "only" and are_lines and plan.rows <= _FEW_ROWS
        return self.can_be_compact and self.is_warm and is_few

    # -- in one process ---------------------------------------------------------------------------------

    def _warm(self, plan: Plan, sinks: Sequence[int]) -> JobRun:
        sandbox = Sandbox(self._folder / str(self.count))
        sandbox.outputs.mkdir(0o700, parents=True)
        try:
            sandbox.write(SPEC_FILE, self._spec(plan, sandbox))
            ended = self._ended(sandbox)
            result = self._result(ended.exit_code, ended.printed, sandbox, sinks)
        finally:
            shutil.rmtree(sandbox.folder, ignore_errors=True)
        if self._is_compact(plan) and (ended.looks or not _is_as_planned(result, plan)):
            self.can_be_compact = False  # the program, or its plan, depends on partitions
            return self._run(plan, sinks)
        return result

    def _ended(self, sandbox: Sandbox) -> _Ended:
        """Raises OutOfTimeError."""
        self._begin_printing()
        process = self._started()
        path = sandbox.folder / RUN_ENDED
        while True:
            code = process.poll()
            if path.exists():
                ended = sandbox.read(RUN_ENDED)
                return _Ended(int(ended["exit_code"]), str(ended["printed"]), bool(ended.get("looks")))
            if code is not None:
                self._stop()
                return _Ended((code if code >= 0 else 128 - code) or 1, self._printed())
            if time.monotonic() >= self.until:
                self._stop()
                raise OutOfTimeError
            time.sleep(_PAUSE_S)

    def _started(self) -> Popen[bytes]:
        if self._process is None:
            assert self._rerun_words is not None
            words = guarded_words(self._rerun_words)
            self._process = self._block.enter_context(
                started(words, self.environment, self._sandbox, is_shown=self._is_shown)
            )
        return self._process

    def _stop(self) -> None:
        """End the process, however it is."""
        self._process = None
        self._block.close()
        self._block = ExitStack()

    def _leave(self) -> None:
        """Let the process end by itself."""
        process = self._process
        if process is None:
            return
        (self._folder / RUNS_OVER).touch(0o600)
        until = time.monotonic() + _LEAVE_S
        while process.poll() is None and time.monotonic() < until:
            time.sleep(_PAUSE_S)

    # -- a process for each run ---------------------------------------------------------------------------

    def _cold(self, plan: Plan, sinks: Sequence[int]) -> JobRun:
        if self.count > 1:
            self._sandbox.next_round(self.count)
        self._begin_printing()
        self._sandbox.write(SPEC_FILE, self._spec(plan, self._sandbox))
        ended: Ended = run(
            guarded_words(self._words), self.environment, self._sandbox, is_shown=self._is_shown
        )
        result = self._result(ended.exit_code, self._printed(), self._sandbox, sinks)
        shutil.rmtree(self._sandbox.folder / "rounds", ignore_errors=True)
        return result

    # -- what came out ------------------------------------------------------------------------------------

    def _result(self, exit_code: int, printed: str, sandbox: Sandbox, sinks: Sequence[int]) -> JobRun:
        report = read_report(sandbox.read(sandbox.report.name), self._sandbox.notes())
        if report.refused:
            refusal = report.refused[0]
            place = f" {refusal.path}" if refusal.path else ""
            where = f" at {refusal.where}" if refusal.where else ""
            raise ReplayError(
                f"refused: {refusal.what}{place}{where}; no file of yours was changed. Leave this step out "
                "of the script"
            )
        if REPLAY_REFUSED in printed:
            raise ReplayError(printed[printed.index(REPLAY_REFUSED) :].splitlines()[0])
        if not report.is_there:
            raise ReplayError(
                "the command ended without a Spark application that has the lineage agent: "
                f"{last_line(printed)[:500]}"
            )
        rows = {} if exit_code else {sink: self._rows(report, sink) for sink in sinks}
        influence = sandbox.read(INFLUENCE)
        return JobRun(exit_code, printed, report, rows, influence if isinstance(influence, dict) else None)

    def _rows(self, report: AgentReport, number: int) -> list[str]:
        """The rows that a sink of the original has written in this run; none where it did not."""
        sink = self._original.sinks[number]
        reported = self._original.reported(sink, report.sinks)
        if reported is None:
            return []
        if reported.to is None:
            return list(reported.values or ())
        format = format_of_replay(row_format_of(sink), reported)
        try:
            batches = self._reader.texts(files_below(reported.to), format)
            return [text for batch in batches for text in batch]
        except UnreadableError as error:
            raise ReplayError(f"what the job wrote cannot be read: {error}") from None

    def _begin_printing(self) -> None:
        paths = self._sandbox.stdout, self._sandbox.stderr
        is_running = self._process is not None  # a new process begins the files anew
        self._printed_before = {path: _size_of(path) if is_running else 0 for path in paths}

    def _printed(self) -> str:
        return "\n".join(_end_of(path, since) for path, since in self._printed_before.items())


def _is_as_planned(run: JobRun, plan: Plan) -> bool:
    """Were all sources that were read those of the original, in the form that was planned?"""
    ways = {source.node: source.way for source in run.report.sources}
    are_literal = all(way == "literal" for way in ways.values())
    return are_literal and (run.exit_code != 0 or all(source["node"] in ways for source in plan.sources))


def for_short_runs(environment: MutableMapping[str, str]) -> Mapping[str, str]:
    """An environment in which JVMs do not compile for the long run. Options of the user's come last."""
    own = environment.get(_JVM_OPTIONS, "")
    environment[_JVM_OPTIONS] = f"{_SHORT_RUNS} {own}".strip()
    return environment


def last_line(printed: str) -> str:
    """What a command said last."""
    return (printed.strip().splitlines() or ["it printed nothing"])[-1]


def _end_of(path: Path, since: int) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - _MOST_PRINTED, since))
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def _size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0

"""A probe: where a change is to be run, the job runs on the rows of the changed classes alone, in a sandbox.

Its output rows take the place of the old ones of these classes, so the error over all outputs is exact. At or
below the bound the job is skipped. With each question:
 1. What the last probe expected is compared with what the run beside it wrote. Once they differed, the job is
    not probed any more, until its code is another one.
 2. The classes of the inputs are kept as they are now, if the job is to be run: the next change is seen in
    them. They count only if the execution has read the very files that they are of.
 3. If one input has changed, and few of its rows are of changed classes, and the job takes long enough, it is
    probed. The first `CHECKS` probes only say what they expect, and the job runs beside them.
Whatever is not certain is run, and `why` says what it was. `separation` argues why the rest is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from lineage_service.errors import LineageError
from lineage_service.tracing.files.file_parts import normal_path
from lineage_service.tracing.files.file_systems import FileSystems
from lineage_service.triggering.certain.answers import Answer, output_change
from lineage_service.triggering.certain.evidence import Evidence
from lineage_service.triggering.certain.executions import Execution
from lineage_service.triggering.certain.file_looks import FileLook, FileLooks
from lineage_service.triggering.learning.terms import Terms
from lineage_service.triggering.probing.class_rows import (
    Classes,
    ClassRows,
    UnsureRowsError,
    classes_of,
    rows_of,
)
from lineage_service.triggering.probing.kept_probes import KeptClasses, KeptProbe, KeptProbes
from lineage_service.triggering.probing.predicted_output import (
    PredictedOutput,
    digest_of,
    error_of,
    predicted,
    written,
)
from lineage_service.triggering.probing.separation import NotSeparableError, Separation, separation_of
from lineage_service.triggering.waves.wave_history import job_key

__all__ = ["CHECKS", "PROBED", "ProbeRun", "Probed", "Prober", "RunOnRows"]

PROBED = "probed"
#: Runs whose outputs were what probes beside them had expected, before a probe decides.
CHECKS = 3
#: One of so many rows of the changed input at most, and how long a probe takes where none was made.
_SHARE, _USUAL_S = 10, 30.0
#: A probe is not worth more than this share of an execution.
_WORTH = 0.5
_LOOK_S = 20.0
#: Answers of which a run may be too many; audits and their like are run to learn.
_ASKED = frozenset(("training", "probable", "unlike", "old", "unknown_change", "no_model"))


class ProbeRun(Protocol):
    """What a run on some rows has written: by the numbers of the sinks, the folders."""

    @property
    def folders(self) -> Mapping[int, str]: ...

    @property
    def unsure(self) -> str:
        """Why there should be no other one; empty where nothing speaks against it."""

    @property
    def seconds(self) -> float: ...


RunOnRows = Callable[[str, Callable[[Path], Mapping[str, str]], float], AbstractContextManager[ProbeRun]]
"""Takes an application, a function that writes files into a folder and says which paths they stand for, and
for how many seconds it may run. Raises LineageError."""


@dataclass(frozen=True, slots=True)
class Probed:
    """An answer. `error`: what a skip means; None: nothing was probed, or the probe was not trusted yet."""

    answer: Answer
    error: float | None = None


class _NotProbedError(Exception):
    """Why not, this time."""


@dataclass(frozen=True, slots=True)
class _Input:
    """One input that the job was given, as it is now."""

    path: str
    nodes: tuple[int, ...]
    look: FileLook
    separation: Separation
    rows: ClassRows
    classes: Classes


class Prober:
    """Of one flow store, for one question. `is_patient`: also where it takes as long as the job."""

    def __init__(self, kept: KeptProbes, run: RunOnRows, *, is_patient: bool = False) -> None:
        self._kept, self._run, self._is_patient = kept, run, is_patient
        self._inputs: dict[tuple[str, str], _Input] = {}

    def probed(self, evidence: Evidence, answer: Answer, number: int) -> Probed:
        """Of an answer and its number."""
        last, terms = evidence.last, evidence.question.terms
        if answer.decision != "run" or last is None or terms is None or not last.completeness.is_complete:
            return Probed(answer)
        why, error, decided = "", None, None
        try:
            self._compare(evidence, last)
            try:
                if answer.reason not in _ASKED:
                    raise _NotProbedError
                decided, why, error = self._decided(evidence, last, terms, number)
            finally:
                self._keep(evidence, last, terms, number)
        except (NotSeparableError, _NotProbedError, LineageError) as reason:
            why = str(reason)
        if not why or answer.reason not in _ASKED:
            return Probed(answer)
        if decided is None:
            return Probed(answer._replace(why=f"{answer.why} · not probed: {why}"))
        if not decided:
            return Probed(answer._replace(why=f"{answer.why} · {why}"), error)
        assert error is not None
        decision = "skip" if error <= terms.bound else "run"
        return Probed(Answer(decision, PROBED, f"{answer.why} · {why}"), error)

    # -- what was expected, and came ------------------------------------------------------------------

    def _compare(self, evidence: Evidence, last: Execution) -> None:
        """The probe beside the last execution with what that has written."""
        job, code = job_key(evidence.question.job), _code(evidence, last)
        wave = evidence.wave_of(last)
        probe = next(
            (
                one
                for one in self._kept.probes(job, code)
                if one.outcome == "expected" and wave is not None and one.number == wave.number
            ),
            None,
        )
        if probe is None or last.state != "ended":
            return
        classes = self._kept.classes(job, probe.number, probe.path)
        if classes is None or not _has_read(evidence, probe.path, classes):
            return  # it has read something else
        actual: dict[str, str] = {}
        for output in evidence.outputs:
            if output.path is not None and output.path in probe.expected:
                look = evidence.looks[output.path]
                if isinstance(look, str) or output_change(output, evidence, last) is not None:
                    return
                node = last.nodes[output.node]
                actual[output.path] = digest_of(written(node, rows_of(look, node, ())))
        outcome = "agreed" if actual == dict(probe.expected) else "differed"
        self._kept.add_probe(job, replace(probe, outcome=outcome))

    # -- the inputs as they are -----------------------------------------------------------------------

    def _keep(self, evidence: Evidence, last: Execution, terms: Terms, number: int) -> None:
        job = job_key(evidence.question.job)
        for path in evidence.paths:
            try:
                one = self._input(evidence, last, terms, path)
            except (NotSeparableError, UnsureRowsError):
                continue
            kept = KeptClasses(
                number=number,
                path=path,
                columns=one.separation.columns,
                files=one.look.files,
                classes=one.classes,
            )
            self._kept.add_classes(job, kept)
        wave = evidence.wave_before(last)
        if wave is not None:
            self._kept.clear(job, wave.number)

    def _input(self, evidence: Evidence, last: Execution, terms: Terms, path: str) -> _Input:
        """Raises NotSeparableError, UnsureRowsError."""
        look = evidence.looks[path]
        if isinstance(look, str):
            raise UnsureRowsError(look)
        if (path, look.digest) not in self._inputs:
            nodes = tuple(source.node for source in evidence.inputs if path in source.paths)
            if (
                any(source.paths != (path,) for source in evidence.inputs if path in source.paths)
                or not nodes
            ):
                raise NotSeparableError(f"{path} is read together with others, or by the program itself")
            separation = separation_of(last.nodes, path, nodes, _compared(evidence, terms))
            rows = rows_of(look, last.nodes[nodes[0]], separation.columns)
            if FileLooks(FileSystems(), _LOOK_S).at(path).digest != look.digest:
                raise UnsureRowsError(f"{path} was written while it was read")
            self._inputs[path, look.digest] = _Input(path, nodes, look, separation, rows, classes_of(rows))
        return self._inputs[path, look.digest]

    # -- the probe ------------------------------------------------------------------------------------

    def _decided(
        self, evidence: Evidence, last: Execution, terms: Terms, number: int
    ) -> tuple[bool, str, float]:
        """Whether the probe decides, what it says, and the error.

        Raises NotSeparableError, _NotProbedError, LineageError.
        """
        job, code = job_key(evidence.question.job), _code(evidence, last)
        probes = self._kept.probes(job, code)
        _check_before(probes)
        self._check_worth(last, probes)
        one, changed = self._change(evidence, last, terms)
        kept = self._reference(evidence, last, one)
        count = max(one.classes.count(changed), kept.classes.count(changed))
        total = max(len(one.rows), int(kept.classes.counts.sum()))
        by = ", ".join(one.separation.columns)
        if count * _SHARE >= total and len(changed):
            raise _NotProbedError(
                f"{count:,} of {total:,} rows of {one.path} share {by} with a row that changed: a tenth "
                "or more"
            )
        try:
            outputs, seconds = self._outputs(evidence, last, number, one, changed)
            error = error_of(terms, outputs)
        except LineageError as failed:
            probe = KeptProbe(
                number=number, path=one.path, code=code, outcome="failed", why=str(failed)[:500]
            )
            self._kept.add_probe(job, probe)
            raise
        agreed = sum(probe.outcome == "agreed" and probe.seconds is not None for probe in probes)
        is_trusted = agreed >= CHECKS
        self._kept.add_probe(
            job,
            KeptProbe(
                number=number,
                path=one.path,
                code=code,
                outcome="used" if is_trusted else "expected",
                expected={path: digest_of(output.new) for path, output in outputs.items()},
                error=error,
                seconds=seconds,
            ),
        )
        what = (
            f"on {count:,} of {total:,} rows of {one.path}, those that share {by} with a row that changed, "
            f"in {seconds or 0:.1f} s: the error is {error:.4g}"
        )
        if is_trusted:
            return True, f"probed {what}", error
        return False, f"probed beside the run {what} ({agreed} of {CHECKS} such checks agreed)", error

    def _check_worth(self, last: Execution, probes: Sequence[KeptProbe]) -> None:
        if self._is_patient:
            return
        took = [probe.seconds for probe in probes if probe.seconds is not None][-CHECKS:]
        expected = max(took, default=_USUAL_S)
        duration = _duration(last)
        if expected > _WORTH * duration:
            raise _NotProbedError(
                f"it does not pay: the last execution took {duration:,.0f} s, a probe takes {expected:,.0f} s"
            )

    def _change(
        self, evidence: Evidence, last: Execution, terms: Terms
    ) -> tuple[_Input, np.ndarray[tuple[int], np.dtype[np.uint64]]]:
        """The input that has changed, and its changed classes."""
        if evidence.question.ignored or evidence.extra:
            raise _NotProbedError("inputs were named or left out by hand")
        wave = evidence.wave_of(last)
        if wave is None:
            raise _NotProbedError("how its inputs were before its last execution was not seen")
        changed = []
        for path in evidence.paths:
            look, seen = evidence.looks[path], wave.inputs.get(path)
            if isinstance(look, str) or seen is None or not seen.is_settled:
                raise _NotProbedError(f"how {path} was before its last execution is not known for sure")
            if (look.digest, look.version) != (seen.digest, seen.version):
                changed.append(path)
        if len(changed) != 1:
            raise _NotProbedError(f"{len(changed):,} inputs have changed, and one can be probed")
        one = self._input(evidence, last, terms, changed[0])
        return one, self._reference(evidence, last, one).classes.changed(one.classes)

    def _reference(self, evidence: Evidence, last: Execution, one: _Input) -> KeptClasses:
        wave = evidence.wave_of(last)
        assert wave is not None
        kept = self._kept.classes(job_key(evidence.question.job), wave.number, one.path)
        if kept is None or kept.columns != one.separation.columns:
            raise _NotProbedError(f"of {one.path}, as its last execution read it, nothing was kept")
        if not _has_read(evidence, one.path, kept):
            raise _NotProbedError(f"{one.path} was written between the answer and the last execution")
        return kept

    def _outputs(
        self,
        evidence: Evidence,
        last: Execution,
        number: int,
        one: _Input,
        changed: np.ndarray[tuple[int], np.dtype[np.uint64]],
    ) -> tuple[dict[str, PredictedOutput], float | None]:
        """By path; and how long the run took, None where there was none."""
        terms = evidence.question.terms
        assert terms is not None
        sinks = {
            sink: path for sink, path in _compared(evidence, terms).items() if path in one.separation.outputs
        }
        old = {}
        for sink, path in sinks.items():
            look = evidence.looks[path]
            assert isinstance(look, FileLook)
            old[sink] = rows_of(look, last.nodes[sink], one.separation.outputs[path])
        if not len(changed):
            return {
                sinks[at]: predicted(last.nodes[at], rows, None, changed) for at, rows in old.items()
            }, None
        chosen = np.isin(one.rows.classes, changed)

        def write(folder: Path) -> dict[str, str]:
            one.rows.write(chosen, folder)
            return {one.path: str(folder)}

        limit = max(_duration(last), 2 * _USUAL_S if self._is_patient else 0.0)
        with self._run(last.application_id, write, limit) as run:
            if run.unsure:
                self._refuse(evidence, last, number, run.unsure)
            outputs = {}
            for sink, path in sinks.items():
                node, probed = last.nodes[sink], None
                if sink not in run.folders:
                    raise UnsureRowsError(f"on these rows it did not write {path}")
                look = FileLooks(FileSystems(), _LOOK_S).at(normal_path(run.folders[sink]))
                if look.count:
                    probed = rows_of(look, node, one.separation.outputs[path])
                outputs[path] = predicted(node, old[sink], probed, changed)
            self._check_still(evidence)
            return outputs, run.seconds

    def _refuse(self, evidence: Evidence, last: Execution, number: int, why: str) -> None:
        """For good."""
        code = _code(evidence, last)
        probe = KeptProbe(number=number, path="", code=code, outcome="unsure", why=why)
        self._kept.add_probe(job_key(evidence.question.job), probe)
        raise _NotProbedError(why)

    def _check_still(self, evidence: Evidence) -> None:
        """Nothing was written meanwhile."""
        looks = FileLooks(FileSystems(), _LOOK_S)
        for path, look in evidence.looks.items():
            if isinstance(look, FileLook) and looks.at(path).digest != look.digest:
                raise UnsureRowsError(f"{path} was written during the probe")


def _check_before(probes: Sequence[KeptProbe]) -> None:
    """What earlier probes say against another one."""
    for probe in probes:
        if probe.outcome == "differed":
            raise _NotProbedError("a run has written another output than a probe beside it had expected")
        if probe.outcome == "unsure":
            raise _NotProbedError(probe.why)
    latest = probes[-CHECKS:]
    if len(latest) == CHECKS and all(probe.outcome == "failed" for probe in latest):
        raise _NotProbedError(f"its last {CHECKS} probes showed nothing: {latest[-1].why}")


def _compared(evidence: Evidence, terms: Terms) -> dict[int, str]:
    """The sinks that the error is of, and their paths."""
    names = [name.strip().rstrip("/") for name in terms.outputs]
    return {
        output.node: output.path
        for output in evidence.outputs
        if output.path is not None
        and (not names or any(output.path == name or output.path.endswith(f"/{name}") for name in names))
    }


def _has_read(evidence: Evidence, path: str, kept: KeptClasses) -> bool:
    """Has the last execution read these files, and no others? Of empty ones it need not say so."""
    read = {
        file: state
        for source in evidence.inputs
        if path in source.paths
        for file, state in source.files.items()
    }
    return all(kept.files.get(file) == state for file, state in read.items()) and all(
        file in read or not size for file, (size, _) in kept.files.items()
    )


def _code(evidence: Evidence, last: Execution) -> str:
    terms = evidence.question.terms
    return f"{evidence.question.code or last.code} {'' if terms is None else terms.digest()}"


def _duration(last: Execution) -> float:
    return 0.0 if last.ended is None else (last.ended - last.began) / 1000

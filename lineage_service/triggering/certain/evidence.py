"""What is known of a job before it runs: gathered from the store, the files and the code. Decides nothing."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lineage_service.tracing.files.file_parts import normal_path
from lineage_service.tracing.files.file_systems import FileSystems
from lineage_service.tracing.model.elements import is_below
from lineage_service.triggering.certain.executions import Execution, JobStore, executions_of
from lineage_service.triggering.certain.file_looks import FileLook, FileLooks, LookError
from lineage_service.triggering.certain.given_inputs import GivenInput, WrittenOutput, inputs_of, outputs_of
from lineage_service.triggering.certain.source_code import Unsteady, code_now, unsteady_call
from lineage_service.triggering.waves.question import Question
from lineage_service.triggering.waves.wave_history import SeenInput, Wave

__all__ = ["Evidence", "chosen_inputs", "command_hash", "gathered"]

#: For all files of a job together.
_LOOK_SECONDS = 30.0
#: Executions that are compared with one another.
_EXECUTIONS = 2
#: The clocks of those who ask and of those who run may differ so far.
_CLOCKS_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Of one job. `executions` are the latest, the last one first; `waves` are in their order.

    `looks` are by path; a text says why a path could not be looked at. `extra` are paths that the question
    names beside those of the job. `unsteady` is None where no such call was found; a text says why it is not
    known.
    """

    question: Question
    now_ms: int
    executions: Sequence[Execution] = ()
    waves: Sequence[Wave] = ()
    inputs: Sequence[GivenInput] = ()
    earlier_inputs: Sequence[GivenInput] | None = None
    extra: Sequence[str] = ()
    outputs: Sequence[WrittenOutput] = ()
    earlier_outputs: Sequence[WrittenOutput] | None = None
    looks: Mapping[str, FileLook | str] = field(default_factory=dict)
    #: Of the files of the last execution's code as they are now; None where they cannot be read.
    code: str | None = None
    unsteady: Unsteady | str | None = None

    @property
    def last(self) -> Execution | None:
        return self.executions[0] if self.executions else None

    @property
    def has_same_code(self) -> bool:
        """Had the last two executions the same code? Another one may read and write other things for good."""
        return len(self.executions) > 1 and self.executions[0].code == self.executions[1].code

    @property
    def paths(self) -> list[str]:
        """All that the job is given to read, as far as it is known."""
        return list(dict.fromkeys([*(path for source in self.inputs for path in source.paths), *self.extra]))

    def wave_before(self, execution: Execution) -> Wave | None:
        """The answer upon which it ran, or else the last one that was given before it began."""
        own = [
            wave
            for wave in self.waves
            if execution.wave is not None
            and wave.wave == execution.wave
            and wave.time < execution.began + _CLOCKS_MS
        ]
        before = own or [wave for wave in self.waves if wave.time < execution.began]
        return before[-1] if before else None

    def wave_of(self, execution: Execution) -> Wave | None:
        """The answer upon which it ran."""
        before = self.wave_before(execution)
        return before if before is not None and before.decision == "run" else None

    def seen(self) -> dict[str, SeenInput]:
        """What the history keeps of how the inputs are now."""
        return {
            path: SeenInput(
                look.digest, look.count, look.bytes, look.newest_ns, look.is_settled, look.version
            )
            for path in self.paths
            if isinstance(look := self.looks.get(path), FileLook)
        }


def gathered(store: JobStore, waves: Sequence[Wave], question: Question) -> Evidence:
    """Raises StoreUnavailableError."""
    now_ms = time.time_ns() // 1_000_000
    executions = executions_of(store, question.job, _EXECUTIONS, now_ms)
    extra = [normal_path(path) for path in question.inputs]
    looks = FileLooks(FileSystems(), _LOOK_SECONDS)
    if not executions:
        at = _looked(looks, extra)
        return Evidence(question=question, now_ms=now_ms, waves=waves, extra=extra, looks=at)
    last, *earlier = executions
    earlier = [execution for execution in earlier if execution.state == "ended"]
    inputs, outputs = chosen_inputs(inputs_of(last), question, extra), outputs_of(last)
    paths = [
        *(path for source in inputs for path in source.paths),
        *extra,
        *(output.path for output in outputs if output.path is not None),
    ]
    return Evidence(
        question=question,
        now_ms=now_ms,
        executions=executions,
        waves=waves,
        inputs=inputs,
        earlier_inputs=chosen_inputs(inputs_of(earlier[0]), question, extra) if earlier else None,
        extra=extra,
        outputs=outputs,
        earlier_outputs=outputs_of(earlier[0]) if earlier else None,
        looks=_with_commits(looks, _looked(looks, paths), outputs),
        code=code_now(last.code_files) if last.code_files else None,
        unsteady=None if question.is_steady else _unsteady(last),
    )


def command_hash(words: Sequence[str]) -> str | None:
    return hashlib.sha256(repr(list(words)).encode()).hexdigest() if words else None


def chosen_inputs(inputs: Iterable[GivenInput], question: Question, extra: Sequence[str]) -> list[GivenInput]:
    """Without those that are to be ignored, and those that lie in a folder that the question names."""
    return [
        source
        for source in inputs
        if not any(source.is_called(text) for text in question.ignored)
        and not (
            not source.paths
            and source.location is not None
            and any(is_below(source.location, folder) for folder in extra)
        )
    ]


def _looked(looks: FileLooks, paths: Iterable[str]) -> dict[str, FileLook | str]:
    at: dict[str, FileLook | str] = {}
    for path in dict.fromkeys(paths):
        try:
            at[path] = looks.at(path)
        except LookError as error:
            at[path] = str(error)
    return at


def _with_commits(
    looks: FileLooks, at: Mapping[str, FileLook | str], outputs: Sequence[WrittenOutput]
) -> dict[str, FileLook | str]:
    """Of outputs that are Delta tables it is also to be known whether a run replaces them."""
    places = {output.path for output in outputs}
    return {
        path: looks.with_commit(look) if path in places and isinstance(look, FileLook) else look
        for path, look in at.items()
    }


def _unsteady(execution: Execution) -> Unsteady | str | None:
    if not execution.code_files:
        return "the files of its code are not known"
    try:
        return unsteady_call(execution.code_files)
    except (OSError, SyntaxError) as error:
        return f"its code cannot be read here ({type(error).__name__})"

"""Answers that need no model: what is known for certain says run, or says skip. Doubt means run. Pure.

In this order, the first that applies: never ran; the clock; the code; the last execution failed, runs, or is
not complete; what depends on more than inputs; inputs that cannot be looked at; the age; the outputs;
the inputs themselves. A skip is given for one reason only: that nothing has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import NamedTuple

from lineage_service.triggering.certain.evidence import Evidence, command_hash
from lineage_service.triggering.certain.executions import Execution
from lineage_service.triggering.certain.file_looks import FileLook
from lineage_service.triggering.certain.given_inputs import GivenInput, WrittenOutput, named_after_a_day
from lineage_service.triggering.certain.source_code import Unsteady

__all__ = ["CHANGED", "UNCHANGED", "Answer", "asked_answer", "certain_answer", "output_change", "refusal"]

CHANGED, UNCHANGED = "changed", "unchanged"
#: A clock that went back by less was only corrected.
_CLOCK_MS = 2_000
#: Files of an output may be this much younger than its application's end.
_AFTER_END_NS = 5_000_000_000
_LISTED = 3


class Answer(NamedTuple):
    """`reason` is a word, `why` a sentence. Of a change that a model may weigh, `is_final` is False."""

    decision: str
    reason: str
    why: str
    is_final: bool = True


def _run(reason: str, why: str) -> Answer:
    return Answer("run", reason, why)


def asked_answer() -> Answer:
    """Of the first wave after somebody asked that it is run, whatever else is known."""
    return _run("asked", "somebody asked for the next wave to be run")


def refusal(evidence: Evidence) -> str | None:
    """Why no answer is given: a skip would lose data, or two jobs are taken for one. None: it can be."""
    last = evidence.last
    if last is None:
        return None
    mixed = _mixed(evidence, last)
    if mixed is not None or evidence.question.missing_is_fine:
        return mixed
    for output in evidence.outputs:
        why = _loses(output, evidence, last)
        if why is not None:
            return f"{why}. With --missing-is-fine it is decided all the same"
    return None


def _mixed(evidence: Evidence, last: Execution) -> str | None:
    if len(evidence.executions) < 2 or evidence.earlier_outputs is None or evidence.earlier_inputs is None:
        return None
    before = evidence.executions[1]
    same_output = _names(evidence.outputs) & _names(evidence.earlier_outputs)
    mains = {execution.code_files[:1] for execution in (last, before)}
    is_other = (
        len(mains) == 2 if all(mains) else not _places(evidence.inputs) & _places(evidence.earlier_inputs)
    )
    if same_output or not is_other or not evidence.outputs or not evidence.earlier_outputs:
        return None
    return (
        f"two jobs are called {evidence.question.job!r}: {before.application_id} wrote "
        f"{_listed(_names(evidence.earlier_outputs))}, {last.application_id} wrote "
        f"{_listed(_names(evidence.outputs))}. Give each a name of its own with spark.lineage.job"
    )


def _loses(output: WrittenOutput, evidence: Evidence, last: Execution) -> str | None:
    if output.path is None:
        return None
    if output.appends:
        return f"it appends to {output.path}: a wave that is skipped would be missing there"
    if output.replaces_part:
        return f"it changes a part of {output.path}: a wave that is skipped would be missing there"
    if named_after_a_day(output.path, last.began):
        return f"it writes {output.path}, another place each day: a skipped wave would be missing"
    earlier = evidence.earlier_outputs if evidence.has_same_code else None
    if earlier and output.path not in _names(earlier):
        return (
            f"it wrote {output.path}, and {_listed(_names(earlier))} the time before: where each wave has a "
            "place of its own, a skipped one would be missing"
        )
    look = evidence.looks.get(output.path)
    if isinstance(look, FileLook) and look.version is not None and look.replaces is False:
        return (
            f"its last commit to {output.path} is {look.commit}, and rows of before stay there: a wave "
            "that is skipped would be missing"
        )
    if isinstance(look, FileLook) and output.files and look.version is None:
        old = [
            path
            for path, (_, modified) in look.files.items()
            if path not in output.files and modified + 1_000 < last.began
        ]
        if old:
            return (
                f"{output.path} holds files that its last execution did not write, such as {min(old)}: it "
                "adds to what is there, or is not alone there, and a skipped wave would be missing"
            )
    return None


def certain_answer(evidence: Evidence) -> Answer:
    """Run or skip, with its reason. `CHANGED` is the one that is not final."""
    last = evidence.last
    if last is None:
        return _run("never_ran", f"{evidence.question.job!r} was never seen to run with lineage")
    for rule in _RULES:
        answer = rule(evidence, last)
        if answer is not None:
            return answer
    files = sum(look.count for path in evidence.paths if isinstance(look := evidence.looks[path], FileLook))
    return Answer(
        "skip",
        UNCHANGED,
        f"its inputs are as they were when {last.application_id} ran at {_moment(last.began)}: {files:,} "
        f"file{'' if files == 1 else 's'} of {_listed(evidence.paths)}",
    )


def _clock(evidence: Evidence, last: Execution) -> Answer | None:
    latest = max([last.began, *(wave.time for wave in evidence.waves)])
    if evidence.now_ms + _CLOCK_MS >= latest:
        return None
    return _run("clock", f"the clock went back: it is {_moment(evidence.now_ms)}, after {_moment(latest)}")


def _outcome(evidence: Evidence, last: Execution) -> Answer | None:
    application = last.application_id
    if last.state == "failed":
        return _run("failed", f"its last execution {application} failed")
    if last.state == "lost":
        return _run("failed", f"its last execution {application} was lost: its driver died without a word")
    if last.state == "running":
        return _run("running", f"its last execution {application} has not ended, as far as the store knows")
    if not last.completeness.is_complete:
        return _run("incomplete", f"of its last execution {application} {last.completeness.describe()}")
    return None


def _code(evidence: Evidence, last: Execution) -> Answer | None:
    question, wave = evidence.question, evidence.wave_of(last)
    if question.command and (wave is None or wave.command != command_hash(question.command)):
        what = "by another command" if wave is not None and wave.command else "in a way that is not known"
        return _run("code", f"its last execution {last.application_id} was run {what}")
    if question.code is not None:
        then = None if wave is None else wave.code
        if then == question.code:
            return None
        said = "is not known" if then is None else f"was {then}"
        return _run("code", f"the code is {question.code}, that of {last.application_id} {said}")
    if last.code is None:
        return _run("code", f"the code of {last.application_id} is not known: say its version with --code")
    if evidence.code is None:
        return _run(
            "code", f"the code of {last.application_id} cannot be read here: say its version with --code"
        )
    if evidence.code != last.code:
        return _run("code", f"the code is another one than that of {last.application_id}")
    return None


def _unsteady(evidence: Evidence, last: Execution) -> Answer | None:
    call = evidence.unsteady
    if call is None:
        return None
    if isinstance(call, Unsteady):
        why = f"it calls {call}, so its output may change without its inputs"
    else:
        why = f"whether it reads a clock is not known: {call}"
    return _run("unsteady", f"{why}. If it depends on its inputs alone, say --deterministic")


def _inputs_known(evidence: Evidence, last: Execution) -> Answer | None:
    for source in evidence.inputs:
        if not source.is_file:
            return _run(
                "no_file", f"it reads {source.name}, which {source.why}: --ignore-input leaves it out"
            )
        if not source.paths:
            return _run("unknown_input", f"{source.name} {source.why}: name its folder with --input")
        for path in source.paths:
            if named_after_a_day(path, last.began):
                return _run("other_input", f"it read {path}, so the next run may read another place")
    if not evidence.paths:
        return _run("no_input", "no input of it is known")
    earlier = evidence.earlier_inputs if evidence.has_same_code else None
    if earlier is not None and _places(evidence.inputs) != _places(earlier):
        return _run("other_input", "its last two executions read other inputs, so the next one may, too")
    for path in evidence.paths:
        if isinstance(look := evidence.looks[path], str):
            return _run("unknown_input", look)
    return None


def _age(evidence: Evidence, last: Execution) -> Answer | None:
    age_s = (evidence.now_ms - last.began) / 1000
    if age_s < evidence.question.at_least_every_s:
        return None
    return _run("too_old", f"its last execution {last.application_id} began at {_moment(last.began)}")


def _outputs(evidence: Evidence, last: Execution) -> Answer | None:
    if not evidence.outputs:
        return _run(
            "unknown_output", "no output of it is known, so it is not known whether it is still there"
        )
    for output in evidence.outputs:
        why = output_change(output, evidence, last)
        if why is not None:
            return _run("output_changed" if output.path else "unknown_output", why)
        look = evidence.looks.get(output.path or "")
        if not isinstance(look, FileLook) or look.version is None or evidence.question.missing_is_fine:
            continue
        if look.replaces is None:
            return _run(
                "unknown_output",
                f"whether it replaces {output.path} or adds to it is not known: its last commit is "
                f"{look.commit or 'not understood'}",
            )
    return None


def output_change(output: WrittenOutput, evidence: Evidence, last: Execution) -> str | None:
    """Why an output is not as the last execution left it; None: it is."""
    if output.path is None:
        return f"{output.name} {output.why}"
    look = evidence.looks[output.path]
    if isinstance(look, str):
        return look
    if not look.count:
        return f"its output {output.path} is gone"
    if look.version is None:
        for path, (size, modified) in sorted(output.files.items()):
            now = look.files.get(path)
            if now is None:
                return f"{path} of its output is gone"
            if (size is not None and size != now[0]) or (modified is not None and modified != now[1]):
                return f"{path} of its output was changed since"
    if look.newest_ns is None:
        return f"the times of the files of {output.path} are not known"
    if last.ended is None or look.newest_ns > last.ended * 1_000_000 + _AFTER_END_NS:
        return f"{look.newest or output.path} of its output was written after it had ended"
    return None


def _written(evidence: Evidence, last: Execution) -> Answer | None:
    for path in evidence.paths:
        look = _look(evidence, path)
        if not look.is_settled:
            return _run("written", f"{look.newest or path} was written while it was looked at")
    return None


def _changed(evidence: Evidence, last: Execution) -> Answer | None:
    wave = evidence.wave_before(last)
    for path in evidence.paths:
        look, seen = _look(evidence, path), None if wave is None else wave.inputs.get(path)
        if seen is not None and seen.is_settled:
            if seen.digest == look.digest and seen.version == look.version:
                continue
            is_newer = look.newest_ns is not None and look.newest_ns > (seen.newest_ns or 0)
            what = look.newest if is_newer and look.newest and look.version is None else path
            then, now = _described(seen.count, seen.bytes, seen.version), _described_look(look)
            return Answer(
                "run", CHANGED, f"{what} has changed: {path} had {then}, and has {now}", is_final=False
            )
        why = _change_by_events(evidence.inputs, path, look, last)
        if why is not None:
            return Answer("run", CHANGED, why, is_final=False)
    return None


def _change_by_events(inputs: Sequence[GivenInput], path: str, look: FileLook, last: Execution) -> str | None:
    """Where nobody looked before the last execution: are its files, as it read them, all that there is?"""
    if not look.count:
        return f"{path} is gone, or empty"
    if not look.is_older_than(last.began * 1_000_000):
        return f"{look.newest or path} was written after {last.application_id} began"
    if look.version is not None:
        return None  # the newest commit of the table is older than that
    read = {file: state for source in inputs if path in source.paths for file, state in source.files.items()}
    for file, state in sorted(look.files.items()):
        if file not in read:
            return f"{file} was not read by {last.application_id}: whether it is new is not known"
        if state != read[file]:
            return f"{file} is not as {last.application_id} read it, as far as that is known"
    gone = sorted(file for file in read if file not in look.files and not _is_of_another(file, path, inputs))
    if gone:
        return f"{gone[0]} is gone since {last.application_id} read it"
    return None


def _is_of_another(file: str, path: str, inputs: Sequence[GivenInput]) -> bool:
    """May a source of several paths have read the file by another one of these?"""
    return any(path in source.paths and len(source.paths) > 1 and file in source.files for source in inputs)


_RULES: tuple[Callable[[Evidence, Execution], Answer | None], ...] = (
    _clock,
    _code,
    _outcome,
    _unsteady,
    _inputs_known,
    _age,
    _outputs,
    _written,
    _changed,
)


def _look(evidence: Evidence, path: str) -> FileLook:
    look = evidence.looks[path]
    assert isinstance(look, FileLook), path  # `_inputs_known` has answered else
    return look


def _places(inputs: Sequence[GivenInput]) -> set[str]:
    """What inputs are called by, whatever they were found to be."""
    return {place for source in inputs for place in (source.paths or (source.name,))}


def _names(outputs: Sequence[WrittenOutput]) -> set[str]:
    return {output.path or output.name for output in outputs}


def _listed(names: Sequence[str] | set[str]) -> str:
    ordered = sorted(names) if isinstance(names, set) else list(names)
    more = f" and {len(ordered) - _LISTED:,} more" if len(ordered) > _LISTED else ""
    return (", ".join(ordered[:_LISTED]) or "nothing") + more


def _described(count: int, size: int, version: int | None) -> str:
    if version is not None:
        return f"version {version}"
    return f"{count:,} file{'' if count == 1 else 's'} of {size:,} bytes"


def _described_look(look: FileLook) -> str:
    return _described(look.count, look.bytes, look.version)


def _moment(unix_ms: int) -> str:
    return datetime.fromtimestamp(unix_ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")

"""Whether a replay failed as the original did: by how its command ended, and what it printed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lineage_service.lineage import Failure, ReplayedOutput, Verdict

__all__ = ["checked_failure", "is_same_crash"]

_LONGEST = 500


def checked_failure(failure: Failure, exit_code: int, printed: str) -> ReplayedOutput:
    """`reproduced`: the same error, with the same text, from the same line of the program."""
    was = f"{failure.error}: {failure.message}" if failure.message else failure.error
    verdict, now, why = _verdict(failure, exit_code, printed)
    return ReplayedOutput(
        path=None,
        row=None,
        line=None,
        record=None if failure.record is None else f"{failure.record.node_id}#{failure.record.record_id}",
        verdict=verdict,
        was=was,
        is_=was if verdict == "reproduced" else now,
        alike=None,
        why=why,
    )


def _verdict(failure: Failure, exit_code: int, printed: str) -> tuple[Verdict, str | None, str]:
    if exit_code == 0:
        return "no", None, "the replay ended well"
    raised = _raised(failure, printed)
    if any(_says_so(failure, line, printed) for line in raised) and _has_frame(failure.frame, printed):
        return "reproduced", None, ""
    if raised:
        why = "the same error, with another text or from another line of the program"
        return "changed", raised[-1][0][:_LONGEST], why
    last = (printed.strip().splitlines() or [""])[-1][:_LONGEST]
    return "changed", last or None, f"the replay failed in another way (exit code {exit_code})"


def is_same_crash(failure: Failure, exit_code: int, printed: str) -> bool:
    """The same type of error from the same line of the program, whatever it says of its record?"""
    return exit_code != 0 and bool(_raised(failure, printed)) and _has_frame(failure.frame, printed)


def _raised(failure: Failure, printed: str) -> list[re.Match[str]]:
    """The last lines of tracebacks of such an error, in what Python or Spark prints.

    PySpark names errors of queries without the `Spark` before them, and Java shows them as causes.
    """
    name = re.escape(failure.error.rpartition(".")[2])
    if name.startswith("Spark"):
        name = f"(?:Spark)?{name.removeprefix('Spark')}"
    return list(re.finditer(rf"^(?:Caused by: )?(?:[\w<>]+\.)*{name}(?P<text>:[^\n]*)?$", printed, re.M))


def _says_so(failure: Failure, raised: re.Match[str], printed: str) -> bool:
    """Has the error the same text, in all its lines? What was cut ends with an ellipsis."""
    message = failure.message.rstrip()
    was = _trimmed(message.removesuffix("…").split("\n"))
    first = (raised["text"] or "").removeprefix(":")
    now = _trimmed([first, *printed[raised.end() :].split("\n", len(was))[1 : len(was)]])
    if message.endswith("…"):
        now[-1] = now[-1][: len(was[-1])]
    return now == was


def _trimmed(lines: Sequence[str]) -> list[str]:
    """Without the blanks at their ends, which events do not keep, and before the first."""
    return [lines[0].strip(), *(line.rstrip() for line in lines[1:])]


def _has_frame(frame: str | None, printed: str) -> bool:
    """Has a traceback that place of the program? Where it is not known, any will do."""
    if frame is None:
        return True
    path, _, line = frame.rpartition(":")
    file = re.escape(path.rpartition("/")[2])
    # Of a query Spark says itself where the expression was made.
    return re.search(rf'(?<![\w.-]){file}(?:", line |:){re.escape(line)}\b', printed) is not None

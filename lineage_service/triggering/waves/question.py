"""What is asked before a job runs: which job, which wave, and under which terms."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lineage_service.errors import InvalidQueryError
from lineage_service.triggering.learning.terms import Terms

__all__ = ["DEFAULT_AGE", "Question", "seconds_of"]

DEFAULT_AGE = "7d"
_AGE = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_MOST_CHARACTERS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`wave` None is one of its own, named by the time. `code` is what people call the version of the code.

    `inputs` are looked at beside those that the job read; inputs that are called like one of `ignored` are
    left out. `missing_is_fine`: a skip may leave an output of this wave missing. `is_steady`: the output
    depends on nothing but inputs and code. `command` is what runs the job; empty: not known. `terms` None:
    nothing may have changed.
    """

    job: str
    wave: str | None = None
    at_least_every_s: float = 7 * 86_400.0
    code: str | None = None
    inputs: Sequence[str] = ()
    ignored: Sequence[str] = ()
    missing_is_fine: bool = False
    is_steady: bool = False
    command: Sequence[str] = ()
    terms: Terms | None = None

    def check(self) -> None:
        """Raises InvalidQueryError."""
        for name, text in (("job", self.job), ("wave", self.wave), ("code", self.code)):
            if text is not None and not 0 < len(text.strip()) <= _MOST_CHARACTERS:
                raise InvalidQueryError(f"the {name} has 1 to {_MOST_CHARACTERS} characters, not {len(text)}")
        if not self.at_least_every_s > 0:
            raise InvalidQueryError("the longest time between two runs is above 0: 24h, or 7d")
        for path in (*self.inputs, *self.ignored):
            if not path.strip() or "\0" in path:
                raise InvalidQueryError(f"{path!r} names no input")
        if self.terms is not None:
            self.terms.check()


def seconds_of(text: str) -> float:
    """Of a length of time as `30m`, `24h` or `7d`. Raises InvalidQueryError."""
    match = _AGE.fullmatch(text.strip().lower())
    if match is None or not float(match[1]):
        raise InvalidQueryError(f"{text!r} is no length of time: 90s, 30m, 24h, 7d or 2w")
    return float(match[1]) * _SECONDS[match[2]]

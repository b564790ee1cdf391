"""Under which terms a job may be skipped although something changed: the tolerated error, and how often."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lineage_service.errors import InvalidQueryError

if TYPE_CHECKING:
    from lineage_service.triggering.learning.phases import Policy

__all__ = [
    "AUDIT",
    "CONFIDENCE",
    "ERROR",
    "FUNCTION",
    "HORIZON",
    "MOST_TRAINING",
    "TRAINING",
    "WITHIN",
    "Terms",
    "terms_of",
]

CONFIDENCE, ERROR, HORIZON, TRAINING, AUDIT, WITHIN = 0.95, "rows", 24, 100, 0.05, "10s"

#: Errors by their names, and whether they are of one column. Those but `rmse` are shares.
_OF_A_COLUMN = {"relative": True, "rmse": True, "class": True, "rows": False}
#: What `Terms.measure` is of an error that a user's function gives.
FUNCTION = "function"
_FUNCTION = re.compile(r"(?:[^\0\n]+\.py|[^\W\d]\w*(?:\.[^\W\d]\w*)*):[^\W\d]\w*")
_SHARES = frozenset(("relative", "rows", "class"))
MOST_TRAINING = 5_000
_MOST_HORIZON, _LEAST_TRAINING = 200, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """`bound` of the `error` (`rows`, `relative:COL`, `rmse:COL`, `class:COL`, `MODULE:FUNCTION`), kept in a
    share `confidence`.

    `keys` and `values` are columns; empty: they are chosen. `outputs`: those that are compared; empty: all.
    Of `redacted` columns no numbers are kept: they only equal or differ. `horizon`, `training` and `audit` as
    in `phases.Policy`. `within_s`: what cannot be read in so many seconds is not read.
    """

    bound: float
    confidence: float = CONFIDENCE
    error: str = ERROR
    keys: Sequence[str] = ()
    values: Sequence[str] = ()
    outputs: Sequence[str] = ()
    horizon: int = HORIZON
    training: int = TRAINING
    audit: float = AUDIT
    within_s: float = 10.0
    redacted: Sequence[str] = ()

    @property
    def measure(self) -> str:
        name = self.error.partition(":")[0]
        return FUNCTION if name not in _OF_A_COLUMN and _FUNCTION.fullmatch(self.error) else name

    @property
    def column(self) -> str | None:
        """That the error is of; None: of whole rows."""
        if self.measure == FUNCTION:
            return None
        return self.error.partition(":")[2] or None

    def check(self) -> None:
        """Raises InvalidQueryError."""
        if self.measure != FUNCTION and _OF_A_COLUMN.get(self.measure) != bool(self.column):
            raise InvalidQueryError(
                f"--error {self.error} is not known: say rows, relative:COLUMN, rmse:COLUMN, class:COLUMN or "
                "MODULE:FUNCTION"
            )
        is_share = self.measure in _SHARES
        for flag, number, is_good, says in (
            (
                "bound",
                self.bound,
                0 < self.bound < (1 if is_share else math.inf),
                "above 0 and below 1, or 0 for certain answers only" if is_share else "above 0, and finite",
            ),
            ("confidence", self.confidence, 0.5 < self.confidence < 1, "between 0.5 and 1"),
            ("horizon", self.horizon, 1 <= self.horizon <= _MOST_HORIZON, f"1 to {_MOST_HORIZON} waves"),
            (
                "training",
                self.training,
                _LEAST_TRAINING <= self.training <= MOST_TRAINING,
                f"{_LEAST_TRAINING} to {MOST_TRAINING} waves",
            ),
            ("audit", self.audit, 0 <= self.audit <= 1, "from 0 to 1"),
            ("within", self.within_s, 0 < self.within_s < math.inf, "above 0 seconds"),
        ):
            if not is_good:
                raise InvalidQueryError(f"--{flag} {number:g} is out of range: it is {says}")
        for name in (*self.keys, *self.values):
            if not name.strip():
                raise InvalidQueryError("a column without a name is no key and no value")
        for flag, name in (*(("value", name) for name in self.values), ("error", self.column or "")):
            if self.is_redacted(name) and (flag, self.measure) != ("error", "class"):
                raise InvalidQueryError(
                    f"--{flag}: the numbers of {name} are not kept, since LINEAGE_TRIGGER_REDACT names it; "
                    "say rows or class:COLUMN for an error, and other columns for values"
                )

    def is_redacted(self, column: str) -> bool:
        """Names of columns are equal in small and capital letters, as Spark has it."""
        return column.casefold() in {name.strip().casefold() for name in self.redacted}

    def policy(self) -> Policy:
        from lineage_service.triggering.learning.phases import (
            Policy,  # with numpy, which certain answers do not need
        )

        return Policy(
            bound=self.bound,
            confidence=self.confidence,
            horizon=self.horizon,
            training=self.training,
            audit=self.audit,
        )

    def digest(self) -> str:
        """Of what decides how elements and errors are measured: under other ones, training begins anew."""
        measured: tuple[object, ...] = (
            *(self.error, tuple(self.keys), tuple(self.values)),
            tuple(sorted(self.outputs)),
        )
        if self.redacted:
            measured = (*measured, tuple(sorted(name.strip().casefold() for name in self.redacted)))
        return hashlib.sha256(repr(measured).encode()).hexdigest()[:16]


def terms_of(
    *,
    bound: float | str,
    confidence: float | str = CONFIDENCE,
    error: str = ERROR,
    keys: Sequence[str] = (),
    values: Sequence[str] = (),
    outputs: Sequence[str] = (),
    horizon: int | str = HORIZON,
    training: int | str = TRAINING,
    audit: float | str = AUDIT,
    within_s: float = 10.0,
) -> Terms | None:
    """None for a bound of 0: certain answers only. Raises InvalidQueryError."""
    tolerated = _number("bound", bound, "0 for certain answers only, or the error that is tolerated, as 0.05")
    if tolerated == 0:
        return None
    terms = Terms(
        bound=tolerated,
        confidence=_number("confidence", confidence, "a share of waves, as 0.95"),
        error=error.strip(),
        keys=tuple(keys),
        values=tuple(values),
        outputs=tuple(outputs),
        horizon=int(_number("horizon", horizon, "a number of waves")),
        training=int(_number("training", training, "a number of waves")),
        audit=_number("audit", audit, "a share of skips, as 0.05"),
        within_s=within_s,
    )
    terms.check()
    return terms


def _number(flag: str, text: float | str, says: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise InvalidQueryError(f"--{flag} {text} is no number: it is {says}")
    return number

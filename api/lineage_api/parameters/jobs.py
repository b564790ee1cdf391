"""Parameters of a decision whether to run a job."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from pydantic import Field

from lineage_api.parameters.fields import NAME, Expression, Parameters
from lineage_service.errors import InvalidQueryError
from lineage_service.queries import column_names
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
from lineage_service.triggering.waves.question import DEFAULT_AGE, Question, seconds_of

__all__ = ["DecisionParameters", "JobName"]

_MAX_NAME = 500
_MOST_SECONDS = 60.0

JobName = Annotated[
    str,
    Path(
        examples=["nightly"],
        description="Its `spark.lineage.job`, or the name of its applications.",
        min_length=1,
        max_length=_MAX_NAME,
        pattern=f"^{NAME}$",
    ),
]
_Word = Annotated[str, Field(min_length=1, max_length=_MAX_NAME, pattern=f"^{NAME}$")]


class DecisionParameters(Parameters):
    """Paths to look at are no parameters: who asks over the network chooses no files of this machine."""

    wave: _Word | None = Field(
        default=None,
        description="The scheduler's id of this run: asked again, it has the same answer. Default: the time.",
        examples=["scheduled__2026-11-27"],
    )
    at_least_every: _Word = Field(
        default=DEFAULT_AGE, description="Run if the last execution began so long ago.", examples=["24h"]
    )
    code: _Word | None = Field(
        default=None, description="The version of the code, instead of its files.", examples=["v12"]
    )
    ignore_inputs: Expression | None = Field(
        default=None,
        description="Inputs to leave out, separated by commas: paths, tables, or operations.",
        examples=["parallelize"],
    )
    deterministic: bool = Field(
        default=False, description="`true`: the output depends on inputs and code alone.", examples=[True]
    )
    missing_is_fine: bool = Field(
        default=False, description="`true`: the output of a wave may be missing.", examples=[True]
    )

    bound: Annotated[float, Field(ge=0, le=1e300, allow_inf_nan=False)] = Field(
        default=0.0,
        description="The tolerated error of the output. 0: skip what has not changed at all.",
        examples=[0.05],
    )
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = Field(
        default=CONFIDENCE, description="The share of waves that keep the bound.", examples=[0.95]
    )
    error: _Word = Field(
        default=ERROR,
        description="`rows` (the share of the output's rows that differ), `relative:COL`, `rmse:COL` or "
        "`class:COL`.",
        examples=["relative:amount"],
    )
    key: Expression | None = Field(
        default=None,
        description="The columns that tell rows apart, separated by commas. Default: found.",
        examples=["shop"],
    )
    value: Expression | None = Field(
        default=None,
        description="The numbers of the inputs to look at, separated by commas. Default: found.",
        examples=["amount"],
    )
    output: Expression | None = Field(
        default=None,
        description="Compare these outputs only, separated by commas. Default: all.",
        examples=["sums"],
    )
    horizon: Annotated[int, Field(ge=1, le=200)] = Field(
        default=HORIZON, description="Run where the last execution is more changes ago.", examples=[24]
    )
    training: Annotated[int, Field(ge=3, le=5_000)] = Field(
        default=TRAINING, description="Run so many waves before the first test.", examples=[100]
    )
    audit: Annotated[float, Field(ge=0, le=1)] = Field(
        default=AUDIT, description="Run this share of skips all the same.", examples=[0.05]
    )
    within: _Word = Field(default=WITHIN, description="Read rows for so long at most.", examples=["10s"])

    def question(self, job: str) -> Question:
        """Raises InvalidQueryError."""
        question = Question(
            job=job,
            wave=self.wave,
            at_least_every_s=seconds_of(self.at_least_every),
            code=self.code,
            ignored=_names(self.ignore_inputs),
            is_steady=self.deterministic,
            missing_is_fine=self.missing_is_fine,
            terms=terms_of(
                bound=self.bound,
                confidence=self.confidence,
                error=self.error,
                keys=_names(self.key),
                values=_names(self.value),
                outputs=_names(self.output),
                horizon=self.horizon,
                training=self.training,
                audit=self.audit,
                within_s=min(seconds_of(self.within), _MOST_SECONDS),
            ),
        )
        question.check()
        if question.terms is not None and question.terms.measure == FUNCTION:
            raise InvalidQueryError(
                f"error {self.error!r} is not known here: say rows, relative:COL, rmse:COL or class:COL. A "
                "function of yours is for the command and for Python: over HTTP nobody names code to run"
            )
        return question


def _names(text: str | None) -> tuple[str, ...]:
    return () if text is None else column_names(text)

"""Parameters of a decision whether to run a job."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from pydantic import Field

from lineage_api.parameters.fields import NAME, Expression, Parameters
from lineage_service.queries import column_names
from lineage_service.triggering.question import DEFAULT_AGE, Question, seconds_of

__all__ = ["DecisionParameters", "JobName"]

_MAX_NAME = 500

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

    def question(self, job: str) -> Question:
        """Raises InvalidQueryError."""
        question = Question(
            job=job,
            wave=self.wave,
            at_least_every_s=seconds_of(self.at_least_every),
            code=self.code,
            ignored=() if self.ignore_inputs is None else column_names(self.ignore_inputs),
            is_steady=self.deterministic,
            missing_is_fine=self.missing_is_fine,
        )
        question.check()
        return question

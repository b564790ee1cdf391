"""Applications: how they are, and why they failed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from lineage_service.lineage.results import Result, doc

ApplicationState = Literal["running", "ended", "failed", "lost"]
ActionState = Literal["complete", "failed", "aborted"]
#: What a field of the type ApplicationState means.
STATE = doc(
    "`running`, `ended` (successfully), `failed`, or `lost`: its driver has been silent for five minutes."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeError(Result):
    """Why an action failed."""

    type: str = field(metadata=doc("Class of the error."))
    message: str = field(metadata=doc("The first line of its message, redacted like values."))
    frame: str | None = field(
        default=None, metadata=doc("File and line of the job that raised it, if known.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationError(Result):
    """Why an application failed."""

    type: str = field(metadata=doc("Class of the error; `SystemExit` for an exit with a code."))
    message: str = field(metadata=doc("The first line of its message, redacted like values."))
    frame: str | None = field(
        default=None, metadata=doc("File and line of the job that raised it, if known.")
    )
    node_id: str | None = field(default=None, metadata=doc("The action that failed, if one did."))
    name: str | None = field(default=None, metadata=doc("The operation of that action."))
    call_site: str | None = field(default=None, metadata=doc("File and line of the job that called it."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Application(Result):
    """One Spark application."""

    application_id: str = field(metadata=doc("Spark's `applicationId`."))
    name: str = field(metadata=doc("Spark's `spark.app.name`."))
    job: str | None = field(
        default=None,
        metadata=doc(
            "Its `spark.lineage.job`, if it has one; else it is of the job of its name.", omit_none=True
        ),
    )
    state: ApplicationState = field(metadata=STATE)
    started: int = field(metadata=doc("Unix time in milliseconds."))
    ended: int | None = field(metadata=doc("Unix time in milliseconds; null while it runs."))
    complete: bool = field(
        metadata=doc("It ended, everything that it announced is stored, and nothing was left out of capture.")
    )
    missing_blocks: int = field(
        metadata=doc("Blocks that committed task runs announced and that have not arrived.")
    )
    counters: dict[str, int] = field(
        metadata=doc(
            "`runs`, `blocks`, `flows`, `events`, `dropped`, `missing_runs`, `missing_events`, `gaps` (what"
            " was not followed), `lost_rows`; `failed_runs`: attempts of tasks that failed, as reported; "
            "`spooled`: missing blocks that wait on a disk to be delivered; "
            "keys and values that were `cut` to their maximum length, or "
            "`withheld` because the redaction function failed; and what the agent reported."
        )
    )
    missing: str = field(default="", metadata=doc("What is missing, for people; empty if it is complete."))
    error: ApplicationError | None = field(
        default=None, metadata=doc("Error of a failed application, else null.")
    )
    replay_of: str | None = field(
        default=None,
        metadata=doc("Of a replay: the application that it ran again.", omit_none=True),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Applications(Result):
    """One page of the applications."""

    applications: tuple[Application, ...] = field(metadata=doc("Newest first."))
    next: str | None = field(metadata=doc("`cursor` of the next page; null on the last."))

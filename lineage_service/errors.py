"""The errors that every part of the service raises. Their messages are for people. Knows nothing of HTTP."""

from __future__ import annotations


class LineageError(Exception):
    """The base of the service's errors."""


class NotFoundError(LineageError):
    """The application, node, record or file row does not exist (HTTP 404)."""


class NothingMatchesError(NotFoundError):
    """No row fulfils a condition; the text says what was looked at."""


class UnknownApplicationError(NotFoundError):
    """No application has that id."""

    def __init__(self, application_id: str, where: str = "") -> None:
        super().__init__(f"no application {application_id} is known" + (f" in {where}" if where else ""))
        self.application_id = application_id


class InvalidQueryError(LineageError):
    """The query is invalid or ambiguous (HTTP 422)."""


class TimeBudgetError(LineageError):
    """The time budget of the query is spent (HTTP 504).

    `next` is the cursor of what a trace has found so far, if it has found anything.
    """

    next: str | None = None


class UnavailableError(LineageError):
    """A store does not answer (HTTP 503)."""

"""The errors that every part of the service raises; their texts are for people. Knows nothing of HTTP."""

from __future__ import annotations


class LineageError(Exception):
    """What every part of the service raises; the text is for people."""


class NotFoundError(LineageError):
    """The application, node, record or file row is not there (HTTP 404)."""


class UnknownApplicationError(NotFoundError):
    """No application has that id."""

    def __init__(self, application_id: str, where: str = "") -> None:
        super().__init__(f"no application {application_id} is known" + (f" in {where}" if where else ""))
        self.application_id = application_id


class InvalidQueryError(LineageError):
    """The question cannot be understood or is ambiguous (HTTP 422)."""


class TimeBudgetError(LineageError):
    """The time budget of the question is spent (HTTP 504).

    `next` is a cursor behind which is what a trace has found so far, if it has found anything.
    """

    next: str | None = None


class UnavailableError(LineageError):
    """A store does not answer (HTTP 503)."""

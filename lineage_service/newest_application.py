"""`last`: the word for the newest application, at a terminal and over HTTP.

An application that is really called so wins: programs of one's own choose their ids.
"""

from __future__ import annotations

from lineage_service.errors import NotFoundError
from lineage_service.queries import Queries

__all__ = ["LAST", "NoApplicationError", "application_named"]

LAST = "last"


class NoApplicationError(NotFoundError):
    """The store holds no application, so none is the newest."""


def application_named(queries: Queries, name: str) -> str:
    """The application id that is meant. Only `last` is looked up. Raises NoApplicationError."""
    if name != LAST:
        return name
    applications = queries.applications()
    if not applications:
        raise NoApplicationError(
            "the flow store holds no application yet: run a job with lineage, and `lineage consume`"
        )
    is_taken = any(application.application_id == LAST for application in applications)
    return LAST if is_taken else applications[0].application_id

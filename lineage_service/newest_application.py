"""`last`: the word for the newest application that is no replay, at a terminal and over HTTP.

An application that is really called so wins: programs of one's own choose their ids.
"""

from __future__ import annotations

from lineage_service.errors import NotFoundError, UnknownApplicationError
from lineage_service.queries import Queries

__all__ = ["LAST", "NoApplicationError", "application_named", "has_application"]

LAST = "last"


class NoApplicationError(NotFoundError):
    """The store holds no application, so none is the newest."""


def application_named(queries: Queries, name: str) -> str:
    """The application id that is meant. Only `last` is looked up. Raises NoApplicationError."""
    if name != LAST:
        return name
    if has_application(queries, LAST):
        return LAST
    newest = next((app for app in queries.newest_applications() if app.replay_of is None), None)
    if newest is None:
        raise NoApplicationError(
            "the flow store holds no application yet: run a job with lineage, and `lineage consume`"
        )
    return newest.application_id


def has_application(queries: Queries, application_id: str) -> bool:
    try:
        queries.application(application_id)
    except UnknownApplicationError:
        return False
    return True

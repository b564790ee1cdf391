"""A page of the applications, of all or of some: over HTTP and at a terminal. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import Application, Applications

__all__ = ["applications_page", "is_no_replay", "named"]

_CURSOR = re.compile(r"(-?[0-9]{1,18}):(.+)", re.ASCII | re.DOTALL)


def applications_page(
    newest_first: Iterable[Application],
    limit: int,
    cursor: str | None = None,
    matches: Callable[[Application], bool] = lambda _: True,
) -> Applications:
    """Those behind the cursor, `STARTED:ID`. No more are taken than the page needs, and one.

    One that starts meanwhile moves no page. Raises InvalidQueryError.
    """
    last = None if cursor is None else _place_of(cursor)
    page: list[Application] = []
    for application in newest_first:
        if last is not None and (-application.started, application.application_id) <= last:
            continue
        if not matches(application):
            continue
        if len(page) == limit:
            end = page[-1]
            return Applications(applications=tuple(page), next=f"{end.started}:{end.application_id}")
        page.append(application)
    return Applications(applications=tuple(page), next=None)


def _place_of(cursor: str) -> tuple[int, str]:
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidQueryError(f"cursor {cursor!r} was not given by a list of applications")
    return -int(match[1]), match[2]


def named(text: str | None) -> Callable[[Application], bool]:
    """Do a name or an id hold the text, in any case?"""
    folded = (text or "").casefold()
    return lambda application: (
        folded in application.name.casefold() or folded in application.application_id.casefold()
    )


def is_no_replay(application: Application) -> bool:
    """Replays of other applications are listed only where they are asked for."""
    return application.replay_of is None

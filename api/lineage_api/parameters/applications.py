"""Parameters of the list of applications, and the page of it that they mean."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from lineage_api.parameters.fields import MAX_TEXT, NAME, Limit, PageParameters, Text, cursor_field
from lineage_service.lineage import Application, Applications, ApplicationState

__all__ = ["ApplicationParameters"]


class ApplicationParameters(PageParameters):
    limit: Limit = Field(default=1000, description="At most this many applications a page.", examples=[100])
    cursor: str | None = cursor_field(
        "1732183200000:sums-of-orders", max_length=MAX_TEXT, pattern=rf"^-?[0-9]{{1,18}}:{NAME}$"
    )
    text: Text | None = Field(
        default=None,
        description="Only applications whose name or id contains this text, ignoring case.",
        examples=["orders"],
    )
    state: ApplicationState | None = Field(
        default=None, description="Only applications in this state.", examples=["ended"]
    )
    complete: bool | None = Field(
        default=None, description="`true`: only complete applications. `false`: only others.", examples=[True]
    )

    def page(self, newest_first: Sequence[Application]) -> Applications:
        """The matching applications behind the cursor. One that starts meanwhile moves no page."""
        matches = [application for application in newest_first if self._matches(application)]
        if self.cursor is not None:
            started, _, name = self.cursor.partition(":")
            last = (-int(started), name)
            matches = [
                application
                for application in matches
                if (-application.started, application.application_id) > last
            ]
        page = tuple(matches[: self.limit])
        is_last = len(matches) <= self.limit
        cursor = None if is_last else f"{page[-1].started}:{page[-1].application_id}"
        return Applications(applications=page, next=cursor)

    def _matches(self, application: Application) -> bool:
        text = (self.text or "").casefold()
        return (
            (text in application.name.casefold() or text in application.application_id.casefold())
            and self.state in (None, application.state)
            and self.complete in (None, application.complete)
        )

"""Parameters of the list of applications, and the page of it that they mean."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from lineage_api.parameters.fields import MAX_TEXT, NAME, Limit, PageParameters, Text, cursor_field
from lineage_service.application_pages import applications_page, is_no_replay, named
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

    replays: bool = Field(
        default=False, description="`true`: also replays of other applications.", examples=[True]
    )

    def page(self, newest_first: Iterable[Application]) -> Applications:
        """The matching applications behind the cursor. One that starts meanwhile moves no page."""
        return applications_page(newest_first, self.limit, self.cursor, self._matches)

    def _matches(self, application: Application) -> bool:
        return (
            named(self.text)(application)
            and (self.replays or is_no_replay(application))
            and self.state in (None, application.state)
            and self.complete in (None, application.complete)
        )

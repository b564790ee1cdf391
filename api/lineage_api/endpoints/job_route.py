"""Routes below the name of a job, which may have slashes: any text that an application is called by.

A slash of a name is sent as `%2F`. Servers decode a path before it is matched, so then it would divide two
parts of the path. Here the path is matched as it was sent, and only its parts are decoded.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

__all__ = ["JobRoute"]

_SLASH = b"%2f"


class JobRoute(APIRoute):
    """A slash that was sent as `%2F` belongs to a parameter. Paths without one are matched as everywhere."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        sent = scope.get("raw_path") or b""
        if _SLASH not in sent.lower():
            return super().matches(scope)
        parts = (quote(unquote(part), safe="") for part in sent.decode("latin-1").split("/"))
        match, child = super().matches({**scope, "path": "/".join(parts)})
        if match is not Match.NONE:
            decoded = {name: unquote(value) for name, value in child["path_params"].items()}
            child = {**child, "path_params": decoded}
        return match, child

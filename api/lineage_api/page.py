"""The page's files over HTTP, with headers that forbid a browser to load anything from elsewhere.

Serves the page's folder and nothing else. If the page is not built, a text says so in its place.
"""

from __future__ import annotations

from os import PathLike, stat_result
from pathlib import Path

from fastapi import FastAPI
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

__all__ = ["HEADERS", "NOT_BUILT", "add_page"]

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",  # revalidate: the files change with the service's version
}
NOT_BUILT = """This installation of Lineage Master has no web page.
Install a wheel from `make wheel`, or run `make page` in a clone. Both need Node.js 20.19 or later.
The API works without the page: its documentation is at /docs.
"""


def add_page(app: FastAPI, folder: Path) -> None:
    """Serve `index.html` of the folder at `/`, and the files of its folder `static` under `/static`."""
    index = folder / "index.html"

    async def page() -> Response:
        if not index.is_file():
            return PlainTextResponse(NOT_BUILT, headers=HEADERS)
        return FileResponse(index, headers=HEADERS)

    app.add_api_route("/", page, methods=["GET", "HEAD"], include_in_schema=False)
    app.mount("/static", _Files(directory=folder / "static", check_dir=False), name="static")


class _Files(StaticFiles):
    def file_response(
        self,
        full_path: str | PathLike[str],
        stat_result: stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers.update(HEADERS)
        return response

"""The application: endpoints, problems and the page put together.

Holds no state but the questions that it was given; two of them may run in one process. Other sites' pages can
neither read answers nor start a write, unless `access` names them. Before an endpoint sees a request it
passes, in this order: the origins (CORS), the problems, the limits, the door (host names, token).
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware

from lineage_api import problems
from lineage_api.access import Access, Door
from lineage_api.endpoints import LookAtLag, Materialize, Tag, router
from lineage_api.etags import CodedTags
from lineage_api.limits import Gate, HeadAsGet, Limits
from lineage_api.openapi import completed
from lineage_api.page import add_page
from lineage_page import built_folder
from lineage_service.queries import Queries

__all__ = ["VERSION", "Api", "create_app"]

#: Version of the API, not of the package: it changes when the shapes below /api do.
VERSION = "1.0.0"

#: Of nine levels: beyond it, JSON gets smaller by a few percent and takes several times as long.
_COMPRESSION = 5

#: What pages of other sites may read beside the answer, where they may read that.
_EXPOSED = [
    *("ETag", "Link", "Retry-After", "WWW-Authenticate"),
    *("Lineage-Complete", "Lineage-Exact", "Lineage-Next", "Lineage-Total", "Lineage-Truncated"),
    "Lineage-Warning",
]

_DESCRIPTION = """Which input rows made this output row? Where did this input row end up?

Errors are problem details (RFC 9457) everywhere. Node ids contain `#`: write `%23` in URLs."""


class Api(FastAPI):
    """FastAPI with an OpenAPI document that is completed (openapi.py)."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            completed(super().openapi(), is_locked=self.state.is_locked)
        return super().openapi()


def create_app(
    questions: Queries,
    *,
    materialize: Materialize | None = None,
    lag: LookAtLag | None = None,
    metrics: CollectorRegistry | None = None,
    tag: Tag | None = None,
    access: Access | None = None,
    at_once: int = 8,
    wait_s: float = 30.0,
) -> FastAPI:
    """The API over `questions`, with the page at `/` and the documentation at `/docs`.

    Without `materialize` there is no Neo4j: asking for it is a 503. So is asking for the lag without `lag`.
    Without `metrics` there is nothing at `/metrics`, without `tag` no answer has an ETag, without `access`
    everybody may ask. `at_once` questions are answered at a time; others wait for `wait_s` at most.
    """
    access = access or Access()
    app = Api(
        title="Lineage Master",
        version=VERSION,
        description=_DESCRIPTION,
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.questions = questions
    app.state.materialize = materialize
    app.state.lag = lag
    app.state.metrics = metrics
    app.state.tag = tag
    app.state.origins = access.origins
    app.state.is_locked = access.token is not None
    # The last one is the outermost.
    app.add_middleware(Gate, at_once=at_once, wait_s=wait_s)
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=_COMPRESSION)
    app.add_middleware(CodedTags)
    app.add_middleware(HeadAsGet)
    app.add_middleware(Door, access=access)
    app.add_middleware(Limits)
    problems.add_problem_handlers(app)
    if access.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=access.origins,
            allow_methods=["GET", "HEAD", "POST"],
            allow_headers=["Authorization", "If-None-Match", "X-API-Key"],
            expose_headers=_EXPOSED,
        )
    app.include_router(router)
    add_page(app, built_folder())
    return app

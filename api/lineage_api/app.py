"""The application: endpoints, problems and the page put together.

Its only state is the queries that it gets, so two applications may run in one process. Pages of other sites
can neither read results nor start a write, unless `access` names them. A request passes, in this order: the
origins (CORS), the problems, the request limits, authentication (host name, token), HEAD as GET, the ETags,
the compression, the concurrency limiter.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware

from lineage_api import problems
from lineage_api.access import Access, AuthMiddleware
from lineage_api.dependencies import ETagOf, Jobs, MaterializeTrace, ReadLag, ReadReplays
from lineage_api.endpoints import ROUTERS
from lineage_api.etags import CompressedETags
from lineage_api.limits import ConcurrencyLimiter, HeadAsGet, RequestLimits
from lineage_api.openapi import completed
from lineage_api.page import add_page
from lineage_page import built_folder
from lineage_service.lineage import Replays
from lineage_service.queries import Queries

__all__ = ["VERSION", "Api", "create_app"]

#: Version of the API, not of the package: it changes when the shapes below /api do.
VERSION = "1.0.0"

#: Of nine levels: beyond it, JSON gets smaller by a few percent and takes several times as long.
_COMPRESSION = 5

#: Headers that pages of other sites may read, if they may read the result.
_EXPOSED = [
    *("ETag", "Link", "Retry-After", "WWW-Authenticate"),
    *("Lineage-Complete", "Lineage-Exact", "Lineage-Next", "Lineage-Total", "Lineage-Truncated"),
    "Lineage-Warning",
]

_DESCRIPTION = """Which input rows made this output row? Where did this input row end up?

Errors are problem details (RFC 9457) everywhere. Node ids contain `#`: write `%23` in URLs."""


class Api(FastAPI):
    """FastAPI with a completed OpenAPI document (openapi.py)."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            completed(super().openapi(), is_locked=self.state.is_locked)
        return super().openapi()


def create_app(
    queries: Queries,
    *,
    materialize: MaterializeTrace | None = None,
    read_lag: ReadLag | None = None,
    read_replays: ReadReplays | None = None,
    jobs: Jobs | None = None,
    metrics: CollectorRegistry | None = None,
    etag_of: ETagOf | None = None,
    access: Access | None = None,
    max_queries: int = 8,
    wait_s: float = 30.0,
) -> FastAPI:
    """The API over `queries`, with the page at `/` and the documentation at `/docs`.

    Without `materialize` there is no Neo4j, and writing to it is a 503; so is the lag without `read_lag`, and
    a decision without `jobs`. Without `read_replays`, no application has replays. Without `metrics`,
    `/metrics` is a 404. Without `etag_of`, no result has an ETag. Without `access`, every request is allowed.
    At most `max_queries` run at a time; others wait for at most `wait_s`.
    """
    access = access or Access()
    app = Api(
        title="Lineage Master",
        version=VERSION,
        description=_DESCRIPTION,
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.queries = queries
    app.state.materialize = materialize
    app.state.read_lag = read_lag
    app.state.read_replays = read_replays or _no_replays
    app.state.jobs = jobs
    app.state.metrics = metrics
    app.state.etag_of = etag_of
    app.state.origins = access.origins
    app.state.is_locked = access.token is not None
    # The last one is the outermost.
    app.add_middleware(ConcurrencyLimiter, max_queries=max_queries, wait_s=wait_s)
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=_COMPRESSION)
    app.add_middleware(CompressedETags)
    app.add_middleware(HeadAsGet)
    app.add_middleware(AuthMiddleware, access=access)
    app.add_middleware(RequestLimits)
    problems.add_problem_handlers(app)
    if access.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=access.origins,
            allow_methods=["GET", "HEAD", "POST"],
            allow_headers=["Authorization", "If-None-Match", "X-API-Key"],
            expose_headers=_EXPOSED,
        )
    for router in ROUTERS:
        app.include_router(router)
    add_page(app, built_folder())
    return app


def _no_replays(application_id: str) -> Replays:
    return Replays(application_id=application_id, replays=(), influences=(), sifts=())

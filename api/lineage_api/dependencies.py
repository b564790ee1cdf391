"""The dependencies of endpoints (`fastapi.Depends`): queries, optional stores, checks of a request.

Knows nothing of what an endpoint answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Protocol, cast

from fastapi import Depends, Header, Request, Response
from fastapi.exceptions import RequestValidationError
from prometheus_client import CollectorRegistry
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from lineage_api.parameters import ApplicationId
from lineage_service import lineage
from lineage_service.errors import UnavailableError
from lineage_service.lineage import Lag, Materialized, Replays
from lineage_service.newest_application import LAST, application_named
from lineage_service.queries import Queries, TraceQuery
from lineage_service.triggering.waves.question import Question

__all__ = [
    "NOT_CACHED",
    "Accept",
    "ApplicationName",
    "CurrentETag",
    "ETagOf",
    "IfNoneMatch",
    "JobService",
    "Jobs",
    "LagReader",
    "MaterializeTrace",
    "Materializer",
    "MetricRegistry",
    "QueryService",
    "ReadLag",
    "ReadReplays",
    "ReplayReader",
    "own_pages_only",
    "set_no_store",
    "valid_parameter_names",
]

ETagOf = Callable[[str], str | None]
"""The entity tag of results about an application, if it is complete. Raises UnavailableError."""

MaterializeTrace = Callable[[str, TraceQuery], Materialized]
"""Writes the traced records of an application to Neo4j."""

ReadLag = Callable[[], Lag]
"""Raises UnavailableError."""

ReadReplays = Callable[[str], Replays]
"""The replays of an application that this machine has."""


class Jobs(Protocol):
    """Decisions about jobs, as in `triggering.stored_jobs`."""

    def jobs(self) -> lineage.Jobs: ...

    def job(self, name: str) -> lineage.Job: ...

    def waves(self, name: str) -> lineage.Waves: ...

    def decide(self, question: Question) -> lineage.Trigger: ...

    def run_next(self, name: str) -> lineage.Job: ...

    def retrain(self, name: str) -> lineage.Job: ...


#: Results change while an application runs, and contain personal data.
NOT_CACHED = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
#: Of invalid parameters, and characters of their names, that a problem repeats.
_MAX_INVALID = 10
_MAX_NAME = 100


async def _queries(request: Request) -> Queries:
    return cast(Queries, request.app.state.queries)


async def _materialize(request: Request) -> MaterializeTrace:
    if request.app.state.materialize is None:
        raise UnavailableError(
            "this service has no Neo4j: set LINEAGE_NEO4J_URI, or start the local one with `lineage up`"
        )
    return cast(MaterializeTrace, request.app.state.materialize)


async def _read_lag(request: Request) -> ReadLag:
    if request.app.state.read_lag is None:
        raise UnavailableError("this service has no Kafka: set LINEAGE_KAFKA_BOOTSTRAP_SERVERS")
    return cast(ReadLag, request.app.state.read_lag)


async def _read_replays(request: Request) -> ReadReplays:
    return cast(ReadReplays, request.app.state.read_replays)


async def _jobs(request: Request) -> Jobs:
    if request.app.state.jobs is None:
        raise UnavailableError("this service decides upon no jobs: it has no flow store of its own")
    return cast(Jobs, request.app.state.jobs)


async def _metrics(request: Request) -> CollectorRegistry:
    if request.app.state.metrics is None:
        raise HTTPException(404)
    return cast(CollectorRegistry, request.app.state.metrics)


QueryService = Annotated[Queries, Depends(_queries)]
Materializer = Annotated[MaterializeTrace, Depends(_materialize)]
LagReader = Annotated[ReadLag, Depends(_read_lag)]
ReplayReader = Annotated[ReadReplays, Depends(_read_replays)]
JobService = Annotated[Jobs, Depends(_jobs)]
MetricRegistry = Annotated[CollectorRegistry, Depends(_metrics)]


async def _application(queries: QueryService, app: ApplicationId) -> str:
    """The id of the application: `last` is the newest one. Raises NotFoundError."""
    if app != LAST:  # nearly always, and then without a thread
        return app
    return await run_in_threadpool(application_named, queries, app)


ApplicationName = Annotated[str, Depends(_application)]


def _etag(request: Request, app: ApplicationName) -> str | None:
    """The ETag of results about the application; None if there is none."""
    etag_of = cast("ETagOf | None", request.app.state.etag_of)
    return None if etag_of is None else etag_of(app)


CurrentETag = Annotated[str | None, Depends(_etag)]
Accept = Annotated[str | None, Header(include_in_schema=False)]
IfNoneMatch = Annotated[str | None, Header(include_in_schema=False)]


async def own_pages_only(
    request: Request,
    sec_fetch_site: Annotated[str | None, Header(include_in_schema=False)] = None,
    origin: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> None:
    """Refuses a change that a page of another site requests."""
    # Browsers send a form of any site to us without asking (no CORS preflight), but they say so.
    if sec_fetch_site in ("cross-site", "same-site") and origin not in request.app.state.origins:
        raise HTTPException(403, "pages of other sites may not change anything here")


async def valid_parameter_names(request: Request) -> None:
    """Refuses parameters that are unknown or repeated, so that none of them is silently ignored."""
    names = [name for name, _ in request.query_params.multi_items()]
    if not names:
        return
    operation = request.app.openapi()["paths"][request.scope["route"].path_format][request.method.lower()]
    allowed = [
        parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "query"
    ]
    errors = []
    for name in dict.fromkeys(names):
        if name not in allowed:
            which_has = f"which has {', '.join(allowed)}" if allowed else "which has none"
            errors.append((name, f"is not a parameter of this endpoint, {which_has}"))
        elif names.count(name) > 1:
            errors.append((name, "occurs more than once"))
    if errors:
        raise RequestValidationError(
            [{"loc": ("query", name[:_MAX_NAME]), "msg": message} for name, message in errors[:_MAX_INVALID]]
        )


async def set_no_store(response: Response) -> None:
    """Tells clients not to store the result."""
    response.headers.update(NOT_CACHED)

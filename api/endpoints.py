"""The endpoints: each turns a request into one question and the answer into its model.

Questions block, so the endpoints are plain functions, which FastAPI runs in threads. Knows nothing of how
errors look (problems.py) or of where answers come from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from prometheus_client import CollectorRegistry
from starlette.exceptions import HTTPException

from api import models, table
from api.parameters import ApplicationId, NodeName, RecordParameters, TraceParameters, ValueParameters
from api.problems import Problem
from lineage_service.answers import Lag, Materialized, Questions, TraceQuery, UnavailableError
from lineage_service.metrics import TEXT_FORMAT, exposition

__all__ = ["LookAtLag", "Materialize", "router"]

Materialize = Callable[[str, TraceQuery], Materialized]
"""Puts the traced records of an application into Neo4j."""

LookAtLag = Callable[[], Lag]
"""Raises UnavailableError."""

_TEXTS = {
    403: "A page of another site asked.",
    404: "The application, node, record or row is not there.",
    422: "A parameter is not valid, or the question is ambiguous.",
    500: "The service failed; its log says why.",
    503: "A store does not answer.",
    504: "The time budget of the question is spent.",
}
_STALE = {"Cache-Control": "no-store"}  # answers change while an application runs, and hold people's data


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Problem, "description": _TEXTS[status]} for status in statuses}


def _csv(columns: tuple[str, ...]) -> dict[int | str, dict[str, Any]]:
    content = {table.MEDIA_TYPE: {"schema": {"type": "string"}, "example": ",".join(columns) + "\r\n"}}
    return {200: {"content": content, "description": "JSON, or CSV with `Accept: text/csv`."}}


async def _questions(request: Request) -> Questions:
    return cast(Questions, request.app.state.questions)


async def _materialize(request: Request) -> Materialize:
    if request.app.state.materialize is None:
        raise UnavailableError(
            "this service has no Neo4j: set LINEAGE_NEO4J_URI, or start one with lineage up"
        )
    return cast(Materialize, request.app.state.materialize)


async def _look_at_lag(request: Request) -> LookAtLag:
    if request.app.state.lag is None:
        raise UnavailableError("this service knows no Kafka: set LINEAGE_KAFKA_BOOTSTRAP_SERVERS")
    return cast(LookAtLag, request.app.state.lag)


async def _metrics(request: Request) -> CollectorRegistry:
    if request.app.state.metrics is None:
        raise HTTPException(404)
    return cast(CollectorRegistry, request.app.state.metrics)


async def _own_page(sec_fetch_site: Annotated[str | None, Header(include_in_schema=False)] = None) -> None:
    # Browsers send a form of any site to us without asking (no CORS preflight), but they say so.
    if sec_fetch_site in ("cross-site", "same-site"):
        raise HTTPException(403, "another site's page may not change anything here")


async def _no_store(response: Response) -> None:
    response.headers.update(_STALE)


Asked = Annotated[Questions, Depends(_questions)]
Accept = Annotated[str | None, Header(include_in_schema=False)]

router = APIRouter(dependencies=[Depends(_no_store)])


@router.get("/api/applications", tags=["applications"], responses=_problems(500, 503, 504))
def list_applications(questions: Asked) -> models.Applications:
    """All applications, newest first."""
    return models.Applications.model_validate({"applications": questions.applications()})


@router.get("/api/applications/{app}", tags=["applications"], responses=_problems(404, 422, 500, 503, 504))
def get_application(questions: Asked, app: ApplicationId) -> models.Application:
    """One application: its state, whether its lineage is complete, and its counters."""
    return models.Application.model_validate(questions.application(app))


@router.get(
    "/api/applications/{app}/graph", tags=["applications"], responses=_problems(404, 422, 500, 503, 504)
)
def get_graph(questions: Asked, app: ApplicationId) -> models.Graph:
    """The application's operations and what they send each other, with counts."""
    return models.Graph.model_validate(questions.graph(app))


@router.get(
    "/api/applications/{app}/nodes/{node}/records",
    tags=["records"],
    response_model=models.RecordPage,
    responses=_csv(table.RECORD_COLUMNS) | _problems(404, 422, 500, 503, 504),
)
def list_records(
    questions: Asked,
    app: ApplicationId,
    node: NodeName,
    parameters: Annotated[RecordParameters, Query()],
    response: Response,
    accept: Accept = None,
) -> models.RecordPage | Response:
    """The records of one node, page by page."""
    page = questions.records(app, parameters.query(node))
    if table.prefers_csv(accept):
        return _not_stored(table.records_as_csv(page))
    response.headers["Vary"] = "Accept"
    return models.RecordPage.model_validate(page)


@router.get(
    "/api/applications/{app}/trace",
    tags=["traces"],
    response_model=models.Trace,
    responses=_csv(table.TRACE_COLUMNS) | _problems(404, 422, 500, 503, 504),
)
def trace(
    questions: Asked,
    app: ApplicationId,
    parameters: Annotated[TraceParameters, Query()],
    response: Response,
    accept: Accept = None,
) -> models.Trace | Response:
    """What a record came from (`backward`) or what became of it (`forward`).

    Give one start: `record`, or `node` with `partition` and `offset`, or `node` with `key`, or `path` with
    `row`.
    `complete`, `exact` and `truncated` say how far the answer can be relied on.
    """
    answer = questions.trace(app, parameters.query())
    if table.prefers_csv(accept):
        return _not_stored(table.trace_as_csv(answer))
    response.headers["Vary"] = "Accept"
    return models.Trace.model_validate(answer)


@router.post(
    "/api/applications/{app}/trace/graph",
    tags=["traces"],
    dependencies=[Depends(_own_page)],
    responses=_problems(403, 404, 422, 500, 503, 504),
)
def put_trace_into_neo4j(
    materialize: Annotated[Materialize, Depends(_materialize)],
    app: ApplicationId,
    parameters: Annotated[TraceParameters, Query()],
) -> models.Materialized:
    """Put the records of a trace into Neo4j, for its Browser. Doing it again adds nothing."""
    return models.Materialized.model_validate(materialize(app, parameters.query()))


@router.get("/api/applications/{app}/values", tags=["records"], responses=_problems(404, 422, 500, 503, 504))
def get_values(
    questions: Asked, app: ApplicationId, parameters: Annotated[ValueParameters, Query()]
) -> models.Values:
    """What one record looked like on its way, where values were captured."""
    return models.Values.model_validate(questions.values(app, parameters.record, parameters.node))


@router.get("/api/lag", tags=["service"], responses=_problems(500, 503))
def get_lag(look: Annotated[LookAtLag, Depends(_look_at_lag)]) -> models.Lag:
    """How far the stores are behind: messages and seconds that wait, rates, and what applications lack.

    Rates need an earlier look: ask again.
    """
    return models.Lag.model_validate(look())


@router.get("/healthz", tags=["service"])
async def check_health() -> models.Health:
    """The process answers."""
    return models.Health(status="ok")


@router.get("/readyz", tags=["service"], responses=_problems(500, 503, 504))
def check_readiness(questions: Asked) -> models.Health:
    """The stores answer too."""
    questions.applications()
    return models.Health(status="ok")


@router.get(
    "/metrics",
    tags=["service"],
    response_class=Response,
    responses={
        200: {"content": {TEXT_FORMAT: {"schema": {"type": "string"}}}, "description": "Prometheus' text."},
        404: {"model": Problem, "description": "Metrics are switched off."},
        **_problems(500),
    },
)
def get_metrics(registry: Annotated[CollectorRegistry, Depends(_metrics)], accept: Accept = None) -> Response:
    """What Prometheus scrapes: the lag of the consumer group, incomplete applications, this process."""
    text, media_type = exposition(registry, accept)
    # Not `media_type=`, which would add a second charset.
    return _not_stored(Response(text, headers={"Content-Type": media_type}))


def _not_stored(response: Response) -> Response:
    response.headers.update(_STALE)
    return response

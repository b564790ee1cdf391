"""The endpoints: each turns a request into one question and the answer into its model.

Questions block, so the endpoints are plain functions, which FastAPI runs in threads. Knows nothing of how
errors look (problems.py) or of where answers come from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, cast
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from prometheus_client import CollectorRegistry
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from lineage_api import csv
from lineage_api.etags import CACHEABLE, is_held
from lineage_api.parameters import (
    ApplicationId,
    ApplicationParameters,
    NodeName,
    RecordParameters,
    TraceParameters,
    ValueParameters,
)
from lineage_api.problems import Problem
from lineage_service import lineage
from lineage_service.errors import UnavailableError
from lineage_service.lineage import Lag, Materialized, doc
from lineage_service.monitoring.metrics import TEXT_FORMAT, exposition
from lineage_service.newest import LAST, application_named
from lineage_service.queries import Queries, TraceQuery
from lineage_service.result_json import json_bytes

__all__ = ["LookAtLag", "Materialize", "router"]

Tag = Callable[[str], str | None]
"""The entity tag of answers about an application, if it is complete. Raises UnavailableError."""

Materialize = Callable[[str, TraceQuery], Materialized]
"""Puts the traced records of an application into Neo4j."""

LookAtLag = Callable[[], Lag]
"""Raises UnavailableError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health(lineage.Result):
    """What a probe asks for."""

    status: Literal["ok"] = field(default="ok", metadata=doc("Always `ok`; anything else is a problem."))


_TEXTS = {
    403: "A page of another site asked.",
    404: "The application, node, record or row is not there.",
    500: "The service failed; its log says why.",
    503: "A store does not answer.",
    504: "The time budget of the question is spent.",
}
#: Answers change while an application runs, and hold people's data.
_STALE = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_MAX_NAMED = 10
_MAX_NAME = 100


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Problem, "description": _TEXTS[status]} for status in statuses}


_NOT_MODIFIED: dict[int | str, dict[str, Any]] = {
    304: {"description": "The client holds this answer (`If-None-Match`)."}
}


def _csv() -> dict[int | str, dict[str, Any]]:
    content = {csv.MEDIA_TYPE: {"schema": {"type": "string"}}}
    return {200: {"content": content, "description": "JSON, or CSV with `Accept: text/csv`."}}


async def _questions(request: Request) -> Queries:
    return cast(Queries, request.app.state.questions)


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


async def _own_page(
    request: Request,
    sec_fetch_site: Annotated[str | None, Header(include_in_schema=False)] = None,
    origin: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> None:
    # Browsers send a form of any site to us without asking (no CORS preflight), but they say so.
    if sec_fetch_site in ("cross-site", "same-site") and origin not in request.app.state.origins:
        raise HTTPException(403, "another site's page may not change anything here")


async def _known_parameters(request: Request) -> None:
    """Refuses parameters that the endpoint has not, or that are there twice: none is left out in silence."""
    given = [name for name, _ in request.query_params.multi_items()]
    if not given:
        return
    operation = request.app.openapi()["paths"][request.scope["route"].path_format][request.method.lower()]
    known = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]
    wrong = []
    for name in dict.fromkeys(given):
        if name not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            wrong.append((name, f"is no parameter of this endpoint; {has}"))
        elif given.count(name) > 1:
            wrong.append((name, "is given more than once"))
    if wrong:
        raise RequestValidationError(
            [{"loc": ("query", name[:_MAX_NAME]), "msg": why} for name, why in wrong[:_MAX_NAMED]]
        )


async def _no_store(response: Response) -> None:
    response.headers.update(_STALE)


Asked = Annotated[Queries, Depends(_questions)]


async def _application(questions: Asked, app: ApplicationId) -> str:
    """The application that is meant: `last` is the newest. Raises NotFoundError."""
    if app != LAST:  # without a thread of its own, as nearly all are asked for
        return app
    return await run_in_threadpool(application_named, questions, app)


Named = Annotated[str, Depends(_application)]


def _tag(request: Request, app: Named) -> str | None:
    """What answers about the application are tagged with, if it is complete; None where nothing is known."""
    look = cast("Tag | None", request.app.state.tag)
    return None if look is None else look(app)


Accept = Annotated[str | None, Header(include_in_schema=False)]
IfNoneMatch = Annotated[str | None, Header(include_in_schema=False)]
StoredTag = Annotated[str | None, Depends(_tag)]

router = APIRouter(dependencies=[Depends(_no_store), Depends(_known_parameters)])


@router.get("/api/applications", tags=["applications"], responses=_problems(500, 503, 504))
def list_applications(
    request: Request,
    questions: Asked,
    parameters: Annotated[ApplicationParameters, Query()],
    response: Response,
) -> lineage.Applications:
    """All applications, newest first, page by page."""
    page, cursor = parameters.page(questions.applications())
    response.headers.update(_link(request, cursor))
    return lineage.Applications(applications=page, next=cursor)


@router.get(
    "/api/applications/{app}",
    tags=["applications"],
    response_model=lineage.Application,
    responses=_NOT_MODIFIED | _problems(404, 500, 503, 504),
)
def get_application(
    questions: Asked,
    app: Named,
    tag: StoredTag,
    response: Response,
    if_none_match: IfNoneMatch = None,
) -> lineage.Application | Response:
    """One application: its state, whether its lineage is complete, and its counters."""
    if tag is not None and is_held(if_none_match, tag):
        return Response(status_code=304, headers=_kept(tag))
    answer = questions.application(app)
    if tag is not None and answer.complete:
        response.headers.update(_kept(tag))
    return answer


@router.get(
    "/api/applications/{app}/graph",
    tags=["applications"],
    response_model=lineage.Graph,
    responses=_NOT_MODIFIED | _problems(404, 500, 503, 504),
)
def get_graph(
    questions: Asked,
    app: Named,
    tag: StoredTag,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """The application's operations and what they send each other, with counts."""
    if tag is not None and is_held(if_none_match, tag):
        return Response(status_code=304, headers=_kept(tag))
    answer = questions.graph(app)
    return _json(answer, _kept(tag) if tag is not None and questions.application(app).complete else {})


@router.get(
    "/api/applications/{app}/nodes/{node}/records",
    tags=["records"],
    response_model=lineage.RecordPage,
    responses=_csv() | _problems(404, 500, 503, 504),
)
def list_records(
    request: Request,
    questions: Asked,
    app: Named,
    node: NodeName,
    parameters: Annotated[RecordParameters, Query()],
    accept: Accept = None,
) -> Response:
    """The records of one node, page by page."""
    page = questions.records(app, parameters.query(node))
    link = _link(request, page.next, app)
    if csv.prefers_csv(accept):
        return _not_stored(csv.records_as_csv(page), link)
    return _json(page, {"Vary": "Accept", **link})


@router.get(
    "/api/applications/{app}/trace",
    tags=["traces"],
    response_model=lineage.Trace,
    responses=_csv() | _problems(404, 500, 503, 504),
)
def trace(
    request: Request,
    questions: Asked,
    app: Named,
    parameters: Annotated[TraceParameters, Query()],
    accept: Accept = None,
) -> Response:
    """What a record came from (`backward`) or what became of it (`forward`).

    Give one start: `record`, or `node` with `partition` and `offset`, or `node` with `key`, or `path` with
    `row`.
    `complete`, `exact` and `truncated` say how far the answer can be relied on.
    """
    answer = questions.trace(app, parameters.query())
    link = _link(request, answer.next, app)
    if csv.prefers_csv(accept):
        return _not_stored(csv.trace_as_csv(answer), link)
    return _json(answer, {"Vary": "Accept", **link})


@router.post(
    "/api/applications/{app}/trace/graph",
    tags=["traces"],
    dependencies=[Depends(_own_page)],
    responses=_problems(403, 404, 500, 503, 504),
)
def put_trace_into_neo4j(
    materialize: Annotated[Materialize, Depends(_materialize)],
    app: Named,
    parameters: Annotated[TraceParameters, Query()],
) -> lineage.Materialized:
    """Put the records of a trace into Neo4j, for its Browser. Doing it again adds nothing."""
    return materialize(app, parameters.query())


@router.get("/api/applications/{app}/values", tags=["records"], responses=_problems(404, 500, 503, 504))
def get_values(
    questions: Asked, app: Named, parameters: Annotated[ValueParameters, Query()]
) -> lineage.Values:
    """What one record looked like on its way, where values were captured."""
    return questions.values(app, parameters.record, parameters.node)


@router.get("/api/lag", tags=["service"], responses=_problems(500, 503))
def get_lag(look: Annotated[LookAtLag, Depends(_look_at_lag)]) -> lineage.Lag:
    """How far the stores are behind: messages and seconds that wait, rates, and what applications lack.

    Rates need an earlier look: ask again.
    """
    return look()


@router.get("/healthz", tags=["service"])
async def check_health() -> Health:
    """The process answers."""
    return Health()


@router.get("/readyz", tags=["service"], responses=_problems(500, 503, 504))
def check_readiness(questions: Asked) -> Health:
    """The stores answer too."""
    questions.applications()
    return Health()


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


def _json(answer: lineage.Result, headers: Mapping[str, str]) -> Response:
    return _not_stored(Response(json_bytes(answer), media_type="application/json"), headers)


def _not_stored(response: Response, headers: Mapping[str, str] | None = None) -> Response:
    response.headers.update({**_STALE, **(headers or {})})
    return response


def _kept(tag: str) -> dict[str, str]:
    return {**_STALE, "ETag": tag, "Cache-Control": CACHEABLE}


def _link(request: Request, cursor: str | None, application: str = "") -> dict[str, str]:
    """Where the next page is (RFC 8288), relative to the request's address: right behind every proxy.

    Who asked for `last` goes on with the same application, whatever comes meanwhile.
    """
    if cursor is None:
        return {}
    same = [(name, value) for name, value in request.query_params.multi_items() if name != "cursor"]
    query = urlencode([*same, ("cursor", cursor)])
    if application in ("", request.path_params.get("app")):
        return {"Link": f'<?{query}>; rel="next"'}
    path = request.scope["raw_path"].decode("ascii").partition(f"/{LAST}/")[2]
    up = "../" * (path.count("/") + 1)
    return {"Link": f'<{up}{quote(application, safe="")}/{path}?{query}>; rel="next"'}

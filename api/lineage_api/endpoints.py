"""The endpoints: each turns a request into one query, and its result into a response.

Queries block, so the endpoints are plain functions, which FastAPI runs in threads. Large results become JSON
there, too, and not in the event loop. Knows nothing of the shape of errors (problems.py) or of where results
come from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Depends, Query, Request, Response

from lineage_api import csv
from lineage_api.dependencies import (
    NOT_CACHED,
    Accept,
    ApplicationName,
    CurrentETag,
    IfNoneMatch,
    LagReader,
    Materializer,
    MetricRegistry,
    QueryService,
    ReplayReader,
    own_pages_only,
    set_no_store,
    valid_parameter_names,
)
from lineage_api.etags import CACHEABLE, is_current
from lineage_api.parameters import (
    AbsenceParameters,
    ApplicationParameters,
    CompareParameters,
    CompareWithParameters,
    ContrastParameters,
    DatasetMissingParameters,
    DatasetParameters,
    DatasetsParameters,
    DatasetTraceParameters,
    ExplanationParameters,
    MissingParameters,
    NodeName,
    RecordParameters,
    RowHistoryParameters,
    RowSetParameters,
    SlowParameters,
    SuspectsParameters,
    TraceParameters,
    ValueParameters,
)
from lineage_api.problems import Problem
from lineage_api.responses import csv_or_json, json_response, not_cached, problem_responses
from lineage_service import lineage
from lineage_service.dataset_trace import chosen_trace, missing_of_dataset
from lineage_service.lineage import doc
from lineage_service.monitoring.metrics import TEXT_FORMAT, exposition
from lineage_service.newest_application import LAST

__all__ = ["Health", "router"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Health(lineage.Result):
    """Result of a probe."""

    status: Literal["ok"] = field(default="ok", metadata=doc("Always `ok`; anything else is a problem."))


_NOT_MODIFIED: dict[int | str, dict[str, Any]] = {
    304: {"description": "The client's copy is current (`If-None-Match`)."}
}


router = APIRouter(dependencies=[Depends(set_no_store), Depends(valid_parameter_names)])


@router.get(
    "/api/applications",
    tags=["applications"],
    response_model=lineage.Applications,
    responses=problem_responses(500, 503, 504),
)
def list_applications(
    request: Request,
    queries: QueryService,
    parameters: Annotated[ApplicationParameters, Query()],
) -> Response:
    """All applications, newest first, page by page."""
    page = parameters.page(queries.newest_applications())
    return json_response(page, _link(request, page.next))


@router.get(
    "/api/applications/{app}",
    tags=["applications"],
    response_model=lineage.Application,
    responses=_NOT_MODIFIED | problem_responses(404, 500, 503, 504),
)
def get_application(
    queries: QueryService,
    app: ApplicationName,
    etag: CurrentETag,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """One application: its state, whether its lineage is complete, and its counters."""
    if etag is not None and is_current(if_none_match, etag):
        return _not_modified(etag)
    application = queries.application(app)
    return json_response(application, _cacheable(etag) if etag is not None and application.complete else {})


@router.get(
    "/api/applications/{app}/graph",
    tags=["applications"],
    response_model=lineage.Graph,
    responses=_NOT_MODIFIED | problem_responses(404, 500, 503, 504),
)
def get_graph(
    queries: QueryService,
    app: ApplicationName,
    etag: CurrentETag,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """The application's operations and the flows between them, with counts."""
    if etag is not None and is_current(if_none_match, etag):
        return _not_modified(etag)
    graph = queries.graph(app)
    return json_response(
        graph, _cacheable(etag) if etag is not None and queries.application(app).complete else {}
    )


@router.get(
    "/api/applications/{app}/nodes/{node}/records",
    tags=["records"],
    response_model=lineage.RecordPage,
    responses=csv_or_json() | problem_responses(404, 500, 503, 504),
)
def list_records(
    request: Request,
    queries: QueryService,
    app: ApplicationName,
    node: NodeName,
    parameters: Annotated[RecordParameters, Query()],
    accept: Accept = None,
) -> Response:
    """The records of one node, page by page."""
    query = parameters.query(node)
    page = queries.records(app, query)
    link = _link(request, page.next, app)
    if csv.prefers_csv(accept):
        return not_cached(csv.records_as_csv(page, query), link)
    return json_response(page, {"Vary": "Accept", **link})


@router.get(
    "/api/applications/{app}/trace",
    tags=["traces"],
    response_model=lineage.Trace,
    responses=csv_or_json() | problem_responses(404, 500, 503, 504),
)
def trace(
    request: Request,
    queries: QueryService,
    app: ApplicationName,
    parameters: Annotated[TraceParameters, Query()],
    accept: Accept = None,
) -> Response:
    """What a record came from (`backward`) or what became of it (`forward`).

    Name one start: `record`, or `node` with `partition` and `offset`, or `node` with `key`, or `path` with
    `row`, or `failure`. Or several as `starts`.
    `complete`, `exact` and `truncated` say what the result promises.
    """
    query = parameters.query()
    result = queries.trace(app, query)
    link = _link(request, result.next, app)
    if csv.prefers_csv(accept):
        return not_cached(csv.trace_as_csv(result, query), link)
    return json_response(result, {"Vary": "Accept", **link})


@router.get(
    "/api/trace",
    tags=["traces"],
    response_model=lineage.Trace | lineage.Choices,
    responses=csv_or_json() | problem_responses(404, 500, 503, 504),
)
def trace_of_dataset(
    request: Request,
    queries: QueryService,
    parameters: Annotated[DatasetTraceParameters, Query()],
    accept: Accept = None,
) -> Response:
    """The trace of a row of a dataset, whichever application wrote it.

    Name one start: `where`, `row` or `key`. Where several rows fulfil the condition, the result has them as
    `choices`, unless `all` is true: then it is one trace of all of them.
    """
    rows, query = parameters.queries()
    start = chosen_trace(queries, rows, query, is_of_all=parameters.all)
    if isinstance(start, lineage.Choices):
        link = _link(request, start.next)
        if csv.prefers_csv(accept):
            return not_cached(csv.choices_as_csv(start), link)
        return json_response(start, {"Vary": "Accept", **link})
    result = queries.trace(start.application_id, start.query)
    link = _link(request, result.next)
    if csv.prefers_csv(accept):
        return not_cached(csv.trace_as_csv(result, start.query), link)
    return json_response(result, {"Vary": "Accept", **link})


@router.get(
    "/api/history",
    tags=["datasets"],
    response_model=lineage.RowHistory | lineage.Choices,
    responses=csv_or_json() | problem_responses(404, 500, 503, 504),
)
def get_history(
    request: Request,
    queries: QueryService,
    parameters: Annotated[RowHistoryParameters, Query()],
    accept: Accept = None,
) -> Response:
    """The versions of a table that inserted, changed or deleted one of its rows, and who wrote each.

    Where several rows fulfil the condition, the result has them as `choices`.
    """
    result = queries.history(parameters.query())
    if isinstance(result, lineage.Choices):
        link = _link(request, result.next)
        if csv.prefers_csv(accept):
            return not_cached(csv.choices_as_csv(result), link)
        return json_response(result, {"Vary": "Accept", **link})
    if csv.prefers_csv(accept):
        return not_cached(csv.history_as_csv(result))
    return json_response(result, {"Vary": "Accept"})


@router.get(
    "/api/applications/{app}/rowset",
    tags=["traces"],
    response_model=lineage.RowSet,
    responses=csv_or_json() | problem_responses(404, 500, 503, 504),
)
def get_row_set(
    queries: QueryService,
    app: ApplicationName,
    parameters: Annotated[RowSetParameters, Query()],
    accept: Accept = None,
) -> Response:
    """Which rows of the application's inputs some records were made of, as ranges.

    Name one start as for a trace, or several as `starts`. A source with `whole` is meant with all its rows.
    """
    result = queries.row_set(app, parameters.query())
    if csv.prefers_csv(accept):
        return not_cached(csv.row_set_as_csv(result))
    return json_response(result, {"Vary": "Accept"})


@router.get(
    "/api/applications/{app}/explanation",
    tags=["traces"],
    response_model=lineage.Explanation,
    responses=csv_or_json() | problem_responses(404, 500, 503, 504),
)
def get_explanation(
    request: Request,
    queries: QueryService,
    app: ApplicationName,
    parameters: Annotated[ExplanationParameters, Query()],
    accept: Accept = None,
) -> Response:
    """The few input rows that decided what a record is, and what was left out of its trace, and why.

    Name one start as for a trace, or several as `starts`. Nothing is run to find these rows.
    """
    result = queries.explanation(app, parameters.query())
    link = _link(request, result.next, app)
    if csv.prefers_csv(accept):
        return not_cached(csv.explanation_as_csv(result), link)
    return json_response(result, {"Vary": "Accept", **link})


@router.get(
    "/api/applications/{app}/absence",
    tags=["traces"],
    response_model=lineage.Absence,
    responses=csv_or_json() | problem_responses(404, 500, 503, 504),
)
def get_absence(
    queries: QueryService,
    app: ApplicationName,
    parameters: Annotated[AbsenceParameters, Query()],
    accept: Accept = None,
) -> Response:
    """Why an operation has no record with a key: the last operations that have it, and where it ended.

    A key that the operation has is refused: ask for its explanation.
    """
    result = queries.absence(app, parameters.query())
    if csv.prefers_csv(accept):
        return not_cached(csv.absence_as_csv(result))
    return json_response(result, {"Vary": "Accept"})


@router.get(
    "/api/applications/{app}/missing",
    tags=["traces"],
    response_model=lineage.Missing,
    responses=csv_or_json() | problem_responses(404, 500, 503, 504),
)
def get_missing(
    queries: QueryService,
    app: ApplicationName,
    parameters: Annotated[MissingParameters, Query()],
    accept: Accept = None,
) -> Response:
    """Why a row of an input is not in the output: at which operation it ended.

    Name a row: `path` with `row`, or `record`, or `node` with `partition` and `offset`. Or `where`: rows of
    an input, or what an output should have. `exact` says whether the operation is known, or one of several.
    """
    return _missing(queries.missing(app, parameters.query()), accept)


@router.get(
    "/api/missing",
    tags=["traces"],
    response_model=lineage.Missing,
    responses=csv_or_json() | problem_responses(404, 500, 503, 504),
)
def missing_of(
    queries: QueryService,
    parameters: Annotated[DatasetMissingParameters, Query()],
    accept: Accept = None,
) -> Response:
    """Why a row is not in the output, by a dataset: the newest application that read or wrote it answers.

    With `row`, or of what was only read, rows of an input. Of what was written, what it should have.
    """
    return _missing(queries.missing(*missing_of_dataset(queries, *parameters.queries())), accept)


def _missing(result: lineage.Missing, accept: str | None) -> Response:
    if csv.prefers_csv(accept):
        return not_cached(csv.missing_as_csv(result))
    return json_response(result, {"Vary": "Accept"})


@router.get(
    "/api/applications/{app}/failures",
    tags=["traces"],
    response_model=lineage.Failures,
    responses=csv_or_json() | problem_responses(404, 500, 503, 504),
)
def get_failures(queries: QueryService, app: ApplicationName, accept: Accept = None) -> Response:
    """Which records made tasks fail, and the input rows that these were made of.

    Attempts of a task that failed alike are one failure. `exact` says whether its record is known for sure.
    """
    result = queries.failures(app)
    if csv.prefers_csv(accept):
        return not_cached(csv.failures_as_csv(result))
    return json_response(result, {"Vary": "Accept"})


@router.get(
    "/api/applications/{app}/slow",
    tags=["traces"],
    response_model=lineage.Slow,
    responses=csv_or_json() | problem_responses(404, 500, 503, 504),
)
def get_slow(
    queries: QueryService,
    app: ApplicationName,
    parameters: Annotated[SlowParameters, Query()],
    accept: Accept = None,
) -> Response:
    """Which records took long, with the input rows, operations and partitions behind them.

    Of each task, the 20 slowest records are known, as far as they were noticed.
    """
    result = queries.slow(app, parameters.query())
    if csv.prefers_csv(accept):
        return not_cached(csv.slow_as_csv(result))
    return json_response(result, {"Vary": "Accept"})


@router.get(
    "/api/applications/{app}/suspects",
    tags=["traces"],
    response_model=lineage.Suspects,
    responses=csv_or_json() | problem_responses(404, 500, 503, 504),
)
def get_suspects(
    queries: QueryService,
    app: ApplicationName,
    parameters: Annotated[SuspectsParameters, Query()],
    accept: Accept = None,
) -> Response:
    """Which tasks and operations behave oddly, the oddest first, with the records that show it.

    With `bad`, only those that bad outputs are made in. With `good`, too, only by what these are made of.
    """
    result = queries.suspects(app, parameters.query())
    if csv.prefers_csv(accept):
        return not_cached(csv.suspects_as_csv(result))
    return json_response(result, {"Vary": "Accept"})


@router.get(
    "/api/applications/{app}/contrast",
    tags=["traces"],
    response_model=lineage.Contrast,
    responses=csv_or_json() | problem_responses(404, 500, 503, 504),
)
def get_contrast(
    queries: QueryService,
    app: ApplicationName,
    parameters: Annotated[ContrastParameters, Query()],
    accept: Accept = None,
) -> Response:
    """What the input rows of bad outputs have in common, and those of good ones have not.

    Without `good`, other rows of the same outputs are taken for good.
    """
    result = queries.contrast(app, parameters.query())
    if csv.prefers_csv(accept):
        return not_cached(csv.contrast_as_csv(result))
    return json_response(result, {"Vary": "Accept"})


@router.get(
    "/api/applications/{app}/compare",
    tags=["applications"],
    response_model=lineage.Comparison,
    responses=csv_or_json() | problem_responses(404, 500, 503, 504),
)
def compare_with(
    queries: QueryService,
    app: ApplicationName,
    parameters: Annotated[CompareWithParameters, Query()],
    accept: Accept = None,
) -> Response:
    """What another run changed: rows that are gone, new or changed, and the input rows behind these.

    The other one is a later run of the same job, or a replay of this one.
    """
    return _comparison(queries.compare(parameters.query(app)), accept)


@router.get(
    "/api/applications/{app}/replays",
    tags=["applications"],
    response_model=lineage.Replays,
    responses=problem_responses(404, 500, 503, 504),
)
def list_replays(queries: QueryService, read_replays: ReplayReader, app: ApplicationName) -> Response:
    """What ran an application again on this machine, newest first.

    That is what `lineage replay`, `lineage influence` and `lineage sift` have answered. A replay runs in a
    shell of its user: the service runs no code of anybody.
    """
    queries.application(app)
    return json_response(read_replays(app), {})


@router.post(
    "/api/applications/{app}/trace/graph",
    tags=["traces"],
    dependencies=[Depends(own_pages_only)],
    responses=problem_responses(403, 404, 500, 503, 504),
)
def put_trace_into_neo4j(
    materialize: Materializer,
    app: ApplicationName,
    parameters: Annotated[TraceParameters, Query()],
) -> lineage.Materialized:
    """Write the records of a trace to Neo4j, for its Browser. Repeating it adds nothing."""
    return materialize(app, parameters.query())


@router.get(
    "/api/applications/{app}/values", tags=["records"], responses=problem_responses(404, 500, 503, 504)
)
def get_values(
    queries: QueryService, app: ApplicationName, parameters: Annotated[ValueParameters, Query()]
) -> lineage.Values:
    """The captured values of one record along its trace."""
    return queries.values(app, parameters.record, parameters.node)


@router.get(
    "/api/datasets",
    tags=["datasets"],
    response_model=lineage.Datasets,
    responses=csv_or_json() | problem_responses(500, 503, 504),
)
def list_datasets(
    request: Request,
    queries: QueryService,
    parameters: Annotated[DatasetsParameters, Query()],
    accept: Accept = None,
) -> Response:
    """Files, folders, tables and topics that applications wrote or read, the latest written first."""
    page = queries.datasets(parameters.query())
    link = _link(request, page.next)
    if csv.prefers_csv(accept):
        return not_cached(csv.datasets_as_csv(page), link)
    return json_response(page, {"Vary": "Accept", **link})


@router.get(
    "/api/dataset",
    tags=["datasets"],
    response_model=lineage.DatasetPage,
    responses=csv_or_json() | problem_responses(404, 500, 503, 504),
)
def get_dataset(
    request: Request,
    queries: QueryService,
    parameters: Annotated[DatasetParameters, Query()],
    accept: Accept = None,
) -> Response:
    """One dataset: its history, and what is before and behind it, across applications.

    `name` is a parameter, because names have slashes.
    """
    page = queries.dataset(parameters.query())
    link = _link(request, page.next)
    if csv.prefers_csv(accept):
        return not_cached(csv.dataset_as_csv(page), link)
    return json_response(page, {"Vary": "Accept", **link})


@router.get(
    "/api/compare",
    tags=["datasets"],
    response_model=lineage.Comparison,
    responses=csv_or_json() | problem_responses(404, 500, 503, 504),
)
def compare(
    queries: QueryService, parameters: Annotated[CompareParameters, Query()], accept: Accept = None
) -> Response:
    """What changed between two runs: rows that are gone, new or changed, and the input rows behind these.

    Name two applications (`before`, `after`), or a `dataset`: then the last two complete runs that wrote it.
    """
    return _comparison(queries.compare(parameters.query()), accept)


def _comparison(result: lineage.Comparison, accept: str | None) -> Response:
    if csv.prefers_csv(accept):
        return not_cached(csv.comparison_as_csv(result))
    return json_response(result, {"Vary": "Accept"})


@router.get("/api/lag", tags=["service"], responses=problem_responses(500, 503))
def get_lag(read_lag: LagReader) -> lineage.Lag:
    """The lag of the stores: waiting messages and their age, rates, and what applications lack.

    Rates need an earlier measurement: ask again.
    """
    return read_lag()


@router.get("/healthz", tags=["service"])
async def check_health() -> Health:
    """The process answers."""
    return Health()


@router.get("/readyz", tags=["service"], responses=problem_responses(500, 503, 504))
def check_readiness(queries: QueryService) -> Health:
    """The stores answer too."""
    next(queries.newest_applications(), None)
    return Health()


@router.get(
    "/metrics",
    tags=["service"],
    response_class=Response,
    responses={
        200: {"content": {TEXT_FORMAT: {"schema": {"type": "string"}}}, "description": "Prometheus' text."},
        404: {"model": Problem, "description": "Metrics are switched off."},
        **problem_responses(500),
    },
)
def get_metrics(registry: MetricRegistry, accept: Accept = None) -> Response:
    """What Prometheus scrapes: the lag of the consumer group, incomplete applications, this process."""
    text, media_type = exposition(registry, accept)
    # Not `media_type=`, which would add a second charset.
    return not_cached(Response(text, headers={"Content-Type": media_type}))


def _cacheable(etag: str) -> dict[str, str]:
    return {**NOT_CACHED, "ETag": etag, "Cache-Control": CACHEABLE}


def _not_modified(etag: str) -> Response:
    return Response(status_code=304, headers=_cacheable(etag))


def _link(request: Request, cursor: str | None, application: str = "") -> dict[str, str]:
    """The next page (RFC 8288), relative to the request's address, so that it is right behind every proxy.

    The next page of `last` is one of the same application, whichever is the newest by then.
    """
    if cursor is None:
        return {}
    others = [(name, value) for name, value in request.query_params.multi_items() if name != "cursor"]
    query = urlencode([*others, ("cursor", cursor)])
    if application in ("", request.path_params.get("app")):
        return {"Link": f'<?{query}>; rel="next"'}
    path = request.scope["raw_path"].decode("ascii").partition(f"/{LAST}/")[2]
    up = "../" * (path.count("/") + 1)
    return {"Link": f'<{up}{quote(application, safe="")}/{path}?{query}>; rel="next"'}

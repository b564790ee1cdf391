"""Applications: their list, graphs, records and values, and their other runs."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from lineage_api import csv
from lineage_api.dependencies import (
    NOT_CACHED,
    Accept,
    ApplicationName,
    CurrentETag,
    IfNoneMatch,
    QueryService,
    ReplayReader,
    set_no_store,
    valid_parameter_names,
)
from lineage_api.etags import CACHEABLE, is_current
from lineage_api.parameters import (
    ApplicationParameters,
    CompareWithParameters,
    NodeName,
    RecordParameters,
    ValueParameters,
)
from lineage_api.responses import (
    csv_or_json,
    csv_or_json_response,
    json_response,
    next_link,
    problem_responses,
)
from lineage_service import lineage

__all__ = ["router"]

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
    return json_response(page, next_link(request, page.next))


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
    link = next_link(request, page.next, app)
    return csv_or_json_response(accept, page, lambda page: csv.records_as_csv(page, query), link)


@router.get(
    "/api/applications/{app}/values", tags=["records"], responses=problem_responses(404, 500, 503, 504)
)
def get_values(
    queries: QueryService, app: ApplicationName, parameters: Annotated[ValueParameters, Query()]
) -> lineage.Values:
    """The captured values of one record along its trace."""
    return queries.values(app, parameters.record, parameters.node)


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
    return csv_or_json_response(accept, queries.compare(parameters.query(app)), csv.comparison_as_csv)


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


def _cacheable(etag: str) -> dict[str, str]:
    return {**NOT_CACHED, "ETag": etag, "Cache-Control": CACHEABLE}


def _not_modified(etag: str) -> Response:
    return Response(status_code=304, headers=_cacheable(etag))

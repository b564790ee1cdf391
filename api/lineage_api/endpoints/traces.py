"""Traces within an application: of records, and which rows decided, or why a row is not in the output."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from lineage_api import csv
from lineage_api.dependencies import (
    Accept,
    ApplicationName,
    Materializer,
    QueryService,
    own_pages_only,
    set_no_store,
    valid_parameter_names,
)
from lineage_api.parameters import (
    AbsenceParameters,
    ExplanationParameters,
    MissingParameters,
    RowSetParameters,
    TraceParameters,
)
from lineage_api.responses import (
    csv_or_json,
    csv_or_json_response,
    next_link,
    problem_responses,
)
from lineage_service import lineage

__all__ = ["router"]

router = APIRouter(dependencies=[Depends(set_no_store), Depends(valid_parameter_names)])


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
    link = next_link(request, result.next, app)
    return csv_or_json_response(accept, result, lambda result: csv.trace_as_csv(result, query), link)


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
    return csv_or_json_response(accept, result, csv.row_set_as_csv)


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
    link = next_link(request, result.next, app)
    return csv_or_json_response(accept, result, csv.explanation_as_csv, link)


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
    return csv_or_json_response(accept, result, csv.absence_as_csv)


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
    return csv_or_json_response(accept, queries.missing(app, parameters.query()), csv.missing_as_csv)


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

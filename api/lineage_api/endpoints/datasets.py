"""Datasets, whichever application wrote them: their list and history, and traces of their rows."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from lineage_api import csv
from lineage_api.dependencies import Accept, QueryService, set_no_store, valid_parameter_names
from lineage_api.parameters import (
    CompareParameters,
    DatasetMissingParameters,
    DatasetParameters,
    DatasetsParameters,
    DatasetTraceParameters,
    RowHistoryParameters,
)
from lineage_api.responses import (
    csv_or_json,
    csv_or_json_response,
    next_link,
    problem_responses,
)
from lineage_service import lineage
from lineage_service.dataset_trace import chosen_trace, missing_of_dataset

__all__ = ["router"]

router = APIRouter(dependencies=[Depends(set_no_store), Depends(valid_parameter_names)])


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
    link = next_link(request, page.next)
    return csv_or_json_response(accept, page, csv.datasets_as_csv, link)


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
    link = next_link(request, page.next)
    return csv_or_json_response(accept, page, csv.dataset_as_csv, link)


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
        link = next_link(request, start.next)
        return csv_or_json_response(accept, start, csv.choices_as_csv, link)
    result = queries.trace(start.application_id, start.query)
    link = next_link(request, result.next)
    return csv_or_json_response(accept, result, lambda result: csv.trace_as_csv(result, start.query), link)


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
        link = next_link(request, result.next)
        return csv_or_json_response(accept, result, csv.choices_as_csv, link)
    return csv_or_json_response(accept, result, csv.history_as_csv)


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
    return csv_or_json_response(
        accept, queries.missing(*missing_of_dataset(queries, *parameters.queries())), csv.missing_as_csv
    )


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
    return csv_or_json_response(accept, queries.compare(parameters.query()), csv.comparison_as_csv)

"""What went wrong in an application: records that made tasks fail, that took long, or that stand out."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from lineage_api import csv
from lineage_api.dependencies import (
    Accept,
    ApplicationName,
    QueryService,
    set_no_store,
    valid_parameter_names,
)
from lineage_api.parameters import ContrastParameters, SlowParameters, SuspectsParameters
from lineage_api.responses import (
    csv_or_json,
    csv_or_json_response,
    problem_responses,
)
from lineage_service import lineage

__all__ = ["router"]

router = APIRouter(dependencies=[Depends(set_no_store), Depends(valid_parameter_names)])


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
    return csv_or_json_response(accept, result, csv.failures_as_csv)


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
    return csv_or_json_response(accept, result, csv.slow_as_csv)


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
    return csv_or_json_response(accept, result, csv.suspects_as_csv)


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
    return csv_or_json_response(accept, result, csv.contrast_as_csv)

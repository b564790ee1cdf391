"""The service itself: is it there, how far behind are its stores, and its metrics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from fastapi import APIRouter, Depends, Response

from lineage_api.dependencies import (
    Accept,
    LagReader,
    MetricRegistry,
    QueryService,
    set_no_store,
    valid_parameter_names,
)
from lineage_api.problems import Problem
from lineage_api.responses import (
    not_cached,
    problem_responses,
)
from lineage_service import lineage
from lineage_service.lineage import doc
from lineage_service.monitoring.metrics import TEXT_FORMAT, exposition

__all__ = ["Health", "router"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Health(lineage.Result):
    """Result of a probe."""

    status: Literal["ok"] = field(default="ok", metadata=doc("Always `ok`; anything else is a problem."))


router = APIRouter(dependencies=[Depends(set_no_store), Depends(valid_parameter_names)])


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

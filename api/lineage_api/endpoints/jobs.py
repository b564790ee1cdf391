"""The endpoints of jobs: whether to run one now, and what was answered before.

A decision is never an error: what cannot be decided is an answer that says run.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from lineage_api import csv
from lineage_api.dependencies import (
    Accept,
    JobService,
    own_pages_only,
    set_no_store,
    valid_parameter_names,
)
from lineage_api.endpoints.job_route import JobRoute
from lineage_api.parameters import DecisionParameters, JobName
from lineage_api.responses import (
    csv_or_json,
    csv_or_json_response,
    json_response,
    problem_responses,
)
from lineage_service import lineage

__all__ = ["router"]

router = APIRouter(route_class=JobRoute, dependencies=[Depends(set_no_store), Depends(valid_parameter_names)])


@router.get("/api/jobs", tags=["jobs"], response_model=lineage.Jobs, responses=problem_responses(500, 503))
def list_jobs(jobs: JobService) -> Response:
    """All jobs that ran, or were asked about. The one that ran last is first."""
    return json_response(jobs.jobs(), {})


@router.get(
    "/api/jobs/{job}", tags=["jobs"], response_model=lineage.Job, responses=problem_responses(404, 500, 503)
)
def get_job(jobs: JobService, job: JobName) -> Response:
    """A job: its last execution, what it read and wrote, and how often it was skipped."""
    return json_response(jobs.job(job), {})


@router.get(
    "/api/jobs/{job}/waves",
    tags=["jobs"],
    response_model=lineage.Waves,
    responses=csv_or_json() | problem_responses(500, 503),
)
def list_waves(jobs: JobService, job: JobName, accept: Accept = None) -> Response:
    """Every answer about a job, the latest first."""
    waves = jobs.waves(job)
    return csv_or_json_response(accept, waves, csv.waves_as_csv)


@router.post(
    "/api/jobs/{job}/decisions",
    tags=["jobs"],
    dependencies=[Depends(own_pages_only)],
    response_model=lineage.Trigger,
    responses=problem_responses(403, 500, 503),
)
def decide(jobs: JobService, job: JobName, parameters: Annotated[DecisionParameters, Query()]) -> Response:
    """Whether to run a job now. The answer is kept: the same wave has the same answer.

    What cannot be decided is `run`, and `reason` says why; so should be what a client takes an error for.
    """
    return json_response(jobs.decide(parameters.question(job)), {})


@router.post(
    "/api/jobs/{job}/run-next",
    tags=["jobs"],
    dependencies=[Depends(own_pages_only)],
    response_model=lineage.Job,
    responses=problem_responses(403, 404, 500, 503),
)
def run_next(jobs: JobService, job: JobName) -> Response:
    """Run the next wave of a job that is asked about, whatever is known. Its reason is `asked`."""
    return json_response(jobs.run_next(job), {})


@router.post(
    "/api/jobs/{job}/retrain",
    tags=["jobs"],
    dependencies=[Depends(own_pages_only)],
    response_model=lineage.Job,
    responses=problem_responses(403, 404, 500, 503),
)
def retrain(jobs: JobService, job: JobName) -> Response:
    """Begin the training of a job anew, with its next answer. What it has learned counts no more."""
    return json_response(jobs.retrain(job), {})

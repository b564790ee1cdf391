"""A failure of a job, and what its command printed."""

from __future__ import annotations

from lineage_service.lineage import Failure

FAILURE = Failure(
    failure=1,
    error="ZeroDivisionError",
    message="division by zero",
    frame="/jobs/job.py:41",
    node_id="app#4",
    name="map",
    call_site="/jobs/job.py:41",
    stage=0,
    partition=3,
    attempts=4,
    record=None,
    sources=(),
    sources_total=0,
    exact=True,
    recovered=False,
    reason="",
)
PRINTED = """Traceback (most recent call last):
  File "/jobs/job.py", line 41, in share
    return 1 / 0
ZeroDivisionError: division by zero
"""

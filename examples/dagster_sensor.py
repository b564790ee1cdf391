"""A sensor of Dagster that asks each hour whether a job is worth running.

Each hour is one wave: however often the sensor ticks, the wave has one answer, and Dagster makes one run of
its key. Dagster is no dependency of this project: copy this file to your definitions, with `takings.py`
beside it.
"""

# Without `from __future__ import annotations`: Dagster looks at the annotations as they are.
import subprocess
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import dagster

from lineage_service.triggering import decide


@dagster.op(config_schema={"wave": str})
def takings(context: dagster.OpExecutionContext) -> None:
    """The Spark job. It is told its wave, so that the next answer knows which one it followed."""
    lineage = ["--conf", "spark.lineage.enabled=true", "--conf", "spark.lineage.job=takings"]
    wave = f"LINEAGE_WAVE={context.op_config['wave']}"
    subprocess.run(
        ["env", wave, "spark-submit", *lineage, "takings.py"], cwd=Path(__file__).parent, check=True
    )


@dagster.job
def takings_job() -> None:
    takings()


@dagster.sensor(job=takings_job, minimum_interval_seconds=600)
def worth_it(context: dagster.SensorEvaluationContext) -> Iterator[dagster.RunRequest | dagster.SkipReason]:
    wave = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H")
    answer = decide("takings", wave=wave, at_least_every="24h")
    if answer.run:
        yield dagster.RunRequest(
            run_key=wave,
            run_config={"ops": {"takings": {"config": {"wave": wave}}}},
            tags={"why": answer.reason},
        )
    else:
        yield dagster.SkipReason(answer.why)

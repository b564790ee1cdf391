"""A DAG of Apache Airflow that runs a Spark job only when it is worth it.

`worth_it` ends with 99 where nothing has changed. BashOperator takes that for a skipped task, and so the job
behind it is skipped, too. `report` runs either way: the old output of a skipped job stays, and is valid.

Airflow is no dependency of this project: copy this file into your folder of DAGs, with `takings.py`
beside it.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from airflow import DAG
from airflow.providers.standard.operators.bash import BashOperator  # Airflow 2: airflow.operators.bash

with DAG("takings", schedule="@hourly", start_date=datetime(2026, 11, 1), catchup=False) as dag:
    worth_it = BashOperator(
        task_id="worth_it",
        bash_command="lineage trigger takings --wave '{{ run_id }}' --at-least-every 24h",
    )
    takings = BashOperator(
        task_id="takings",
        bash_command="spark-submit --conf spark.lineage.enabled=true --conf spark.lineage.job=takings "
        "takings.py",
        cwd=str(Path(__file__).parent),
        env={"LINEAGE_WAVE": "{{ run_id }}"},
        append_env=True,
    )
    report = BashOperator(
        task_id="report",
        bash_command="lineage trigger show takings",
        # By default a task is skipped with the one before it.
        trigger_rule="none_failed",
    )
    worth_it >> takings >> report

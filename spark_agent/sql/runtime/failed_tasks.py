"""Publishes which rows made tasks of queries fail.

The JVM reports how many rows each scan of a task had given, which ids had reached its taps, and where in
Spark the error was raised (FailureReport.java). Promises that what the error says is redacted.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from spark_agent import contract
from spark_agent.delivery.settings import AgentSettings
from spark_agent.driver import error_descriptions
from spark_agent.sql.rewrite.plan_nodes import PlanNode
from spark_agent.sql.rewrite.row_paths import path_above
from spark_agent.sql.runtime.file_partitions import described_parts
from spark_agent.sql.runtime.query_culprits import (
    UNKNOWN,
    Culprit,
    FailingPlan,
    Report,
    Scan,
    Tap,
    culprit_of,
    scan_at_hand,
    with_rows_at_hand,
)

#: Plans whose tasks may fail still.
_MOST_PLANS = 200
#: Of a scan of many files those that it read last: an event has room for so many.
_MOST_PARTS = 1_000
#: What Spark says of the line of the program that has an expression.
_CALLED_FROM = re.compile(r"was called from\n(?P<site>\S.*:[0-9]+)[ \t]*(?:\n|$)")


class FailedTasks:
    """Those of one application. Plans come from users' threads, reports in the thread of `JvmEvents`."""

    def __init__(
        self, emit: Callable[..., None], settings: AgentSettings, has_files: Callable[[int], bool]
    ) -> None:
        """`has_files`: are the rows of a scan those of files?"""
        self._emit, self._settings, self._has_files = emit, settings, has_files
        self._plans: deque[FailingPlan] = deque(maxlen=_MOST_PLANS)

    def add_plan(
        self, nodes: Sequence[PlanNode], *, is_streamed: bool = False, batch: int | None = None
    ) -> None:
        """The nodes of a plan that is about to run, of which the last is its output's. See `FailingPlan`."""
        self._plans.append(FailingPlan(tuple(nodes), is_streamed, batch))

    def failed(self, report: Report) -> None:
        """Publish what an attempt of a task failed on, unless a worker of an RDD has reported it."""
        if report["origin"] == "rdd":
            return
        parts = [*report["scans"], *report["taps"]]
        for scan in report["scans"]:
            if not self._has_files(scan["node"]):  # a file that an RDD below it reads
                scan |= {"parts": [], "is_within_file": False}
        numbers = {part["node"] for part in parts}
        plans = [plan for plan in reversed(tuple(self._plans)) if plan.numbers.issuperset(numbers)]
        plan = plans[0] if plans else None
        if report["origin"] == "python" and plan is not None and not plan.python_operators:
            return  # what an RDD in Python gave is no row yet
        scans = with_rows_at_hand(report, plan)
        scan = scan_at_hand(scans)
        culprit = culprit_of(report, scans, plan)
        if any(culprit_of(report, scans, other) != culprit for other in plans[1:]):
            culprit = Culprit(reason=UNKNOWN)
        self._publish(report, scan or parts[0], culprit, plan)

    def _publish(self, report: Report, part: Scan | Tap, culprit: Culprit, plan: FailingPlan | None) -> None:
        site = _CALLED_FROM.search(report["message"])
        operator = None if plan is None else _operator(report, plan, part["node"], site and site["site"])
        output = None if plan is None else plan.nodes[-1]
        failed = operator or output
        error = error_descriptions.of_jvm(
            report["error"],
            report["message"],
            site["site"] if site else "",
            self._settings,
            "" if failed is None else failed.name,
        )
        rows = part.get("rows", 0)
        self._emit(
            contract.RUN_FAILED,
            run=part["run"],
            split=part["split"],
            attempt=report["attempt"],
            stage=report["stage"],
            action=output.number if output is not None and output.kind == "sink" else None,
            input=part["node"],
            nodes=[],
            blocks=0,
            dropped=0,
            inputs=rows,
            outputs=rows,
            failed_node=part["node"] if failed is None else failed.number,
            position=culprit.position,
            first=culprit.first,
            certain=culprit.is_certain,
            reason=culprit.reason or None,
            error=error["type"],
            message=error["message"],
            frame=error["frame"],
            parts=described_parts(part.get("parts", [])[-_MOST_PARTS:]),
            scans=list(_others(report["scans"], part)),
        )


def _others(scans: Sequence[Scan], part: Scan | Tap) -> Iterator[dict[str, Any]]:
    """What the task had read of others than the part that it reports first."""
    most = _MOST_PARTS // max(len(scans), 1)
    for scan in scans:
        if scan is not part:
            place = {"node": scan["node"], "split": scan["split"], "rows": scan["rows"]}
            yield {**place, "parts": described_parts(scan["parts"][-most:])}


def _operator(report: Report, plan: FailingPlan, scan: int, site: str | None) -> PlanNode | None:
    """The operator that failed, if it is known."""
    if report["origin"] == "python":
        candidates = plan.python_operators
    else:
        path = path_above(plan.nodes, scan)
        candidates = [node for node in path.operators if site is not None and _is_at(node, site)]
    return candidates[0] if len(candidates) == 1 else None


def _is_at(node: PlanNode, site: str) -> bool:
    """Does an operator have this line of the program? Its lines are told as `FILE:LINE, LINE`."""
    file, _, line = site.rpartition(":")
    lines = node.call_site.partition(f"{file}:")[2]
    return line in lines.split(", ")

"""Rows on which records come out again, found in a session: `explain(...).sufficient()`, as a user calls it.

Each record is asked for by itself, one after the other.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perf.capture.drivers import JobError
from perf.explain.asking import Start, starts
from perf.explain.cases import Workload
from perf.explain.sessions import session


@dataclass(frozen=True, slots=True, kw_only=True)
class Enough:
    """Of a start: the rows on which the operations of the session gave it again.

    `added`: beside the first ones. `why_not`: why none did; empty if some did. `runs` of the operations.
    `checked_s`: seconds of the same question with a run by Spark; None where that was not asked for.
    """

    start: Start
    rows: tuple[tuple[Path, str], ...]
    demanded: int
    added: int
    runs: int
    seconds: float
    why_not: str
    checked_s: float | None = None

    @property
    def total(self) -> int:
        return len(self.rows)


def enough(
    workload: Workload,
    source: Path,
    run: Path,
    *,
    count: int,
    checked: int,
    seed: int,
    memory: str,
    jars: Path,
) -> list[Enough]:
    """Of so many rows of the output, which the seed chooses. Some are `checked`, too. Raises JobError."""
    with session(workload, source, run, memory=memory, jars=jars) as output:
        from spark_agent.client.explanation import Explanation, explain

        demanded = _by_first_field(source) if workload.demands else {}
        of_file: dict[Path, Explanation] = {}
        answers = []
        for number, start in enumerate(starts(output / workload.sink, count, seed)):
            if start.path not in of_file:
                of_file[start.path] = explain(str(start.path), wait_s=_WAIT_S)
            rows = [(str(source), row) for row in demanded.get(start.text.split(",")[0], ())]
            explained = of_file[start.path]
            one = _enough(explained.row(start.row), start, rows)
            if number < checked:
                began = time.monotonic()
                answer = explained.row(start.row).sufficient(including=rows)
                if answer.verified is None:
                    raise JobError(f"{start.text} is not verified in the session: {answer.reasons[0]}")
                one = replace(one, checked_s=round(time.monotonic() - began, 4))
            answers.append(one)
        return answers


#: Until all lineage of the job is stored.
_WAIT_S = 600.0


def _enough(explained: Any, start: Start, demanded: Sequence[tuple[str, int]]) -> Enough:
    began = time.monotonic()
    answer = explained.sufficient(including=demanded, by_spark=False)
    rows = tuple((Path(row.path), row.text) for row in answer.collect())
    seconds = time.monotonic() - began
    shown = answer.in_one_task
    return Enough(
        start=start,
        rows=rows,
        demanded=len(demanded),
        added=0 if shown is None else shown.added,
        runs=0 if shown is None else shown.runs,
        seconds=round(seconds, 4),
        why_not=answer.reasons[0] if shown is None else "",
    )


def _by_first_field(source: Path) -> dict[str, list[int]]:
    """The rows of the input, from 0, by their first field."""
    rows: dict[str, list[int]] = defaultdict(list)
    with source.open() as file:
        for number, line in enumerate(file):
            rows[line.partition("\t")[0]].append(number)
    return rows

"""What is called verified comes out of exactly these rows: random jobs with loops, in plain Python.

The search begins with rows that may have nothing to do with the record, so that it has to find others. Runs
in one task may say what is not so: only what Spark gives is verified.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from spark_agent.client.input_rows import InputRows
from spark_agent.client.outputs_again import FailedRunError
from spark_agent.client.sufficient_rows import SufficientRows
from spark_agent.contract.row_sets import ranges_of
from spark_agent.driver.replay.functions_then import FunctionsThen
from spark_agent.driver.replay.rebuilt_rdds import RowsOfSource
from spark_agent.worker.record_lists import TaskRun
from tests.support.spark import looped_program as looped

SEEDS = looped.seeds(900, 40)


def never(rows: InputRows) -> bool:
    return False


LIES = (None, never, lambda rows: True, lambda rows: rows.count % 3 == 0)


def rows_of(left: set[int], right: set[int]) -> InputRows:
    of_source = {
        node: RowsOfSource(
            {
                "node": node,
                "name": "textFile",
                "whole": False,
                "splits": [{"split": 0, "positions": ranges_of(rows)}],
                "files": [],
                "listed": [],
            }
        )
        for node, rows in enumerate((left, right))
    }
    return InputRows(of_source, (), exact=True, complete=True, how=())


class NoSteps:
    def lineage(self) -> list[Any]:
        return []


class Job:
    """As `Chosen` and `AskedRecords`: gives a text again, or not. `flaky` runs fail."""

    recipe: Any = NoSteps()
    functions = FunctionsThen(recipe)

    def __init__(self, seed: int, text: str, rows: InputRows, flaky: int) -> None:
        self.seed, self.text, self.rows, self._flaky = seed, text, rows, flaky
        self.runs = 0

    def gives(self, rows: InputRows | None) -> bool:
        lines = looped.lines_of(self.seed)
        if rows is not None:
            named = {(row.source, row.position) for row in rows.named}
            lines = tuple(
                [line for at, line in enumerate(side) if (number, at) in named]
                for number, side in enumerate(lines)
            )
        return looped.plain(self.seed, *lines)[self.text] >= 1

    def come_out(self, outputs: Any, rows: InputRows | None) -> bool:
        self.runs += 1
        if self._flaky and self.runs % self._flaky == 0:
            raise FailedRunError("the JVM is gone")
        return self.gives(rows)

    look = None

    def are_in(self, seen: list[bool]) -> bool:
        return seen[0]


class Outputs:
    """Of runs in one task. `lie(rows)`: what one says that is not so; None: there are no such runs."""

    whole = ()

    def __init__(self, job: Job, lie: Callable[[InputRows], bool] | None) -> None:
        self._job, self._lie = job, lie

    def in_one_task(self, rows: InputRows, look: Any, keyed: frozenset[int]) -> TaskRun | None:
        if self._lie is None:
            return None
        self._job.runs += 1
        return TaskRun([self._job.gives(rows) != self._lie(rows)], {})


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_is_verified_comes_out_of_exactly_these_rows(data: st.DataObject) -> None:
    seed = data.draw(st.sampled_from(SEEDS))
    left, right = looped.lines_of(seed)
    text = data.draw(st.sampled_from(sorted(looped.plain(seed, left, right))))
    sides = st.tuples(st.sets(st.integers(0, len(left) - 1)), st.sets(st.integers(0, len(right) - 1)))
    concise, more = rows_of(*data.draw(sides)), rows_of(*data.draw(sides))
    needed = [row for row in concise.named if data.draw(st.booleans())]
    job: Any = Job(seed, text, concise.joined(more), data.draw(st.sampled_from([0, 0, 3])))
    most, is_minimal = data.draw(st.integers(1, 60)), data.draw(st.booleans())
    lie = data.draw(st.sampled_from(LIES))
    outputs: Any = Outputs(job, lie)
    search = SufficientRows(job, job, concise, needed, outputs, most_runs=most, seconds=60)
    proved = search.proved(is_minimal=is_minimal)
    assert proved.runs <= most
    assert proved.runs == job.runs
    if proved.why_not:
        assert proved.rows is concise
        return
    assert job.gives(proved.rows)
    named = proved.rows.named
    assert set(needed) <= set(named)
    if proved.is_minimal and not job._flaky and lie in (None, never):
        for row in set(named) - set(needed):
            assert not job.gives(proved.rows.only([other for other in named if other != row]))

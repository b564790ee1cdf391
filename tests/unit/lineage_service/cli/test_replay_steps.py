"""The steps of a replay as people read them."""

from __future__ import annotations

import pytest
from rich.console import Console

from lineage_service.cli.replay_steps import show_steps
from lineage_service.lineage import (
    FailedRecord,
    Failure,
    Flow,
    Record,
    ReplayStep,
    SourceRow,
    Trace,
    TracedNode,
)
from lineage_service.replays.step_records import MOST_LISTED, error_step, steps_of

APP = "local-2"


def node(number: int, name: str, kind: str, records: list[Record], *, exact: bool = True) -> TracedNode:
    return TracedNode(
        node_id=f"{APP}#{number}",
        application_id=APP,
        application_name="",
        name=name,
        kind=kind,
        exact=exact,
        total=len(records),
        records=tuple(records),
    )


def a_trace(rows: int) -> Trace:
    """Rows of a file, summed up; backward."""
    sources = [
        Record(
            record_id=f"read#0#{row}",
            partition=0,
            offset=row,
            source=SourceRow(path="/data/in.csv", row=row, line=row + 1, text=f"North,{row}", warning=None),
        )
        for row in range(rows)
    ]
    total = Record(record_id="1#0", partition=1, offset=0, key="North", value="3\x1b[2J", value_type="str")
    flows = [
        Flow(hash_in=f"{APP}#0#read#0#{row}", hash_out=f"{APP}#4#1#0", node_id=f"{APP}#4")
        for row in range(rows)
    ]
    return Trace(
        direction="backward",
        start=(),
        start_node="",
        starts=(),
        complete=True,
        exact=True,
        truncated=False,
        nodes=(
            node(4, "reduceByKey", "operator", [total], exact=False),
            node(0, "textFile", "source", sources),
        ),
        flows=tuple(flows),
        next=None,
    )


def printed(steps: tuple[ReplayStep, ...], capsys: pytest.CaptureFixture[str]) -> list[str]:
    show_steps(Console(width=200), steps)
    return capsys.readouterr().out.splitlines()


def test_an_output_stands_below_what_went_in_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    steps = steps_of(a_trace(2), {f"{APP}#4": "/jobs/sums.py:7"})
    assert printed(steps, capsys) == [
        "0 textFile: 2 records",
        "     in.csv:1  North,0",
        "     in.csv:2  North,1",
        "4 reduceByKey at sums.py:7: 1 record, an upper bound of what went in",
        "     in.csv:1  North,0",
        "     in.csv:2  North,1",
        "  -> 1#0  3\\x1b[2J",
    ]


def test_of_many_records_the_first_are_shown_and_the_rest_counted(capsys: pytest.CaptureFixture[str]) -> None:
    steps = steps_of(a_trace(250), {})
    assert (steps[0].total, len(steps[0].records)) == (250, MOST_LISTED)
    assert len(steps[1].records[0].made_of) == MOST_LISTED
    lines = printed(steps, capsys)
    assert "  and 245 more: --json has up to 100" in lines
    assert "     and 95 more: --json has up to 100" in lines


def test_the_last_step_of_a_failure_is_its_error(capsys: pytest.CaptureFixture[str]) -> None:
    failure = Failure(
        failure=1,
        error="ValueError",
        message="seven",
        frame=None,
        node_id=f"{APP}#5",
        name="map",
        call_site="sums.py:9",
        stage=0,
        partition=1,
        attempts=1,
        record=FailedRecord(record_id="1#0", node_id=f"{APP}#4", value=None),
        sources=(),
        sources_total=0,
        exact=True,
        recovered=False,
        reason="",
    )
    steps = (*steps_of(a_trace(1), {}), error_step(APP, failure))
    assert printed(steps, capsys)[-3:] == [
        "5 map at sums.py:9: 1 record",
        "     1#0  3\\x1b[2J",
        "  -> ValueError: seven",
    ]

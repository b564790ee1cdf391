"""perf.ingest: what it makes of measured cases, and how it makes one application larger."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lineage_service.completeness import completeness
from lineage_service.decode.rows import rows_of_block
from perf.ingest import report
from perf.ingest.report import Afterwards, CommitCost, Cost, Result
from perf.ingest.topics import blocks_of_copy, events_of_copies
from spark_agent import contract
from spark_agent.contract import Block
from tests.support.ingest_results import APP, events, grown, measured

AFTERWARDS = Afterwards(
    case="WordCount",
    megabytes=500.0,
    flows=1_000,
    backward_ms=[30.0, 10.0, 20.0],
    forward_ms=[5.0],
    largest_ms=1_500.0,
    largest=12_345,
    serve=Cost(cpu_s=3.0, peak_mib=400.0),
    maintain_s=12.0,
    maintain=Cost(cpu_s=11.0, peak_mib=600.0),
    files_before=60,
    files_after=4,
    bytes_before=400,
    bytes_after=350,
)


def test_rates_and_bytes_are_for_each_flow():
    each = measured(costs=[Cost(cpu_s=2.0, peak_mib=1.0), Cost(cpu_s=3.0, peak_mib=2.0)])
    assert (each.flows_per_s, each.cpu_s) == (50.0, 5.0)
    assert (each.bytes_per_flow, each.positions_per_flow) == (0.4, 0.3)


def test_growth_leaves_out_the_size_that_is_mostly_start_up():
    linear = grown(2.0, 3.0, 30.0)
    assert report.growth(linear, lambda each: each.seconds) == pytest.approx(1.0)
    assert report.growth(grown(2.0, 3.0, 60.0), lambda each: each.seconds) == pytest.approx(2.0)
    assert report.growth(grown(2.0, 20.0), lambda each: each.seconds) == pytest.approx(1.0)
    assert report.marginal_flows_per_s(linear) == pytest.approx(99_000 / 28)


def test_a_percentile_is_one_of_the_figures():
    assert report.percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert report.percentile([3.0, 1.0, 2.0], 0.95) == 3.0
    assert report.percentile([1.0], 0.0) == 1.0


def test_cases_of_one_application_that_stored_different_flows_are_named():
    assert report.unequal([measured(), measured(consumers=2)]) == []
    assert report.unequal([measured(), measured(megabytes=5.0, flows=7)]) == []
    assert report.unequal([measured(), measured(consumers=2, flows=999)]) == [
        "wordcount, 500 MB x 1: [999, 1000] flows"
    ]


def test_the_page_says_which_targets_are_met():
    beside = measured(kind=report.BESIDE, seconds=31.0)
    result = Result(about={"note": "none"}, measured=[beside, measured(), *grown(2, 3, 60)])
    page = report.markdown(result)
    assert "31.0, missed: <= 30" in page
    assert "20.0, **met**: <= 30" in page
    assert "0.300, **met**: <= 0.4" in page
    assert "not linear" in page
    assert "300" in page


def test_the_page_has_what_was_asked_afterwards():
    page = report.markdown(Result(about={}, measured=[measured()], afterwards=AFTERWARDS))
    assert "3 backward traces: median 20 ms, 95 % 30 ms, the first 30 ms" in page
    assert "12,345 records in 1.5 s" in page
    assert "60 files became 4" in page
    unanswered = replace(AFTERWARDS, largest=0)
    assert "no answer within" in report.markdown(
        Result(about={}, measured=[measured()], afterwards=unanswered)
    )


def test_the_page_says_what_a_small_batch_costs_after_so_many():
    costs = [CommitCost(batches=each, ms=each / 100, cpu_ms=1.0) for each in (1_000, 2_000)]
    page = report.markdown(Result(about={}, measured=[measured()], commits=costs))
    assert "| 1,000 | 10.0 | 1.0 |\n| 2,000 | 20.0 | 1.0 |" in page


def test_the_json_file_is_read_as_it_was_written():
    result = Result(
        about={"note": "none"},
        measured=[measured()],
        afterwards=AFTERWARDS,
        commits=[CommitCost(batches=100, ms=30.0, cpu_ms=20.0)],
    )
    assert report.from_json(json.loads(json.dumps(report.as_json(result)))) == result


# -- the same job, n times as large ------------------------------------------------------------------


def test_an_application_that_is_grown_is_complete_when_all_copies_of_its_blocks_are_there():
    block = Block(
        application_id=APP, node=1, run=1 << 40, split=3, seq=0, relation=contract.POSITIONS,
        columns={"in": [1, 2]},
    )  # fmt: skip
    copies = [payload for copy in range(5) for payload in blocks_of_copy([block], copy)]
    decoded = [rows_of_block(contract.encode_block(copy)) for copy in copies]
    receipts = [(each.run, each.seq) for each in decoded]
    told = events_of_copies(events(1), 5)
    assert [each["event"] for each in told] == list(range(8))
    assert completeness(told, receipts).is_complete
    assert completeness(told, receipts[:-1]).missing_blocks == 1
    assert len({copy.split for copy in copies}) == 5


def test_blocks_of_a_copy_name_runs_of_the_same_copy():
    block = Block(
        application_id=APP, node=1, run=64, split=0, seq=0, relation=contract.PAIRS,
        columns={"out": [0, 1], "in": [0, 0], "run": [128, 0]},
    )  # fmt: skip
    (copied,) = blocks_of_copy([block], 3)
    (source,) = blocks_of_copy([Block(application_id=APP, node=0, run=128, split=0, seq=0, relation="")], 3)
    assert copied.columns["run"] == [source.run, 0]
    assert copied.run != block.run

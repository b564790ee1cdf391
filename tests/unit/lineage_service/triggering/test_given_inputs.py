from __future__ import annotations

import json
from typing import Any

import pytest

from lineage_service.completeness import Completeness
from lineage_service.tracing.model.event_log import read_events
from lineage_service.triggering.certain.executions import Execution
from lineage_service.triggering.certain.given_inputs import (
    GivenInput,
    WrittenOutput,
    inputs_of,
    named_after_a_day,
    outputs_of,
)
from spark_agent import contract
from tests.support.dataset_applications import Job, dataset
from tests.support.triggering import BEGAN, execution


def executed(job: Job) -> Execution:
    events = [json.loads(message) for message in job.events]
    log = read_events(events)
    registered = [event for event in events if event["type"] == contract.NODE_REGISTERED]
    return execution(
        nodes=log.nodes(),
        datasets={event["node"]: event["dataset"] for event in registered if event.get("dataset")},
        completeness=Completeness(
            starts=1, has_ended=True, missing_runs=0, missing_events=0, events=0, runs=()
        ),
    )


def inputs(job: Job) -> list[GivenInput]:
    return inputs_of(executed(job))


def source(name: str, path: str, description: str | None = None, **more: Any) -> Job:
    job = Job("app", began=BEGAN)
    text = path if description is None else description
    job.node("source", contract.SOURCE, name=name, description=text, dataset=dataset(path, **more))
    return job


@pytest.mark.parametrize(
    ("job", "paths"),
    [
        (source("textFile", "/in/a.txt"), ("/in/a.txt",)),
        (source("textFile", "/in/*.txt"), ("/in/*.txt",)),
        (source("textFile", "/a,/b", "/a,file:/b"), ("/a", "/b")),
        (source("textFile", "/home/ann/a,b/{c,d}", "a,b/{c,d}"), ("/home/ann/a", "/home/ann/b/{c,d}")),
        (source("Scan csv", "/in/a,b.csv", format="csv"), ("/in/a,b.csv",)),
        (source("Scan csv", "/in/a.csv", format="csv", paths=["/in/*.csv"]), ("/in/*.csv",)),
        (source("Scan csv", "/in/a.csv", format="csv", paths=[]), ()),
    ],
)
def test_an_input_is_what_the_program_named(job: Job, paths: tuple[str, ...]) -> None:
    [given] = inputs(job)
    assert given.paths == paths
    assert bool(given.why) == (not paths)


def delta_job(*, reads_table: bool = True) -> Job:
    """As the agent tells of a job that Delta Lake reads and writes for: it looks for the files of both."""
    job = Job("app", began=BEGAN)
    actions = [{"name": name, "type": "struct"} for name in ("txn", "add", "remove", "metaData", "protocol")]
    for table in ("/out", "/in"):
        log = f"{table}/_delta_log/00000000000000000000.json"
        scan = job.node("source", contract.SOURCE, name="Scan json", dataset=dataset(log, "json", paths=[]))
        job.node("source", contract.SOURCE, name="LogicalRDD", dataset=None, schema=actions)
        job.write("", [scan], dataset=None)
    format = "deltaparquet" if reads_table else "parquet"
    name = f"Scan {format}"
    read = job.node("source", contract.SOURCE, name=name, dataset=dataset("/in", format, paths=[]))
    job.write("/out", [read], dataset=dataset("/out", "deltadatasource" if reads_table else "parquet"))
    return job


def test_how_delta_lake_finds_its_files_is_no_input_and_a_table_is_its_folder() -> None:
    [given] = inputs(delta_job())
    assert (given.name, given.paths, given.is_file) == ("Scan deltaparquet /in", ("/in",), True)
    assert [output.path for output in outputs_of(executed(delta_job()))] == ["/out"]
    # Where no table is known to be read or written, nothing is known of such reads either.
    assert len(inputs(delta_job(reads_table=False))) == 5


def test_a_program_that_reads_a_log_itself_reads_an_input() -> None:
    job = delta_job()
    job.node("source", contract.SOURCE, name="Scan json", dataset=dataset("/in/_delta_log", "json"))
    other = dataset("/other/_delta_log/0.json", "json", paths=[])
    job.node("source", contract.SOURCE, name="Scan json", dataset=other)
    job.node(
        "source", contract.SOURCE, name="LogicalRDD", dataset=None, schema=[{"name": "add", "type": "struct"}]
    )
    assert [given.paths for given in inputs(job)] == [("/in",), ("/in/_delta_log",), (), ()]


def test_what_is_no_file_says_so() -> None:
    job = source("jdbc", "shop.orders", format="jdbc", namespace="postgres://db:5432")
    job.node("source", contract.SOURCE, name="parallelize", dataset=None)
    assert [(given.is_file, given.paths) for given in inputs(job)] == [(False, ()), (False, ())]
    assert inputs(job)[1].is_called("parallelize")
    assert not inputs(job)[1].is_called("textFile")


def test_what_the_job_wrote_itself_is_no_input() -> None:
    job = Job("app", began=BEGAN)
    first = job.read("/in")
    job.write("/tmp/step", [first])
    job.read("/tmp/step/part-00000")
    job.read("/tmp/steps")
    assert [given.location for given in inputs(job)] == ["/in", "/tmp/steps"]


def test_the_files_of_an_input_have_the_sizes_and_times_of_then() -> None:
    job = Job("app", began=BEGAN)
    node = job.node("source", contract.SOURCE, name="textFile", description="/in", dataset=dataset("/in"))
    parts = [
        {"split": split, "path": "/in/a", "start": split * 5, "length": 5, "size": 10, "modified": 7}
        for split in range(2)
    ]
    job.tell(contract.PARTITIONS, node=node, partitions=parts)
    assert inputs(job)[0].files == {"/in/a": (10, 7)}


def outputs(job: Job) -> list[WrittenOutput]:
    return outputs_of(executed(job))


def test_outputs_are_places_and_functions() -> None:
    job = Job("app", began=BEGAN)
    first = job.read("/in")
    job.write("/out", [first], dataset=dataset("/out", appends=True))
    job.node("sink", contract.IDENTITY, [first], name="collect", dataset=None)
    job.node("sink", contract.IDENTITY, [first], name="foreach", dataset=None)
    job.write("orders", [first], dataset=dataset("orders", "jdbc", "postgres://db"))
    assert [(output.path, output.appends, bool(output.why)) for output in outputs(job)] == [
        ("/out", True, False),
        (None, False, True),
        (None, False, True),
    ]


def test_what_a_job_adds_to_its_own_output_of_this_time_is_no_appending() -> None:
    job = Job("app", began=BEGAN)
    first = job.read("/in")
    job.write("/out", [first])
    job.write("/out", [first], dataset=dataset("/out", appends=True))
    [output] = outputs(job)
    assert not output.appends


def test_what_a_job_changes_of_what_it_wrote_this_time_is_no_part_of_earlier_runs() -> None:
    job = Job("app", began=BEGAN)
    first = job.read("/in")
    job.write("/out", [first])
    job.write("/out", [first], dataset=dataset("/out", replaces_part=True))
    job.write("/kept", [first], dataset=dataset("/kept", replaces_part=True))
    assert [(output.path, output.replaces_part) for output in outputs(job)] == [
        ("/out", False),
        ("/kept", True),
    ]


@pytest.mark.parametrize(
    ("path", "is_named"),
    [
        ("/in/dt=2026-11-18", True),
        ("/in/20261118/x", True),
        ("/in/2026/11/18", True),
        ("/in/year=2026/month=11/day=18", True),
        ("/in/dt=2026-11-10", False),
        ("/in", False),
    ],
)
def test_a_path_may_name_the_day(path: str, is_named: bool) -> None:
    assert named_after_a_day(path, BEGAN) == is_named

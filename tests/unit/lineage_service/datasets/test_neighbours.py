from __future__ import annotations

from typing import Any

from lineage_service.datasets import neighbours
from lineage_service.datasets.neighbours import Neighbours
from lineage_service.lineage import DatasetGraph
from spark_agent import contract
from spark_agent.contract.dataset_names import DatasetName
from tests.support.dataset_applications import Job, catalogue, dataset


def copy(name: str, sources: str, outputs: str, began: int = 1, application_id: str = "") -> Job:
    """A job that makes each of its outputs of all its sources; both are letters."""
    job = Job(application_id or name, name, began)
    read = [job.read(f"/{letter}") for letter in sources]
    for letter in outputs:
        job.write(f"/{letter}", read)
    return job.end()


def graph(letter: str, *jobs: Job, **options: Any) -> DatasetGraph:
    return Neighbours(catalogue(*jobs)).of(DatasetName("file", f"/{letter}"), **options)


def layers(answer: DatasetGraph) -> dict[str, int]:
    return {node.name.strip("/"): node.layer for node in answer.nodes}


CHAIN = (copy("clean", "a", "b"), copy("sum", "bc", "d"), copy("report", "d", "e"))


def test_data_sets_and_jobs_stand_in_layers_from_left_to_right() -> None:
    answer = graph("d", *CHAIN)
    assert layers(answer) == {"a": -4, "clean": -3, "b": -2, "c": -2, "sum": -1, "d": 0, "report": 1, "e": 2}
    assert [node.layer for node in answer.nodes] == sorted(node.layer for node in answer.nodes)
    assert len(answer.edges) == 7
    assert not answer.truncated


def test_one_direction_leaves_the_other_out() -> None:
    assert set(layers(graph("b", *CHAIN, direction="backward"))) == {"b", "clean", "a"}
    assert set(layers(graph("b", *CHAIN, direction="forward"))) == {"b", "sum", "d", "report", "e"}


def test_depth_counts_jobs_and_says_what_it_leaves_out() -> None:
    answer = graph("d", *CHAIN, direction="backward", depth=1)
    assert set(layers(answer)) == {"d", "sum", "b", "c"}
    assert answer.truncated
    assert not graph("d", *CHAIN, direction="backward", depth=2).truncated
    assert set(layers(graph("d", *CHAIN, depth=0))) == {"d"}


def test_every_edge_leads_to_the_right_though_there_is_a_shorter_way() -> None:
    answer = graph("c", copy("long", "a", "b"), copy("short", "ab", "c"))
    at = {node.id: node.layer for node in answer.nodes}
    assert all(at[edge.source] < at[edge.target] for edge in answer.edges)
    assert layers(answer)["a"] == -4


def test_a_job_that_appends_to_what_it_read_is_before_it_and_behind_it() -> None:
    answer = graph("a", copy("append", "a", "a"))
    assert {(edge.source, edge.target) for edge in answer.edges} == {
        ("dataset:file:/a", "job:append"),
        ("job:append", "dataset:file:/a"),
    }


def test_a_circle_of_jobs_ends() -> None:
    answer = graph("a", copy("there", "a", "b"), copy("back", "b", "a"))
    assert set(layers(answer)) == {"a", "b", "there", "back"}
    assert len(answer.edges) == 4


def test_a_job_joins_only_what_its_rows_went_through() -> None:
    job = Job("app", "two")
    job.write("/b", [job.read("/a")])
    job.write("/d", [job.read("/c")])
    assert set(layers(graph("b", job))) == {"a", "two", "b"}
    assert set(layers(graph("c", job))) == {"c", "two", "d"}


def test_a_reader_that_wrote_nothing_is_behind_a_data_set_too() -> None:
    assert layers(graph("a", copy("look", "a", ""))) == {"a": 0, "look": 1}


def test_applications_of_one_name_are_one_job_with_its_runs_and_the_latest() -> None:
    jobs = [copy("nightly", "a", "b", began=at, application_id=f"app-{at}") for at in (10, 30, 20)]
    failed = Job("app-40", "nightly", 40)
    failed.tell(contract.APPLICATION_ENDED, state="failed")
    answer = graph("b", *jobs, failed)
    job = next(node for node in answer.nodes if node.kind == "job")
    assert (job.name, job.runs, job.failed_runs, job.application_id, job.at) == (
        "nightly",
        4,
        1,
        "app-40",
        40,
    )
    data = next(node for node in answer.nodes if node.name == "/b")
    assert (data.runs, data.failed_runs, data.application_id, data.at) == (3, 0, "app-30", 31)


def test_what_may_have_gone_through_the_memory_of_the_program_is_only_possible() -> None:
    job = Job("app", "driver")
    job.node("sink", contract.IDENTITY, [job.read("/a")])
    job.write("/b", [job.node("source", contract.SOURCE)])
    exact = {(edge.source, edge.target): edge.exact for edge in graph("b", job).edges}
    assert exact == {
        ("dataset:file:/a", "job:driver"): False,
        ("job:driver", "dataset:file:/b"): True,
    }


def test_what_a_job_used_without_a_name_is_remarked() -> None:
    job = Job("app", "stream")
    job.unfollowed([{"name": "table", "description": "db.raw"}], {"name": "csv", "dataset": dataset("/a")})
    answer = graph("a", job)
    remarks = {node.name: node.remark for node in answer.nodes}
    assert remarks["stream"] == "also read 'table db.raw': it is a stream"
    assert remarks["/a"] == "written by a query of 'stream' that was not followed: it is a stream"


def test_a_graph_has_an_end_and_says_so() -> None:
    jobs = [copy(f"job-{number}", "a", "", application_id=f"app-{number}") for number in range(600)]
    answer = graph("a", *jobs)
    assert answer.truncated
    assert 100 < len(answer.nodes) <= neighbours.MOST_NODES + 1


def test_a_long_chain_needs_no_deep_stack() -> None:
    jobs = []
    for number in range(200):
        job = Job(f"app-{number}", f"job-{number}", number)
        job.write(f"/{number + 1}", [job.read(f"/{number}")])
        jobs.append(job)
    answer = Neighbours(catalogue(*jobs)).of(DatasetName("file", "/200"), direction="backward")
    assert min(node.layer for node in answer.nodes) == -400

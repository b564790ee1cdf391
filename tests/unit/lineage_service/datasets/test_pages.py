from __future__ import annotations

import pytest

from lineage_service.datasets.pages import dataset_page, datasets_page
from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import Datasets
from lineage_service.outcomes import LOST_AFTER_MS
from lineage_service.queries import DatasetQuery, DatasetsQuery
from spark_agent import contract
from tests.support.dataset_applications import Job, dataset, state


def run(application_id: str, began: int, *outputs: str, name: str = "Takings", source: str = "/in") -> Job:
    job = Job(application_id, name, began)
    read = job.read(source, rows=5)
    for output in outputs:
        job.write(output, [read], rows=5)
    return job.end()


def names(page: Datasets) -> list[str]:
    return [one.name for one in page.datasets]


def test_the_latest_written_come_first_and_then_what_was_only_read() -> None:
    jobs = run("a", 10, "/old", source="/raw"), run("b", 50, "/new"), run("c", 30, "/middle")
    assert names(datasets_page(state(*jobs), DatasetsQuery())) == ["/new", "/middle", "/old", "/in", "/raw"]


def test_pages_list_each_data_set_once() -> None:
    jobs = [run(f"app-{at}", at, f"/{at}", f"/{at}b", source=f"/in/{at}") for at in range(7)]
    everything = datasets_page(state(*jobs), DatasetsQuery())
    listed: list[str] = []
    cursor = None
    while True:
        page = datasets_page(state(*jobs), DatasetsQuery(limit=3, cursor=cursor))
        assert page.total == everything.total == 21
        listed += names(page)
        cursor = page.next
        if cursor is None:
            break
    assert listed == names(everything)


def test_a_summary_says_who_wrote_last_and_how_many_use_it() -> None:
    jobs = (
        run("first", 10, "/out"),
        run("second", 20, "/out"),
        run("reader", 30, "/other", name="Report", source="/out"),
    )
    (summary,) = datasets_page(state(*jobs), DatasetsQuery(text="OUT")).datasets
    assert summary.written is not None
    assert summary.written.application_id == "second"
    assert (summary.written.name, summary.written.at, summary.written.rows) == ("Takings", 21, 5)
    assert (summary.written.state, summary.written.complete) == ("complete", True)
    assert summary.written.node_id == "second#1"
    assert (summary.writers, summary.readers, summary.runs, summary.failed_runs) == (1, 1, 2, 0)
    assert summary.read_at == 30


def test_failed_cancelled_and_lost_writes_are_counted() -> None:
    jobs = []
    for number, how in enumerate(("failed", "aborted", "complete")):
        job = Job(f"app-{number}", began=number)
        sink = job.node("sink", contract.IDENTITY, dataset=dataset("/out"))
        job.tell(contract.ACTION_ENDED, node=sink, state=how)
        jobs.append(job.end())
    lost = Job("lost", began=9)
    lost.node("sink", contract.IDENTITY, dataset=dataset("/out"))
    lost.tell(contract.ALIVE)
    now = 9 + LOST_AFTER_MS
    (summary,) = datasets_page(state(*jobs, lost, now_ms=now), DatasetsQuery()).datasets
    assert (summary.runs, summary.failed_runs, summary.written and summary.written.state) == (4, 2, "running")
    (summary,) = datasets_page(state(*jobs, lost, now_ms=now + 1), DatasetsQuery()).datasets
    assert (summary.runs, summary.failed_runs, summary.written and summary.written.state) == (4, 3, "lost")


def test_a_write_of_an_older_agent_ended_as_its_application_did() -> None:
    ended, failed = Job("ended", began=1), Job("failed", began=5)
    for job, how in ((ended, "succeeded"), (failed, "failed")):
        job.node("sink", contract.IDENTITY, dataset=dataset("/out"))
        job.end(state=how)
    history = dataset_page(state(ended, failed), DatasetQuery(name="/out")).history
    assert [use.state for use in history] == ["failed", "complete"]


def test_the_schema_is_that_of_the_latest_use_that_has_one() -> None:
    old, new = Job("old", began=1), Job("new", began=2)
    old.write("/out", schema=[{"name": "a", "type": "int"}])
    new.write("/out", schema=[{"name": "a", "type": "int"}, {"name": "b", "type": "string"}])
    bare = run("bare", 3, "/out")
    (summary,) = datasets_page(state(old, new, bare), DatasetsQuery(text="out")).datasets
    assert [column.name for column in summary.schema] == ["a", "b"]


def test_the_history_has_each_write_and_each_reading_application_newest_first() -> None:
    twice = Job("twice", "Report", began=40)
    sources = [twice.read("/out", rows=2), twice.read("/out", rows=3)]
    twice.write("/report", sources)
    page = dataset_page(state(run("first", 10, "/out", "/out"), twice.end()), DatasetQuery(name="/out"))
    assert [(use.kind, use.application_id, use.node_ids, use.at, use.rows) for use in page.history] == [
        ("read", "twice", ("twice#0", "twice#1"), 40, 5),
        ("write", "first", ("first#2",), 12, 5),
        ("write", "first", ("first#1",), 11, 5),
    ]
    assert page.total == 3


def test_two_runs_of_one_name_are_told_apart_by_time() -> None:
    page = dataset_page(state(run("a", 10, "/out"), run("b", 20, "/out")), DatasetQuery(name="/out"))
    assert [(use.name, use.application_id, use.at) for use in page.history] == [
        ("Takings", "b", 21),
        ("Takings", "a", 11),
    ]


def test_the_history_comes_in_pages() -> None:
    jobs = [run(f"app-{at:02}", at, "/out") for at in range(11)]
    listed: list[str] = []
    cursor = None
    while True:
        page = dataset_page(state(*jobs), DatasetQuery(name="/out", limit=4, cursor=cursor))
        listed += [use.application_id for use in page.history]
        cursor = page.next
        if cursor is None:
            break
    assert listed == [f"app-{at:02}" for at in reversed(range(11))]


def test_what_is_not_exact_says_why() -> None:
    job = Job("app", began=1)
    source = job.read("/in")
    job.write("/out", [job.node("operator", contract.FLOWS, [source], exact=False, reason="mapInPandas")])
    (use,) = dataset_page(state(job), DatasetQuery(name="/out")).history
    assert (use.exact, use.reason) == (False, "mapInPandas")


def test_a_query_that_was_not_followed_is_remarked() -> None:
    job = Job("app", "Stream")
    job.unfollowed([{"name": "Scan", "dataset": dataset("/in")}], {"name": "console"})
    (summary,) = datasets_page(state(job), DatasetsQuery()).datasets
    assert summary.remark == "read by a query of 'Stream' that was not followed: it is a stream"
    (use,) = dataset_page(state(job), DatasetQuery(name="/in")).history
    assert (use.exact, use.rows) == (False, None)


@pytest.mark.parametrize("cursor", ["x", "W10", "bnVsbA", "WyJhIiwxXQ", "e30", "~~", "9" * 5000])
def test_a_foreign_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidQueryError, match="cursor"):
        datasets_page(state(run("a", 1, "/out")), DatasetsQuery(cursor=cursor))
    with pytest.raises(InvalidQueryError, match="cursor"):
        dataset_page(state(run("a", 1, "/out")), DatasetQuery(name="/out", cursor=cursor))


def test_a_cursor_belongs_to_its_query() -> None:
    jobs = [run("a", 1, "/x1", "/x2")]
    cursor = datasets_page(state(*jobs), DatasetsQuery(text="x", limit=1)).next
    with pytest.raises(InvalidQueryError, match="another query"):
        datasets_page(state(*jobs), DatasetsQuery(text="y", cursor=cursor))

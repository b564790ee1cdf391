from __future__ import annotations

from spark_agent import contract
from tests.support.dataset_applications import Job, dataset


def exactness_of_last(job: Job) -> bool:
    return list(job.details().uses.values())[-1].exact


def test_a_write_is_exact_where_everything_before_it_is() -> None:
    job = Job("app")
    source = job.read("/in")
    unclear = job.node("operator", contract.FLOWS, [source], exact=False, reason="mapInPandas reads all")
    job.write("/out/a", [source])
    job.write("/out/b", [unclear])
    _, a, b = job.details().uses.values()
    assert (a.exact, a.reason) == (True, "")
    assert (b.exact, b.reason) == (False, "mapInPandas reads all")


def test_a_partition_of_which_every_row_was_followed_is_exact() -> None:
    job = Job("app")
    source = job.read("/in")
    whole = job.node("operator", contract.PARTITION, [source], exact=False, reason="it reads partitions")
    job.run(source, [whole], 2, 2, overridden=[whole])
    job.write("/out", [whole])
    assert exactness_of_last(job)
    job.run(source, [whole], 2, 2, split=1)
    assert not exactness_of_last(job)


# -- rows -------------------------------------------------------------------------------------------------


def rows_of(job: Job) -> list[int | None]:
    return [use.rows for use in job.details().uses.values()]


def test_rows_of_lines_are_those_of_the_runs_of_each_partition() -> None:
    job = Job("app")
    source = job.read("/in")
    sink = job.write("/out", [source])
    for split, rows in enumerate((3, 4)):
        job.run(source, [sink], rows, rows, split=split, action=sink)
    job.run(source, [sink], 4, 4, split=1, action=sink)  # a copy
    assert rows_of(job) == [7, 7]


def test_rows_that_a_statement_deleted_are_no_rows_of_what_it_made() -> None:
    job = Job("app")
    source = job.read("/t")
    sink = job.write("/t", [source], dataset=dataset("/t", "delta") | {"operation": "delete"})
    job.run(source, [sink], 3, 3, action=sink)
    assert rows_of(job) == [3, 0]


def test_rows_after_a_filter_are_its_outputs() -> None:
    job = Job("app")
    source = job.read("/in")
    kept = job.node("operator", contract.FLOWS, [source])
    sink = job.write("/out", [kept])
    job.run(source, [kept, sink], 9, 5, action=sink)
    assert rows_of(job) == [9, 5]


def test_rows_of_a_sink_that_no_task_has_are_those_of_what_it_took() -> None:
    job = Job("app")
    source = job.read("/in")
    kept = job.node("operator", contract.FLOWS, [source])
    more = job.node("operator", contract.FLOWS, [kept])
    sink = job.write("/out", [kept])
    job.run(source, [kept, more], 9, 2, action=sink, counts={str(kept): 5})
    assert rows_of(job) == [9, 5]


def test_rows_that_only_flows_would_tell_are_not_counted() -> None:
    job = Job("app")
    source = job.read("/in")
    kept = job.node("operator", contract.FLOWS, [source])
    more = job.node("operator", contract.FLOWS, [kept])
    sink = job.write("/out", [kept])
    job.run(source, [kept, more], 9, 2, action=sink)
    assert rows_of(job) == [9, None]


def test_rows_with_ids_are_those_of_the_latest_execution() -> None:
    job = Job("app")
    source = job.read("/in", by_id=True)
    sink = job.write("/out", [source], by_id=True)
    for execution, split, rows in ((0, 0, 8), (1, 0, 2), (1, 0, 3), (1, 1, 4)):
        job.run(sink, [], rows, rows, split=split, execution=execution)
    for split, rows in ((0, 6), (0, 5), (1, 1)):
        job.run(source, [], rows, rows, split=split)
    assert rows_of(job) == [7, 7]


def test_what_an_agent_counted_itself_counts() -> None:
    job = Job("app")
    number = job.node("sink", contract.IDENTITY, dataset=dataset("/out"))
    job.tell(contract.ACTION_ENDED, node=number, state=contract.ACTION_COMPLETE, rows=12)
    assert rows_of(job) == [12]


def test_a_query_that_was_not_followed_has_rows_that_nobody_counted() -> None:
    job = Job("app")
    job.unfollowed([], {"name": "csv", "dataset": dataset("/out")})
    (use,) = job.details().uses.values()
    assert (use.rows, use.exact, use.reason) == (None, False, "it is a stream")

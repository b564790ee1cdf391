from __future__ import annotations

import json
import random

import pytest

from lineage_service.datasets.application_uses import uses_of
from lineage_service.datasets.uses import Use
from lineage_service.lineage import Column
from lineage_service.outcomes import NodeOutcome
from spark_agent import contract
from tests.support.dataset_applications import Job, dataset


def only_use(job: Job) -> Use:
    (use,) = job.uses().uses
    return use


def test_sources_and_sinks_that_name_data_are_uses_and_others_are_not() -> None:
    job = Job("app", "Nightly", began=5)
    orders = job.read("/in/orders.csv")
    numbers = job.node("source", contract.SOURCE)  # parallelize
    joined = job.node("operator", contract.FLOWS, [orders, numbers])
    job.node("sink", contract.IDENTITY, [joined])  # collect
    job.write("/out/sums", [joined])
    uses = job.end().uses()
    assert (uses.name, uses.began, uses.outcome.state) == ("Nightly", 5, "ended")
    assert [(use.place.name, use.is_write) for use in uses.uses] == [
        ("/in/orders.csv", False),
        ("/out/sums", True),
    ]
    assert uses.unnamed == ()


def test_neither_order_nor_repetition_of_events_matters() -> None:
    job = Job("app", began=1)
    source = job.read("/in", ["/in/a", "/in/b"], rows=3)
    job.write("/out", [source], rows=3)
    job.end()
    events = [json.loads(message) for message in job.events]
    shuffled = events * 2
    random.Random(7).shuffle(shuffled)
    assert uses_of("app", shuffled) == uses_of("app", events)


def test_rows_that_a_statement_deleted_are_no_write_beside_what_it_wrote() -> None:
    job = Job("app")
    table = job.read("/t")
    gone = dataset("/t", "delta") | {"operation": "delete"}
    job.write("/t", [table], dataset=gone | {"version": "3"})
    kept = job.write("/t", [table], dataset=dataset("/t", "delta") | {"version": "3"})
    alone = job.write("/t", [table], dataset=gone | {"version": "4"})
    assert [use.node for use in job.uses().uses if use.is_write] == [kept, alone]


def test_files_are_grouped_by_folder_and_those_of_partitions_belong_to_their_table() -> None:
    job = Job("app")
    job.read(
        "/in/*.csv", ["/in/a.csv", "/in/b.csv", "/t/day=1/part-0.csv", "/t/day=2/x.csv", "s3a://b/k/c.csv"]
    )
    files = {folder.name: names for folder, names in only_use(job).files.items()}
    assert files == {"/in": ("a.csv", "b.csv"), "/t": (), "k": ("c.csv",)}


def test_parts_and_whole_files_of_a_partition_are_files_too() -> None:
    job = Job("app")
    node = job.read("/in")
    job.tell(
        contract.PARTITIONS,
        node=node,
        partitions=[
            {"split": 0, "parts": [{"path": "/in/a", "first": 0}, {"path": "/in/b", "first": 9}]},
            {"split": 1, "files": [{"path": "/in/c"}]},
        ],
    )
    ((_, files),) = only_use(job).files.items()
    assert files == ("a", "b", "c")


def test_the_sources_behind_a_write_are_those_that_its_rows_came_from() -> None:
    job = Job("app")
    first, second = job.read("/in/a"), job.read("/in/b")
    job.write("/out/a", [first])
    job.write("/out/b", [job.node("operator", contract.FLOWS, [second])])
    a, b = (use for use in job.uses().uses if use.is_write)
    assert (a.behind, b.behind) == (((first, True),), ((second, True),))


def test_rows_that_were_in_the_memory_of_the_program_may_have_come_from_what_it_collected() -> None:
    job = Job("app")
    before, unrelated = job.read("/in/a"), job.read("/in/b")
    job.node("sink", contract.IDENTITY, [before])  # collect
    made = job.node("source", contract.SOURCE)  # createDataFrame
    job.node("sink", contract.IDENTITY, [unrelated])  # a later collect gave nothing to it
    job.write("/out", [made])
    write = job.uses().uses[-1]
    assert write.behind == ((before, False), (made, True))


def test_a_table_made_of_an_action_of_the_driver_is_certain() -> None:
    job = Job("app")
    source = job.read("/in/a")
    count = job.node("sink", contract.AGGREGATE, [source])
    made = job.node("source", contract.SOURCE)
    job.tell(contract.DRIVER, source=count, target=made)
    job.write("/out", [made])
    assert dict(job.uses().uses[-1].behind)[source] is True


@pytest.mark.parametrize("state", ["complete", "failed", "aborted"])
def test_how_a_write_ended_is_known(state: str) -> None:
    job = Job("app", began=3)
    number = job.node("sink", contract.IDENTITY, dataset=dataset("/out"))
    assert only_use(job).outcome is None
    job.time = 9
    job.tell(contract.ACTION_ENDED, node=number, state=state)
    assert only_use(job).outcome == NodeOutcome(state=state, error=None)  # type: ignore[arg-type]
    assert only_use(job).at == 9


def test_schema_partition_columns_and_aliases_are_read() -> None:
    job = Job("app")
    symlinks = [{"namespace": "hive://m:9083", "name": "db.sales", "type": "TABLE"}]
    job.read(
        "/warehouse/sales",
        dataset=dataset("/warehouse/sales", "parquet", partitions=["day"], symlinks=symlinks),
        schema=[
            {"name": "id", "type": "bigint", "nullable": False},
            {"name": "at", "type": "struct", "fields": [{"name": "lat", "type": "double"}]},
        ],
    )
    use = only_use(job)
    assert use.partitions == ("day",)
    assert use.aliases == ("db.sales",)
    assert use.schema == (
        Column(name="id", type="bigint", nullable=False),
        Column(name="at", type="struct", fields=(Column(name="lat", type="double"),)),
    )


def test_a_format_is_one_word() -> None:
    job = Job("app")
    job.read("/in", dataset=dataset("/in", "csv unlike the lines of the file"))
    assert only_use(job).format == "csv"


def test_what_was_not_followed_and_has_no_name_of_a_data_set_is_kept_as_a_text() -> None:
    job = Job("app")
    job.unfollowed([{"name": "table", "description": "db.raw"}], {"name": "jdbc", "dataset": dataset("/out")})
    uses = job.uses()
    assert [(use.place.name, use.is_followed) for use in uses.uses] == [("/out", False)]
    assert [(thing.text, thing.is_write, thing.reason) for thing in uses.unnamed] == [
        ("table db.raw", False, "it is a stream")
    ]


def test_a_replay_of_another_application_uses_nothing() -> None:
    job = Job("app", replay={"of": "other"})
    job.read("/in")
    assert job.uses().uses == ()

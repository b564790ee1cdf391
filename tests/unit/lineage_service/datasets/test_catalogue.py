from __future__ import annotations

from spark_agent import contract
from spark_agent.contract.dataset_names import DatasetName
from tests.support.dataset_applications import Job, catalogue, dataset


def written(path: str, application_id: str = "writer", **fields: object) -> Job:
    job = Job(application_id, began=1)
    job.write(path, **fields)  # type: ignore[arg-type]  # fields of an event
    return job.end()


def read(path: str, files: list[str], application_id: str = "reader") -> Job:
    job = Job(application_id, began=5)
    job.read(path, files)
    return job.end()


def users(*jobs: Job) -> dict[str, tuple[int, int]]:
    """Dataset -> how many times it was written and read."""
    entries = catalogue(*jobs).entries
    return {entry.path: (len(entry.writes), len(entry.reads)) for entry in entries.values()}


def test_a_folder_that_one_wrote_and_another_read_is_one_dataset() -> None:
    assert users(written("/out"), read("/out", ["/out/part-0", "/out/part-1"])) == {"/out": (1, 1)}


def test_two_schemes_of_one_store_are_one_place() -> None:
    writer = written("", dataset=dataset("/t", "parquet", "s3a://bucket"))
    reader = Job("reader", began=5)
    reader.read("", ["s3n://bucket/t/part-0"], dataset=dataset("/t/part-0", "parquet", "s3n://bucket"))
    (entry,) = catalogue(writer, reader).entries.values()
    assert entry.place == DatasetName("s3://bucket", "t")
    assert (len(entry.writes), len(entry.reads)) == (1, 1)


def test_the_folders_of_partitions_belong_to_their_table() -> None:
    jobs = written("/t/day=1"), written("/t/day=2/hour=3", "b"), read("/t/day=1", ["/t/day=1/part-0"])
    assert users(*jobs) == {"/t": (2, 1)}


def test_a_file_that_was_read_alone_belongs_to_the_folder_that_a_job_wrote() -> None:
    assert users(written("/out"), read("/out/part-0", ["/out/part-0"])) == {"/out": (1, 1)}


def test_a_glob_is_the_folder_of_its_files() -> None:
    assert users(read("/in/*.csv", ["/in/a.csv", "/in/b.csv"])) == {"/in": (0, 1)}
    assert users(read("/in/*.csv", ["/in/a.csv"])) == {"/in": (0, 1)}
    assert users(read("/in/*.csv", [])) == {"/in": (0, 1)}


def test_several_files_of_a_folder_are_the_folder_and_one_is_itself() -> None:
    assert users(read("/in/a.csv", ["/in/a.csv", "/in/b.csv"])) == {"/in": (0, 1)}
    assert users(read("/in/a.csv", ["/in/a.csv"])) == {"/in/a.csv": (0, 1)}


def test_a_file_belongs_to_its_folder_where_another_application_read_that() -> None:
    assert users(read("/in", ["/in/a", "/in/b"]), read("/in/a", ["/in/a"], "other")) == {"/in": (0, 2)}


def test_two_files_that_are_read_by_themselves_stay_two() -> None:
    jobs = read("/in/a", ["/in/a"]), read("/in/b", ["/in/b"], "other")
    assert users(*jobs) == {"/in/a": (0, 1), "/in/b": (0, 1)}


def test_a_source_of_several_folders_reads_each_of_them() -> None:
    jobs = written("/e/1"), written("/e/2", "b"), read("/e/*", ["/e/1/part-0", "/e/2/part-0"])
    assert users(*jobs) == {"/e/1": (1, 1), "/e/2": (1, 1)}


def test_a_folder_within_another_is_a_dataset_of_its_own_where_a_job_wrote_it() -> None:
    jobs = (
        written("/out"),
        written("/out/rejected", "b"),
        read("/out", ["/out/part-0", "/out/rejected/part-0"]),
    )
    assert users(*jobs) == {"/out": (1, 1), "/out/rejected": (1, 1)}


def test_files_that_programs_wrote_into_one_folder_are_told_apart() -> None:
    jobs = written("/out/a.txt"), written("/out/b.txt", "b"), read("/out", ["/out/a.txt", "/out/c.txt"])
    assert users(*jobs) == {"/out/a.txt": (1, 1), "/out/b.txt": (1, 0), "/out": (0, 1)}


def test_a_query_that_was_not_followed_may_have_read_all_that_is_in_its_folder() -> None:
    job = Job("stream", began=9)
    job.unfollowed([{"dataset": dataset("/out")}], {"dataset": dataset("topic", "kafka", "kafka://b:9092")})
    jobs = written("/out/a"), written("/out/b", "b"), job
    assert users(*jobs) == {
        "/out/a": (1, 1),
        "/out/b": (1, 1),
        "/out": (0, 1),
        "kafka://b:9092/topic": (1, 0),
    }


def test_an_unknown_pattern_reads_what_matches_it() -> None:
    job = Job("stream", began=9)
    job.unfollowed([{"dataset": dataset("/out/{a,c}*")}], {"name": "count"})
    jobs = written("/out/a1"), written("/out/b1", "b"), written("/out/c", "c"), job
    assert users(*jobs) == {"/out/a1": (1, 1), "/out/b1": (1, 0), "/out/c": (1, 1)}


def test_tables_of_databases_are_not_folders() -> None:
    job = Job("app")
    table = dataset("shop.public.orders", "jdbc", "postgres://h:5432")
    job.read("", dataset=table)
    job.write("", dataset=table)
    assert users(job) == {"postgres://h:5432/shop.public.orders": (1, 1)}


def test_the_uses_of_a_dataset_are_in_time() -> None:
    jobs = [Job(f"run-{at}", "Nightly", began=at) for at in (30, 10, 20)]
    for job in jobs:
        job.write("/out")
        job.end()
    entry = catalogue(*jobs).entries[DatasetName("file", "/out")]
    assert [write.application.application_id for write in entry.writes] == ["run-10", "run-20", "run-30"]


def test_the_root_is_a_folder_too() -> None:
    assert users(read("/a.csv", ["/a.csv"])) == {"/a.csv": (0, 1)}


def test_a_node_of_another_relation_without_a_dataset_is_none() -> None:
    job = Job("app")
    job.node("sink", contract.PARTITION, dataset={"namespace": "file", "name": "", "format": ""})
    assert users(job) == {}

from __future__ import annotations

import pytest

from lineage_service.datasets.search import UnknownDatasetError, dataset_named, datasets_with
from lineage_service.errors import InvalidQueryError
from tests.support.dataset_applications import Job, catalogue, dataset

FILES = ("/data/orders.csv", "/data/monthly", "/old/monthly", "/warehouse/shop.db/sales")


def shop() -> Job:
    job = Job("app", "Nightly")
    for path in FILES:
        job.write(path)
    job.write("", dataset=dataset("/events/raw", "parquet", "s3a://bucket"))
    job.write("", dataset=dataset("visits", "kafka", "kafka://broker:9092"))
    job.write("", dataset=dataset("shop.public.stock", "jdbc", "postgres://h:5432"))
    aliases = [{"namespace": "hive://m:9083", "name": "spark_catalog.shop.returns"}]
    job.write("", dataset=dataset("/warehouse/r", "parquet", symlinks=aliases))
    return job


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("/data/orders.csv", "/data/orders.csv"),
        ("/data/monthly/", "/data/monthly"),
        ("/data//monthly", "/data/monthly"),
        ("file:/data/monthly", "/data/monthly"),
        ("file:///data/monthly", "/data/monthly"),
        ("/data/monthly/part-00000", "/data/monthly"),
        ("/data/monthly/day=1", "/data/monthly"),
        ("/data/monthly/day=1/part-00000-4.parquet", "/data/monthly"),
        ("orders.csv", "/data/orders.csv"),
        ("data/monthly", "/data/monthly"),
        ("s3a://bucket/events/raw", "s3://bucket/events/raw"),
        ("s3n://bucket/events/raw/", "s3://bucket/events/raw"),
        ("s3://bucket/events/raw/part-0", "s3://bucket/events/raw"),
        ("events/raw", "s3://bucket/events/raw"),
        ("raw", "s3://bucket/events/raw"),
        ("visits", "kafka://broker:9092/visits"),
        ("kafka://broker:9092/visits", "kafka://broker:9092/visits"),
        ("public.stock", "postgres://h:5432/shop.public.stock"),
        ("shop.sales", "/warehouse/shop.db/sales"),
        ("shop.returns", "/warehouse/r"),
        ("spark_catalog.shop.returns", "/warehouse/r"),
    ],
)
def test_a_dataset_has_many_names(name: str, path: str) -> None:
    assert dataset_named(catalogue(shop()), name).path == path


def test_several_matches_are_listed() -> None:
    with pytest.raises(InvalidQueryError) as error:
        dataset_named(catalogue(shop()), "monthly")
    assert str(error.value) == "'monthly' may be any of several datasets: /data/monthly, /old/monthly"


def in_catalog(name: str, place: str, warehouse: str) -> Job:
    job = Job(name, name)
    aliases = [{"namespace": f"file:{warehouse}", "name": "db.t"}]
    job.write("", dataset=dataset(place, "iceberg", symlinks=aliases), description=f"{name}.db.t")
    return job


def test_tables_of_two_catalogs_are_told_apart() -> None:
    a, b = in_catalog("a", "/a/db/t", "/a"), in_catalog("b", "/b/db/t", "/b")
    assert dataset_named(catalogue(a, b), "a.db.t").path == "/a/db/t"
    assert dataset_named(catalogue(a, b), "b.db.t").path == "/b/db/t"
    with pytest.raises(InvalidQueryError, match=r"'db\.t' may be any of several datasets: /a/db/t, /b/db/t"):
        dataset_named(catalogue(a, b), "db.t")
    assert dataset_named(catalogue(a), "db.t").path == "/a/db/t"
    with pytest.raises(UnknownDatasetError, match=r"no application wrote or read a dataset 'b\.db\.t'"):
        dataset_named(catalogue(a), "b.db.t")


def test_more_matches_than_a_sentence_holds_are_counted() -> None:
    job = Job("app")
    for number in range(12):
        job.write(f"/{number:02}/x")
    with pytest.raises(InvalidQueryError, match=r"/09/x and 2 more$"):
        dataset_named(catalogue(job), "x")


def test_a_namespace_tells_apart_what_has_one_name() -> None:
    job = Job("app")
    job.write("/data")
    job.write("", dataset=dataset("/data", "text", "hdfs://nn:8020"))
    made = catalogue(job)
    assert dataset_named(made, "/data").place.namespace == "file"
    assert dataset_named(made, "/data", "hdfs://nn:8020").path == "hdfs://nn:8020/data"


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("/data/monthyl", "/data/monthly"),
        ("ordrs.csv", "/data/orders.csv"),
        ("/DATA/ORDERS.CSV", "/data/orders.csv"),
        ("s3a://bucket/event/raw", "s3://bucket/events/raw"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(UnknownDatasetError) as error:
        dataset_named(catalogue(shop()), name)
    assert str(error.value).startswith(f"no application wrote or read a dataset {name!r}; nearest: {nearest}")


def test_nothing_is_near_to_what_is_like_nothing() -> None:
    with pytest.raises(UnknownDatasetError) as error:
        dataset_named(catalogue(shop()), "\x00§")
    assert str(error.value) == "no application wrote or read a dataset '\\x00§'"


def test_of_what_was_not_followed_it_is_said_who_wrote_it() -> None:
    job = Job("app-7", "Loader")
    job.unfollowed([], {"name": "AppendData", "description": "lake.visits"}, "a table of Iceberg")
    with pytest.raises(UnknownDatasetError) as error:
        dataset_named(catalogue(shop(), job), "lake.visits")
    assert str(error.value) == (
        "no application wrote or read a dataset 'lake.visits' that is known by name. 'Loader' (app-7) wrote "
        "'AppendData lake.visits', which was not followed: a table of Iceberg"
    )


@pytest.mark.parametrize(
    ("text", "count"),
    [(None, 8), ("", 8), ("MONTHLY", 2), ("s3a://bucket", 1), ("shop", 3), ("kafka", 1), ("nothing", 0)],
)
def test_a_text_is_searched_in_all_names_in_any_case(text: str | None, count: int) -> None:
    assert len(datasets_with(catalogue(shop()), text)) == count

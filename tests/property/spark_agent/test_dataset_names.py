"""Names of datasets, beside those that OpenLineage's own client makes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from openlineage.client.dataset.trimmers import KeyValueTrimmer
from openlineage.client.naming.dataset import (
    ABFSS,
    GCS,
    HDFS,
    S3,
    DatasetNaming,
    LocalFileSystem,
)

from spark_agent.contract.dataset_names import (
    DatasetName,
    dataset_at,
    location_of,
    normal_name,
    one_path,
    place_named,
)

_folders = st.text("abAB0 .-_%#?é[", min_size=1, max_size=8).filter(lambda folder: folder.strip())
_partitions = st.builds("{}={}".format, _folders, _folders)
_paths = st.lists(_folders, min_size=1, max_size=4).map("/".join)
_any_paths = st.lists(_folders | _partitions | st.just("a=b=c"), min_size=1, max_size=5).map("/".join)
_buckets = st.text("abc-0", min_size=1, max_size=8).map("b{}".format)
_roots = st.sampled_from(
    ("/", "s3://b/", "s3a://b/", "s3n://b/", "gs://b/", "abfs://c@a.dfs.core.windows.net/", "hdfs://n:8020/")
)


def _named(naming: DatasetNaming) -> DatasetName:
    return DatasetName(naming.get_namespace(), naming.get_name())


@given(
    bucket=_buckets, key=_paths, scheme=st.sampled_from(("s3", "s3a", "s3n")), end=st.sampled_from(("", "/"))
)
def test_s3(bucket: str, key: str, scheme: str, end: str) -> None:
    assert place_named(f"{scheme}://{bucket}/{key}{end}") == _named(S3(bucket, key))


@given(bucket=_buckets, key=_paths, scheme=st.sampled_from(("gs", "gcs")))
def test_google(bucket: str, key: str, scheme: str) -> None:
    assert place_named(f"{scheme}://{bucket}/{key}") == _named(GCS(bucket, key))


@given(container=_buckets, account=_buckets, key=_paths, scheme=st.sampled_from(("abfs", "abfss")))
def test_azure(container: str, account: str, key: str, scheme: str) -> None:
    path = f"{scheme}://{container}@{account}.dfs.core.windows.net/{key}"
    assert place_named(path) == _named(ABFSS(container, account, key))


@given(host=_buckets, port=st.integers(1, 65535).map(str), path=_paths)
def test_hdfs(host: str, port: str, path: str) -> None:
    assert place_named(f"hdfs://{host}:{port}/{path}") == _named(HDFS(host, port, f"/{path}"))


@given(path=_paths)
def test_local_files(path: str) -> None:
    assert place_named(f"/{path}") == _named(LocalFileSystem(f"/{path}"))


@given(path=_any_paths)
def test_folders_of_partitions_are_cut_where_openlineage_cuts_them(path: str) -> None:
    trimmed, before = f"/{path}", ""
    while trimmed != before:
        trimmed, before = KeyValueTrimmer().trim(trimmed), trimmed
    assert place_named(f"/{path}").name == trimmed
    assert place_named(f"s3a://b/{path}").name == trimmed[1:]


@given(root=_roots, path=_any_paths)
def test_a_name_stays_and_a_location_leads_back(root: str, path: str) -> None:
    namespace, name = place_named(root + path)
    assert normal_name(namespace, name, "csv") == (namespace, name)
    dataset = dataset_at(root + path, "csv")
    assert (dataset["namespace"], dataset["name"]) == (namespace, name)
    assert location_of(dataset) == one_path(root + path)
    assert place_named(location_of(dataset)) == (namespace, name)
    assert one_path(one_path(root + path)) == one_path(root + path)


@given(path=_any_paths, scheme=st.sampled_from(("s3", "s3a", "s3n")))
def test_an_old_event_and_a_new_one_speak_of_one_dataset(path: str, scheme: str) -> None:
    old = {"namespace": f"{scheme}://b", "name": f"/{path}", "format": "csv"}
    new = dataset_at(f"s3://b/{path}", "csv")
    assert normal_name(**old) == (new["namespace"], new["name"])
    assert location_of(old) == location_of(new)

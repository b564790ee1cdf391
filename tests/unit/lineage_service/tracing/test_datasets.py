"""Datasets and schemas of nodes, by events of agents of any age."""

from __future__ import annotations

from typing import Any

from lineage_service.lineage import Column, Dataset, Symlink
from lineage_service.tracing.model.elements import TopologyNode, have_files_in_common
from lineage_service.tracing.model.topology_builder import read_topology
from lineage_service.tracing.walk.linked_files import linked_files
from spark_agent import contract


def node(dataset: dict[str, Any] | None, **fields: Any) -> TopologyNode:
    event = {
        "type": contract.NODE_REGISTERED,
        "version": contract.VERSION,
        "application_id": "a",
        "time": 0,
        "node": 0,
        "name": "Scan parquet",
        "description": "",
        "kind": "source",
        "relation": contract.SOURCE,
        "exact": True,
        "dataset": dataset,
        **fields,
    }
    return read_topology("a", [event], ()).nodes[0]


def test_an_old_name_of_a_dataset_is_the_new_one() -> None:
    old = node({"namespace": "s3a://b", "name": "/sales", "format": "parquet"})
    new = node({"namespace": "s3://b", "name": "sales", "format": "parquet"})
    assert old.dataset == new.dataset == Dataset(namespace="s3://b", name="sales", format="parquet")
    assert old.location == new.location == "s3://b/sales"


def test_a_partition_is_a_part_of_its_table() -> None:
    old = node({"namespace": "file", "name": "/sales/day=1", "format": "csv"})
    new = node({"namespace": "file", "name": "/sales", "format": "csv", "location": "/sales/day=1"})
    other = node({"namespace": "file", "name": "/sales", "format": "csv", "location": "/sales/day=2"})
    table = node({"namespace": "file", "name": "/sales", "format": "csv", "partitions": ["day"]})
    assert old.dataset == new.dataset == other.dataset == table.dataset
    assert table.dataset == Dataset(namespace="file", name="/sales", format="csv", partitions=("day",))
    assert have_files_in_common(old, new)
    assert have_files_in_common(old, table)
    assert not have_files_in_common(new, other)


def test_tables_of_one_name_in_two_databases_have_nothing_in_common() -> None:
    one, other = (
        node({"namespace": f"postgres://{host}:1", "name": "d.t", "format": "jdbc"}) for host in "ab"
    )
    assert not have_files_in_common(one, other)
    assert have_files_in_common(one, one)
    assert not have_files_in_common(one, node(None))


def test_a_node_keeps_its_schema_and_what_is_missing_of_it() -> None:
    at = {"name": "at", "type": "struct", "fields": [{"name": "zone", "type": "string", "nullable": True}]}
    schema = [{"name": "id", "type": "bigint", "nullable": False}, at]
    sink = node(None, schema=schema, schema_note="2 of 3 columns")
    zone = Column(name="zone", type="string", nullable=True)
    assert sink.schema == (
        Column(name="id", type="bigint", nullable=False),
        Column(name="at", type="struct", fields=(zone,)),
    )
    assert sink.schema_note == "2 of 3 columns"
    assert (node(None).schema, node(None, schema=None).schema_note) == ((), "")


def test_a_dataset_keeps_its_names_in_catalogs() -> None:
    links = [{"namespace": "hive://m:9083", "name": "db.t", "type": "TABLE"}, {"namespace": "c", "name": "t"}]
    dataset = node({"namespace": "file", "name": "/t", "format": "orc", "symlinks": links}).dataset
    assert dataset is not None
    assert dataset.symlinks == (
        Symlink(namespace="hive://m:9083", name="db.t"),
        Symlink(namespace="c", name="t"),
    )


def test_a_query_that_was_not_followed_read_below_one_place_whatever_the_age_of_its_event() -> None:
    def place(dataset: dict[str, str]) -> str:
        event = {
            "type": contract.NODE_REGISTERED,
            "time": 0,
            "node": 0,
            "kind": "source",
            "relation": contract.CARRIED,
            "exact": False,
            "dataset": {**dataset, "format": "csv"},
        }
        return linked_files("a", [event]).unfollowed[0].place

    assert place({"namespace": "s3a://b", "name": "/key"}) == "s3://b/key"
    assert place({"namespace": "s3://b", "name": "key", "location": "s3://b/key/day=1"}) == "s3://b/key/day=1"
    assert place({"namespace": "file", "name": "/in"}) == "/in"

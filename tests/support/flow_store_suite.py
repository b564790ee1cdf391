"""What every FlowStore promises; the tests of each one give the fixture `store`."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lineage_service.decode.batches import EventBatch, FlowBatch, event_batch, flow_batch
from lineage_service.store.flow_store import FlowStore, Written
from spark_agent import contract
from tests.support.lineage_messages import APP, block, event, messages

SOURCE = "group/flow-0"
NODE_SOURCE = "group/node-0"


def flows(*values: bytes | None, first: int = 0, source: str = SOURCE) -> FlowBatch:
    return flow_batch(source, messages(*values, first=first))


def events(*values: bytes | None, first: int = 0, source: str = NODE_SOURCE) -> EventBatch:
    return event_batch(source, messages(*values, first=first))


def rows(store: FlowStore, table: str, application_id: str = APP) -> list[dict[str, Any]]:
    found: pa.Table = store.table(table, application_id)
    return sorted(found.to_pylist(), key=repr)


def state(store: FlowStore) -> dict[tuple[str, str], list[dict[str, Any]]]:
    tables = ("events", "blocks", "flows", "records", "annotations")
    return {(table, name): rows(store, table, name) for table in tables for name in store.applications()}


class FlowStoreSuite:
    @pytest.fixture
    def store(self) -> FlowStore:
        raise NotImplementedError

    def test_a_new_store_is_empty(self, store: FlowStore) -> None:
        assert store.offset(SOURCE) is None
        assert store.applications() == []
        assert store.events(APP) == []
        assert store.receipts(APP) == []
        assert rows(store, "flows") == []

    def test_a_batch_becomes_rows_and_receipts(self, store: FlowStore) -> None:
        texts = {"text": [("str", "a"), ("int", "1")]}
        batch = flows(block(seq=0, columns={"in": [5, 7]}), block(7, 1, contract.KEYS, texts, base_out=3))
        assert store.write_flows(batch) == Written(rows=4)
        about = {"application_id": APP, "node": 1, "run": 1}
        one = {"out_count": 1, "in_step": 0, "in_run": None}
        assert rows(store, "flows") == [
            {**about, "out_pos": 0, "in_pos": 5, **one},
            {**about, "out_pos": 1, "in_pos": 7, **one},
        ]
        assert [
            (row["run"], row["pos"], row["kind"], row["type"], row["text"]) for row in rows(store, "records")
        ] == [
            (7, 3, "key", "str", "a"),
            (7, 4, "key", "int", "1"),
        ]
        assert sorted(store.receipts(APP)) == [(1, 0), (7, 1)]
        assert {row["relation"]: row["rows"] for row in rows(store, "blocks")} == {"positions": 2, "keys": 2}
        assert store.offset(SOURCE) == 2

    def test_what_is_said_of_outputs_becomes_rows(self, store: FlowStore) -> None:
        batch = flows(
            block(seq=0, relation=contract.WINNERS, columns={"out": [4, 1], "in": [9, 2]}),
            block(seq=1, relation=contract.DIGESTS, columns={"digest": [2**63 - 1, 0]}, base_out=7),
            block(seq=2, relation=contract.DIGESTS, columns={"out": [3], "digest": [5]}),
            block(seq=3, relation=contract.GROUPS, columns={"count": [2, 0]}),
        )
        assert store.write_flows(batch) == Written(rows=5)
        said = [(row["relation"], row["pos"], row["value"]) for row in rows(store, "annotations")]
        digests = [("digests", 3, 5), ("digests", 7, 2**63 - 1), ("digests", 8, 0)]
        assert sorted(said) == [*digests, ("winners", 1, 2), ("winners", 4, 9)]
        assert {(row["node"], row["run"]) for row in rows(store, "annotations")} == {(1, 1)}
        assert sorted((row.relation, row.rows) for row in store.blocks(APP)) == [
            ("digests", 1),
            ("digests", 2),
            ("groups", 0),
            ("winners", 2),
        ]
        assert store.rows(APP) == {"flows": 0, "records": 0, "annotations": 5}
        assert rows(store, "flows") == rows(store, "records") == []

    def test_a_replayed_batch_adds_nothing(self, store: FlowStore) -> None:
        batch = flows(
            block(seq=0), block(seq=1), block(7, relation=contract.WINNERS, columns={"out": [1], "in": [2]})
        )
        store.write_flows(batch)
        before, version = state(store), store.version()
        assert store.write_flows(batch) == Written(repeated=3)
        assert state(store) == before
        assert store.version() == version

    def test_the_version_of_an_application_moves_when_something_of_it_is_written(
        self, store: FlowStore
    ) -> None:
        seen = [(store.version_of(APP), store.version_of("other"))]
        for at, value in enumerate((event(contract.LINK), event(contract.LINK, port=1))):
            store.write_events(events(value, first=at))
            seen.append((store.version_of(APP), store.version_of("other")))
        store.write_flows(flows(block()))
        seen.append((store.version_of(APP), store.version_of("other")))
        assert len({of_it for of_it, _ in seen}) == 4
        assert len({of_another for _, of_another in seen}) == 1
        assert store.version_of(APP) == store.version_of(APP)

    def test_the_versions_of_a_table_move_where_rows_come(self, store: FlowStore) -> None:
        def versions() -> list[dict[str, object]]:
            return [dict(store.versions(table)) for table in ("events", "blocks")]

        assert versions() == [{}, {}]
        store.write_events(events(event(contract.LINK)))
        first = versions()
        assert [list(each) for each in first] == [[APP], []]
        store.write_events(events(event(contract.LINK, application_id="other"), first=1))
        second = versions()
        assert second[0][APP] == first[0][APP]
        assert sorted(second[0]) == [APP, "other"]
        store.write_flows(flows(block()))
        assert versions()[0] == second[0]
        assert list(versions()[1]) == [APP]
        store.write_events(events(event(contract.LINK, port=1), first=2))
        assert versions()[0][APP] != second[0][APP]
        assert versions()[0]["other"] == second[0]["other"]
        store.delete(APP)
        assert [list(version) for version in versions()] == [["other"], []]

    def test_an_older_batch_changes_nothing(self, store: FlowStore) -> None:
        store.write_flows(flows(block(seq=0), block(seq=1), block(seq=2)))
        before = state(store)
        store.write_flows(flows(block(seq=0)))
        assert state(store) == before
        assert store.offset(SOURCE) == 3

    def test_a_batch_that_is_cut_differently_adds_only_what_is_new(self, store: FlowStore) -> None:
        store.write_flows(flows(block(seq=0), block(seq=1)))
        assert store.write_flows(flows(block(seq=1), block(seq=2), first=1)) == Written(rows=2, repeated=1)
        assert sorted(store.receipts(APP)) == [(1, 0), (1, 1), (1, 2)]
        assert len(rows(store, "flows")) == 6
        assert store.offset(SOURCE) == 3

    def test_a_block_that_was_sent_twice_is_stored_once(self, store: FlowStore) -> None:
        store.write_flows(flows(block(seq=0), block(seq=0), block(seq=1)))
        assert store.write_flows(flows(block(seq=1), block(seq=2), first=3)) == Written(rows=2, repeated=1)
        assert sorted(store.receipts(APP)) == [(1, 0), (1, 1), (1, 2)]
        assert len(rows(store, "flows")) == 6
        assert store.offset(SOURCE) == 5

    def test_a_batch_of_poison_moves_the_offset(self, store: FlowStore) -> None:
        store.write_flows(flows(b"poison", None))
        store.write_events(events(b"poison", None))
        assert store.offset(SOURCE) == 2
        assert store.offset(NODE_SOURCE) == 2
        assert store.applications() == []

    def test_poison_costs_its_neighbours_nothing(self, store: FlowStore) -> None:
        store.write_flows(flows(block(seq=0), b"poison", block(seq=1)))
        assert sorted(store.receipts(APP)) == [(1, 0), (1, 1)]

    def test_sources_do_not_know_of_each_other(self, store: FlowStore) -> None:
        store.write_flows(flows(block(1), first=100))
        store.write_flows(flows(block(2), source="group/flow-1"))
        store.write_flows(flows(block(3), source="other/flow-0"))
        assert sorted(store.receipts(APP)) == [(1, 0), (2, 0), (3, 0)]
        assert [store.offset(source) for source in (SOURCE, "group/flow-1", "other/flow-0")] == [101, 1, 1]

    def test_a_block_sent_twice_is_known_whatever_came_between(self, store: FlowStore) -> None:
        store.write_flows(flows(block(1)))
        store.write_flows(flows(block(2), source="group/flow-1"))
        for offset in range(40):
            store.write_flows(flows(block(3, application_id=f"app-{offset + 2}"), first=1 + offset))
        assert store.write_flows(flows(block(1), first=41)) == Written(repeated=1)
        assert sorted(store.receipts(APP)) == [(1, 0), (2, 0)]

    def test_applications_are_told_apart(self, store: FlowStore) -> None:
        store.write_flows(flows(block(1), block(1, application_id="app-2")))
        store.write_events(events(event(contract.APPLICATION_STARTED, application_id="app-3")))
        assert store.applications() == ["app-1", "app-2", "app-3"]
        assert store.receipts("app-2") == [(1, 0)]
        assert store.receipts("app-3") == []
        assert len(rows(store, "flows", "app-2")) == 2

    def test_events_come_decoded_by_time_and_once(self, store: FlowStore) -> None:
        started = event(contract.APPLICATION_STARTED, time=1, name="Größe")
        ended = event(contract.APPLICATION_ENDED, time=9, counters={"runs": 1})
        store.write_events(events(ended, started, started))
        store.write_events(events(started, first=3))
        found = store.events(APP)
        assert [each["type"] for each in found] == ["application_started", "application_ended"]
        assert found[0]["name"] == "Größe"
        assert found[1]["counters"] == {"runs": 1}

    def test_events_of_several_applications_are_those_of_each(self, store: FlowStore) -> None:
        names = [APP, "a:b.c_d-1", "other"]
        for at, name in enumerate([*names, *names, APP]):
            store.write_events(events(event(contract.LINK, application_id=name, port=at // 3), first=at))
        read = store.events_of([*names, "unknown"])
        assert dict(read) == {name: store.events(name) for name in names}
        assert [len(read[name]) for name in names] == [3, 2, 2]
        assert dict(store.events_of([])) == {}
        assert store.events_of(names, [contract.LINK]) == read
        assert dict(store.events_of(names, [contract.PERSISTED])) == {}

    def test_events_have_their_columns(self, store: FlowStore) -> None:
        store.write_events(
            events(
                event(contract.LINK, source=1, target=2),
                event(contract.RUN_COMMITTED, run=77, time=5),
                event(contract.NODE_REGISTERED, node=3),
            )
        )
        assert {(row["type"], row["time"], row["node"], row["run"]) for row in rows(store, "events")} == {
            ("link", 0, 2, None),
            ("run_committed", 5, None, 77),
            ("node_registered", 0, 3, None),
        }

    def test_replayed_events_add_nothing(self, store: FlowStore) -> None:
        batch = events(event(contract.LINK), event(contract.APPLICATION_STARTED))
        assert store.write_events(batch) == Written(rows=2)
        version = store.version()
        assert store.write_events(batch) == Written(repeated=2)
        assert store.version() == version
        assert len(rows(store, "events")) == 2

    def test_the_version_tells_that_something_was_written(self, store: FlowStore) -> None:
        versions = [store.version()]
        store.write_flows(flows(block()))
        versions.append(store.version())
        store.write_events(events(event(contract.LINK)))
        versions.append(store.version())
        assert len(set(versions)) == 3
        assert store.version() == versions[-1]

    def test_text_of_any_kind_comes_back(self, store: FlowStore) -> None:
        odd = ["", "naïve ✓", "a\0b", "line\nline", "\U0001f600", "'; drop", "x" * 4096]
        columns = {"text": [("str", text) for text in odd]}
        store.write_flows(flows(block(relation=contract.VALUES, columns=columns)))
        found = sorted(rows(store, "records"), key=lambda row: row["pos"])
        assert [row["text"] for row in found] == odd

    def test_a_deleted_application_is_gone_and_others_stay(self, store: FlowStore) -> None:
        store.write_flows(flows(block(1), block(1, application_id="app-2")))
        store.write_events(events(event(contract.LINK), event(contract.LINK, application_id="app-2")))
        before = [rows(store, table, "app-2") for table in ("events", "blocks", "flows")]
        version = store.version()
        store.delete(APP)
        assert store.version() != version
        assert store.applications() == ["app-2"]
        assert store.events(APP) == store.receipts(APP) == rows(store, "flows") == []
        assert [rows(store, table, "app-2") for table in ("events", "blocks", "flows")] == before

    def test_what_comes_late_of_a_deleted_application_is_left_out(self, store: FlowStore) -> None:
        store.write_flows(flows(block(1)))
        store.delete(APP)
        late = flows(block(2), block(2, application_id="app-2"), first=1)
        assert store.write_flows(late) == Written(rows=2, repeated=1)
        assert store.write_events(events(event(contract.LINK))) == Written(repeated=1)
        assert store.write_flows(flows(block(1), source="another/flow-0")) == Written(repeated=1)
        assert store.applications() == ["app-2"]
        assert (store.offset(SOURCE), store.offset(NODE_SOURCE)) == (3, 1)

    def test_deleting_twice_is_no_error(self, store: FlowStore) -> None:
        store.write_flows(flows(block(1)))
        store.delete(APP)
        version = store.version()
        store.delete(APP)
        assert store.version() == version
        assert store.deleted([APP, "app-2"]) == {APP}

    def test_a_marked_application_keeps_what_it_has_and_gets_no_more(self, store: FlowStore) -> None:
        store.write_flows(flows(block(1)))
        store.mark_deleted(APP)
        assert store.write_flows(flows(block(2), first=1)) == Written(repeated=1)
        assert store.receipts(APP) == [(1, 0)]

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lineage_service.devstack.errors import HomeError
from lineage_service.devstack.state import StackState, Started, read_state, resolve, write_state
from lineage_service.settings import Settings

KAFKA = Started(
    name="kafka",
    pid=11,
    created=1795259079.94,
    version="4.1.0",
    ports={"broker": 9092, "controller": 9093},
    addresses={"bootstrap_servers": "127.0.0.1:9092"},
)
NEO4J = Started(
    name="neo4j",
    pid=12,
    created=1795259080.5,
    version="5.26.5",
    ports={"bolt": 7001, "http": 7474},
    addresses={"bolt": "bolt://127.0.0.1:7001", "http": "http://127.0.0.1:7474", "browser": "x"},
)


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"LINEAGE_{name.upper()}", raising=False)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    state = StackState().with_server(KAFKA).with_server(NEO4J)
    write_state(tmp_path, state)
    assert read_state(tmp_path) == state
    assert list(tmp_path.iterdir()) == [tmp_path / "stack.json"]


def test_the_file_is_what_others_read(tmp_path: Path) -> None:
    write_state(tmp_path, StackState().with_server(KAFKA).with_server(NEO4J))
    body = json.loads((tmp_path / "stack.json").read_text())
    assert body["kafka"]["pid"] == 11
    assert body["kafka"]["bootstrap_servers"] == "127.0.0.1:9092"
    assert body["neo4j"]["bolt"] == "bolt://127.0.0.1:7001"
    assert body["neo4j"]["browser"] == "x"


def test_a_stopped_server_leaves_its_ports(tmp_path: Path) -> None:
    write_state(tmp_path, StackState().with_server(KAFKA).without_server("kafka"))
    state = read_state(tmp_path)
    assert state.servers == {}
    assert state.ports["kafka"] == KAFKA.ports


def test_a_home_without_state_is_an_empty_stack(tmp_path: Path) -> None:
    assert read_state(tmp_path / "missing") == StackState()


@pytest.mark.parametrize("text", ["", "[]", '{"kafka": {"pid": 1}}', '{"kafka": 5}', '{"ports": []}'])
def test_a_damaged_state_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "stack.json").write_text(text)
    with pytest.raises(HomeError, match=r"stack\.json is damaged"):
        read_state(tmp_path)


def test_empty_settings_are_the_running_stack(tmp_path: Path) -> None:
    write_state(tmp_path, StackState().with_server(KAFKA).with_server(NEO4J))
    settings = resolve(Settings(home=tmp_path))
    assert settings.kafka_bootstrap_servers == "127.0.0.1:9092"
    assert settings.neo4j_uri == "bolt://127.0.0.1:7001"
    assert settings.store == str(tmp_path / "flows")


def test_without_a_stack_kafka_is_on_this_machine_and_there_is_no_neo4j(tmp_path: Path) -> None:
    settings = resolve(Settings(home=tmp_path))
    assert settings.kafka_bootstrap_servers == "127.0.0.1:9092"
    assert settings.neo4j_uri == ""


def test_given_settings_stay_even_when_the_state_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "stack.json").write_text("damaged")
    given = Settings(home=tmp_path, kafka_bootstrap_servers="a:1", neo4j_uri="bolt://b:2", store="/c")
    assert resolve(given) == given

from __future__ import annotations

import socket

import pytest

from lineage_service.devstack.errors import PortError
from lineage_service.devstack.ports import choose_port, is_free


def test_the_preferred_port_is_taken_when_free() -> None:
    assert choose_port("a test", [9092, 1], is_free=lambda port: True) == 9092


def test_the_next_preferred_port_comes_before_any_other() -> None:
    assert choose_port("a test", [9092, 1], is_free=lambda port: port != 9092) == 1


def test_another_port_stands_in_for_one_in_use() -> None:
    port = choose_port("a test", [9092], is_free=lambda port: port != 9092)
    assert 20_000 <= port < 32_000


def test_a_port_that_is_meant_for_something_else_is_not_chosen() -> None:
    assert choose_port("a test", [9092, 9093], taken=[9092], is_free=lambda port: True) == 9093


def test_no_free_port_is_said_with_what_it_was_for() -> None:
    with pytest.raises(PortError, match=r"no free port for Kafka's broker .* tried 9092 and 200"):
        choose_port("Kafka's broker", [9092], is_free=lambda port: False)


def test_a_port_with_a_listener_is_not_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert not is_free(port)
    assert is_free(port)

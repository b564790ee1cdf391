from __future__ import annotations

import threading

import pytest
from pyspark import accumulators

from spark_agent.driver.replay import quick_end


class Server:
    """Ends when it is told to, however long that takes."""

    def __init__(self) -> None:
        self.may_end, self.has_ended = threading.Event(), threading.Event()

    def shutdown(self) -> None:
        self.may_end.wait(20)
        self.has_ended.set()


def test_nobody_waits_for_a_server_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick_end, "_SERVERS", ("AccumulatorTCPServer", "AnotherServer"))
    monkeypatch.setattr(accumulators, "AccumulatorTCPServer", Server)
    monkeypatch.setattr(Server, "shutdown", Server.shutdown)
    quick_end.install()
    replaced = Server.shutdown
    quick_end.install()
    assert Server.shutdown is replaced
    server = Server()
    server.shutdown()
    assert not server.has_ended.is_set()
    server.may_end.set()
    assert server.has_ended.wait(20)

"""What is kept of pickled chains: bounded, and gone with whoever has it."""

from __future__ import annotations

from typing import Any

from spark_agent.driver import pickled_chains
from spark_agent.driver.pickled_chains import MOST_OF_CHAIN, PickledChain, PickledChains


def kept(chains: PickledChains, data: Any) -> PickledChain | None:
    def prepare(sc: Any, command: Any) -> Any:
        return command, [], {}, []

    assert chains.noting(prepare)(None, data)[0] is data
    return chains.latest()


def test_the_very_bytes_are_kept_and_asked_for_once() -> None:
    chains, data = PickledChains(), bytes(10)
    chain = kept(chains, data)
    assert chain is not None
    assert chain.data is data
    assert chains.latest() is None


def test_what_is_too_large_is_not_kept() -> None:
    assert kept(PickledChains(), bytes(MOST_OF_CHAIN + 1)) is None


def test_the_oldest_bytes_go_first(monkeypatch: Any) -> None:
    monkeypatch.setattr(pickled_chains, "MOST_BYTES", 25)
    chains = PickledChains()
    several = [kept(chains, bytes(10)) for _ in range(4)]
    assert [chain is not None and chain.data is not None for chain in several] == [False, False, True, True]


def test_what_nobody_has_takes_no_space(monkeypatch: Any) -> None:
    monkeypatch.setattr(pickled_chains, "MOST_BYTES", 25)
    chains = PickledChains()
    first = kept(chains, bytes(10))
    for _ in range(1_000):
        assert kept(chains, bytes(10)) is not None
    assert first is not None
    assert first.data is not None
    assert len(chains._kept) < 5

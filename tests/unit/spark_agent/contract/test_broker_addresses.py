from __future__ import annotations

import pytest

from spark_agent.contract.broker_addresses import addresses


@pytest.mark.parametrize(
    "text",
    ["localhost:9092", "10.0.0.1:1,b_1.example.org:65535", "[::1]:9092", "SASL_SSL://kafka-0.example:9093"],
)
def test_a_list_of_addresses_stays_as_it_is(text: str) -> None:
    assert addresses(text) == (text, [])


def test_spaces_around_addresses_and_empty_ones_are_taken_out() -> None:
    assert addresses(" a:1 , b:2,, ") == ("a:1,b:2", [])


@pytest.mark.parametrize("text", ["localhost", "[::1]", "SSL://kafka"])
def test_an_address_without_a_port_gets_kafkas_own_and_that_is_said(text: str) -> None:
    assert addresses(text) == (f"{text}:9092", [f"{text} has no port; 9092 is used"])


@pytest.mark.parametrize(
    "part",
    ["x:99999", "x:0", "x:", ":9092", "x:abc", "http://x:9092", "not a host:1", "::1", "x:9092/y", "x;y:1"],
)
def test_what_is_no_address_is_left_out_and_said(part: str) -> None:
    problem = f"{part} is not host:port with a port from 1 to 65535"
    assert addresses(f"a:1,{part}") == ("a:1", [problem])
    assert addresses(part) == (part, [problem])

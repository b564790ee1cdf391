from __future__ import annotations

import pytest

from lineage_service.kafka.group_owner import memory_of, other_owner


@pytest.mark.parametrize("memory", [None, "", "something of another program", memory_of("mine")])
def test_a_group_without_another_store_in_it_is_free(memory: str | None) -> None:
    assert other_owner(memory, "mine") == ""


def test_another_store_is_named() -> None:
    assert other_owner(memory_of("theirs"), "mine") == "theirs"


def test_without_a_store_of_its_own_nothing_is_claimed_or_refused() -> None:
    assert memory_of("") == ""
    assert other_owner(memory_of("theirs"), "") == ""

"""Digests of records: equal values have equal ones, and what differs anywhere has another one."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_agent.worker.digests import digester

SALT = b"sixteen bytes of"

numbers = st.booleans() | st.integers() | st.floats(allow_nan=False)  # all NaN are written alike
atoms = st.none() | numbers | st.text() | st.binary() | st.dates()
hashable = st.recursive(
    atoms, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=5
)
values = st.recursive(
    atoms,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(hashable, inner, max_size=3)
        | st.sets(hashable, max_size=3)
    ),
    max_leaves=8,
)


def written(value: Any) -> Any:
    """A value as its type and its contents, so that it equals only what is written alike."""
    kind = type(value)
    if kind in (list, tuple):
        return kind.__name__, [written(item) for item in value]
    if kind in (set, frozenset):
        return kind.__name__, sorted(repr(written(item)) for item in value)
    if kind is dict:
        return "dict", [(written(key), written(item)) for key, item in value.items()]
    return kind.__name__, repr(value)


@pytest.mark.parametrize("is_hashed", [True, False])
@settings(max_examples=30)
@given(value=values)
def test_a_copy_has_the_same_digest(is_hashed: bool, value: Any) -> None:
    digest = digester(SALT, is_hashed=is_hashed)
    expected = digest(value)
    assert expected is not None
    assert digest(copy.deepcopy(value)) == expected
    assert digest(pickle.loads(pickle.dumps(value))) == expected
    assert digest(("key", value)) == digest(("key", pickle.loads(pickle.dumps(value))))


@pytest.mark.parametrize("is_hashed", [True, False])
@settings(max_examples=50)
@given(one=values, other=values)
def test_two_values_have_one_digest_only_if_they_are_written_alike(
    is_hashed: bool, one: Any, other: Any
) -> None:
    digest = digester(SALT, is_hashed=is_hashed)
    assert (digest(one) == digest(other)) == (written(one) == written(other))


@given(st.integers(), st.integers())
def test_the_hash_of_a_number_is_not_used(one: int, other: int) -> None:
    """hash(-1) == hash(-2), and hash(n) == hash(n + 2**61 - 1)."""
    digest = digester(SALT)
    assert (digest((one,)) == digest((other,))) == (one == other)
    assert digest(one) != digest(one + (1 << 61) - 1)


@given(values, st.binary(min_size=1, max_size=16), st.binary(min_size=1, max_size=16))
def test_a_digest_is_of_its_salt(value: Any, one: bytes, other: bytes) -> None:
    assert (digester(one)(value) == digester(other)(value)) == (one == other)

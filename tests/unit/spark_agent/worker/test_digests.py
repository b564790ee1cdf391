from __future__ import annotations

import datetime
import decimal
import uuid
from collections import namedtuple
from dataclasses import dataclass, field
from typing import Any

import pytest

from spark_agent import contract
from spark_agent.worker import digests
from spark_agent.worker.digests import DigestStream, digester

SALT = b"0123456789abcdef"


@dataclass
class Blocks:
    """Where the blocks of a run go."""

    sent: list[tuple[int, dict[str, Any]]] = field(default_factory=list)

    def emit(self, node: int, relation: str, base_in: int, base_out: int, columns: dict[str, Any]) -> None:
        assert (node, relation, base_in) == (7, contract.DIGESTS, 0)
        self.sent.append((base_out, {name: list(column) for name, column in columns.items()}))


def streamed(records: list[Any]) -> list[tuple[int, dict[str, Any]]]:
    blocks = Blocks()
    stream = DigestStream(blocks, 7, SALT)  # type: ignore[arg-type]
    assert list(stream.through(records)) == records
    stream.close()
    return blocks.sent


def test_each_record_has_a_digest() -> None:
    digest = digester(SALT)
    assert streamed([("a", 1), ("b", 2)]) == [(0, {"digest": [digest(("a", 1)), digest(("b", 2))]})]


def test_records_without_digests_are_left_out() -> None:
    digest, unknown = digester(SALT), object()
    assert streamed([unknown, 1, unknown, 2]) == [(0, {"digest": [digest(1), digest(2)], "out": [1, 3]})]
    assert streamed([unknown]) == []
    assert streamed([]) == []


def test_blocks_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "DIGESTS_IN_BLOCK", 2)
    first, second, third = streamed([1, 2, 3, object(), 5])
    assert (first[0], len(first[1]["digest"])) == (0, 2)
    assert (second[0], second[1]["out"]) == (0, [2])
    assert (third[0], len(third[1]["digest"])) == (4, 1)


def test_where_a_block_of_records_has_none_further_ones_are_not_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(digests, "DIGESTS_IN_BLOCK", 2)
    assert streamed([object(), object(), 1, 2]) == []
    assert streamed([object(), 1, object(), object(), 2])[0][1]["out"] == [1]


def test_a_full_block_fits_the_limit() -> None:
    count = digests.DIGESTS_IN_BLOCK
    columns = {"digest": [(1 << 63) - 1] * count, "out": [1 << 40] * count}
    block = contract.Block("local-1", 7, 1, 0, 0, contract.DIGESTS, columns=columns)
    assert len(contract.encode_block(block)) < contract.MAX_BLOCK_BYTES


def test_only_what_is_pulled_is_digested() -> None:
    blocks = Blocks()
    stream = DigestStream(blocks, 7, SALT)  # type: ignore[arg-type]
    assert next(stream.through(iter([1, 2, 3]))) == 1
    stream.close()
    assert [len(columns["digest"]) for _, columns in blocks.sent] == [1]


def test_a_list_is_digested_as_it_was_when_it_passed() -> None:
    blocks, record = Blocks(), [1]
    stream = DigestStream(blocks, 7, SALT)  # type: ignore[arg-type]
    for passed in stream.through([record, record]):
        passed.append(2)
    stream.close()
    digest = digester(SALT)
    assert blocks.sent == [(0, {"digest": [digest([1]), digest([1, 2])]})]


def test_another_salt_gives_other_digests() -> None:
    assert digester(SALT)(("a", 1)) != digester(SALT[::-1])(("a", 1))


Pair = namedtuple("Pair", "left right")

UNEQUAL = [
    -1, -2, 0, 1, True, False, 1.0, -0.0, 0.0, None, "", "1", "None", b"", b"1", (), [], (1,), [1], (-1,),
    (-2,), ((1,),), (1, (2, 3)), (1, 2, 3), ([1], 2), ([1, 2],), {}, {1: 2}, {(1, 2)}, frozenset({(1, 2)}),
    set(), frozenset(), {1, 2}, {"1", 2}, {1: {2: 3}}, 2**61 - 1, 2**64, float("inf"), "a\ud800", "é",
    "e\u0301", 1j, decimal.Decimal("1.0"), decimal.Decimal("1.00"), datetime.date(2026, 1, 1),
    datetime.datetime(2026, 1, 1), datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc),
    datetime.timedelta(1), uuid.UUID(int=1), Pair(1, 2), Pair(-1, 2), (1, 2),
    ("dict", []), (1, Pair(1, 2)), (1, (1, 2)),
]  # fmt: skip


@pytest.mark.parametrize("is_hashed", [True, False])
def test_values_that_differ_have_digests_that_differ(is_hashed: bool) -> None:
    digest_of = digester(SALT, is_hashed=is_hashed)
    by_digest = {digest_of(value): value for value in UNEQUAL}
    assert None not in by_digest
    assert len(by_digest) == len(UNEQUAL)
    assert all(0 <= digest < 1 << 63 for digest in by_digest if digest is not None)


def test_hashes_are_used_where_all_workers_have_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed, keyed = digester(SALT, is_hashed=True)(("a", 1)), digester(SALT, is_hashed=False)(("a", 1))
    for seed, digest in (("0", hashed), ("4711", hashed), ("random", keyed), ("", keyed)):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        assert digester(SALT)(("a", 1)) == digest
    monkeypatch.delenv("PYTHONHASHSEED")
    assert digester(SALT)(("a", 1)) == keyed


def test_a_dictionary_has_an_order_and_a_set_has_none() -> None:
    digest = digester(SALT)
    assert digest({1: 2, 3: [4]}) != digest({3: [4], 1: 2})
    crowded = set(range(0, 8_000, 8)) | {1, 9}
    crowded -= set(range(80, 8_000, 8))
    assert list(crowded) != sorted(crowded)
    assert digest(crowded) == digest(set(sorted(crowded)))  # noqa: C414 - in another order


def shared(levels: int) -> Any:
    value: Any = (1, 2)
    for _ in range(levels):
        value = (value, value)
    return value


def test_records_of_very_many_parts_have_none() -> None:
    digest = digester(SALT)
    assert digest(shared(8)) is not None
    assert digest(shared(60)) is None
    assert digest([shared(60)]) is None
    assert digest((1, [0] * 9_000)) is not None
    assert digest((1, [0] * 11_000)) is None
    assert digest((0,) * 11_000) is None
    assert digest((1, *([[0] * 9_000] * 5))) is None


def test_in_a_python_without_blake2_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("hashlib.blake2b")
    assert digester(SALT, is_hashed=False)(1) is None
    assert digester(SALT, is_hashed=True)(1) is not None


class Loud:
    """Runs code when it is looked at."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)

    __repr__ = __eq__ = __hash__ = __reduce_ex__ = __len__ = __iter__ = None  # type: ignore[assignment]


class Text(str):
    __slots__ = ()


class Number(int):
    pass


class Tuple(tuple):  # type: ignore[type-arg]
    """With attributes that nobody sees among its items."""


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value, None, []]
    return value


@pytest.mark.parametrize(
    "value",
    [
        Loud(),
        Text("a"),
        Number(1),
        Tuple((1,)),
        object(),
        len,
        ...,
        bytearray(b"a"),
        memoryview(b"a"),
        deep(100_000),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_of_no_plain_type_has_no_digest(value: Any) -> None:
    digest = digester(SALT)
    assert digest(value) is None
    assert digest((1, value)) is None
    assert digest([value, [value]]) is None

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import pickle
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from pyspark.serializers import (
    AutoBatchedSerializer,
    BatchedSerializer,
    CartesianDeserializer,
    CPickleSerializer,
    MarshalSerializer,
    NoOpSerializer,
    PairDeserializer,
    PickleSerializer,
    UTF8Deserializer,
)

from spark_agent.delivery.settings import AgentSettings
from spark_agent.driver.rdd.batch_formats import batches_in, without_headers
from spark_agent.worker.batch_header import HEADER, Piece
from spark_agent.worker.batch_serializers import HeaderSerializer, PairsOfBatches
from spark_agent.worker.operators import passthrough
from spark_agent.worker.operators.passthrough import HeaderPassthrough, Passthrough, count_records
from spark_agent.worker.plan import Plan
from spark_agent.worker.task_run import TaskRun

Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass(frozen=True)
class Money:
    amount: int


class Colour(enum.Enum):
    RED = 1


class Bag(list):  # type: ignore[type-arg] # as users write it
    """A list with a state of its own."""

    def __init__(self, *items: Any) -> None:
        super().__init__(items)
        self.name = "bag"


class Index(dict):  # type: ignore[type-arg] # as users write it
    def __reduce__(self) -> Any:
        return Index, (), {"kept": True}, None, iter(self.items())


class Group(set):  # type: ignore[type-arg] # as users write it
    pass


RECORDS: list[Any] = [
    1, -1.5, "text", b"bytes", bytearray(b"more"), None, True, 1 << 90, (1, (2, "x")), [], {}, {1: {2: 3}},
    {1, 2}, frozenset({"a"}), 1j, range(9), slice(1, 2), Point(1, 2), Money(3), Colour.RED, Bag(1, 2, [3]),
    Index({Money(1): 2, Money(2): 3}), Group({Money(1), Money(2)}), {Money(1): Money(2)},
    collections.OrderedDict(a=1), collections.deque([1, 2]), collections.Counter("aab"),
    collections.defaultdict(list, {1: [2]}), datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc),
    datetime.date(2026, 1, 1), decimal.Decimal("1.5"), np.arange(5), np.float64(2), np.array(["a", None]),
    len, Money, ValueError("x"), types.SimpleNamespace(a=Money(1)),
]  # fmt: skip


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_the_records_of_a_batch_are_counted_whatever_they_are(protocol: int) -> None:
    for record in RECORDS:
        assert count_records(pickle.dumps([record] * 3, protocol)) == 3, record
    assert count_records(pickle.dumps(RECORDS, protocol)) == len(RECORDS)
    assert count_records(pickle.dumps([], protocol)) == 0


def test_classes_and_functions_that_travel_by_value_are_counted_too() -> None:
    base = type("Base", (), {"__slots__": ("x",)})
    made = type("Local", (base,), {"method": lambda self: RECORDS, "__module__": "__main__"})
    instance = made()
    instance.x = 1
    kinds = [
        instance,
        made,
        lambda: made,
        enum.Enum("Local", "A B")["A"],
        dataclasses.make_dataclass("D", "a")(1),
    ]
    for record in kinds:
        assert count_records(CPickleSerializer().dumps([record, record])) == 2


def test_nothing_of_the_user_is_imported_or_called(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("known_to_the_driver_only")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    loads: list[Any] = []
    exec(
        "class Record:\n def __init__(self, loads): self.loads = loads\n"
        " def __reduce__(self): return (Record, ([],), {})\n"
        " def __setstate__(self, state): raise RuntimeError('called')\n",
        vars(module),
    )
    batch = pickle.dumps([module.Record(loads), module.Record(loads)])
    with pytest.raises(RuntimeError):
        pickle.loads(batch)
    monkeypatch.delitem(sys.modules, module.__name__)
    assert count_records(batch) == 2
    assert module.__name__ not in sys.modules


@pytest.mark.parametrize("batch", [pickle.dumps({"no": "list"}), pickle.dumps(3), b"", b"no pickle"])
def test_what_is_no_batch_is_not_counted(batch: bytes) -> None:
    with pytest.raises((ValueError, EOFError, pickle.UnpicklingError)):
        count_records(batch)


def test_pickled_batches_are_told_from_other_forms() -> None:
    batched, auto = BatchedSerializer(PickleSerializer(), 10), AutoBatchedSerializer(CPickleSerializer())
    assert batches_in(batched) == batches_in(auto) == 1
    assert batches_in(PairDeserializer(batched, auto)) == 2
    assert batches_in(PairDeserializer(PairDeserializer(batched, batched), auto)) == 3
    others = [
        UTF8Deserializer(), NoOpSerializer(), PickleSerializer(), BatchedSerializer(MarshalSerializer(), 10),
        PairDeserializer(UTF8Deserializer(), auto),
    ]  # fmt: skip
    assert [batches_in(each) for each in others] == [0] * len(others)


@pytest.fixture
def run() -> TaskRun:
    plan = Plan(
        application_id="app",
        settings=AgentSettings(bootstrap_servers="nowhere:1"),
        flow_partitions=1,
        input_node=0,
        reads_shuffle=False,
        nodes=(1,),
    )
    return TaskRun(plan, 0, None)


def passed(run: TaskRun, every: int, given: list[bytes]) -> Iterator[bytes]:
    return run.outputs.through(Passthrough(every).capture(run, run.inputs.through(given)))


def test_batches_pass_as_they_are_and_the_run_says_their_records(run: TaskRun) -> None:
    given = [pickle.dumps(list(range(size))) for size in (4, 4, 3)]
    assert list(passed(run, 1, given)) == given
    run.close()
    assert (run.inputs.count, run.outputs.count) == (11, 11)


def test_of_zipped_batches_those_of_one_side_are_counted(run: TaskRun) -> None:
    given = [pickle.dumps([1, 2]), pickle.dumps("ab"), pickle.dumps([3]), b"not looked at"]
    assert list(passed(run, 2, given)) == given
    run.close()
    assert run.outputs.count == 3


def test_only_what_was_taken_is_counted(run: TaskRun) -> None:
    taken = passed(run, 1, [pickle.dumps([1, 2])] * 5)
    next(taken)
    run.close()
    assert run.inputs.count == 2


def test_a_batch_that_cannot_be_counted_passes_and_the_lineage_of_its_split_is_lost(run: TaskRun) -> None:
    given = [pickle.dumps([1]), b"strange", pickle.dumps([2])]
    assert list(passed(run, 1, given)) == given
    dropped, problem = run.close()
    assert dropped == 1
    assert "could not be captured" in problem


def test_without_a_run_nothing_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passthrough, "count_records", lambda batch: pytest.fail("counted"))
    given = [b"a", b"b"]
    assert Passthrough(1)(0, given) is given


def test_tagged_batches_are_told_from_other_forms() -> None:
    pickled, own = CPickleSerializer(), MarshalSerializer()
    plain = without_headers(BatchedSerializer(HeaderSerializer(pickled), 10))
    assert plain == BatchedSerializer(pickled, 10)
    assert isinstance(without_headers(PairsOfBatches(pickled, pickled)), CartesianDeserializer)
    others = [
        BatchedSerializer(pickled, 10), BatchedSerializer(HeaderSerializer(own), 10), UTF8Deserializer(),
        PairsOfBatches(pickled, own),
    ]  # fmt: skip
    assert [without_headers(each) for each in others] == [None] * len(others)


def test_batches_get_tags_with_the_run_and_the_number_of_their_first_record(run: TaskRun) -> None:
    given = [pickle.dumps(list(range(size))) for size in (4, 0, 3)]
    tagged = list(HeaderPassthrough(reads=False, writes=True).capture(run, given))
    assert tagged == [
        HEADER.pack(run.number, first) + batch for first, batch in zip((0, 4, 4), given, strict=True)
    ]
    run.close()
    assert (run.inputs.count, run.outputs.count, run.written) == (7, 7, 7)


def test_tags_are_read_and_taken_off(run: TaskRun, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    monkeypatch.setattr(TaskRun, "read_batch", lambda _run, *batch: read.append(batch))
    given = [pickle.dumps([1, 2]), pickle.dumps([3])]
    tagged = [HEADER.pack(writer, 5) + batch for writer, batch in zip((8, 9), given, strict=True)]
    assert list(HeaderPassthrough(reads=True, writes=False).capture(run, tagged)) == given
    assert read == [(8, 5, 2, None), (9, 5, 1, None)]
    run.close()
    assert run.outputs.count == 3


def test_the_records_of_a_product_are_the_pairs(run: TaskRun, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    monkeypatch.setattr(TaskRun, "read_product", lambda _run, *sides: read.append(sides))
    given = [pickle.dumps([1, 2]), pickle.dumps([3, 4, 5])]
    tagged = [HEADER.pack(writer, 6) + batch for writer, batch in zip((8, 9), given, strict=True)]
    assert list(HeaderPassthrough(reads=True, writes=False, pairs=True).capture(run, tagged)) == given
    assert read == [(Piece(8, 6, 2), Piece(9, 6, 3))]
    run.close()
    assert run.outputs.count == 6


def test_a_batch_that_cannot_be_counted_is_tagged_as_of_no_run(run: TaskRun) -> None:
    tagged = list(HeaderPassthrough(reads=False, writes=True).capture(run, [pickle.dumps([1]), b"strange"]))
    assert tagged == [HEADER.pack(run.number, 0) + pickle.dumps([1]), HEADER.pack(0, 0) + b"strange"]
    dropped, _ = run.close()
    assert dropped == 1


def test_without_a_run_tags_come_and_go_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passthrough, "count_records", lambda batch: pytest.fail("counted"))
    tagged = list(HeaderPassthrough(reads=False, writes=True)(0, [b"a"]))
    assert tagged == [HEADER.pack(0, 0) + b"a"]
    assert list(HeaderPassthrough(reads=True, writes=False)(0, tagged)) == [b"a"]

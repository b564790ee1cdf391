"""The agent's operators without Spark: a chain runs as in a worker, and its blocks are read back naively."""

from __future__ import annotations

import itertools
import json
import math
import random
import struct
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pyspark.shuffle
import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.serializers import AutoBatchedSerializer, BatchedSerializer, CPickleSerializer
from pyspark.shuffle import Aggregator, ExternalSorter

import spark_agent
from spark_agent import contract
from spark_agent.contract import Block
from spark_agent.delivery import process_sender, producer
from spark_agent.delivery.producer import DeliveryError
from spark_agent.delivery.settings import AgentSettings
from spark_agent.worker import position_streams, sampling_rules, value_streams
from spark_agent.worker.batch_header import HEADER
from spark_agent.worker.batch_serializers import HeaderSerializer
from spark_agent.worker.operator import Operator
from spark_agent.worker.operators import join, narrow
from spark_agent.worker.operators.adapters import LastRead, Order, Sort
from spark_agent.worker.operators.aggregate import Combine, CombineLists, Merge
from spark_agent.worker.operators.join import Join
from spark_agent.worker.operators.narrow import Filter, FlatMap, Map
from spark_agent.worker.operators.save import TextSink
from spark_agent.worker.operators.shuffle import ShuffleWrite
from spark_agent.worker.pipeline import Capture
from spark_agent.worker.plan import Plan
from spark_agent.worker.process_state import worker_process
from spark_agent.worker.serializer import CapturingSerializer
from spark_agent.worker.task_run import TaskRun

Flows = dict[int, list[Any]]
"""Output position -> its input positions; (run, position) where the input is of another run."""

INPUT = 0
#: MiB that no test process reaches: it may hold a whole test run, and a merger that spills orders otherwise.
ENOUGH = 1 << 20
PICKLE = CPickleSerializer()
STRINGS = Aggregator(str, lambda a, b: f"{a}{b}", lambda a, b: f"{a}{b}")
LISTS = Aggregator(lambda v: [v], lambda vs, v: [*vs, v], lambda vs, ws: vs + ws)


@dataclass
class Recorder:
    """A sender that keeps the blocks, read back from the bytes that it was given."""

    blocks: list[Block] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    refused: int = 0

    def send(self, _topic: str, _partition: int, _key: bytes, message: bytes, _delivery: object) -> None:
        self.sizes.append(len(message))
        self.blocks.append(contract.decode_block(message))

    def flush(self, delivery: producer.Delivery) -> int:
        delivery.problem = "Kafka at nowhere:1 does not take them"
        return self.refused + delivery.failed


class ListSerializer:
    """Writes into a list."""

    def dump_stream(self, records: Iterable[Any], stream: list[Any]) -> None:
        stream.extend(records)


class Manifests(list[dict[str, Any]]):
    def add(self, manifests: list[str]) -> None:
        self.extend(map(json.loads, manifests))


@dataclass
class Task:
    """What one task did: the records that it gave, its blocks and its manifest."""

    outputs: list[Any]
    sender: Recorder | None
    manifest: dict[str, Any]

    @property
    def blocks(self) -> list[Block]:
        assert self.sender is not None
        return self.sender.blocks

    def flows(self, node: int) -> Flows:
        return flows_of(self.blocks, node)

    def texts(self, node: int) -> list[contract.Text]:
        found = [b for b in self.blocks if b.node == node and b.relation in (contract.KEYS, contract.VALUES)]
        texts: dict[int, contract.Text] = {}
        for block in found:
            texts.update(enumerate(block.columns["text"], block.base_out))
        assert sorted(texts) == list(range(len(texts)))
        return [texts[position] for position in range(len(texts))]


def flows_of(blocks: Iterable[Block], node: int) -> Flows:
    """Every (output, input) that the blocks of a node speak of, in whatever order they come."""
    mixed = [block for block in blocks if block.node == node]
    random.Random(7).shuffle(mixed)
    flows: Flows = defaultdict(list)
    for block in mixed:
        columns, out = block.columns, block.base_out
        if block.relation == contract.POSITIONS:
            for k, position in enumerate(columns["in"]):
                flows[out + k].append(position)
        elif block.relation == contract.COUNTS:
            for k, count in enumerate(columns["count"]):
                for _ in range(count):
                    flows[out].append(block.base_in + k)
                    out += 1
        elif block.relation == contract.CODES:
            for k, code in enumerate(columns["code"]):
                flows[code].append(block.base_in + k)
        elif block.relation == contract.SPANS:
            runs = columns.get("run", [None] * len(columns["count"]))
            for count, start, step, run in zip(
                columns["count"], columns["in"], columns["step"], runs, strict=True
            ):
                for k in range(count):
                    position = start + k * step
                    flows[out].append(position if run is None else (run, position))
                    out += 1
        elif block.relation == contract.GATHER:
            inputs = iter(columns["in"])
            for k, count in enumerate(columns["count"]):
                flows[out + k].extend(itertools.islice(inputs, count))
    return {output: sorted(inputs) for output, inputs in sorted(flows.items())}


def a_plan(nodes: int, **given: Any) -> Plan:
    fields: dict[str, Any] = {
        "application_id": "app",
        "settings": AgentSettings(bootstrap_servers="nowhere:1"),
        "flow_partitions": 30,
        "input_node": INPUT,
        "reads_shuffle": False,
        "nodes": tuple(range(1, nodes + 1)),
        "value_nodes": (),
    }
    return Plan(**{**fields, **given})


Start = Callable[..., Task]


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> Start:
    """task(records, *functions) runs a chain whose nodes are 1, 2, ...; node 0 is its input."""

    def run(records: Iterable[Any], *functions: Any, sender: Any = Recorder, **given: Any) -> Task:
        made = sender() if sender is not None else None
        monkeypatch.setattr(process_sender, "sender_in_worker", lambda *_given, **_more: made)
        manifests, stream = Manifests(), list[Any]()
        chain = Capture(functions, a_plan(len(functions), **given))
        serializer = CapturingSerializer(ListSerializer(), manifests)
        serializer.dump_stream(chain(3, iter(records)), stream)
        assert worker_process.run is None
        (manifest,) = manifests
        return Task(stream, made, manifest)

    return run


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "MAX_COLUMN_VALUES", 5)
    monkeypatch.setattr(position_streams, "CHUNK", 2)
    monkeypatch.setattr(narrow, "CHUNK", 2)


@pytest.fixture
def no_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Every look at the memory finds that it is time to spill."""
    monkeypatch.setattr(pyspark.shuffle, "get_used_memory", lambda: 2 * ENOUGH)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    monkeypatch.setenv("PYTHONHASHSEED", "0")


# -- one operator at a time -------------------------------------------------------------------------


def test_a_map_says_nothing_but_its_counts(task: Start) -> None:
    done = task(range(10), Map(lambda x: x * 2))
    assert done.outputs == [x * 2 for x in range(10)]
    assert done.blocks == []
    assert (done.manifest["inputs"], done.manifest["outputs"], done.manifest["split"]) == (10, 10, 3)


@pytest.mark.parametrize(("taken", "is_whole"), [(0, False), (9, False), (10, False), (11, True)])
def test_a_split_was_read_whole_when_one_more_record_was_asked_for(
    taken: int, is_whole: bool, task: Start
) -> None:
    done = task(range(10), Map(str), lambda _split, records: itertools.islice(records, taken))
    assert done.manifest["inputs"] == min(taken, 10)
    assert done.manifest["whole"] is is_whole


def test_a_filter_says_which_positions_passed(task: Start) -> None:
    done = task(range(100), Filter(lambda x: x % 7 == 0))
    assert done.outputs == list(range(0, 100, 7))
    assert done.flows(1) == {k: [7 * k] for k in range(15)}


def test_a_filter_knows_its_positions_where_few_and_where_most_pass(task: Start) -> None:
    def passes(x: int) -> bool:
        return 9_000 <= x < 20_000 or x % 100 == 0 or x > 90_000

    done = task(range(100_000), Filter(passes), Filter(lambda x: x % 3))
    expected = [x for x in range(100_000) if passes(x)]
    assert done.flows(1) == {k: [x] for k, x in enumerate(expected)}
    assert done.flows(2) == {k: [at] for k, at in enumerate(at for at, x in enumerate(expected) if x % 3)}
    assert done.manifest["inputs"] == 100_000
    assert done.manifest["outputs"] == len(done.outputs)


def test_values_merged_into_lists_say_where_each_record_went(task: Start) -> None:
    pairs = [(x % 7, x) for x in range(1_000)]
    order = Order()
    done = task(pairs, CombineLists(LISTS, ENOUGH, PICKLE, order), order)
    assert done.outputs == [(key, list(range(key, 1_000, 7))) for key in range(7)]
    assert done.flows(1) == {key: list(range(key, 1_000, 7)) for key in range(7)}


def test_a_filter_takes_any_truth(task: Start) -> None:
    assert task(["", "a", None, [0]], Filter(lambda x: x)).outputs == ["a", [0]]


@pytest.mark.parametrize(
    "made",
    [
        lambda x: [x] * (x % 4),
        lambda x: (x,) * (x % 3),
        lambda x: (x for _ in range(x % 3)),
        lambda x: "ab"[: x % 3],
        lambda x: dict.fromkeys(range(x % 4)),
        lambda x: {x, -x},
        lambda x: map(str, range(x % 2)),
    ],
    ids=["list", "tuple", "generator", "string", "dict", "set", "map"],
)
def test_a_flat_map_says_how_many_each_input_made(made: Callable[[int], Any], task: Start) -> None:
    done = task(range(50), FlatMap(made))
    expected = [(record, x) for x in range(50) for record in made(x)]
    assert done.outputs == [record for record, _ in expected]
    assert done.flows(1) == {k: [x] for k, (_, x) in enumerate(expected)}


def test_a_combine_says_where_each_record_went(task: Start) -> None:
    pairs = [("a", 1), ("b", 2), ("a", 3), (None, 4), ("b", 5)]
    order = Order()
    done = task(pairs, Combine(STRINGS, ENOUGH, PICKLE, order), order)
    assert done.outputs == [("a", "13"), ("b", "25"), (None, "4")]
    assert done.flows(1) == {0: [0, 2], 1: [1, 4], 2: [3]}
    assert done.flows(2) == {}


def test_keys_that_are_equal_in_python_are_one_group(task: Start) -> None:
    order = Order()
    done = task([(1, "a"), (1.0, "b"), (True, "c"), (2, "d")], Merge(STRINGS, ENOUGH, PICKLE, order), order)
    assert done.outputs == [(1, "abc"), (2, "d")]
    assert done.flows(1) == {0: [0, 1, 2], 1: [3]}
    assert done.texts(2) == [("int", "1"), ("int", "2")]


@pytest.mark.parametrize("operation", [Combine, Merge])
def test_a_merge_that_spills_gives_the_stock_rows_and_says_in_which_order(
    operation: type[Combine], task: Start, no_memory: None
) -> None:
    pairs = [(f"k{i % 700}", str(i)) for i in range(5_000)]
    order = Order()
    done = task(pairs, operation(STRINGS, 1, PICKLE, order), order)
    expected: dict[str, list[int]] = defaultdict(list)
    for position, (key, _) in enumerate(pairs):
        expected[key].append(position)
    assert sorted(done.outputs) == sorted(
        (key, "".join(map(str, positions))) for key, positions in expected.items()
    )
    assert done.manifest["overridden"] == [2]
    assert sources(done, 2, 1) == [expected[key] for key, _ in done.outputs]


def test_a_key_that_is_not_equal_to_itself_does_not_break_a_spilling_merge(
    task: Start, no_memory: None
) -> None:
    order = Order()
    done = task([(math.nan, 1), ("a", 2), (math.nan, 3)], Merge(STRINGS, 1, PICKLE, order), order)
    assert sorted(str(value) for _, value in done.outputs) in (["1", "2", "3"], ["13", "2"])
    (of_a,) = [k for k, (key, _) in enumerate(done.outputs) if key == "a"]
    assert sources(done, 2, 1)[of_a] == [1]


@pytest.mark.parametrize("keep_left", [False, True])
@pytest.mark.parametrize("keep_right", [False, True])
@pytest.mark.parametrize("spills", [False, True])
def test_a_join_says_which_record_of_each_side_met(
    keep_left: bool, keep_right: bool, spills: bool, task: Start, request: pytest.FixtureRequest
) -> None:
    if spills:
        request.getfixturevalue("no_memory")
    sides = [
        ("a", (1, "x")),
        ("b", (1, "y")),
        ("a", (2, "p")),
        ("c", (2, "q")),
        ("a", (1, "z")),
        ("a", (2, "r")),
    ]
    done = task(sides, Join(LISTS, 1, PICKLE, keep_left, keep_right))
    expected = {
        ("a", ("x", "p")): [0, 2],
        ("a", ("x", "r")): [0, 5],
        ("a", ("z", "p")): [2, 4],
        ("a", ("z", "r")): [4, 5],
        **({("b", ("y", None)): [1]} if keep_left else {}),
        **({("c", (None, "q")): [3]} if keep_right else {}),
    }
    flows = done.flows(1)
    assert {record: flows[k] for k, record in enumerate(done.outputs)} == expected


def pairs_of_sides(sides: list[Any]) -> list[tuple[Any, list[int]]]:
    """The outputs of a full outer join and the inputs of each, by hand, in the order of Spark."""
    by_key: dict[Any, tuple[list[int], list[int]]] = {}
    for position, (key, (side, _value)) in enumerate(sides):
        by_key.setdefault(key, ([], []))[side - 1].append(position)
    return [
        (
            (key, tuple(None if at is None else sides[at][1][1] for at in pair)),
            [at for at in pair if at is not None],
        )
        for key, (left, right) in by_key.items()
        for pair in itertools.product(left or [None], right or [None])  # type: ignore[list-item]
    ]


@pytest.mark.parametrize("spills_at", [None, 1, 2, 3])
def test_a_join_of_many_records_is_exact_whenever_its_memory_ends(
    spills_at: int | None, task: Start, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    request.getfixturevalue("no_memory")
    looks = itertools.count(1)
    monkeypatch.setattr(pyspark.shuffle, "get_used_memory", lambda: ENOUGH * (next(looks) == spills_at))
    rng = random.Random(3)
    sides = [(rng.randrange(900), (rng.choice((1, 1, 1, 2)), i)) for i in range(4_000)]
    done = task(sides, Join(LISTS, ENOUGH // 2, PICKLE, True, True))
    flows = done.flows(1)
    made = [(output, flows[k]) for k, output in enumerate(done.outputs)]
    expected = [(output, sorted(inputs)) for output, inputs in pairs_of_sides(sides)]
    assert len(flows) == len(made) == len(expected)
    assert made == expected if spills_at is None else sorted(made, key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize("stop", range(20))
def test_a_join_that_is_not_read_to_its_end_says_what_was_read(
    stop: int, task: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join, "CHUNK", 4)
    sides = [("a", (1, 0)), ("b", (1, 1)), *(("a", (2, i)) for i in range(7)), ("b", (2, 2)), ("c", (2, 3))]
    sides += [("d", (1, i)) for i in range(6)]
    done = task(
        sides, Join(LISTS, ENOUGH, PICKLE, True, True), lambda _split, made: itertools.islice(made, stop)
    )
    expected = pairs_of_sides(sides)[:stop]
    assert done.outputs == [output for output, _ in expected]
    assert done.flows(1) == {k: sorted(inputs) for k, (_, inputs) in enumerate(expected)}


@pytest.mark.parametrize("spills", [False, True])
@pytest.mark.parametrize("descending", [False, True])
def test_a_sort_says_where_each_record_was(
    spills: bool, descending: bool, task: Start, request: pytest.FixtureRequest
) -> None:
    if spills:
        request.getfixturevalue("no_memory")
    pairs = [(i * 7 % 5, f"v{i}") for i in range(300)]

    def stock(records: Iterable[Any]) -> Iterable[Any]:
        sorter: ExternalSorter[Any] = ExternalSorter(1, PICKLE)
        return iter(sorter.sorted(records, key=lambda kv: kv[0], reverse=descending))

    done = task(pairs, Sort(stock))
    expected = sorted(range(300), key=lambda i: pairs[i][0], reverse=descending)
    assert done.outputs == [pairs[i] for i in expected]
    assert done.flows(1) == {k: [i] for k, i in enumerate(expected)}


def test_a_text_with_row_ends_is_several_rows_of_the_sink(task: Start) -> None:
    texts = ["one", "two\nthree\r\nfour", "", "five\rsix", "seven\n", "eight"]
    done = task(texts, TextSink(lambda _split, records: (text.encode() for text in records)))
    rows = [0, 1, 1, 1, 2, 3, 3, 4, 4, 5]
    assert done.outputs == [text.encode() for text in texts]
    assert done.flows(1) == {row: [position] for row, position in enumerate(rows)}
    assert done.manifest["overridden"] == [1]


def test_a_sink_of_plain_rows_says_nothing(task: Start) -> None:
    done = task(["a", "b"], TextSink(lambda _split, records: (text.encode() for text in records)))
    assert (done.blocks, done.manifest["overridden"]) == ([], [])


def sources(done: Task, *nodes: int) -> list[list[int]]:
    """For each output of the first node: its inputs, through the nodes in turn."""
    walked = [[position] for position in range(len(done.outputs))]
    for node in nodes:
        flows = done.flows(node)
        walked = [sorted(i for position in at for i in flows.get(position, [])) for at in walked]
    return walked


# -- shuffles ---------------------------------------------------------------------------------------


def test_every_record_read_from_a_shuffle_is_known_by_its_writer_and_position(task: Start) -> None:
    pairs = [(i * i % 11, i) for i in range(3_000)]
    write = ShuffleWrite(lambda key: key, 4, PICKLE, ENOUGH)
    written = task(pairs, write)
    writer, targets = written.manifest["run"], defaultdict(list)
    for target, batch in zip(written.outputs[::2], written.outputs[1::2], strict=True):
        targets[struct.unpack("!q", target)[0]].append(batch)
    inputs = {position: from_[0] for position, from_ in written.flows(1).items()}
    assert sorted(inputs.values()) == list(range(3_000))
    for target, batches in targets.items():
        framed = b"".join(struct.pack("!i", len(batch)) + batch for batch in batches)
        stream = BatchedSerializer(HeaderSerializer(PICKLE)).load_stream(BytesIO(framed))
        read = task(stream, Map(lambda pair: pair), reads_shuffle=True)
        assert read.outputs == [pair for pair in pairs if pair[0] % 4 == target]
        for k, [(run, position)] in read.flows(INPUT).items():
            assert run == writer
            assert pairs[inputs[position]] == read.outputs[k]
        assert len(read.flows(INPUT)) == len(read.outputs)


def test_batches_that_the_jvm_zipped_are_not_taken_for_the_input(task: Start) -> None:
    tagged = HEADER.pack(5, 0) + PICKLE.dumps([1, 2])
    records = BatchedSerializer(HeaderSerializer(PICKLE)).load_stream(
        BytesIO(struct.pack("!i", len(tagged)) + tagged)
    )
    assert task(records, Map(lambda x: x)).blocks == []


def test_a_shuffle_is_read_without_a_run_too() -> None:
    serializer = HeaderSerializer(PICKLE)
    assert serializer.loads(serializer.dumps([1, "a"])) == [1, "a"]
    assert BatchedSerializer(serializer) == BatchedSerializer(HeaderSerializer(PICKLE))


# -- blocks -----------------------------------------------------------------------------------------


def test_blocks_of_one_stream_stand_on_their_own(task: Start, small_blocks: None) -> None:
    pairs = [(i % 3, i) for i in range(40)]
    order = Order()
    done = task(
        pairs,
        Filter(lambda kv: kv[1] % 2 == 0),
        FlatMap(lambda kv: [kv] * (kv[1] % 5)),
        Combine(STRINGS, ENOUGH, PICKLE, order),
        order,
        Sort(lambda records: sorted(records, key=lambda kv: -kv[0])),
    )
    kept = [i for i in range(40) if i % 2 == 0]
    copies = [k for k, i in enumerate(kept) for _ in range(i % 5)]
    keys = list(dict.fromkeys(kept[k] % 3 for k in copies))
    assert done.flows(1) == {k: [i] for k, i in enumerate(kept)}
    assert done.flows(2) == {out: [k] for out, k in enumerate(copies)}
    assert done.flows(3) == {
        code: [at for at, k in enumerate(copies) if kept[k] % 3 == key] for code, key in enumerate(keys)
    }
    assert done.flows(5) == {k: [keys.index(key)] for k, key in enumerate(sorted(keys, reverse=True))}
    assert len(done.blocks) > 12
    assert all(len(column) <= 5 for block in done.blocks for column in block.columns.values())
    assert [block.seq for block in done.blocks] == list(range(done.manifest["blocks"]))


def test_a_join_of_many_blocks_never_splits_an_output(task: Start, small_blocks: None) -> None:
    sides = [("k", (1, i)) for i in range(5)] + [("k", (2, i)) for i in range(5)]
    done = task(sides, Join(LISTS, ENOUGH, PICKLE, False, False))
    assert done.flows(1) == {
        k: [left, 5 + right] for k, (left, right) in enumerate(itertools.product(range(5), repeat=2))
    }


def test_positions_beyond_32_bits_may_be_followed_by_small_ones(task: Start) -> None:
    rows = [7, 1 << 32, (1 << 40) + 1, 3, 0]

    class Placed(Operator):
        def capture(self, run: TaskRun, records: Any) -> Any:
            stream = run.stream(self.node, contract.POSITIONS)
            for position in rows:
                stream.extend([(position,)])
            return records

    assert task([], Placed()).flows(1) == {k: [position] for k, position in enumerate(rows)}


def test_no_block_is_larger_than_the_contract_allows(task: Start) -> None:
    count = contract.MAX_COLUMN_VALUES

    class Wide(Operator):
        def capture(self, run: TaskRun, records: Any) -> Any:
            spans = run.stream(INPUT, contract.SPANS)
            spans.extend((1, (1 << 33) - k, 0, (1 << 52) + k * 7919 % 4096) for k in range(count))
            return records

    done = task([], Wide())
    assert done.sender is not None
    assert max(done.sender.sizes) <= contract.MAX_BLOCK_BYTES
    assert len(done.flows(INPUT)) == count


def test_texts_are_cut_into_blocks(task: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_streams, "MAX_COLUMN_CHARACTERS", 100)
    order = Order()
    done = task([(f"key {i}", i) for i in range(40)], Merge(STRINGS, ENOUGH, PICKLE, order), order)
    assert done.texts(2) == [("str", f"key {i}") for i in range(40)]
    assert len([block for block in done.blocks if block.relation == contract.KEYS]) > 5


class Unspeakable:
    def __repr__(self) -> str:
        raise OSError("no text")


@pytest.mark.parametrize(
    "key",
    [10**5_000, 10**4_290, (10**5_000,), Unspeakable(), "x" * 10**6, "\ud800", b"\xff" * 10**5],
    ids=["huge int", "large int", "tuple of a huge int", "bad repr", "long", "half a surrogate", "bytes"],
)
def test_a_key_without_a_text_does_not_break_the_job(key: Any, task: Start) -> None:
    order = Order()
    done = task([(key, 1)], Merge(STRINGS, ENOUGH, PICKLE, order), order)
    assert done.outputs == [(key, 1)]
    ((_, text),) = done.texts(2)
    assert len(text) <= contract.MAX_TEXT_CHARACTERS


# -- the job is left as it is -----------------------------------------------------------------------


CHAIN: tuple[Callable[[], Any], ...] = (
    lambda: Map(lambda x: x),
    lambda: Filter(lambda x: True),
    lambda: FlatMap(lambda x: [x]),
    lambda: FlatMap(lambda x: iter([x])),
)


@pytest.mark.parametrize("make", CHAIN)
def test_nothing_is_read_ahead(make: Callable[[], Any], task: Start) -> None:
    pulled: list[int] = []

    def source() -> Iterator[int]:
        for i in itertools.count():
            pulled.append(i)
            yield i

    def first_five(_split: int, records: Any) -> Iterator[Any]:
        return itertools.islice(iter(records), 5)

    done = task(source(), make(), first_five)
    assert done.outputs == pulled == list(range(5))
    assert (done.manifest["inputs"], done.manifest["whole"]) == (5, False)


class Large:
    """Counts how many of its kind are alive."""

    alive = most = 0

    def __init__(self, _made_of: object = None) -> None:
        Large.alive += 1
        Large.most = max(Large.most, Large.alive)

    def __del__(self) -> None:
        Large.alive -= 1


LARGE: tuple[Callable[[], Any], ...] = (
    lambda: Map(Large),
    lambda: Filter(lambda x: True),
    lambda: FlatMap(lambda x: [Large()]),
    lambda: FlatMap(lambda x: (Large() for _ in range(1))),
)


@pytest.mark.parametrize("make", LARGE)
def test_no_more_records_are_held_than_in_pyspark(make: Callable[[], Any], task: Start) -> None:
    def count(_split: int, records: Any) -> list[int]:
        return [sum(1 for _ in records)]

    def chain_of_three() -> Iterator[Any]:
        records: Any = (Large() for _ in range(9))
        for _ in range(3):
            records = make()(0, records)  # without a run: the functions of stock PySpark
        return iter(records)

    Large.most = 0
    assert count(0, chain_of_three()) == [9]
    stock, Large.most = Large.most, 0
    assert task((Large() for _ in range(9)), make(), make(), make(), count).outputs == [9]
    assert Large.most <= stock


class LargeText(bytes):
    alive = most = 0

    def __init__(self, _size: int) -> None:
        LargeText.alive += 1
        LargeText.most = max(LargeText.most, LargeText.alive)

    def __del__(self) -> None:
        LargeText.alive -= 1


def test_a_text_sink_holds_few_large_records(task: Start) -> None:
    def count(_split: int, records: Any) -> list[int]:
        return [sum(1 for _ in records)]

    texts = (LargeText(1 << 16) for _ in range(50))
    assert task(texts, TextSink(lambda _split, records: records), count).outputs == [50]
    assert LargeText.most <= 3


class Once:
    """An iterator that does not like to be asked again when it has ended."""

    def __init__(self, records: Iterable[Any]) -> None:
        self.rest: Iterator[Any] | None = iter(records)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        assert self.rest is not None, "asked again"
        for record in self.rest:
            return record
        self.rest = None
        raise StopIteration


@pytest.mark.parametrize(
    "make",
    [
        lambda: FlatMap(lambda pair: [pair]),
        lambda: FlatMap(lambda pair: iter([pair])),
        lambda: Combine(STRINGS, ENOUGH, PICKLE, Order()),
        lambda: Merge(STRINGS, ENOUGH, PICKLE, Order()),
        lambda: TextSink(lambda _split, records: records),
    ],
)
@pytest.mark.parametrize("records", [0, 1, 5])
def test_an_iterator_that_has_ended_is_not_asked_again(
    make: Callable[[], Any], records: int, task: Start
) -> None:
    given = [(f"{i}", f"{i}") for i in range(records)]
    assert len(task([], lambda _split, _records: Once(given), make()).outputs) == records


def test_outputs_of_a_flat_map_that_nobody_pulled_are_not_counted(task: Start) -> None:
    done = task(
        [10, 20, 30], FlatMap(lambda x: range(x)), lambda _split, records: itertools.islice(records, 13)
    )
    assert len(done.outputs) == 13
    assert done.flows(1) == {k: [0 if k < 10 else 1] for k in range(13)}


@pytest.mark.parametrize("make", CHAIN)
def test_one_object_that_changes_may_be_yielded_again_and_again(make: Callable[[], Any], task: Start) -> None:
    def reused() -> Iterator[list[int]]:
        record = [0]
        for i in range(20):
            record[0] = i
            yield record

    assert task(reused(), make(), Map(lambda record: record[0])).outputs == list(range(20))


def stubborn(_split: int, records: Any) -> Iterator[Any]:
    """A user's mapPartitions that goes on after errors of the iterator it is given."""
    records = iter(records)
    while True:
        try:
            yield next(records)
        except StopIteration:
            return
        except Exception as error:  # noqa: BLE001 - as users do
            yield f"{type(error).__name__}"


def odd(x: int) -> int:
    if x % 4 == 2:
        raise ValueError(x)
    return x


def test_a_map_whose_errors_are_caught_leaves_gaps(task: Start) -> None:
    done = task(range(10), Map(odd), stubborn)
    assert done.outputs == [0, 1, "ValueError", 3, 4, 5, "ValueError", 7, 8, 9]
    assert done.flows(1) == {k: [i] for k, i in enumerate(i for i in range(10) if i % 4 != 2)}


def test_an_error_from_above_is_no_gap_of_the_map_below(task: Start) -> None:
    done = task(range(10), Map(odd), Map(lambda x: x), Map(lambda x: x), stubborn)
    assert done.outputs == [0, 1, "ValueError", 3, 4, 5, "ValueError", 7, 8, 9]
    assert done.manifest["overridden"] == [1]
    assert [flow[0] for flow in done.flows(1).values()] == [0, 1, 3, 4, 5, 7, 8, 9]


@pytest.mark.parametrize(
    "above",
    [
        (),
        (Filter(lambda x: x != 3),),
        (Filter(lambda x: x % 4 > 1),),
        (FlatMap(lambda x: [x] * (x % 3)),),
        (FlatMap(lambda x: (x for _ in range(x % 3))),),
        (FlatMap(lambda x: [x, x]), Map(lambda x: x), Filter(lambda x: x % 3)),
        (LastRead(lambda _split, records: (record for record in records if record % 3)),),
        (lambda _split, records: [x for x in records if x % 3],),
    ],
    ids=["nothing", "most pass", "half pass", "lists", "generators", "a chain", "last read", "a user's"],
)
def test_a_gap_is_found_behind_any_function(above: tuple[Any, ...], task: Start, small_blocks: None) -> None:
    given = task(range(40), *above).outputs
    assert task(range(40), *above).manifest["outputs"] == len(given)
    done = task(range(40), *above, Map(odd), stubborn)
    kept = [k for k, x in enumerate(given) if x % 4 != 2]
    assert len(kept) < len(given)
    assert done.flows(len(above) + 1) == {k: [i] for k, i in enumerate(kept)}


def test_a_filter_whose_errors_are_caught_goes_on(task: Start) -> None:
    done = task(range(10), Filter(lambda x: odd(x) % 3 == 0), stubborn)
    assert done.outputs == [0, "ValueError", 3, "ValueError", 9]
    assert done.flows(1) == {0: [0], 1: [3], 2: [9]}


def test_a_flat_map_whose_errors_are_caught_goes_on(task: Start) -> None:
    def pair(x: int) -> Iterator[int]:
        yield x
        yield odd(x)

    done = task(range(4), FlatMap(pair), stubborn)
    assert done.outputs == [0, 0, 1, 1, 2, "ValueError", 3, 3]
    assert done.flows(1) == {0: [0], 1: [0], 2: [1], 3: [1], 4: [2], 5: [3], 6: [3]}


def test_a_flat_map_ends_with_an_error_of_its_function_as_in_pyspark(task: Start) -> None:
    def twice(x: int) -> list[int]:
        return [odd(x)] * 2

    done = task(range(4), FlatMap(twice), stubborn)
    assert done.outputs == list(stubborn(0, itertools.chain.from_iterable(map(twice, range(4)))))
    assert done.flows(1) == {0: [0], 1: [0], 2: [1], 3: [1]}


@pytest.mark.parametrize("make", [Map, Filter, FlatMap])
@pytest.mark.parametrize("is_captured", [False, True])
def test_a_stop_iteration_of_the_user_is_the_error_that_pyspark_makes_of_it(
    make: type[Map], is_captured: bool, task: Start
) -> None:
    def stops(_record: Any) -> Any:
        raise StopIteration("enough")

    def run() -> None:
        if is_captured:
            task([1, 2], make(stops))
        else:
            list(make(stops)(0, iter([1, 2])))

    with pytest.raises(PySparkRuntimeError, match=r"STOP_ITERATION_OCCURRED.*enough") as raised:
        run()
    assert isinstance(raised.value.__context__, StopIteration)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize(
    "make", [Map, Filter, FlatMap, lambda f: Combine(Aggregator(f, f, f), ENOUGH, PICKLE, Order())]
)
def test_the_user_does_not_see_our_frames_in_a_traceback(make: Callable[..., Any], task: Start) -> None:
    def bad(_record: Any) -> Any:
        raise ValueError("bad") from KeyError("cause")

    with pytest.raises(ValueError, match="bad") as raised:
        task([("a", 1)], Map(lambda x: x), make(bad), Map(lambda x: x))
    frames = [frame.filename for frame in traceback.extract_tb(raised.tb)]
    folder = str(Path(spark_agent.__file__).parent)
    assert [name for name in frames if name.startswith(folder)] == []
    assert frames[-1] == __file__


def test_a_user_function_gets_the_very_object_that_the_one_before_it_gave(task: Start) -> None:
    chain = (lambda _split, records: list(records), lambda _split, records: [len(records)])
    assert task(range(7), *chain).outputs == [7]
    assert task(range(7), *chain, value_nodes=(1, 2)).outputs == [7]


def test_values_of_every_node_are_texts_in_their_order(task: Start) -> None:
    chain = (Map(lambda x: x + 1), lambda _split, records: list(records), Filter(lambda x: x > 2))
    done = task(range(4), *chain, value_nodes=(1, 2, 3))
    for node, texts in ((1, "1234"), (2, "1234"), (3, "34")):
        assert done.texts(node) == [("int", text) for text in texts]


def test_a_users_generator_is_finalised_when_the_task_ends(task: Start) -> None:
    ended = []

    def generator(_split: int, records: Any) -> Iterator[Any]:
        try:
            yield from records
        finally:
            ended.append(True)

    task(
        range(9),
        generator,
        FlatMap(lambda x: [x, x]),
        Map(lambda x: x),
        lambda _split, r: itertools.islice(r, 3),
    )
    assert ended == [True]


@pytest.mark.parametrize(
    ("make", "records", "given"),
    [
        (lambda: Map(str), [1, 2], ["1", "2"]),
        (lambda: Filter(bool), [0, 1], [1]),
        (lambda: FlatMap(list), ["ab", "c"], ["a", "b", "c"]),
        (lambda: Combine(STRINGS, ENOUGH, PICKLE, Order()), [("a", 1), ("a", 2)], [("a", "12")]),
        (lambda: Merge(STRINGS, ENOUGH, PICKLE, Order()), [("a", 1), ("a", 2)], [("a", "12")]),
        (lambda: Join(LISTS, ENOUGH, PICKLE, False, False), [("a", (1, 8)), ("a", (2, 9))], [("a", (8, 9))]),
        (lambda: Sort(sorted), [(2, 0), (1, 0)], [(1, 0), (2, 0)]),
        (lambda: TextSink(lambda _split, records: records), [b"a\nb"], [b"a\nb"]),
    ],
)
def test_without_a_run_an_operator_does_the_plain_thing(
    make: Callable[[], Operator], records: list[Any], given: list[Any]
) -> None:
    assert worker_process.run is None
    assert list(Capture((make(),), None)(0, iter(records))) == given


# -- what is lost is counted ------------------------------------------------------------------------


def test_blocks_without_a_sender_are_counted_as_dropped(task: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_sender.process_sender, "unavailable", "confluent-kafka is not installed")
    done = task(range(10), Filter(bool), FlatMap(lambda x: [x]), sender=None)
    assert done.outputs == list(range(1, 10))
    assert (done.manifest["blocks"], done.manifest["dropped"]) == (2, 2)
    assert "not installed" in done.manifest["problem"]


def test_a_block_that_cannot_be_written_is_counted_as_dropped(
    task: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_block: Block) -> bytes:
        raise OverflowError("an agent bug")

    monkeypatch.setattr(contract, "encode_block", broken)
    done = task(range(10), Filter(bool))
    assert done.outputs == list(range(1, 10))
    assert (done.manifest["blocks"], done.manifest["dropped"]) == (1, 1)


def test_a_fault_at_the_end_of_a_run_is_counted_and_not_raised(task: Start) -> None:
    class Faulty(Operator):
        def capture(self, run: TaskRun, records: Any) -> Any:
            run.at_close(lambda: [][1])
            return records

    done = task(range(10), Faulty())
    assert done.outputs == list(range(10))
    assert done.manifest["dropped"] == 1


def test_losses_fail_the_task_only_when_the_user_asked_for_that(task: Start) -> None:
    def refusing() -> Recorder:
        return Recorder(refused=1)

    done = task(range(10), Filter(bool), sender=refusing)
    assert done.manifest["dropped"] == 1
    assert "nowhere:1" in done.manifest["problem"]
    fail = AgentSettings(bootstrap_servers="nowhere:1", on_error="fail")
    with pytest.raises(DeliveryError, match=r"partition 3.*onError=fail: 1 of 1 blocks.*Kafka at nowhere:1"):
        task(range(10), Filter(bool), sender=refusing, settings=fail)
    assert worker_process.run is None


def test_the_stock_serializer_writes_what_the_chain_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_sender, "sender_in_worker", lambda *_given, **_more: Recorder())
    stock, manifests, stream = AutoBatchedSerializer(PICKLE), Manifests(), BytesIO()
    chain = Capture((Map(str),), a_plan(1))
    CapturingSerializer(stock, manifests).dump_stream(chain(0, iter(range(1_000))), stream)
    stream.seek(0)
    assert list(stock.load_stream(stream)) == [str(i) for i in range(1_000)]
    assert manifests[0]["outputs"] == 1_000


# -- sampled values ---------------------------------------------------------------------------------

SAMPLING = AgentSettings(bootstrap_servers="nowhere:1", detailed=True, values_sample=0.3)
SPLIT = 3
CHOSEN = int(0.3 * (1 << 32))
#: In place of a fraction: the records of a source by their positions, some of its other partitions, and of
#: another source.
RANGES = ((3, 2), (17, 1), (30, 40), (499, 1))
WATCHING = AgentSettings(
    bootstrap_servers="nowhere:1",
    detailed=True,
    values_of=((INPUT, SPLIT - 1, ((8, 2),)), (INPUT, SPLIT, RANGES), (INPUT + 1, SPLIT, ((12, 1),))),
)


def spilling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark.shuffle, "get_used_memory", lambda: 10**6)
    monkeypatch.setattr(narrow, "CHUNK", 7)


def sampled_texts(done: Task, node: int) -> set[int]:
    return {
        position
        for block in done.blocks
        if block.node == node and block.relation == contract.VALUES
        for position in block.columns["out"]
    }


def chosen(settings: AgentSettings, inputs: int) -> set[int]:
    if settings is WATCHING:
        return {position for first, count in RANGES for position in range(first, first + count)}
    return {position for position in range(inputs) if sampling_rules.is_chosen(SPLIT, position, CHOSEN)}


def on_the_way(
    done: Task, nodes: int, inputs: int, settings: AgentSettings = SAMPLING
) -> dict[int, set[int]]:
    """By node, the positions that the flows lead to from chosen inputs."""
    positions = chosen(settings, inputs)
    found = {}
    for node in range(1, nodes + 1):
        if flows := done.flows(node):
            positions = {output for output, origins in flows.items() if positions & set(origins)}
        found[node] = positions
    return found


def sampled_chains() -> dict[str, Callable[[], list[Any]]]:
    def reduced() -> list[Any]:
        first, second = Order(), Order()
        return [
            Map(lambda i: (i % 40, str(i))),
            Combine(STRINGS, ENOUGH, PICKLE, first),
            first,
            Filter(lambda pair: pair[0] % 3),
            Merge(STRINGS, ENOUGH, PICKLE, second),
            second,
            FlatMap(lambda pair: [pair[0]] * (pair[0] % 4)),
        ]

    return {
        "narrow": lambda: [
            FlatMap(lambda i: range(i % 3)),
            Filter(lambda i: i != 1),
            Map(str),
            FlatMap(lambda text: iter([text, text])),
        ],
        "reduced": reduced,
        "sorted": lambda: [
            Map(lambda i: (i * 7919 % 1013, i)),
            Sort(lambda records: iter(sorted(records, key=lambda record: record[0]))),
            FlatMap(lambda pair: [pair] * 2),
        ],
        "joined": lambda: [
            Map(lambda i: (i % 25, (1 + i % 2, i))),
            Join(LISTS, ENOUGH, PICKLE, True, True),
            Filter(lambda pair: pair[0] % 2),
        ],
    }


@pytest.mark.parametrize("chunk", [position_streams.CHUNK, 5])
@pytest.mark.parametrize("settings", [SAMPLING, WATCHING], ids=["fraction", "rows"])
@pytest.mark.parametrize("name", sampled_chains())
def test_values_are_sampled_exactly_on_the_ways_of_chosen_inputs(
    name: str, settings: AgentSettings, chunk: int, task: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(narrow, "CHUNK", chunk)
    functions = sampled_chains()[name]()
    valued = tuple(range(1, len(functions) + 1))
    done = task(range(500), *functions, settings=settings, value_nodes=valued)
    plain = task(range(500), *sampled_chains()[name]())
    assert done.outputs == plain.outputs
    wanted = on_the_way(done, len(functions), 500, settings)
    assert {node: sampled_texts(done, node) for node in valued} == wanted
    assert 0 < len(wanted[1]) < 400


def test_values_are_sampled_exactly_when_a_merge_spills(task: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    spilling(monkeypatch)
    order = Order()
    chain = (
        Map(lambda i: (i % 90, str(i))),
        Merge(STRINGS, 10, PICKLE, order),
        order,
        Map(lambda pair: pair),
    )
    done = task(range(200), *chain, settings=SAMPLING, value_nodes=(1, 3, 4))
    assert done.manifest["overridden"] == [3]
    wanted = on_the_way(done, 4, 200)
    assert {node: sampled_texts(done, node) for node in (1, 3, 4)} == {n: wanted[n] for n in (1, 3, 4)}
    assert 0 < len(wanted[4]) < 90


def test_behind_a_bound_all_that_may_be_on_a_chosen_way_is_captured(task: Start) -> None:
    def user(_split: int, records: Any) -> Any:
        return records

    def whole(_split: int, records: Any) -> Any:
        return list(records)

    first = next(position for position in range(500) if sampling_rules.is_chosen(SPLIT, position, CHOSEN))
    done = task(range(500), Map(abs), user, Map(abs), settings=SAMPLING, value_nodes=(3,))
    assert sampled_texts(done, 3) == set(range(first, 500))
    done = task(
        range(500), whole, lambda _split, records: [len(records)], settings=SAMPLING, value_nodes=(2,)
    )
    assert done.outputs == [500]
    assert sampled_texts(done, 2) == {0}


def test_a_user_may_go_on_after_an_error_while_values_are_sampled(task: Start) -> None:
    def bad(i: int) -> int:
        return 100 // (i % 10)

    def going_on(_split: int, records: Any) -> Iterator[Any]:
        while True:
            try:
                yield next(records)
            except StopIteration:
                return
            except ZeroDivisionError:
                continue

    done = task(range(100), Map(bad), going_on, settings=SAMPLING, value_nodes=(1,))
    assert len(done.outputs) == 90
    assert sampled_texts(done, 1) == on_the_way(done, 1, 100)[1]


def test_the_ways_go_on_behind_a_shuffle(task: Start) -> None:
    pairs = [(i % 17, i) for i in range(400)]
    write = ShuffleWrite(hash, 3, PICKLE, ENOUGH)
    written = task(pairs, Map(lambda pair: pair), write, settings=SAMPLING, value_nodes=(1,))
    batches = [piece for piece in written.outputs if len(piece) > 8]
    serializer = HeaderSerializer(PICKLE)
    wanted = {(key, i) for key, i in pairs if sampling_rules.is_chosen(SPLIT, i, CHOSEN)}

    def read() -> Iterator[Any]:
        for batch in batches:
            yield from serializer.loads(batch)

    done = task(read(), Map(lambda pair: pair), settings=SAMPLING, value_nodes=(1,), reads_shuffle=True)
    assert sorted(done.outputs) == sorted(pairs)
    assert {done.outputs[position] for position in sampled_texts(done, 1)} == wanted
    # Someone who captures nothing, a driver, reads the same records.
    assert sorted(record for batch in batches for record in serializer.loads(batch)) == sorted(pairs)


@pytest.mark.parametrize("fraction", [0.01, 0.1, 0.5, 0.9])
def test_the_fraction_is_that_of_the_chosen(fraction: float) -> None:
    threshold = int(fraction * (1 << 32))
    for split in range(3):
        chosen = sum(sampling_rules.is_chosen(split, offset, threshold) for offset in range(20_000))
        assert abs(chosen / 20_000 - fraction) < 0.02


def test_all_records_are_chosen_of_what_names_none(task: Start) -> None:
    """Of records whose origin is not known, each may be made of what is watched."""
    settings = replace(WATCHING, values_of=((INPUT + 1, 0, ((0, 1),)),))
    done = task(range(20), Map(abs), settings=settings, value_nodes=(1,))
    assert sampled_texts(done, 1) == set(range(20))
    settings = replace(WATCHING, values_of=((INPUT, SPLIT + 1, ((0, 1),)),))
    done = task(range(20), Map(abs), settings=settings, value_nodes=(1,))
    assert sampled_texts(done, 1) == set()


def test_without_sampling_there_are_no_ways() -> None:
    for settings in (
        AgentSettings(bootstrap_servers="", detailed=True),
        AgentSettings(bootstrap_servers="", values_sample=0.5),
    ):
        assert TaskRun(a_plan(1, settings=settings), 0, None).sampled_paths is None

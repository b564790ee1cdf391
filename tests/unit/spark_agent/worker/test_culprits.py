"""Which record a task failed on, without Spark: a chain raises as in a worker, and its report is read."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pickle import PicklingError
from typing import Any

import pytest
from pyspark.serializers import BatchedSerializer, CPickleSerializer
from pyspark.shuffle import Aggregator

from spark_agent import contract
from spark_agent.contract import Block
from spark_agent.contract.event_checks import check_event
from spark_agent.delivery import process_sender
from spark_agent.delivery.settings import AgentSettings
from spark_agent.worker.operators.adapters import Order, Sort
from spark_agent.worker.operators.aggregate import Combine, Merge
from spark_agent.worker.operators.join import Join
from spark_agent.worker.operators.narrow import Filter, FlatMap, Map
from spark_agent.worker.operators.save import TextSink
from spark_agent.worker.operators.shuffle import ShuffleWrite
from spark_agent.worker.pipeline import Capture
from spark_agent.worker.plan import Plan
from spark_agent.worker.process_state import worker_process
from spark_agent.worker.serializer import CapturingSerializer

ENOUGH = 1 << 20
PICKLE = CPickleSerializer()
BAD = 17


class PlantedError(ValueError):
    pass


def bad(record: Any) -> Any:
    """The record, unless it is made of the planted one."""
    if (record[0] if isinstance(record, tuple) else record) == BAD:
        raise PlantedError(f"planted {record}")
    return record


@dataclass
class Sender:
    """Keeps blocks and events."""

    blocks: list[Block] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)

    def send(self, topic: str, _partition: int, _key: bytes, message: bytes, _delivery: object) -> None:
        if topic == contract.NODE_TOPIC:
            self.events.append(json.loads(message))
        else:
            self.blocks.append(contract.decode_block(message))

    def flush(self, _delivery: object) -> int:
        return 0


class ListSerializer:
    def dump_stream(self, records: Iterable[Any], stream: list[Any]) -> None:
        stream.extend(records)


class Manifests(list[str]):
    def add(self, manifests: list[str]) -> None:
        self.extend(manifests)


class Sink:
    """A stream of bytes."""

    def write(self, _data: bytes) -> None:
        pass


@dataclass
class Failed:
    error: BaseException
    events: list[dict[str, Any]]
    blocks: list[Block]

    @property
    def event(self) -> dict[str, Any]:
        (event,) = self.events
        check_event(event)
        assert event["type"] == contract.RUN_FAILED
        return event

    @property
    def culprit(self) -> tuple[int, int | None, bool]:
        return self.event["failed_node"], self.event["position"], self.event["certain"]

    def source(self) -> int | None:
        """The position among the inputs of the run that the culprit was made of."""
        node, position, _ = self.culprit
        if position is None:
            return None
        for before in range(node - 1, 0, -1):
            position = self._input_of(before, position)
        return position

    def _input_of(self, node: int, output: int) -> int:
        blocks = [block for block in self.blocks if block.node == node]
        if not blocks:
            return output  # an identity
        flows: dict[int, int] = {}
        for block in blocks:
            out = block.base_out
            if block.relation == contract.POSITIONS:
                flows.update({out + at: position for at, position in enumerate(block.columns["in"])})
            elif block.relation == contract.COUNTS:
                for at, count in enumerate(block.columns["count"]):
                    flows.update(dict.fromkeys(range(out, out + count), block.base_in + at))
                    out += count
            else:
                assert block.relation == contract.SPANS
                for count, start, step in zip(
                    *(block.columns[name] for name in ("count", "in", "step")), strict=True
                ):
                    flows.update({out + at: start + at * step for at in range(count)})
                    out += count
        return flows[output]


Fail = Callable[..., Failed]


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch) -> Fail:
    """fail(records, *functions) runs a chain whose nodes are 1, 2, ..., and gives what became of it."""

    def run(records: Iterable[Any], *functions: Any, serializer: Any = None, **given: Any) -> Failed:
        sender = Sender()
        monkeypatch.setattr(process_sender, "sender_in_worker", lambda *_given, **_more: sender)
        settings = AgentSettings(bootstrap_servers="nowhere:1", **given)
        nodes = tuple(range(1, len(functions) + 1))
        of_user = tuple(node for node in nodes if not hasattr(functions[node - 1], "node_name"))
        plan = Plan(
            application_id="app",
            settings=settings,
            flow_partitions=3,
            input_node=0,
            reads_shuffle=False,
            nodes=nodes,
            user_nodes=of_user,
            value_nodes=nodes if settings.detailed else (),
            names=tuple(f"operation {node}" for node in nodes),
        )
        dumping = CapturingSerializer(serializer or ListSerializer(), Manifests())
        with pytest.raises(BaseException) as caught:
            dumping.dump_stream(
                Capture(functions, plan)(3, iter(records)), [] if serializer is None else Sink()
            )
        worker_process.run = None
        return Failed(caught.value, sender.events, sender.blocks)

    return run


# -- one operator at a time -------------------------------------------------------------------------


def lazily(record: Any) -> Iterator[Any]:
    yield bad(record)
    yield record


def late(record: Any) -> Iterator[Any]:
    yield record
    bad(record)


@pytest.mark.parametrize(
    "function",
    [
        Map(bad),
        Filter(lambda record: bool(bad(record)) or True),
        FlatMap(lambda record: [bad(record)] * 2),
        FlatMap(lazily),
        FlatMap(late),
        FlatMap(lambda record: map(bad, [record, record])),
        FlatMap(lambda record: None if record == BAD else [record]),
    ],
    ids=["map", "filter", "list", "generator", "late generator", "map object", "no iterable"],
)
@pytest.mark.parametrize("behind", [(), (Map(str),), (Filter(str),), (FlatMap(lambda record: [record]),)])
def test_the_record_that_a_function_raised_on(function: Any, behind: tuple[Any, ...], fail: Fail) -> None:
    assert fail(range(30), function, *behind).culprit == (1, BAD, True)


@pytest.mark.parametrize("passing", [0.1, 0.9])
def test_a_filter_knows_it_far_behind_the_first_records(passing: float, fail: Fail) -> None:
    chance = random.Random(1)

    def is_kept(record: int) -> bool:
        if record == 20_000:
            raise PlantedError
        return chance.random() < passing

    assert fail(range(30_000), Filter(is_kept)).culprit == (1, 20_000, True)


def test_an_error_of_the_input_is_nobodys(fail: Fail) -> None:
    def records() -> Iterator[int]:
        yield from range(5)
        raise PlantedError

    for functions in ((), (Map(str),), (Filter(str), FlatMap(lambda record: [record]))):
        chain = functions or (Map(str),)
        assert fail(records(), *chain).culprit == (0, None, False)


def strings() -> Aggregator:
    return Aggregator(bad, lambda a, b: a + bad(b), lambda a, b: a + bad(b))


def test_a_merge_names_the_value_at_hand_and_the_group_is_a_bound(fail: Fail) -> None:
    order = Order()
    pairs = [(at % 2, at) for at in range(30)]
    assert fail(pairs, Combine(strings(), ENOUGH, PICKLE, order), order).culprit == (1, BAD, False)
    assert fail(pairs, Merge(strings(), ENOUGH, PICKLE, order), order).culprit == (1, BAD, False)


def test_what_is_no_pair_or_has_no_hash_is_one_record(fail: Fail) -> None:
    order = Order()
    for wrong in (5, ([], 1)):
        pairs = [wrong if at == BAD else (at % 2, at + 100) for at in range(30)]
        combine = Combine(Aggregator(str, lambda a, _: a, lambda a, _: a), ENOUGH, PICKLE, order)
        assert fail(pairs, Filter(lambda _: True), combine, order).culprit == (2, BAD, True)


def test_a_first_value_of_a_group_is_one_record(fail: Fail) -> None:
    order = Order()
    pairs = [(at, at) for at in range(30)]
    assert fail(pairs, Combine(strings(), ENOUGH, PICKLE, order), order).culprit == (1, BAD, True)


def test_a_partition_function(fail: Fail) -> None:
    pairs = [(at, at) for at in range(30)]
    write = ShuffleWrite(lambda key: bad((key,))[0], 3, PICKLE, ENOUGH)
    assert fail(pairs, Map(lambda pair: pair), write).culprit == (2, BAD, True)


def test_a_join_knows_the_key_without_a_hash(fail: Fail) -> None:
    pairs = [([] if at == BAD else at % 3, (1 + at % 2, at)) for at in range(30)]
    aggregator = Aggregator(lambda v: [v], lambda vs, v: [*vs, v], lambda vs, ws: vs + ws)
    assert fail(pairs, Join(aggregator, ENOUGH, PICKLE, False, False)).culprit == (1, BAD, True)


def test_a_text_that_has_no_bytes(fail: Fail) -> None:
    texts = ["\ud800" if at == BAD else "a" for at in range(100)]
    sink = TextSink(lambda _partition, records: records)
    assert fail(texts, sink).culprit == (1, BAD, True)


def test_a_sort_names_no_record(fail: Fail) -> None:
    assert fail([(1, 1), ("a", 1)], Sort(sorted)).culprit == (1, None, False)


@pytest.mark.parametrize(("batch", "is_certain"), [(1, True), (4, False)])
def test_what_cannot_be_pickled(batch: int, is_certain: bool, fail: Fail) -> None:
    records = [itertools.count if at < 8 else (at for _ in ()) for at in range(9)]
    failed = fail(records, Map(lambda record: record), serializer=BatchedSerializer(PICKLE, batch))
    assert isinstance(failed.error, PicklingError)
    assert not failed.event["certain"]  # no action says what takes the records


# -- functions of partitions --------------------------------------------------------------------------


def by_row(rows: Iterable[Any]) -> Iterator[Any]:
    for row in rows:
        yield bad(row)


def after_the_loop(rows: Iterable[Any]) -> Iterator[Any]:
    yield from rows
    raise PlantedError


def as_list(rows: Iterable[Any]) -> list[Any]:
    outputs = []
    for row in rows:
        outputs.append(bad(row))
    return outputs


def all_at_once(rows: Iterable[Any]) -> list[Any]:
    return [bad(row) for row in sorted(rows)]


def closing(rows: Iterable[Any]) -> Iterator[Any]:
    try:
        for row in rows:
            yield bad(row)
    finally:
        raise KeyError("closing")


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (by_row, (2, BAD, True)),
        (lambda rows: map(bad, rows), (2, BAD, True)),
        (as_list, (2, BAD, True)),
        (after_the_loop, (2, 29, False)),
        (all_at_once, (2, 29, False)),
    ],
    ids=["by row", "map", "list", "after the loop", "all at once"],
)
@pytest.mark.parametrize("behind", [(), (Filter(lambda _: True),)])
def test_a_function_of_a_partition(function: Any, expected: Any, behind: tuple[Any, ...], fail: Fail) -> None:
    chain = (Map(lambda record: record), lambda _partition, rows: function(rows), *behind)
    assert fail(range(30), *chain).culprit == expected


def test_what_is_not_certain_is_one_of_the_records_up_to_that_one(fail: Fail) -> None:
    order, pairs = Order(), [(at % 2, at) for at in range(30)]
    assert fail(pairs, Combine(strings(), ENOUGH, PICKLE, order), order).event["first"] == 0
    assert fail(range(30), lambda _partition, rows: all_at_once(rows)).event["first"] == 0
    assert "first" not in fail(range(30), Map(bad)).event


def test_a_batch_that_cannot_be_written_bounds_its_records(fail: Fail) -> None:
    records = [(at, itertools.count if at < 8 else (at for _ in ())) for at in range(9)]
    event = fail(records, ShuffleWrite(lambda key: key % 3, 3, PICKLE, ENOUGH)).event
    assert (event["first"], event["position"], event["certain"]) == (2, 8, False)


def test_of_two_functions_of_partitions_a_record_may_have_got_lost_in_the_first(fail: Fail) -> None:
    def whole(_partition: int, rows: Iterable[Any]) -> list[Any]:
        return all_at_once(rows)

    def again(_partition: int, rows: Iterable[Any]) -> Iterator[Any]:
        return iter(list(rows))

    event = fail(range(30), again, whole).event
    assert (event["position"], event["inputs"]) == (None, 30)
    assert "first" not in event


@pytest.mark.parametrize("is_read_in_task", [False, True])
def test_a_run_whose_records_the_task_reads_on_reports_itself(
    is_read_in_task: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender = Sender()
    monkeypatch.setattr(process_sender, "sender_in_worker", lambda *_given, **_more: sender)
    plan = Plan("app", AgentSettings(bootstrap_servers="nowhere:1"), 3, 0, False, (1,))
    manifests, written = Manifests(), list[Any]()
    capture = Capture((Map(str),), dataclasses.replace(plan, is_read_in_task=is_read_in_task))
    CapturingSerializer(ListSerializer(), manifests).dump_stream(capture(3, iter(range(5))), written)
    kept = [event for event in sender.events if event["type"] == contract.RUN_KEPT]
    assert [(event["nodes"], event["inputs"]) for event in kept] == [([1], 5)] * is_read_in_task
    assert len(manifests) == 1


def test_an_error_while_closing_is_not_certain(fail: Fail) -> None:
    failed = fail(range(30), lambda _partition, rows: closing(rows))
    assert isinstance(failed.error, KeyError)
    assert failed.culprit[:2] == (1, BAD)


def test_an_error_before_a_function_of_a_partition_is_not_its_own(fail: Fail) -> None:
    chain = (FlatMap(lazily), lambda _partition, rows: by_row(rows), Filter(lambda _: True))
    assert fail(range(30), *chain).culprit == (1, BAD, True)


# -- errors that user code catches ----------------------------------------------------------------------


def catching(then: Callable[[list[BaseException]], None]) -> Callable[[int, Iterator[Any]], Iterator[Any]]:
    def function(_partition: int, rows: Iterator[Any]) -> Iterator[Any]:
        caught: list[BaseException] = []
        while True:
            try:
                row = next(rows)
            except StopIteration:
                break
            except PlantedError as error:
                caught.append(error)
            else:
                yield row
        then(caught)

    return function


def test_an_error_that_is_raised_again_later_is_the_same(fail: Fail) -> None:
    def again(caught: list[BaseException]) -> None:
        raise caught[0]

    def led_to(caught: list[BaseException]) -> None:
        raise RuntimeError from caught[0]

    for then in (again, led_to):
        assert fail(range(30), Map(bad), catching(then)).culprit == (1, BAD, True)
        assert fail(range(30), FlatMap(lambda record: [bad(record)]), catching(then)).culprit == (
            1,
            BAD,
            True,
        )


def test_an_error_object_that_is_used_again_is_about_the_last_record(fail: Fail) -> None:
    shared = PlantedError()

    def raises(record: int) -> int:
        if record in (5, 9):
            raise shared
        return record

    def skips_one(_partition: int, rows: Iterator[Any]) -> Iterator[Any]:
        for _ in range(5):
            yield next(rows)
        with contextlib.suppress(PlantedError):
            next(rows)
        yield from rows

    assert fail(range(30), Map(raises), skips_one, Filter(lambda _: True)).culprit == (1, 9, True)


def test_an_error_that_was_caught_is_forgotten(fail: Fail) -> None:
    def other(_caught: list[BaseException]) -> None:
        raise RuntimeError("another one")

    assert fail(range(30), Filter(bad), catching(other)).culprit[::2] == (2, False)

    def fails_later(record: int) -> int:
        if record == 20:
            raise KeyError(record)
        return record

    assert fail(range(30), Map(bad), catching(other), Map(fails_later)).culprit == (3, 19, True)


# -- what is told ------------------------------------------------------------------------------------------


def test_the_report_says_what_the_error_says(fail: Fail) -> None:
    program: dict[str, Any] = {"bad": bad}
    exec(compile("def f(x):\n    return bad(x)\n", "/jobs/etl.py", "exec"), program)
    event = fail(range(30), Filter(lambda _: True), Map(program["f"])).event
    assert (event["error"], event["message"]) == ("PlantedError", "planted 17")
    assert event["frame"] == "/jobs/etl.py:2"
    assert "record" not in event
    assert (event["inputs"], event["ignorable"]) == (BAD + 1, True)


def test_long_messages_are_cut(fail: Fail) -> None:
    def raises(_record: Any) -> None:
        raise PlantedError("x" * 10_000)

    assert len(fail(range(3), Map(raises)).event["message"]) == 4_096


def test_records_are_told_if_values_are_captured(fail: Fail) -> None:
    told = fail(range(30), Map(str), Map(lambda text: bad(int(text))), detailed=True).event
    assert told["record"] == ["str", "17"]
    sampled = fail(range(30), Map(str), Map(lambda t: bad(int(t))), detailed=True, values_sample=0.5).event
    assert "record" not in sampled


def redacted(operation: str, kind: str, value: Any) -> str:
    return f"{operation}, {kind}, {len(str(value))}"


def test_messages_and_records_pass_the_redaction_function(fail: Fail) -> None:
    redact = f"{__name__}:redacted"
    event = fail(range(30), Map(str), Map(lambda text: bad(int(text))), detailed=True, redact=redact).event
    assert event["message"] == "operation 2, error, 10"
    assert event["record"] == ["str", "operation 2, value, 2"]
    withheld = fail(range(30), Map(bad), redact="nowhere:nothing").event
    assert withheld["message"] == contract.WITHHELD[1]


def test_the_error_goes_on_as_without_lineage(fail: Fail) -> None:
    failed = fail(range(30), Map(lambda record: record), Map(bad))
    traceback, names = failed.error.__traceback__, []
    while traceback is not None:
        names.append(traceback.tb_frame.f_globals["__name__"])
        traceback = traceback.tb_next
    assert not any(name.startswith("spark_agent.worker") for name in names)
    assert failed.error.args == ("planted 17",)


# -- random chains ----------------------------------------------------------------------------------

Item = tuple[int, int]


def pieces(record: Item) -> list[Item]:
    return [(record[0], at) for at in range((record[0] + record[1]) % 3)]


def planted(*, raising: bool) -> Callable[[Any], Any]:
    return bad if raising else lambda record: record


STEPS: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "map": lambda check: Map(lambda r: check(r)),
    "filter": lambda check: Filter(lambda r: check(r)[0] % 4 != 3),
    "most": lambda check: Filter(lambda r: bool(check(r))),
    "flatMap": lambda check: FlatMap(lambda r: pieces(check(r))),
    "lazily": lambda check: FlatMap(lambda r: (check(p) for p in [r, r])),
    "map object": lambda check: FlatMap(lambda r: map(check, [r])),
    "by row": lambda check: lambda _, rows: (check(row) for row in rows),
    "mapped": lambda check: lambda _, rows: map(check, rows),
    "unknown": lambda check: lambda _, rows: iter([check(r) for r in list(rows)]),
}


@pytest.mark.parametrize("seed", range(100))
def test_what_is_certain_is_the_planted_record_in_random_chains(seed: int, fail: Fail) -> None:
    chance = random.Random(seed)
    names = [chance.choice(list(STEPS)) for _ in range(chance.randint(1, 6))]
    raising = chance.randrange(len(names))
    records = [(chance.randint(0, 40), at % 3) for at in range(200)]
    records = [record for record in records if record[0] != BAD]
    place = chance.randint(0, len(records))
    records.insert(place, (BAD, 1))
    steps = [STEPS[name](planted(raising=at == raising)) for at, name in enumerate(names)]
    try:
        failed = fail(records, *steps)
    except pytest.fail.Exception:
        return  # the planted record ended before
    assert isinstance(failed.error, PlantedError), failed.error
    node, position, is_certain = failed.culprit
    if is_certain and "unknown" not in names[:raising]:
        assert (node, failed.source()) == (raising + 1, place), (names, raising)
    if "unknown" not in names[: raising + 1]:
        assert is_certain or names[raising] in ("by row", "mapped", "map object"), (names, raising, position)

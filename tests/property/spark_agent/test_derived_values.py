"""Values that are told by what is sent anyway have the texts of each value on its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyspark.shuffle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.serializers import CPickleSerializer
from pyspark.shuffle import Aggregator

from spark_agent import contract
from spark_agent.delivery import process_sender, producer
from spark_agent.delivery.settings import AgentSettings
from spark_agent.worker import derived_values
from spark_agent.worker.operators import narrow
from spark_agent.worker.operators.adapters import Order
from spark_agent.worker.operators.aggregate import Combine, Functions
from spark_agent.worker.operators.narrow import FlatMap, Map
from spark_agent.worker.pipeline import Capture
from spark_agent.worker.plan import Plan
from spark_agent.worker.process_state import worker_process
from spark_agent.worker.task_run import TaskRun

pytestmark = pytest.mark.thorough

LISTS = Aggregator(lambda v: [v], lambda vs, v: [*vs, v], lambda vs, ws: vs + ws)
Texts = dict[int, list[contract.Text]]


class Sender:
    """Takes blocks as a consumer does: texts by node, and how many blocks there were."""

    def __init__(self) -> None:
        self.texts: Texts = {}
        self.winners: dict[int, int] = {}
        self.blocks = 0

    def send(self, _topic: str, _partition: int, _key: bytes, message: bytes, _delivery: object) -> None:
        assert len(message) <= contract.MAX_BLOCK_BYTES
        block = contract.decode_block(message)
        if block.relation == contract.VALUES:
            self.blocks += 1
            texts = self.texts.setdefault(block.node, [])
            assert block.base_out == len(texts)
            texts += block.columns["text"]
        elif block.relation == contract.WINNERS:
            self.winners.update(zip(block.columns["out"], block.columns["in"], strict=True))

    def flush(self, delivery: producer.Delivery) -> int:
        assert not delivery.failed
        return 0


def captured(
    records: Iterable[Any], functions: Sequence[Any], limit: int = contract.MAX_TEXT_CHARACTERS
) -> tuple[list[Any], Sender, int]:
    """What a chain of nodes 1, 2, ... gives, what arrives of its values, how many values were cut."""
    nodes = tuple(range(1, len(functions) + 1))
    settings = AgentSettings(bootstrap_servers="", detailed=True, values_max_characters=limit)
    kept = tuple(node for node in nodes if type(functions[node - 1]) is not Combine)
    plan = Plan("app", settings, 30, 0, reads_shuffle=False, nodes=nodes, value_nodes=kept)
    sender = Sender()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process_sender, "sender_in_worker", lambda *_given: sender)
        patch.setattr(worker_process, "distinct_texts", set())
        patch.setattr(worker_process, "run", None)
        outputs = list(Capture(tuple(functions), plan)(0, iter(records)))
        run = worker_process.run
        assert run is not None
        assert run.close() == (0, "")
    return outputs, sender, run.tally.cut


def received(value: object, limit: int = contract.MAX_TEXT_CHARACTERS) -> contract.Text:
    kind, text = contract.typed_text(value, limit)
    return kind, text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


class Name(str):
    """Equal to the string, and not the same value."""


# -- documents --------------------------------------------------------------------------------------

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=30)
    | st.sampled_from(
        [1e15, -1e15, 1e16, 5e-5, 1.2345678901234567e16, "'\"", "\b\f\x7f", "\ud800", "\U000e0001"]
    )
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
#: What takes more room in its text, some only beside a NaN.
LONGER = st.sampled_from(
    ["1e15", "1E15", "-0", "12345678901234567.5", "1e-4", "1e400", "NaN", "-Infinity", "1e22"]
    + [f'"{10 * text}"' for text in ("\U000e0001", "\x7f", "\\b", "'\\\"", "\\ud800")]
)


def written(value: Any, separators: tuple[str, str], is_ascii: bool) -> str:
    return json.dumps(value, separators=separators, ensure_ascii=is_ascii)


def as_bytes(document: str) -> bytes:
    return document.encode("utf-8", "replace")


DOCUMENTS = st.builds(
    written, JSON, st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : ")]), st.booleans()
) | st.lists(LONGER, max_size=30).map(lambda parts: f"[{','.join(parts)}]")
LIMITS = st.sampled_from([1, 5, 30, 60, 100, 300, contract.MAX_TEXT_CHARACTERS])


@given(DOCUMENTS, st.integers(1, 100))
def test_no_document_that_is_sent_stands_for_a_text_that_is_too_long(document: str, less: int) -> None:
    length = len(contract.whole_text(json.loads(document), contract.MAX_VALUE_CHARACTERS)[1])
    assert not contract.may_be_parsed(document, length - 1)
    assert not contract.may_be_parsed(document, length - less)


def test_documents_of_usual_sizes_are_sent() -> None:
    document = json.dumps({f"field {number}": [number, 0.5, "it's text", None] for number in range(50)})
    assert len(document) > 1_500
    assert contract.may_be_parsed(document, contract.MAX_TEXT_CHARACTERS)
    assert contract.may_be_parsed('{"name": "Zürich"}', 180)


@given(st.lists(DOCUMENTS | DOCUMENTS.map(Name) | DOCUMENTS.map(as_bytes)), LIMITS)
def test_documents_stand_for_what_they_parse_to(documents: list[Any], limit: int) -> None:
    parsed = list(map(json.loads, documents))
    outputs, sender, cut = captured(documents, [Map(json.loads)], limit)
    assert list(map(repr, outputs)) == list(map(repr, parsed))
    assert sender.texts.get(1, []) == [received(value, limit) for value in parsed]
    assert cut == sum(len(contract.whole_text(value, limit)[1]) > limit for value in parsed)


def test_many_documents_come_in_blocks_that_fit() -> None:
    documents = [f'{{"n":{number},"text":"{"ü" * (number % 50)}"}}' for number in range(20_000)]
    documents[7_000] = json.dumps("long" * 1_000)
    _, sender, cut = captured(documents, [Map(json.loads)], 1_000)
    assert sender.texts[1] == [received(json.loads(document), 1_000) for document in documents]
    assert cut == 1
    assert sender.blocks > 3


@pytest.mark.parametrize("depth", [100, 401, 450])
def test_deep_documents_arrive(depth: int) -> None:
    document = '{"a":[' * (depth // 2) + " " * 900 + "]}" * (depth // 2)
    _, sender, _ = captured([document], [Map(json.loads)], contract.MAX_VALUE_CHARACTERS)
    assert sender.texts[1] == [received(json.loads(document), contract.MAX_VALUE_CHARACTERS)]


def test_values_that_a_map_changes_later_keep_the_texts_of_their_documents() -> None:
    def empty(value: Any) -> Any:
        value.clear()
        return len(value)

    _, sender, _ = captured(['{"a": 1}', "[2]"] * 100, [Map(json.loads), Map(empty)])
    assert sender.texts[1] == [("json", '{"a": 1}'), ("json", "[2]")] * 100
    assert sender.texts[2] == [("int", "0")] * 200


# -- keys -------------------------------------------------------------------------------------------

WORDS = st.sampled_from(["", "a", "b", "1", "\ud800", "ü" * 40, "x" * 300, '"' * 30, "\0" * 60])
INTEGERS = st.sampled_from([0, 1, -1, 7, 10**30, 10**90])
OTHERS = st.sampled_from([1.0, True, False, 0.0, -0.0, None, Name("a"), Name("b"), b"a", (1, 2), (True, 2)])
KEYS = (
    st.lists(WORDS, max_size=40)
    | st.lists(INTEGERS, max_size=40)
    | st.lists(WORDS | INTEGERS | OTHERS, max_size=40)
)


def by_key(functions: Any = LISTS) -> tuple[Combine, Order]:
    order = Order()
    return Combine(functions, 1 << 20, CPickleSerializer(), order), order


PAIRS: dict[str, Callable[[Any], Any]] = {
    "one": lambda word: (word, 1),
    "a text": lambda word: (word, "\0 one"),
    "nothing": lambda word: (word, None),
    "true": lambda word: (word, True),
    "of the key": lambda word: (word if type(word) is not str else word.upper(), 1),
    "not constant": lambda word: (word, str(word)),
}


@pytest.mark.parametrize("name", PAIRS)
@given(keys=KEYS, limit=LIMITS)
def test_values_before_a_combine_have_their_texts(name: str, keys: list[Any], limit: int) -> None:
    make = PAIRS[name]
    halves = [keys[::2], keys[1::2]]
    keys = [*halves[0], *halves[1]]
    outputs, sender, cut = captured(halves, [FlatMap(lambda half: half), Map(make), *by_key()], limit)
    pairs = list(map(make, keys))
    groups: dict[Any, list[Any]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    assert list(map(repr, outputs)) == list(map(repr, groups.items()))
    for node, wanted in ((1, keys), (2, pairs), (4, list(groups.items()))):
        assert sender.texts.get(node, []) == [received(value, limit) for value in wanted]
    everything = [*keys, *pairs, *groups.items()]
    assert cut == sum(len(contract.whole_text(value, limit)[1]) > limit for value in everything)


@given(keys=KEYS, limit=LIMITS)
def test_values_before_a_combine_that_chooses_have_their_texts(keys: list[Any], limit: int) -> None:
    """As `distinct` does; it also keeps the winners."""
    first = Functions(lambda value: value, lambda one, _: one, lambda one, _: one)
    pairs = [(key, None) for key in keys]
    outputs, sender, _ = captured(
        keys, [Map(lambda key: key), Map(lambda key: (key, None)), *by_key(first)], limit
    )
    assert list(map(repr, outputs)) == list(map(repr, dict(pairs).items()))
    for node, wanted in ((1, keys), (2, pairs), (4, list(dict(pairs).items()))):
        assert sender.texts.get(node, []) == [received(value, limit) for value in wanted]
    firsts = {key: keys.index(key) for key in keys if keys.count(key) > 1}
    assert sender.winners == {list(dict(pairs)).index(key): position for key, position in firsts.items()}


@pytest.mark.parametrize(
    "keys",
    [
        [f"word {number % 7}" for number in range(300_000)],
        [f"word {number}" for number in range(60_000)],
        [f"word {number % 50_000}" for number in range(150_000)],
        ["\0" * 250 + str(number % 3_000) for number in range(9_000)],
        list(range(60_000)),
        [*map(str, range(70_000)), 7, *map(str, range(70_000))],
    ],
    ids=["few", "different", "again", "long", "integers", "one of another type"],
)
def test_many_keys_come_in_blocks_that_fit(keys: list[Any]) -> None:
    _, sender, _ = captured([keys], [FlatMap(lambda keys: keys), Map(lambda key: (key, 1)), *by_key()])
    assert sender.texts[1] == list(map(contract.typed_text, keys))
    assert sender.texts[2] == [contract.typed_text((key, 1)) for key in keys]


def test_values_before_a_combine_that_spills_have_their_texts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(pyspark.shuffle, "get_used_memory", lambda: 1 << 30)
    monkeypatch.setattr(narrow, "CHUNK", 7)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    keys = [number % 70 for number in range(5_000)]
    keys[4_001] = True  # equal to a key that came before the memory was full
    _, sender, _ = captured([keys], [FlatMap(lambda keys: keys), Map(lambda key: (key, 1)), *by_key()])
    assert sender.texts[1] == list(map(contract.typed_text, keys))
    assert sender.texts[2] == [contract.typed_text((key, 1)) for key in keys]


def test_keys_tell_values_of_chosen_operations_alone() -> None:
    chain = [FlatMap(lambda keys: keys), Map(lambda key: (key, 1)), *by_key()]
    for kept in ((1,), (2,), (1, 2), ()):
        settings = AgentSettings(bootstrap_servers="", detailed=True)
        plan = Plan("app", settings, 30, 0, reads_shuffle=False, nodes=(1, 2, 3, 4), value_nodes=kept)
        run = TaskRun(plan, 0, None)
        derived = derived_values.prepare(plan, chain, run.texts)
        assert derived.nodes == set(kept)
        assert set(derived.keys) == ({3} if kept else set())

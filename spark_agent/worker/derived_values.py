"""Derived values: those of which no text is made, since they follow from what is sent anyway.

Behind `map(json.loads)` a document stands for its value, and the service parses it once more. Before a
combine whose pairs were made by a function like `lambda word: (word, 1)`, its codes and keys give the values.
Promises that the texts are those of each value on its own. What a function does is read from its bytecode,
never guessed. From the first record on that would not fit, texts are made as usual.
"""

from __future__ import annotations

import dis
import functools
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from spark_agent import contract
from spark_agent.worker.function_traits import role_of
from spark_agent.worker.text_dictionary import DICTIONARY_BYTES, TEXT_OVERHEAD, WRITTEN_OUT_CHARACTERS
from spark_agent.worker.value_streams import SHORT, TextStream

if TYPE_CHECKING:
    from spark_agent.worker.plan import Plan
    from spark_agent.worker.position_streams import Stream

_LOADS = json.loads
#: Something may have put a function of its own in the place of json.loads before the agent came.
_IS_STOCK = type(_LOADS) is FunctionType and _LOADS.__globals__ is vars(json) and _LOADS.__name__ == "loads"
#: Instructions that do nothing to values.
_IDLE = ("RESUME", "CACHE", "EXTENDED_ARG", "NOP", "PUSH_NULL", "PRECALL", "COPY_FREE_VARS")
_NOT_PLAIN = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
#: What the JSON of a pair has besides what its items are as texts, with some room.
_AROUND = 16


# -- what functions do ------------------------------------------------------------------------------


def parses_json(function: object) -> bool:
    """Is it json.loads, or a function that does nothing but call it with its argument?"""
    if not _IS_STOCK or json.loads is not _LOADS:
        return False
    if function is _LOADS:
        return True
    if type(function) is not FunctionType:
        return False
    path = _called(function.__code__)
    named = function.__globals__.get(path[0]) if path else None
    return named is _LOADS if path[1:] == () else named is json and path[1:] == ("loads",)


@functools.lru_cache(maxsize=256)
def _called(code: CodeType) -> tuple[str, ...]:
    """The global, and perhaps its attribute, that code calls with its argument and gives the result of."""
    steps = _steps(code)
    names = [str(step.argval) for step in steps[:-3]]
    if (
        len(steps) in (4, 5)
        and steps[0].opname == "LOAD_GLOBAL"
        and (len(steps) == 4 or steps[1].opname in ("LOAD_ATTR", "LOAD_METHOD"))
        and _is_argument(steps[-3], code)
        and steps[-2].opname in ("CALL", "CALL_FUNCTION", "CALL_METHOD")
        and steps[-2].arg == 1
        and steps[-1].opname == "RETURN_VALUE"
    ):
        return tuple(names)
    return ()


@dataclass(frozen=True)
class Pair:
    """What a function gives: always a new pair whose second item is `constant`."""

    constant: Any
    is_of_argument: bool  # is its first item the argument itself?


def pair_made(function: object) -> Pair | None:
    """The pair that `function` gives, whatever its argument; None where it may give anything else."""
    return _pair(function.__code__) if type(function) is FunctionType else None


def gives_argument(function: object) -> bool:
    """Does it nothing but give its argument back?"""
    return type(function) is FunctionType and _gives_argument(function.__code__)


@functools.lru_cache(maxsize=256)
def _gives_argument(code: CodeType) -> bool:
    steps = _steps(code)
    return len(steps) == 2 and _is_argument(steps[0], code) and steps[1].opname == "RETURN_VALUE"


@functools.lru_cache(maxsize=256)
def _pair(code: CodeType) -> Pair | None:
    steps = _steps(code)
    if len(steps) < 4 or sum(step.opname.startswith("RETURN_") for step in steps) != 1:
        return None
    constant, build, end = steps[-3:]
    if (
        constant.opname not in ("LOAD_CONST", "LOAD_SMALL_INT")
        or type(constant.argval) not in (int, str, bool, type(None))
        or (build.opname, build.arg) != ("BUILD_TUPLE", 2)
        or end.opname != "RETURN_VALUE"
        or build.is_jump_target  # then the second item is another one at times
        or end.is_jump_target
    ):
        return None
    return Pair(constant.argval, len(steps) == 4 and _is_argument(steps[0], code))


def _steps(code: CodeType) -> list[dis.Instruction]:
    """What plain code does, step by step; nothing for a generator."""
    if code.co_flags & _NOT_PLAIN:
        return []
    return [step for step in dis.get_instructions(code) if step.opname not in _IDLE]


def _is_argument(step: dis.Instruction, code: CodeType) -> bool:
    """Does it load the first argument, as it was given?"""
    return (
        step.opname in ("LOAD_FAST", "LOAD_FAST_BORROW")
        and code.co_argcount > 0
        and not code.co_cellvars
        and step.argval == code.co_varnames[0]
    )


# -- derived values -----------------------------------------------------------------------------------


class Derived(NamedTuple):
    """The derived values of a chain.

    `documents`: node -> its values, each given by the document that it reads. `keys`: a combine's node ->
    values given by its keys. `nodes`: those whose values are derived; no texts are made of them elsewhere.
    """

    documents: Mapping[int, TextStream]
    keys: Mapping[int, KeyTexts]
    nodes: frozenset[int]


def nothing() -> Derived:
    return Derived({}, {}, frozenset())


def prepare(plan: Plan, functions: Sequence[Any], texts_of: Callable[[int, str], TextStream]) -> Derived:
    """What of a chain is derived. `texts_of(node, relation)` makes a stream of the run.

    Not where only some records have values, or a redaction function is asked about each.
    """
    if not plan.value_nodes or plan.settings.redact or plan.settings.follows_paths:
        return nothing()
    remaining = set(plan.value_nodes)
    documents, keys_of = {}, {}
    for index, (node, function) in enumerate(zip(plan.nodes, functions, strict=True)):
        role = role_of(function)
        if role == "map" and node in remaining and parses_json(function.function):
            documents[node] = texts_of(node, contract.VALUES)
            remaining.remove(node)
        before = functions[index - 1] if index else None
        if before is None or role != "combine" or role_of(before) != "map":
            continue
        pair = pair_made(before.function)
        if pair is None:
            continue
        paired, read = plan.nodes[index - 1], plan.nodes[index - 2] if index > 1 else None
        pairs = texts_of(paired, contract.VALUES) if paired in remaining else None
        keys = texts_of(read, contract.VALUES) if pair.is_of_argument and read in remaining else None
        if pairs is not None or keys is not None:
            keys_of[node] = KeyTexts(pair.constant, pairs, keys, plan.settings.values_max_characters)
            remaining -= {stream.node for stream in (pairs, keys) if stream is not None}
    return Derived(documents, keys_of, frozenset(plan.value_nodes) - remaining)


def noting(texts: TextStream, parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`parse`, which is json.loads, whose each value is the next output of `texts`."""
    add_document, add, limit, fits = texts.add_document, texts.add, texts.limit, contract.may_be_parsed
    short = min(limit // 5, 2 * contract.MAX_DOCUMENT_DEPTH)  # fits if it is ASCII: what most are, asked here

    def noted(document: Any) -> Any:
        value = parse(document)
        if type(document) is str and (
            (len(document) <= short and document.isascii()) or fits(document, limit)
        ):
            add_document(document)
        else:
            add(value)
        return value

    return noted


class DerivablePairs:
    """`pairs` up to the first one whose key does not say its values: that is `underivable`."""

    def __init__(self, key_texts: KeyTexts, pairs: Iterator[Any], codes: Mapping[Any, int]) -> None:
        self._key_texts, self._pairs, self._codes = key_texts, pairs, codes
        self.underivable: tuple[Any, Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        is_short, codes, kind = self._key_texts.is_short, self._codes, None
        for pair in self._pairs:
            key = pair[0]
            if type(key) is not kind and not self._key_texts.is_of_same_type(key):
                self.underivable = pair
                return
            kind = type(key)
            if key not in codes and not is_short(key):
                self.underivable = pair
                return
            yield pair


class KeyTexts:
    """The values of the operations before a combine, given by its codes: input k of it has the key of code k.

    `pairs` are its inputs, each a key and `constant`; `keys` is what they were made of, the keys as they are.
    """

    def __init__(self, constant: Any, pairs: TextStream | None, keys: TextStream | None, limit: int) -> None:
        self._constant, self._pairs, self._keys = constant, pairs, keys
        self._codes: dict[Any, int] = {}
        self._type: type | None = None  # of all keys
        around = _AROUND + 6 * len(contract.whole_text(constant, limit)[1])
        #: So long may a key be: in JSON a character takes 6 at most.
        self.longest = min(SHORT, (limit - around) // 6)

    def follow(self, stream: Stream, codes: dict[Any, int]) -> None:
        """`stream` has the codes of the inputs, `codes` the keys in the order of their codes."""
        self._codes, stream.follower = codes, self._ship

    def is_of_same_type(self, key: Any) -> bool:
        """Is the key of the same type as those before? If they are equal, their texts are equal then."""
        if self._type is None and type(key) in (str, int):
            self._type = type(key)
        return type(key) is self._type

    def is_short(self, key: Any) -> bool:
        """Is a new key so short that its texts need not be cut?"""
        return len(key) <= self.longest if type(key) is str else key.bit_length() <= self.longest

    def derivable(self, pairs: Iterator[Any], codes: Mapping[Any, int]) -> DerivablePairs:
        """`pairs` while keys say their values. `codes` has the keys that came before."""
        return DerivablePairs(self, pairs, codes)

    def stop(self, stream: Stream, pairs: Iterable[Any]) -> Iterator[Any]:
        """The inputs from here on, `pairs`: their texts are made as they pass."""
        stream.end_following()
        if self._keys is not None:
            pairs = self._keys.keys_through(pairs, differ=False)
        return self._pairs.through(pairs) if self._pairs is not None else iter(pairs)

    def _ship(self, codes: Sequence[int], first: int) -> None:
        self._ship_piece(codes, first, list(self._codes))

    def _ship_piece(self, codes: Sequence[int], first: int, keys: list[Any]) -> None:
        """The inputs from `first` on, which have these codes of `keys`."""
        if 8 * len(keys) > len(codes):  # only those that are needed here
            used = list(dict.fromkeys(codes))
            code_of = dict(zip(used, range(len(used)), strict=True))
            codes, keys = list(map(code_of.__getitem__, codes)), [keys[code] for code in used]
        limit = 6 * self.longest + _AROUND
        columns: list[tuple[TextStream, list[contract.Text]]] = []
        if self._pairs is not None:
            pairs = [contract.whole_text((key, self._constant), limit) for key in keys]
            columns.append((self._pairs, pairs))
        if self._keys is not None:
            columns.append((self._keys, [contract.whole_text(key, limit) for key in keys]))
        texts = columns[0][1]  # the longer ones
        lengths = [len(text) for _, text in texts]
        size = sum(lengths) * (1 if all(text.isascii() for _, text in texts) else 4)
        is_large = size + TEXT_OVERHEAD * len(texts) > DICTIONARY_BYTES
        if len(codes) > 1 and (is_large or len(codes) * max(lengths) > WRITTEN_OUT_CHARACTERS):
            half = len(codes) // 2
            self._ship_piece(codes[:half], first, keys)
            self._ship_piece(codes[half:], first + half, keys)
            return
        for stream, column in columns:
            stream.ship_coded(first, codes, column)

"""Random functions of a partition, of lines that people write. Some of the lines carry something on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

from tests.support.generators.setup import Memory, Model, Smoother, add_to, enrich, words

NAMES: dict[str, Any] = {
    "re": re,
    "Model": Model,
    "Smoother": Smoother,
    "Memory": Memory,
    "enrich": enrich,
    "words": words,
    "add_to": add_to,
    "PLACES": {"a": "Athens", "b": "Berlin"},
}
LETTERS = ("", "a", "b", "ab", "ba")

_SETUP = (
    "n = 0",
    "m = 0",
    "last = ''",
    "x = 'x'",
    "seen = set()",
    "kept = []",
    "d = {}",
    "pattern = re.compile('a+')",
    "model = Model(2)",
    "smoother = Smoother()",
    "memory = Memory()",
)
_HEADS = (
    "for r in rows:",
    "for r in rows:",
    "for i, r in enumerate(rows):",
    "for r in map(str, rows):",
    "for r in (r + 'c' for r in rows):",
    "for r in (r for r in rows if r):",
)
_VALUES = (
    "r",
    "r",
    "x",
    "last",
    "n",
    "m",
    "i",
    "len(r)",
    "r + x",
    "(x, r)",
    "len(kept)",
    "kept[-1:]",
    "d.get(r)",
    "sorted(seen)",
    "pattern.sub('-', r)",
    "model.predict(r)",
    "smoother.feed(r)",
    "memory.last()",
    "enrich(r, PLACES)",
    "enrich(r, d)",
    "[w + r for w in words(r)]",
    "(lambda v: v + x)(r)",
    "{**d, 'r': r}",
)
_CONDITIONS = (
    "r",
    "r > 'a'",
    "'a' in r",
    "x",
    "n % 2",
    "n > 2",
    "i % 2",
    "r in seen",
    "last == r",
    "memory.is_new(r)",
    "pattern.match(r)",
    "len(kept) > 2",
)
_LINES = (
    "n += 1",
    "m += len(r)",
    "last = r",
    "x = r",
    "x = r.upper()",
    "x = last",
    "x = 'x'",
    "n = 0",
    "seen.add(r)",
    "kept.append(r)",
    "kept.append(x)",
    "d[r] = n",
    "d['last'] = r",
    "d.setdefault(r, []).append(x)",
    "memory.note(r)",
    "add_to(kept, r)",
    "add = kept.append; add(r)",
    "y = {'r': r}; y['x'] = x; x = y['x']",
    "y = [r]; y.append(x); x = y[-1]",
    "(lambda v: kept.append(v))(r)",
    "(lambda v: kept.append(v))(x)",
    "d.pop(r, None)",
    "globals()['x'] = r",
    "print(r, end='')",
    "x, last = last, r",
    "[x for x in [r]]",
    "[kept.append(v) for v in r]",
    "pass",
)
_JUMPS = ("continue", "continue", "break")


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _statements(depth: int) -> st.SearchStrategy[list[str]]:
    simple = st.sampled_from(_LINES).map(lambda line: [line])
    output = st.sampled_from(_VALUES).map(lambda value: [f"yield {value}"])
    outputs = st.sampled_from(_VALUES).map(lambda value: [f"yield from [{value}, {value}]"])
    one = simple | simple | output | outputs
    if depth:
        inner = _statements(depth - 1)
        condition = st.sampled_from(_CONDITIONS)
        jump = st.sampled_from(_JUMPS).map(lambda line: [line])
        one |= st.builds(lambda test, body: [f"if {test}:", *_indented(body)], condition, inner | jump)
        one |= st.builds(
            lambda test, body, other: [f"if {test}:", *_indented(body), "else:", *_indented(other)],
            condition,
            inner,
            inner,
        )
        one |= st.builds(lambda body: ["for w in r:", *_indented(body)], inner)
        one |= st.builds(
            lambda body, other: [
                "try:",
                *_indented(["int(r + '1' if r > 'a' else r)", *body]),
                "except ValueError:",
                *_indented(other),
            ],
            inner,
            inner | jump,
        )
        one |= st.builds(lambda body: ["try:", *_indented(body), "finally:", "    n += 1"], inner)
    return st.lists(one, min_size=1, max_size=4).map(lambda many: [line for lines in many for line in lines])


def _source(setup: list[str], head: str, body: list[str], tail: list[str]) -> str:
    return "\n".join(["def function(rows):", *_indented([*setup, head, *_indented(body), *tail])])


_TAILS = st.sampled_from(([], [], [], ["yield 'end'"], ["yield n"], ["yield r"], ["print(n, end='')"]))
_OUTPUT = st.sampled_from(_VALUES).map(lambda value: [f"yield {value}"])

#: The source of a function that reads row by row, unless one of its lines makes it do otherwise.
SOURCES = st.builds(
    lambda head, body, last, tail: _source(list(_SETUP), head, [*body, *last], tail),
    st.sampled_from(_HEADS),
    _statements(2),
    _OUTPUT,
    _TAILS,
)


def _listing(source: str) -> str:
    """The same function, which lists its outputs."""
    listed = re.sub(r"yield from (.*)", r"outputs.extend(\1)", source)
    listed = re.sub(r"yield (.*)", r"outputs.append(\1)", listed)
    return listed.replace("n = 0", "n, outputs = 0, []", 1) + "\n    return outputs"


#: The source of a function that lists what it makes of each row, unless a line makes it do otherwise.
LISTING_SOURCES = st.builds(
    lambda head, body, last: _listing(_source(list(_SETUP), head, [*body, *last], [])),
    st.sampled_from(_HEADS),
    _statements(2),
    _OUTPUT,
)

_FLUSHES = (
    ["yield tuple(buffer)", "buffer = []"],
    ["yield tuple(buffer)", "buffer.clear()"],
    ["yield from list(buffer)", "buffer = []"],
    ["for b in buffer:", "    yield b", "buffer.clear()"],
    ["full, buffer = buffer, []", "yield tuple(full)"],
    ["full = tuple(buffer)", "buffer = []", "yield full"],
    ["yield tuple(buffer), r", "buffer = []"],
    ["yield tuple(buffer), x", "buffer = []"],
    ["yield tuple(buffer), n", "buffer = []"],
    ["yield tuple(buffer)", "buffer = buffer[-1:]"],
    ["yield tuple(buffer)", "buffer.pop()"],
    ["yield tuple(buffer)"],
)
_APPENDS = (
    "buffer.append(r)",
    "buffer.append(r)",
    "buffer.append((r, r))",
    "buffer.append(x)",
    "buffer.append(last)",
)


def _batching(before: list[str], append: str, flush: list[str], first: bool, between: list[str]) -> list[str]:
    flushing = ["if len(buffer) >= 2:", *_indented(flush)]
    return [*before, *([append, *between, *flushing] if first else [*flushing, *between, append])]


#: The source of a function that collects every row and flushes each two, unless a line makes it do otherwise.
BATCH_SOURCES = st.builds(
    lambda before, append, flush, first, between, tail: _source(
        [*_SETUP, "buffer = []"], "for r in rows:", _batching(before, append, flush, first, between), tail
    ),
    st.lists(st.sampled_from(_LINES), max_size=2),
    st.sampled_from(_APPENDS),
    st.sampled_from(_FLUSHES),
    st.booleans(),
    st.lists(st.sampled_from(_LINES), max_size=2),
    st.sampled_from(([], ["yield from buffer"], ["if buffer:", "    yield tuple(buffer)"])),
)


def compiled(source: str) -> Callable[[Iterator[str]], Any]:
    names = dict(NAMES)
    exec(source, names)
    return names["function"]  # type: ignore[no-any-return]

"""What is asked: questions over HTTP, chosen by a seed from what a job wrote and read."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from perf.trace.stores import Store

#: How often a word comes that is called rare or middling. The commonest is one word.
RARE, MIDDLING = range(1, 6), range(50, 2_001)


@dataclass(frozen=True, slots=True)
class Question:
    """`kind` is the row of the table that its times come into."""

    kind: str
    path: str


def wordcount(store: Store, seed: int, count: int) -> list[Question]:
    """`count` questions of each kind; the commonest word is asked for by its row."""
    chosen = random.Random(seed)
    rows = [
        (int(text.rpartition(",")[2].strip(" )")), part, number)
        for part in sorted(store.output.glob("part-*"))
        for number, text in enumerate(part.read_text().splitlines())
    ]
    source = store.inputs[0]
    lines = _lines(source)
    queries = []
    for kind, words in (("backward, rare word", RARE), ("backward, middling word", MIDDLING)):
        some = [row for row in rows if row[0] in words]
        queries += [
            _trace(store, kind, direction="backward", path=part, row=number)
            for _, part, number in chosen.choices(some, k=count)
        ]
    _, part, number = max(rows)
    queries.append(_trace(store, "backward, commonest word", direction="backward", path=part, row=number))
    queries += [
        _trace(store, "forward, a line", direction="forward", path=source, row=chosen.randrange(lines))
        for _ in range(count)
    ]
    return [*queries, *_of_application(store, chosen, count)]


def join(store: Store, seed: int, count: int) -> list[Question]:
    """`count` questions of each kind."""
    chosen = random.Random(seed)
    parts = [(part, len(part.read_text().splitlines())) for part in sorted(store.output.glob("part-*"))]
    parts = [(part, rows) for part, rows in parts if rows]
    queries = []
    for part, rows in chosen.choices(parts, k=count):
        queries.append(
            _trace(store, "backward, a row", direction="backward", path=part, row=chosen.randrange(rows))
        )
    for kind, source in (("forward, a purchase", store.inputs[0]), ("forward, a customer", store.inputs[1])):
        lines = _lines(source)
        queries += [
            _trace(store, kind, direction="forward", path=source, row=chosen.randrange(lines))
            for _ in range(count)
        ]
    return [*queries, *_of_application(store, chosen, count)]


def _of_application(store: Store, chosen: random.Random, count: int) -> Iterator[Question]:
    base = f"/api/applications/{store.application_id}"
    for _ in range(count):
        yield Question("graph", f"{base}/graph")
        partition = chosen.randrange(30)
        yield Question("records, a page", f"{base}/nodes/0/records?{urlencode({'partition': partition})}")


def _trace(store: Store, kind: str, **parameters: object) -> Question:
    return Question(kind, f"/api/applications/{store.application_id}/trace?{urlencode(parameters)}")


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))


def kinds(questions: Sequence[Question]) -> list[str]:
    """Each kind once, in order."""
    return list(dict.fromkeys(question.kind for question in questions))

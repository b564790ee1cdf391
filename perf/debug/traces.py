"""How large a store is, and how long its rows are traced backward, by how many input rows they come from."""

from __future__ import annotations

import random
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from perf.ingest.members import Api, Process
from perf.trace.asking import User
from perf.trace.questions import Question
from perf.trace.stores import Store

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Bytes of a flow store, and of what its job has read and written."""

    case: str
    megabytes: float
    input_bytes: int
    output_bytes: int
    store_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """A row that was traced: from so many input rows, in milliseconds for the first time and again."""

    case: str
    sources: int
    first_ms: float
    again_ms: float
    exact: bool


def stored_bytes(store: Store) -> Stored:
    return Stored(
        case=store.case,
        megabytes=store.megabytes,
        input_bytes=sum(path.stat().st_size for path in store.inputs),
        output_bytes=_size(store.output),
        store_bytes=_size(store.folder / "flows"),
    )


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def trace_times(store: Store, run: Path, rows: int, seed: int) -> list[Traced]:
    """Of at most `rows` rows for each magnitude of a row's last number, by a process that has just begun."""
    shutil.rmtree(run, ignore_errors=True)
    run.mkdir(parents=True)
    command = ["serve", "--home", str(run), "--store", str(store.folder / "flows"), "--neo4j-uri", ""]
    serve = Api(
        Process([*command, "--api-port", "0", "--metrics", "false"], run / "serve.log"), run / "api.json"
    )
    user = User(serve.url)
    try:
        serve.get(f"/api/applications/{store.application_id}")
        asked = list(_questions(store, rows, seed))
        firsts = [user.ask(question) for question in asked]
        agains = [user.ask(question)[0] for question in asked]
    finally:
        user.close()
        serve.process.stop()
        shutil.rmtree(run, ignore_errors=True)
    return [
        Traced(
            case=store.case,
            sources=sum(node["total"] for node in answer["nodes"] if node["kind"] == "source"),
            first_ms=round(first_ms, 2),
            again_ms=round(again_ms, 2),
            exact=answer["exact"],
        )
        for (first_ms, answer), again_ms in zip(firsts, agains, strict=True)
    ]


def _questions(store: Store, rows: int, seed: int) -> Iterator[Question]:
    chosen = random.Random(seed)
    by_magnitude: dict[int, list[tuple[Path, int]]] = defaultdict(list)
    for part in sorted(store.output.glob("part-*")):
        for number, line in enumerate(part.read_text().splitlines()):
            by_magnitude[_magnitude(line)].append((part, number))
    for _, places in sorted(by_magnitude.items()):
        for part, number in chosen.sample(places, min(rows, len(places))):
            parameters = urlencode({"direction": "backward", "path": part, "row": number})
            yield Question("backward", f"/api/applications/{store.application_id}/trace?{parameters}")


def _magnitude(line: str) -> int:
    """Digits of the last number of a row: for counts and sums, about how many rows went in."""
    numbers = _NUMBER.findall(line)
    return len(str(int(float(numbers[-1])))) if numbers else 0

"""Explanations over HTTP: how large they are, and how long they take."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import urlencode

from perf.capture.drivers import JobError
from perf.explain.stores import Stored
from perf.ingest.members import Api, Process
from perf.trace.asking import User
from perf.trace.questions import Question

LIMIT = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A row of the output."""

    path: Path
    row: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """What explains a start: (file, row) of inputs. `first_ms`: when a running process was asked for it."""

    start: Start
    rows: tuple[tuple[Path, str], ...]
    total: int
    of: int
    kind: str
    exact: bool
    turns: int
    first_ms: float


@dataclass(slots=True, kw_only=True)
class Asked:
    """All that was asked of one store. Milliseconds over HTTP."""

    explained: list[Explained] = field(default_factory=list)
    #: Of the first question to a new process that has only looked up whether the application is complete.
    new_ms: list[float] = field(default_factory=list)
    #: Of the first explanation in a new process that was asked for the graph before, as the page does.
    cold_ms: list[float] = field(default_factory=list)
    #: Of each start when it was asked for again.
    warm_ms: list[float] = field(default_factory=list)
    #: Rows of plain traces of some starts.
    plain: list[int] = field(default_factory=list)


def starts(output: Path, count: int, seed: int) -> list[Start]:
    """Rows of the part files of a folder that a seed chooses, each once."""
    rows = [
        Start(path=part, row=row, text=text)
        for part in sorted(output.glob("part-*"))
        for row, text in enumerate(part.read_text().splitlines())
    ]
    return random.Random(seed).sample(rows, min(count, len(rows)))


def asked(
    stored: Stored,
    chosen: Sequence[Start],
    run: Path,
    *,
    cold: int,
    plain: int,
    plain_s: float,
    cache_bytes: int | None = None,
) -> Asked:
    """Asks for each start twice, for `cold` of them in a process each, and for plain traces for `plain_s`.

    Every second process has opened the application before. `cache_bytes`: of each; None: the default.
    """
    answers = Asked()
    for number, start in enumerate(chosen[:cold]):
        with _served(stored, run, cache_bytes) as user:
            is_open = number % 2 == 0
            if is_open:
                user.ask(Question("graph", f"/api/applications/{stored.application_id}/graph"))
            took = round(user.ask(_question(stored, start))[0], 2)
            (answers.cold_ms if is_open else answers.new_ms).append(took)
    with _served(stored, run, cache_bytes) as user:
        for start in chosen:
            took, answer = user.ask(_question(stored, start))
            answers.explained.append(_explained(start, answer, took))
        for start in chosen:
            answers.warm_ms.append(round(user.ask(_question(stored, start))[0], 2))
        answers.plain = list(_plain(stored, user, chosen[:plain], plain_s))
    return answers


@contextmanager
def _served(stored: Stored, run: Path, cache_bytes: int | None) -> Iterator[User]:
    """A new `lineage serve` that has looked the application up."""
    shutil.rmtree(run, ignore_errors=True)
    run.mkdir(parents=True)
    command = ["serve", "--home", str(run), "--store", str(stored.folder / "flows"), "--neo4j-uri", ""]
    if cache_bytes is not None:
        command += ["--cache-bytes", str(cache_bytes)]
    serve = Api(
        Process([*command, "--api-port", "0", "--metrics", "false"], run / "serve.log"), run / "api.json"
    )
    user = User(serve.url)
    try:
        application = serve.get(f"/api/applications/{stored.application_id}")
        if not application.get("complete"):
            raise JobError(f"{stored.application_id} is not complete: {application}")
        yield user
    finally:
        user.close()
        serve.process.stop()
        shutil.rmtree(run, ignore_errors=True)


def _question(stored: Stored, start: Start, *, plain: bool = False) -> Question:
    parameters = {"path": start.path, "row": start.row, "limit": LIMIT, "plain": str(plain).lower()}
    return Question(
        "explanation", f"/api/applications/{stored.application_id}/explanation?{urlencode(parameters)}"
    )


def _explained(start: Start, answer: dict[str, Any], took: float) -> Explained:
    unread = [row for row in answer["rows"] if row["text"] is None or row["warning"]]
    if unread:
        raise JobError(f"{unread[0]['path']}:{unread[0]['line']} was not read: {unread[0]['warning']}")
    return Explained(
        start=start,
        rows=tuple((Path(row["path"]), row["text"]) for row in answer["rows"]),
        total=answer["total"],
        of=answer["of"],
        kind=answer["kind"],
        exact=answer["exact"],
        turns=max((turn["turn"] for turn in answer["turns"]), default=0),
        first_ms=round(took, 2),
    )


def _plain(stored: Stored, user: User, chosen: Sequence[Start], seconds: float) -> Iterator[int]:
    """As many as are counted in that time. The service counts for a second at a time."""
    until = monotonic() + seconds
    for start in chosen:
        while monotonic() < until:
            _, answer = user.ask(_question(stored, start, plain=True))
            if answer["plain_total"] is not None:
                yield answer["plain_total"]
                break

"""Clients of `lineage serve`, each a process with one connection that asks one question after the other.

Nothing but the standard library: what a client costs itself runs on the same cores as the service.
"""

from __future__ import annotations

import gzip
import http.client
import json
import multiprocessing
import random
import time
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from typing import Any

_ANSWER_S = 120.0
_START_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An address with what is sent beside it. `kind` is a row of the result's table."""

    kind: str
    target: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What one question got. `wrong` says what was not as it must be, else it is empty."""

    kind: str
    ms: float
    received: int
    wrong: str


def ask(
    url: str, pool: Sequence[Question], weights: Mapping[str, int], clients: int, seconds: float, seed: int
) -> list[Answered]:
    """All answers to `clients` that ask for `seconds`, all beginning at the same moment."""
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(clients)
    pipes, processes = [], []
    for number in range(clients):
        receiver, sender = context.Pipe(duplex=False)
        task = (url, list(pool), dict(weights), together, seconds, seed * 1_000 + number, sender)
        processes.append(context.Process(target=_client, args=task, daemon=True))
        processes[-1].start()
        sender.close()
        pipes.append(receiver)
    try:
        return [answer for pipe in pipes for answer in pipe.recv()]
    finally:
        for process in processes:
            process.join(_ANSWER_S)


def _client(
    url: str,
    pool: list[Question],
    weights: dict[str, int],
    together: Barrier,
    seconds: float,
    seed: int,
    results: Connection,
) -> None:
    chance = random.Random(seed)
    by_kind = {kind: [request for request in pool if request.kind == kind] for kind in weights}
    kinds, shares = list(weights), list(weights.values())
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=_ANSWER_S)
    answers = []
    together.wait(_START_S)
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        question = chance.choice(by_kind[chance.choices(kinds, shares)[0]])
        answers.append(answered(connection, question))
    connection.close()
    results.send(answers)


def answered(connection: http.client.HTTPConnection, question: Question) -> Answered:
    """One question, its answer read and unpacked."""
    began, received, wrong = time.perf_counter(), 0, ""
    try:
        connection.request("GET", question.target, headers={"Accept-Encoding": "gzip", **question.headers})
        answer = connection.getresponse()
        body = answer.read()
        received = len(body)
        wrong = _wrong(answer, body)
    except (OSError, http.client.HTTPException, ValueError) as error:
        connection.close()  # the next question opens it again
        wrong = f"{type(error).__name__}: {error}"
    ms = 1000 * (time.perf_counter() - began)
    return Answered(kind=question.kind, ms=round(ms, 2), received=received, wrong=wrong[:300])


def _wrong(answer: http.client.HTTPResponse, body: bytes) -> str:
    if answer.status == 304:
        return ""
    if answer.getheader("Content-Encoding") == "gzip":
        body = gzip.decompress(body)
    if answer.status != 200:
        return f"{answer.status}: {body.decode(errors='replace')}"
    if not str(answer.getheader("Content-Type")).startswith("application/json"):
        return ""
    value: dict[str, Any] = json.loads(body)
    return "" if value.get("complete", True) else "the answer says that it is not complete"


def target(path: str, /, **parameters: object) -> str:
    """Path and query of an address; the path's parts are encoded."""
    query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
    return urllib.parse.quote(path) + query

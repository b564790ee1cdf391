"""Users who ask over HTTP, each on one connection, and how long they wait."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from perf.capture.drivers import JobError
from perf.trace.questions import Question

Times = dict[str, list[float]]
"""Kind of question -> milliseconds of each answer."""

_ANSWER_S = 120.0


class User:
    """One connection. For one thread."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        assert place.hostname is not None
        self._connection = http.client.HTTPConnection(place.hostname, place.port, timeout=_ANSWER_S)

    def ask(self, question: Question) -> tuple[float, dict[str, Any]]:
        """(milliseconds, the answer). Raises JobError where it is no answer."""
        began = time.perf_counter()
        self._connection.request("GET", question.path)
        response = self._connection.getresponse()
        body = response.read()
        took = 1000 * (time.perf_counter() - began)
        answer = dict(json.loads(body))
        if response.status != http.HTTPStatus.OK or answer.get("complete") is False:
            raise JobError(f"{question.path}: {response.status} {body[:300]!r}")
        return took, answer

    def close(self) -> None:
        self._connection.close()


def one_after_the_other(url: str, questions: Sequence[Question]) -> Times:
    """One user asks each question once."""
    user, times = User(url), defaultdict(list)
    try:
        for question in questions:
            times[question.kind].append(user.ask(question)[0])
    finally:
        user.close()
    return dict(times)


def at_once(url: str, questions: Sequence[Question], users: int) -> Times:
    """All questions, handed out to so many users."""
    left, times, errors = iter(questions), defaultdict[str, list[float]](list), list[Exception]()
    lock = threading.Lock()

    def work() -> None:
        user = User(url)
        try:
            while not errors:
                with lock:
                    question = next(left, None)
                if question is None:
                    return
                took, _ = user.ask(question)
                with lock:
                    times[question.kind].append(took)
        except Exception as error:  # noqa: BLE001 - told by the caller
            errors.append(error)
        finally:
            user.close()

    threads = [threading.Thread(target=work) for _ in range(users)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return dict(times)

"""Asks a user's test about output rows: `python -m lineage_service.replays.sift.judge KIND TEXT`.

A process of its own, which is started within the guard of the sandbox: to import a test may run a job. Reads
lines of JSON, each a list of texts, from standard input, and answers each with one line. What the test prints
goes to standard error.
KIND `rows`: TEXT is an expression of `line`, or a function of one row. KIND `all`: TEXT is MODULE:FUNCTION, a
function of the list of all rows.
"""

from __future__ import annotations

import ast
import importlib
import json
import math
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["ALL", "ROWS", "main"]

ROWS, ALL = "rows", "all"

Judgement = dict[str, Any]


def main(kind: str, text: str) -> None:
    """Answers until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def answer(judgement: Judgement) -> None:
        answers.write(json.dumps(judgement) + "\n")
        answers.flush()

    test: Any
    try:
        test = _expression(text) if kind == ROWS else _function(text)
    except BaseException as error:  # noqa: BLE001 - a job that exits while it is imported, too
        answer({"error": _in_words(error)})
        return
    answer({})
    for line in sys.stdin:
        texts = json.loads(line)
        answer(_of_rows(test, texts) if kind == ROWS else _of_all(test, texts))


def _expression(text: str) -> Callable[[str], Any]:
    """A function of one row."""
    names = {"math": math, "re": re, "json": json}
    tree = ast.parse(text.strip(), "<--fails>", "eval")
    is_of_line = any(isinstance(node, ast.Name) and node.id == "line" for node in ast.walk(tree))
    if is_of_line and not isinstance(tree.body, ast.Lambda):
        tree = ast.parse(f"lambda line: ({text.strip()})", "<--fails>", "eval")
    test = eval(compile(tree, "<--fails>", "eval"), names)
    if not callable(test):
        raise TypeError("it is neither an expression of `line` nor a function of one row")
    return test  # type: ignore[no-any-return]


def _function(text: str) -> Callable[[list[str]], Any]:
    """A function of all rows."""
    module, colon, name = text.partition(":")
    if not colon:
        raise TypeError("write MODULE:FUNCTION")
    test = importlib.import_module(module)
    for part in name.split("."):
        test = getattr(test, part)
    if not callable(test):
        raise TypeError(f"{name} of {module} is no function")
    return test


def _of_rows(test: Callable[[str], Any], texts: Sequence[str]) -> Judgement:
    """Which of the rows fail; and how many the test raised on, with the first error."""
    failing: list[int] = []
    errors, first = 0, ""
    for number, text in enumerate(texts):
        try:
            if test(text):
                failing.append(number)
        except Exception as error:  # noqa: BLE001 - a row that the test was not made for
            errors += 1
            first = first or f"{_in_words(error)} on the row {text[:200]!r}"
    return {"failing": failing, "errors": errors, "first": first}


def _of_all(test: Callable[[list[str]], Any], texts: list[str]) -> Judgement:
    try:
        return {"fails": bool(test(texts)), "errors": 0, "first": ""}
    except Exception as error:  # noqa: BLE001 - as above
        return {"fails": False, "errors": 1, "first": _in_words(error)}


def _in_words(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


if __name__ == "__main__":
    main(*sys.argv[1:3])

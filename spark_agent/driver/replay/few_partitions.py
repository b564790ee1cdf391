"""Few lines in few partitions, where no operation of a program can tell: a short task is mostly its start.

What operations are called with is changed, and the lines of a source are put together. Records, their order
in the source, and which of them come together by their keys, stay.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from spark_agent.worker.guard.places import is_of_user

__all__ = ["in_few_parts", "in_one_partition", "one_partition", "who_looks"]

_SPLIT_COUNT = "numPartitions"
_MOST_PARTS = 8
#: With one of these a program sees partitions, whatever its operations are.
_WORDS = (
    "TaskContext",
    "getNumPartitions",
    ".partitioner",
    "toDebugString",
    "._jrdd",
    "._jsc",
    "._jvm",
    "exec(",
)


def in_few_parts(texts: Mapping[str, list[str]]) -> tuple[dict[str, list[str]], int]:
    """The same lines by partition, in the same order, in at most `_MOST_PARTS`; and how many these are."""
    parts = [texts[split] for split in sorted(texts, key=int) if texts[split]]
    at_once = max(-(-len(parts) // _MOST_PARTS), 1)
    joined = [list(chain.from_iterable(parts[at : at + at_once])) for at in range(0, len(parts), at_once)]
    return {str(split): part for split, part in enumerate(joined)}, max(len(joined), 1)


def in_one_partition(
    operation: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of an operation that is to give one partition, if it lets its caller say how many."""
    signature = inspect.signature(operation)
    if _SPLIT_COUNT not in signature.parameters:
        return list(arguments), dict(keywords)
    bound = signature.bind(*arguments, **keywords)
    bound.arguments[_SPLIT_COUNT] = 1
    return list(bound.args), dict(bound.kwargs)


def one_partition(function: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, in the place of the operation `original`, which gives one partition if it can be told."""

    def operation(*args: Any, **kwargs: Any) -> Any:
        try:
            arguments, keywords = in_one_partition(original, args, kwargs)
        except TypeError:  # wrong arguments, of which the operation itself says more
            return function(*args, **kwargs)
        return function(*arguments, **keywords)

    return operation


def who_looks(program: Callable[[], str]) -> str:
    """The word of `_WORDS` that a program has, or a module of the user's that it has imported.

    Empty if none has one. `program` gives its text.
    """
    for text in (program, *_own_modules()):
        try:
            word = next((word for word in _WORDS if word in text()), "")
        except (OSError, ImportError, ValueError):
            return "code that cannot be read"
        if word:
            return word
    return ""


def _own_modules() -> Iterator[Callable[[], str]]:
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and is_of_user(file):
            yield functools.partial(_text_of, file)


def _text_of(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()

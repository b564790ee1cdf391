"""Which of many tests of one kind `make test` runs: every so many. `make test-all` runs all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


def sampled(names: Iterable[str], every: int) -> list[Any]:
    """Parameters: all names, of which the first of `every` ones is in `make test` too."""
    return [
        pytest.param(name, marks=pytest.mark.thorough if at % every else ()) for at, name in enumerate(names)
    ]


def selected(request: pytest.FixtureRequest, cases: Mapping[str, T]) -> dict[str, T]:
    """Those of the cases whose tests run, by the parameter `name` of these; all where no test has it."""
    items = [item for item in request.session.items if item.path == request.path]
    names = {item.callspec.params.get("name") for item in items if hasattr(item, "callspec")} - {None}
    return {name: case for name, case in cases.items() if name in names or not names}

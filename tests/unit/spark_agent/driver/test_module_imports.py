from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_agent.driver.module_imports import when_imported

NAME = "a_module_that_is_imported_late"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / f"{NAME}.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = list(sys.meta_path)
    yield
    sys.modules.pop(NAME, None)
    assert sys.meta_path == before


def test_what_waits_gets_the_module_once_it_is_loaded(module: None) -> None:
    values: list[Any] = []
    when_imported(NAME, lambda loaded: values.append(loaded.value))
    assert values == []
    importlib.import_module(NAME)
    importlib.import_module(NAME)
    assert values == [1]


def test_a_module_that_is_there_is_not_waited_for(module: None) -> None:
    importlib.import_module(NAME)
    values: list[Any] = []
    when_imported(NAME, lambda loaded: values.append(loaded.value))()
    assert values == [1]


def test_who_waits_no_more_hears_nothing(module: None) -> None:
    values: list[Any] = []
    when_imported(NAME, values.append)()
    importlib.import_module(NAME)
    assert values == []


def test_several_may_wait(module: None) -> None:
    values: list[int] = []
    for number in (1, 2):
        when_imported(NAME, lambda loaded, number=number: values.append(number))  # type: ignore[misc]
    importlib.import_module(NAME)
    assert sorted(values) == [1, 2]


def test_what_fails_leaves_the_import_as_it_is(module: None) -> None:
    def fails(loaded: Any) -> None:
        raise ZeroDivisionError

    when_imported(NAME, fails)
    assert importlib.import_module(NAME).value == 1


def test_a_module_that_is_not_there_is_not_found_as_ever(module: None) -> None:
    remove = when_imported("no_such_module_at_all", lambda loaded: None)
    with pytest.raises(ModuleNotFoundError, match="no_such_module_at_all"):
        importlib.import_module("no_such_module_at_all")
    remove()

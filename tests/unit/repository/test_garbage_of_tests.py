"""No process of a test run keeps its garbage to the end."""

from __future__ import annotations

import gc
from pathlib import Path
from types import SimpleNamespace

import pytest

CONFTEST = Path(__file__).parents[2] / "conftest.py"


def test_the_process_that_gives_tests_to_workers_collects_garbage(pytestconfig: pytest.Config) -> None:
    conftest = pytestconfig.pluginmanager.get_plugin(str(CONFTEST))
    assert conftest is not None
    option = SimpleNamespace(markexpr="", dist="loadfile")
    try:
        conftest.pytest_configure(SimpleNamespace(option=option, getoption=lambda _name: False))
        assert gc.isenabled()
    finally:
        gc.enable()

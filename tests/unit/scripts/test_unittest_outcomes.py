from __future__ import annotations

import io
import json
import sys
import types
import unittest

import pytest

from scripts import unittest_outcomes
from scripts.unittest_outcomes import Outcomes, give_moved_names


class CannotBegin(unittest.TestCase):
    __test__ = False  # run below, not by pytest

    @classmethod
    def setUpClass(cls) -> None:
        raise KeyError("no jar")

    def runTest(self) -> None:
        raise AssertionError("never run")


class Fails(unittest.TestCase):
    __test__ = False  # run below, not by pytest

    def runTest(self) -> None:
        raise KeyError("nothing")


@pytest.mark.parametrize(("case", "stopped"), [(CannotBegin, [True]), (Fails, [])])
def test_only_a_class_that_cannot_begin_leaves_a_context_to_stop(
    case: type[unittest.TestCase], stopped: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[bool] = []
    monkeypatch.setattr(unittest_outcomes, "stop_context", lambda: found.append(True))
    monkeypatch.setattr(Outcomes, "lines", io.StringIO(), raising=False)
    runner = unittest.TextTestRunner(stream=io.StringIO(), resultclass=Outcomes)
    runner.run(unittest.TestSuite([case()]))
    assert found == stopped
    assert json.loads(Outcomes.lines.getvalue())["outcome"] == "error (KeyError)"


def test_a_name_that_has_moved_is_in_the_old_module_too(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = types.ModuleType("old_place"), types.ModuleType("new_place")
    monkeypatch.setitem(sys.modules, "old_place", old)
    monkeypatch.setitem(sys.modules, "new_place", new)
    vars(new)["thing"] = 3
    moved = (("old_place", "thing", "new_place"), ("old_place", "other", "no_such_place"))
    monkeypatch.setattr(unittest_outcomes, "MOVED", moved)
    give_moved_names()
    assert vars(old)["thing"] == 3
    assert "other" not in vars(old)

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from spark_agent.driver import call_sites, sites
from spark_agent.driver.call_sites import _PYTHONS
from spark_agent.driver.sites import Sites
from tests.support.loop_shapes import FILE, SHAPES, expected, seen, text_of, visits


@pytest.mark.parametrize("shape", SHAPES)
def test_each_call_is_in_the_loops_that_repeat_it(shape: str) -> None:
    text = text_of(shape)
    assert seen(visits(text)) == expected(text)


def test_the_path_goes_from_the_outermost_call_to_the_innermost() -> None:
    first, second = visits("def step():\n    visit()\nfor turn in range(2):\n    step()")
    assert [text.rpartition("@")[0] for text in first.path] == [f"{FILE}:4", f"{FILE}:2"]
    assert first.path == second.path
    assert first.loops == (f"{FILE}:3",)
    assert (first.visit, second.visit) == (0, 1)


def test_an_event_has_path_loops_and_visit() -> None:
    (site,) = visits("visit()")
    assert site.event_field() == {"path": site.path, "loops": (), "visit": 0}
    assert not site.is_repeated


def test_all_calls_of_one_loop_say_the_same_loop() -> None:
    one, two, inner, behind = visits(
        "for n in range(1):\n    visit(); visit()\n    for m in range(1):\n        visit()\nvisit()"
    )
    assert one.loop == two.loop
    assert len({one.loop, inner.loop, behind.loop}) == 3
    assert behind.loop == ()


def test_other_code_at_the_same_place_is_another_site() -> None:
    first, second = visits("for step in (lambda: visit(), lambda: [1] and visit()):\n    step()")
    assert first.path != second.path
    assert (first.visit, second.visit) == (0, 0)


def test_code_that_is_entered_again_is_visited_again() -> None:
    counted = Sites()
    text = "visit()"
    for visit in range(3):
        (site,) = visits(text, "<stdin>", counted)
        assert site.visit == visit
    (other,) = visits("(1, visit())", "<stdin>", counted)
    assert other.visit == 0


@pytest.fixture
def runner() -> Any:
    """The function of an installed package that calls a job in a loop."""
    names: dict[str, Any] = {}
    text = "def run(job):\n    for n in range(2):\n        job()\n"
    exec(compile(text, f"{_PYTHONS}site-packages/runner/run.py", "exec"), names)
    return names["run"]


def test_packages_around_the_program_are_left_out(runner: Any) -> None:
    visited = visits("visit()", around=runner)
    assert [(site.loops, len(site.path)) for site in visited] == [((), 1)] * 2


def test_a_command_that_starts_a_package_is_left_out_with_it(runner: Any) -> None:
    names: dict[str, Any] = {"run": runner}
    exec(compile("def launch(job):\n    for _ in (1,):\n        run(job)\n", sites.COMMAND, "exec"), names)
    visited = visits("visit()", around=names["launch"])
    assert [(site.loops, len(site.path)) for site in visited] == [((), 1)] * 2


def test_a_command_is_the_program_where_there_is_no_other() -> None:
    first, second = visits("for n in range(2):\n    visit()", sites.COMMAND)
    assert (first.loops, first.path) == (("<string>:1",), second.path)


def test_a_package_that_the_program_calls_is_a_part_of_the_path(runner: Any) -> None:
    visited = visits("def job():\n    visit()\nrun(job)", run=runner)
    assert [len(site.path) for site in visited] == [3, 3]
    assert all(site.loops[0].endswith("run.py:2") for site in visited)


def test_a_cell_is_called_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("IPython")
    module.__file__ = "/env/site-packages/IPython/__init__.py"
    shell = SimpleNamespace(compile=SimpleNamespace(_filename_map={"/tmp/ipykernel_1/2.py": 7}))
    module.get_ipython = lambda: shell  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", module)
    call_sites.is_of_user.cache_clear()
    site = visits("for n in range(2):\n    visit()", "/tmp/ipykernel_1/2.py")[0]
    assert site.path[0].startswith("In [7]:2@")
    assert site.loops == ("In [7]:1",)


def test_of_a_long_path_the_innermost_frames_are_kept() -> None:
    text = "".join(f"def f{n}():\n    f{n + 1}()\n" for n in range(60)) + "f60 = visit\nf0()"
    (site,) = visits(text)
    assert len(site.path) == sites.MAX_FRAMES
    assert site.path[-1].startswith(f"{FILE}:120@")


def test_where_there_are_too_many_sites_further_ones_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sites, "MAX_SITES", 2)
    visited = visits("for n in range(2):\n    visit(); visit(); visit()")
    assert [site is None for site in visited] == [False, False, True, False, False, True]
    monkeypatch.setattr(sites, "MAX_POINTS", 0)
    assert visits("visit()") == [None]


def test_threads_count_the_visits_of_a_path_together() -> None:
    text = """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as pool:
    list(pool.map(lambda n: visit(), range(100)))
"""
    visited = visits(text)
    assert sorted(site.visit for site in visited) == list(range(100))
    assert len({site.path for site in visited}) == 1


@pytest.mark.parametrize("name", ["/tmp/ipykernel_1/2.py", "<ipython-input-{}-3f>"])
def test_a_cell_that_runs_again_is_visited_again(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    module = ModuleType("IPython")
    module.__file__ = "/env/site-packages/IPython/__init__.py"
    numbers: dict[str, int] = {}
    shell = SimpleNamespace(compile=SimpleNamespace(_filename_map=numbers))
    module.get_ipython = lambda: shell  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", module)
    call_sites.is_of_user.cache_clear()
    counted, seen_sites = Sites(), []
    for number in (3, 5, 8):
        numbers["/tmp/ipykernel_1/2.py"] = number
        seen_sites += visits("def step():\n    visit()\nstep()", name.format(number), counted)
    assert [site.visit for site in seen_sites] == [0, 1, 2]
    assert {site.path[0].partition("@")[0] for site in seen_sites} == {"In [3]:3"}


def test_much_code_of_one_name_is_told_apart_at_once() -> None:
    counted = Sites()
    paths = [visits(f"visit({n})", "<string>", counted)[0].path for n in range(300)]
    assert len(set(paths)) == 300
    assert len(counted._numbers) == 1

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from spark_agent.driver import call_sites
from spark_agent.driver.call_sites import call_site, merged_sites
from spark_agent.driver.callers import Callers


def compiled(source: str, name: str) -> Any:
    """What a piece of a program that is called `name` gives for `found`."""
    found: dict[str, Any] = {"call_site": call_site}
    exec(compile(source, name, "exec"), found)
    return found["found"]


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], None]:
    """notebook(name, number): IPython has compiled its cell of that number under that name."""
    names: dict[str, int] = {}
    module = ModuleType("IPython")
    module.__file__ = "/env/site-packages/IPython/__init__.py"
    shell = SimpleNamespace(compile=SimpleNamespace(_filename_map=names))
    module.get_ipython = lambda: shell  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", module)
    call_sites.is_of_user.cache_clear()
    return names.__setitem__


def test_a_call_stands_in_the_users_file() -> None:
    assert compiled("\nfound = call_site()", "/home/me/job.py") == "/home/me/job.py:2"
    assert compiled("found = call_site()", "<stdin>") == "<stdin>:1"


def test_a_file_of_an_installed_package_is_the_users() -> None:
    name = f"{call_sites._PYTHONS}site-packages/jobs/daily.py"
    assert compiled("found = call_site()", name) == f"{name}:1"


def test_pythons_own_library_is_passed_by() -> None:
    source = "def call(function):\n    return function()\nfound = call"
    call = compiled(source, f"{call_sites._PYTHONS}threading.py")
    place = call(call_site)
    assert place.startswith(f"{__file__}:")


def test_a_cell_is_called_by_its_number(notebook: Callable[[str, int], None]) -> None:
    notebook("/tmp/ipykernel_28837/815582783.py", 3)
    assert compiled("\nfound = call_site()", "/tmp/ipykernel_28837/815582783.py") == "In [3]:2"
    assert compiled("found = call_site()", "/home/me/lib.py") == "/home/me/lib.py:1"


def test_a_cell_that_ran_again_is_called_by_its_last_number(notebook: Callable[[str, int], None]) -> None:
    notebook("/tmp/ipykernel_1/2.py", 3)
    notebook("/tmp/ipykernel_1/2.py", 7)
    assert compiled("found = call_site()", "/tmp/ipykernel_1/2.py") == "In [7]:1"


def test_the_name_of_a_cell_of_the_terminal_is_enough(notebook: Callable[[str, int], None]) -> None:
    assert compiled("found = call_site()", "<ipython-input-12-0a1b2c3d4e5f>") == "In [12]:1"


def test_code_of_a_magic_stands_in_the_cell_around_it(notebook: Callable[[str, int], None]) -> None:
    notebook("/tmp/ipykernel_1/2.py", 4)
    timed = compile("found = call_site()", "<timed exec>", "exec")
    found: dict[str, Any] = {"call_site": call_site, "timed": timed}
    exec(compile("\n\nexec(timed, globals())", "/tmp/ipykernel_1/2.py", "exec"), found)
    assert found["found"] == "In [4]:3"


def test_a_file_without_a_notebook_is_no_cell() -> None:
    name = "/tmp/ipykernel_28837/815582783.py"
    assert compiled("found = call_site()", name) == f"{name}:1"


@pytest.mark.parametrize(
    ("places", "text"),
    [
        ([], ""),
        (["job.py:10"], "job.py:10"),
        (["job.py:12", "job.py:9", "job.py:12"], "job.py:9, 12"),
        (["job.py:9", "In [3]:2"], "job.py:9, In [3]:2"),
        ([f"job.py:{line}" for line in range(10, 46)], "job.py:10 ... 45"),
        (["job.py:9, 12"], "job.py:9, 12"),
    ],
)
def test_places_together(places: list[str], text: str) -> None:
    assert merged_sites(places) == text


def test_nobody_waits_so_the_method_of_the_jvm_is_the_action() -> None:
    callers = Callers(is_pinned=False)
    assert callers.action("Dataset.count", 5) == ("count", "")
    assert callers.action("", None) == ("query", "")


class Waiting:
    """A thread that waits in py4j, behind a method of PySpark or without one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("py4j", "pyspark"):
            module = ModuleType(name)
            module.__file__ = f"/env/site-packages/{name}/__init__.py"
            monkeypatch.setitem(sys.modules, name, module)
        call_sites.is_of_user.cache_clear()
        self._end = threading.Event()
        self._threads: list[threading.Thread] = []

    def begin(self, *frames: tuple[str, str], action: Callable[[], None] = lambda: None) -> None:
        """Start a thread that waits in these (file, function), the innermost first."""
        is_there = threading.Event()

        def target(source: str, file: str, name: str, **names: Any) -> Any:
            exec(compile(f"def function():\n    {source}", file, "exec"), names)
            names["function"].__code__ = names["function"].__code__.replace(co_name=name)
            return names["function"]

        innermost, *others = frames
        waits = "action(), is_there.set(), end.wait()"
        function = target(waits, *innermost, action=action, is_there=is_there, end=self._end)
        for file, name in others:
            function = target("call()", file, name, call=function)
        thread = threading.Thread(target=function)
        thread.start()
        self._threads.append(thread)
        is_there.wait()

    def end(self) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()


PY4J = "/env/site-packages/py4j/java_gateway.py", "__call__"
COUNT = "/env/site-packages/pyspark/sql/dataframe.py", "count"
COLLECT = "/env/site-packages/pyspark/sql/dataframe.py", "collect"
AGENT = f"{call_sites.AGENT_FOLDER}/sql/runtime/queries.py", "_read"


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Waiting]:
    threads = Waiting(monkeypatch)
    yield threads
    threads.end()
    call_sites.is_of_user.cache_clear()


@pytest.mark.parametrize("is_pinned", [False, True])
def test_the_one_thread_that_waits_made_the_call(waiting: Waiting, is_pinned: bool) -> None:
    waiting.begin(PY4J, COUNT, ("/home/me/job.py", "main"))
    assert Callers(is_pinned=is_pinned).action("Dataset.count", 5) == ("count", "/home/me/job.py:2")


def test_a_thread_of_the_agent_is_no_caller(waiting: Waiting) -> None:
    waiting.begin(PY4J, AGENT)
    waiting.begin(PY4J, COUNT, ("/home/me/job.py", "main"))
    assert Callers(is_pinned=False).action("Dataset.count", 5) == ("count", "/home/me/job.py:2")


def test_of_two_that_wait_neither_is_taken(waiting: Waiting) -> None:
    waiting.begin(PY4J, COUNT, ("/home/me/job.py", "main"))
    waiting.begin(PY4J, COLLECT, ("/home/me/job.py", "other"))
    assert Callers(is_pinned=False).action("Dataset.count", 5) == ("count", "")


def test_of_two_that_wait_the_one_with_that_thread_of_the_jvm_is_taken(waiting: Waiting) -> None:
    callers = Callers(is_pinned=True)
    waiting.begin(PY4J, COUNT, ("/home/me/job.py", "main"), action=lambda: callers.note(5))
    waiting.begin(PY4J, COLLECT, ("/home/me/other.py", "main"), action=lambda: callers.note(6))
    assert callers.action("Dataset.count", 5) == ("count", "/home/me/job.py:2")
    assert callers.action("Dataset.collect", 6) == ("collect", "/home/me/other.py:2")


def test_a_query_that_the_jvm_runs_for_itself_is_not_of_who_happens_to_wait(waiting: Waiting) -> None:
    waiting.begin(PY4J, COUNT, ("/home/me/job.py", "main"))
    assert Callers(is_pinned=True).action("Dataset.write", None) == ("write", "")


def test_the_users_own_call_of_the_jvm_has_the_name_that_it_has_there(waiting: Waiting) -> None:
    waiting.begin(PY4J, ("/home/me/job.py", "main"))
    assert Callers(is_pinned=False).action("Dataset.show", 5) == ("show", "/home/me/job.py:2")

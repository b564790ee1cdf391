"""Programs with loops of all shapes, and what the site of each call in them is to be.

`visit()  # in 1 2, x6` is called six times on one path, in the loops of lines 1 and 2. Without `in` it is in
no loop of the bytecode. `python -m tests.support.loop_shapes` checks them in any Python.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

from spark_agent.driver.sites import Site, Sites

SHAPES = {
    "straight": """
        visit()  # x1
        if True:
            visit()  # x1
    """,
    "for": """
        for turn in range(3):
            visit()  # in 1, x3
        visit()  # x1
    """,
    "for else": """
        for turn in range(3):
            visit()  # in 1, x3
        else:
            visit()  # x1
    """,
    "what is iterated": """
        for turn in range(visit() and 3):  # x1
            visit()  # in 1, x3
    """,
    "while": """
        n = 0
        while n < 3:
            n += 1
            visit()  # in 2, x3
        visit()  # x1
    """,
    "while true": """
        n = 0
        while True:
            visit()  # in 2, x3
            n += 1
            if n == 3:
                break
        visit()  # x1
    """,
    "while with a call in its test": """
        n = 0
        while n < 3 and (
            n == 0 or visit()  # in 2, x2
        ):
            n += 1
    """,
    "while else": """
        n = 0
        while n < 2:
            n += 1
            visit()  # in 2, x2
        else:
            visit()  # x1
    """,
    "nested": """
        for outer in range(2):
            visit()  # in 1, x2
            for inner in range(3):
                visit()  # in 1 3, x6
            visit()  # in 1, x2
    """,
    "nested in while": """
        n = 0
        while n < 2:
            n += 1
            for inner in range(3):
                if inner % 2:
                    visit()  # in 2 4, x2
                else:
                    visit()  # in 2 4, x4
    """,
    "one behind the other": """
        for turn in range(2):
            visit()  # in 1, x2
        for turn in range(2):
            visit()  # in 3, x2
    """,
    "two calls in one line": """
        for turn in range(2):
            visit(); visit()  # in 1, x2 x2
    """,
    "a chain over lines": """
        for turn in range(2):
            (
                chain()
                .visit()  # in 1, x2
                .visit()  # in 1, x2
            )
    """,
    "continue": """
        for turn in range(4):
            if turn % 2:
                visit()  # in 1, x2
                continue
            visit()  # in 1, x2
    """,
    "a conditional call": """
        for turn in range(4):
            if turn == 3:
                visit()  # in 1, x1
            visit()  # in 1, x4
    """,
    "try in a loop": """
        for turn in range(3):
            try:
                visit()  # in 1, x3
                raise ValueError
            except ValueError:
                visit()  # in 1, x3
            finally:
                visit()  # in 1, x3
            visit()  # in 1, x3
    """,
    "loop in a try": """
        try:
            for turn in range(3):
                visit()  # in 2, x3
            raise ValueError
        except ValueError:
            visit()  # x1
        visit()  # x1
    """,
    "a handler is no loop": """
        def job():
            try:
                int("x")
            except ValueError:
                pass
            visit()  # x1
            try:
                int("y")
            except (TypeError, ValueError) as error:
                visit()  # x1
            visit()  # x1
        job()
    """,
    "try again": """
        n = 0
        while True:
            try:
                n += 1
                visit()  # in 2, x3
                if n < 3:
                    raise ValueError
                break
            except ValueError:
                visit()  # in 2, x2
    """,
    "with in a loop": """
        for turn in range(2):
            with nothing():
                visit()  # in 1, x2
            visit()  # in 1, x2
    """,
    "loop in a with": """
        with nothing():
            visit()  # x1
            for turn in range(2):
                visit()  # in 3, x2
            visit()  # x1
        visit()  # x1
    """,
    "return from a with in a loop": """
        def job():
            for turn in range(3):
                with nothing():
                    visit()  # in 2, x3
                    if turn == 2:
                        return
        job()
    """,
    "list comprehension": """
        many = [visit() for turn in range(3)]  # in 1, x3
    """,
    "comprehension in a loop": """
        for turn in range(2):
            many = {visit() for n in range(3)}  # in 1 2, x6
    """,
    "generator expression": """
        list(visit() for turn in range(3))  # in 1, x3
    """,
    "dict comprehension in a function": """
        def job():
            return {n: visit() for n in range(2)}  # in 2, x2
        job()
    """,
    "a helper": """
        def helper():
            visit()  # in 4, x3
            visit()  # in 4, x3
        for turn in range(3):
            helper()
    """,
    "helpers of helpers": """
        def one():
            two()
        def two():
            for n in range(2):
                visit()  # in 6 4, x6
        for turn in range(3):
            one()
    """,
    "a helper called twice": """
        def helper():
            visit()  # x1 x1
        helper()
        helper()
    """,
    "a loop in main": """
        def main():
            for turn in range(3):
                visit()  # in 2, x3
        main()
    """,
    "a method": """
        class Job:
            def run(self):
                while self.n:
                    self.n -= 1
                    self.step()
            def step(self):
                visit()  # in 3, x3
        job = Job()
        job.n = 3
        job.run()
    """,
    "generator": """
        def turns():
            n = 0
            while True:
                visit()  # in 7 3, x3
                yield n
                n += 1
        for n in turns():
            visit()  # in 7, x3
            if n == 2:
                break
    """,
    "yield from": """
        def inner():
            visit()  # x1
            yield 1
        def outer():
            yield from inner()
        for n in list(outer()):
            pass
    """,
    "recursion": """
        def step(n):
            visit()  # x4
            if n:
                step(n - 1)
        step(3)
    """,
    "recursion from the end": """
        def step(n):
            value = step(n - 1) if n else 0
            visit()  # x4
            return value
        step(3)
    """,
    "recursion through a helper": """
        def helper():
            visit()  # x4
        def step(n):
            helper()
            if n:
                step(n - 1)
        step(3)
    """,
    "mutual recursion": """
        def one(n):
            visit()  # x2
            if n:
                two(n - 1)
        def two(n):
            visit()  # x2
            if n:
                one(n - 1)
        one(3)
    """,
    "a decorator is no recursion": """
        def decorated(function):
            def wrapper():
                return function()
            return wrapper
        @decorated
        def inner():
            visit()  # x1 x1
        @decorated
        def outer():
            inner()
            inner()
        outer()
    """,
    "map": """
        def step(n):
            visit()  # x3
        list(map(step, range(3)))
    """,
    "map in a loop": """
        for turn in range(2):
            list(map(lambda n: visit(), range(3)))  # in 1, x6
    """,
    "reduce": """
        from functools import reduce
        reduce(lambda x, n: visit(), range(3), 0)  # x3
    """,
    "for over a map": """
        def step(n):
            visit()  # in 3, x3
        for n in map(step, range(3)):
            pass
    """,
    "async for": """
        import asyncio
        async def turns():
            for n in range(2):
                yield n
        async def main():
            async for n in turns():
                visit()  # in 6, x2
            visit()  # x1
        asyncio.run(main())
    """,
    "await is no loop": """
        import asyncio
        async def step():
            visit()  # x1
            await asyncio.sleep(0)
            visit()  # x1
        async def main():
            await step()
            async with nothing():
                visit()  # x1
        asyncio.run(main())
    """,
    "await in a loop": """
        import asyncio
        async def step():
            visit()  # in 5, x2
        async def main():
            for turn in range(2):
                await step()
        asyncio.run(main())
    """,
    "match": """
        for turn in range(4):
            match turn % 2:
                case 0:
                    visit()  # in 1, x2
                case _:
                    visit()  # in 1, x2
    """,
    "a walrus": """
        n = 3
        while n := n - 1:
            visit()  # in 2, x2
    """,
    "many instructions": """
        for turn in range(2):
            {many}
            visit()  # in 1, x2
    """,
}

FILE = "/home/me/job.py"
_MARK = re.compile(r"# (?:in ([\d ]+), )?((?:x\d+ ?)+)$")


class _Nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *_error: object) -> None: ...

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *_error: object) -> None: ...


def text_of(shape: str) -> str:
    lines = [line.removeprefix("        ") for line in SHAPES[shape].strip("\n").splitlines()]
    return "\n".join(lines).replace("{many}", "; ".join(f"n{i} = {i} + turn" for i in range(400))).rstrip()


def visits(
    text: str,
    name: str = FILE,
    sites: Sites | None = None,
    around: Callable[[Callable[[], None]], None] = lambda job: job(),
    **names: Any,
) -> list[Any]:
    """The sites of all calls of `visit` in a program that `around` runs, in their order."""
    counted, visited = sites or Sites(), list[Any]()

    def visit(_self: object = None) -> Any:
        visited.append(counted.visit())
        return chained

    def chain() -> Any:
        return chained

    def job() -> None:
        exec(code, {"visit": visit, "nothing": _Nothing, "chain": chain, "__name__": "job", **names})

    for function in (visit, chain, job, around):  # are not of the program
        if function.__code__.co_filename == __file__:
            function.__code__ = function.__code__.replace(co_filename=sys.modules[Sites.__module__].__file__)
    code = compile(text, name, "exec")
    chained = type("Chained", (), {"visit": visit})()
    with ThreadPoolExecutor(1) as pool:  # so that no frame of a test is around it
        pool.submit(around, job).result()
    return visited


def expected(text: str) -> dict[int, SimpleNamespace]:
    """Line -> the lines of the loops around its calls, and how often each path is visited."""
    marks = {}
    for number, line in enumerate(text.splitlines(), 1):
        if match := _MARK.search(line):
            counts = sorted(int(count[1:]) for count in match[2].split())
            marks[number] = SimpleNamespace(loops=list(map(int, (match[1] or "").split())), counts=counts)
    return marks


def seen(sites: list[Site]) -> dict[int, SimpleNamespace]:
    """The same of what was visited."""
    by_line: dict[int, dict[tuple[str, ...], list[Site]]] = defaultdict(lambda: defaultdict(list))
    for site in sites:
        by_line[int(site.path[-1].rpartition("@")[0].rpartition(":")[2])][site.path].append(site)
    marks = {}
    for number, paths in by_line.items():
        for visited in paths.values():
            assert [site.visit for site in visited] == list(range(len(visited))), visited
        loops = {site.loops for visited in paths.values() for site in visited}
        assert len(loops) == 1, loops
        lines = [int(loop.rpartition(":")[2]) for loop in loops.pop()]
        marks[number] = SimpleNamespace(loops=lines, counts=sorted(map(len, paths.values())))
    return marks


def main() -> None:
    wrong = 0
    for shape in SHAPES:
        text = text_of(shape)
        if (got := seen(visits(text))) != expected(text):
            print(f"{shape}: {got} is not {expected(text)}")
            wrong += 1
    print(f"Python {sys.version.split()[0]}: {len(SHAPES)} shapes, {wrong} wrong")


if __name__ == "__main__":
    main()

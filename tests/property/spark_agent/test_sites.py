"""The loops around a call, against what the text of a random program says."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.loop_shapes import visits

Lines = list[str]
Statement = Callable[[int], Lines]
"""Gives its lines, indented so deep. `LOOP` begins the line of a loop, `CALL` that of a call."""


def indented(depth: int, *lines: str) -> Lines:
    return [" " * depth + line for line in lines]


def block(inner: list[Statement], depth: int) -> Lines:
    return [line for statement in inner for line in statement(depth + 1)] or indented(depth + 1, "pass")


def nested(head: str, inner: list[Statement], *tails: tuple[str, list[Statement]]) -> Statement:
    def lines(depth: int) -> Lines:
        written = indented(depth, head) + block(inner, depth)
        for tail, of_tail in tails:
            written += indented(depth, tail) + block(of_tail, depth)
        return written

    return lines


def simple(line: str) -> Statement:
    return lambda depth: indented(depth, line)


def compound(inner: st.SearchStrategy[Statement]) -> st.SearchStrategy[Statement]:
    body = st.lists(inner, max_size=3)
    loop = st.sampled_from(["for n in range(2):", "while go():", "for a, b in [(1, 2)] * 2:"])
    return st.one_of(
        st.builds(nested, loop, body),
        st.builds(lambda head, one, two: nested(head, one, ("else:", two)), loop, body, body),
        st.builds(lambda one, two: nested("if go():", one, ("else:", two)), body, body),
        st.builds(lambda one, two: nested("try:", one, ("except ValueError:", two)), body, body),
        st.builds(
            lambda one, two, three: nested(
                "try:",
                [*one, simple("if go(): raise KeyError")],
                ("except KeyError as e:", two),
                ("finally:", three),
            ),
            body,
            body,
            body,
        ),
        st.builds(nested, st.just("with nothing() as n, nothing():"), body),
    )


CALLS = st.sampled_from(["visit()", "visit() or visit()", "[visit(), 1]"]).map(simple)
PROGRAMS = st.lists(st.recursive(CALLS, compound, max_leaves=12), min_size=1, max_size=4)


def loops_by_text(lines: Lines) -> dict[int, list[int]]:
    """Line of a call -> the lines of the loops that it is in, by indentation."""
    around: list[tuple[int, int]] = []  # (depth, line) of what is open; line 0 of what is no loop
    by_line: dict[int, list[int]] = {}
    for number, line in enumerate(lines, 1):
        depth = len(line) - len(line.lstrip())
        around = [(at, loop) for at, loop in around if at < depth]
        if "visit()" in line:
            by_line[number] = [loop for _, loop in around if loop]
        if line.endswith(":"):
            is_loop = line.lstrip().startswith(("for", "while"))
            around.append((depth, number if is_loop else 0))
    return by_line


@settings(max_examples=60)
@given(PROGRAMS, st.integers(0, 1 << 30), st.booleans())
def test_the_loops_around_a_call_are_those_of_the_text(
    program: list[Statement], choices: int, is_function: bool
) -> None:
    head = [
        "import itertools",
        f"chosen = itertools.chain(map(int, f'{choices:b}' * 3), itertools.repeat(0))",
    ]
    head += ["def go(): return next(chosen)"]
    body = block(program, 0) if is_function else [line for one in program for line in one(0)]
    lines = [*head, *(["def job():", *body, "job()"] if is_function else body)]
    by_text = loops_by_text(lines)
    for site in visits("\n".join(lines)):
        number = int(site.path[-1].rpartition("@")[0].rpartition(":")[2])
        assert [int(loop.rpartition(":")[2]) for loop in site.loops] == by_text[number], "\n".join(lines)

"""Loops as the driver sees them: operations at sites, each with the nodes that it reads and makes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from spark_agent.driver.loop_variables import MAX_CHAINS, LoopVariables
from spark_agent.driver.nodes import Node
from spark_agent.driver.sites import Site


class Program:
    """operate(path, name, inputs) makes the node that an operation at a path gives."""

    def __init__(self) -> None:
        self.variables, self.numbers, self.newest = LoopVariables(), itertools.count(), -1
        self.visits: dict[str, Iterator[int]] = {}

    def operate(self, path: str, *inputs: Node, loop: str = "", name: str = "map") -> Node:
        visit = next(self.visits.setdefault(path, itertools.count()))
        site = Site((path,), (loop,) if loop else (), visit, (loop,) if loop else ())
        self.variables.note(site, name, inputs, self.newest)
        node = Node(next(self.numbers), name, site=site)
        self.newest = node.number
        return node

    def read(self, path: str, *inputs: Node, loop: str = "") -> list[bool]:
        """Which of the inputs get digests now."""
        self.operate(path, *inputs, loop=loop)
        return [node.digests_left > 0 for node in inputs]


@pytest.fixture
def program() -> Program:
    return Program()


def test_outside_of_loops_nothing_is_digested(program: Program) -> None:
    lines = program.operate("lines", name="textFile")
    words = program.operate("words", lines)
    assert program.read("count", words) == [False]
    assert not lines.digests_left


def test_what_was_there_before_the_loop_is_digested_once(program: Program) -> None:
    edges, labels = program.operate("edges"), program.operate("labels")
    for turn in range(4):
        assert program.read("join", edges, labels, loop="for") == [turn == 0, True]
        labels = program.operate("new", labels, loop="for")


def test_what_a_turn_made_is_digested_when_the_next_turn_reads_it(program: Program) -> None:
    labels = program.operate("labels")
    for _turn in range(3):
        messages = program.operate("messages", labels, loop="for")
        assert labels.digests_left == MAX_CHAINS
        assert program.read("keyed", messages, loop="for") == [False]
        labels = program.operate("new", messages, loop="for")
        assert not labels.digests_left


def test_the_last_version_is_digested_when_it_is_read_behind_the_loop(program: Program) -> None:
    labels = program.operate("labels")
    for _turn in range(3):
        labels = program.operate("new", labels, loop="for")
    assert program.read("saveAsTextFile", labels) == [True]


def test_results_that_a_loop_only_collects_are_not_digested(program: Program) -> None:
    results = []
    for _day in range(3):
        lines = program.operate("lines", loop="for", name="textFile")
        counts = program.operate("count", lines, loop="for")
        results.append(counts)
        assert not lines.digests_left
    assert program.read("union", *results) == [False] * 3


def test_what_another_loop_made_is_digested_where_it_was_a_variable(program: Program) -> None:
    ranks = program.operate("ranks")
    for _outer in range(2):
        for _inner in range(2):
            ranks = program.operate("step", ranks, loop="inner")
        assert program.read("check", ranks, loop="outer") == [True]


def test_a_loop_that_no_bytecode_has_shows_in_its_second_turn(program: Program) -> None:
    ranks = program.operate("ranks")
    digested = []
    for _turn in range(3):
        digested += program.read("joined", ranks)
        ranks = program.operate("new", ranks)
    assert digested == [False, True, True]
    assert program.read("collect", ranks) == [True]


def test_the_same_visit_is_noted_once(program: Program) -> None:
    values = Node(5, "values")
    site = Site(("lookup",), ("for",), 0, ("for",))
    program.variables.note(site, "lookup", [values], 4)
    program.variables.note(site, "lookup", [values], 9)
    assert not values.digests_left

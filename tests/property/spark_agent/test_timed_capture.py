"""Timed and tagged capture, in any order of calls, against a list of these calls that is read backwards."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from spark_agent import contract
from spark_agent.emitter import operations
from spark_agent.emitter.lineage_api import LineageApi, LineageApiError
from tests.support.own_program import APP, Wire, cut_wire

READ, MAP, JOIN, WRITE = range(4)
LINKS = {(READ, MAP), (READ, JOIN), (MAP, JOIN), (JOIN, WRITE)}
TAGS: st.SearchStrategy[Any] = st.sampled_from([None, "a", ("b", 2), 3])
NODES = st.sampled_from([MAP, JOIN, WRITE])
Flow = tuple[int, str, str]
"""(node, input, output)."""


class Calls(RuleBasedStateMachine):
    """Random calls of a program, and those so far: (is it an input, node, hash, tag, reset)."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(operations, "MESSAGE_FLOWS", 3)
        self.wire: Wire = cut_wire(self.patch)
        self.calls: list[tuple[bool, int, str, Any, bool]] = []
        self.records: dict[int, list[str]] = {node: [] for node in range(4)}
        self.captured: set[Flow] = set()
        self.rows = 0
        self.lineage = LineageApi(APP, "timed")

    @initialize()
    def register(self) -> None:
        self.lineage.__enter__()
        for node in range(4):
            self.lineage.register(node, f"operation {node}")
        for source, target in sorted(LINKS):
            self.lineage.link(source, target)

    @rule(tag=TAGS, is_timed=st.booleans())
    def read(self, tag: Any, is_timed: bool) -> None:
        row, name = f"read#{self.rows % 2}#{self.rows}", f"row {self.rows}"
        self.rows += 1
        if is_timed:
            self.lineage.add_input(READ, row, tag, reset=True)
            self.lineage.add_output(READ, name, tag, reset=False)
        else:
            self.lineage.capture(f"{READ}#", row, name)
        self.records[READ].append(name)

    @rule(node=NODES, tag=TAGS, reset=st.booleans(), data=st.data())
    def add_input(self, node: int, tag: Any, reset: bool, data: st.DataObject) -> None:
        records = sorted({(parent, name) for parent in range(4) for name in self.records[parent]})
        if not records:
            return
        parent, name = data.draw(st.sampled_from(records))
        if (parent, node) not in LINKS:
            with pytest.raises(LineageApiError, match="no link goes from there"):
                self.lineage.add_input(node, name, tag, reset)
            return
        self.lineage.add_input(node, name, tag, reset)
        self.calls.append((True, node, name, tag, reset))

    @rule(node=NODES, tag=TAGS, reset=st.booleans(), at=st.integers(0, 5))
    def add_output(self, node: int, tag: Any, reset: bool, at: int) -> None:
        name = f"write#{at % 2}#{at}" if node == WRITE else f"{node}: {at}"
        self.lineage.add_output(node, name, tag, reset=reset)
        self.calls.append((False, node, name, tag, reset))
        if node != WRITE:
            self.records[node].append(name)

    @rule(node=NODES, at=st.integers(0, 5), data=st.data())
    def capture(self, node: int, at: int, data: st.DataObject) -> None:
        parents = sorted(
            {name for parent in range(4) if (parent, node) in LINKS for name in self.records[parent]}
        )
        if parents:
            source = data.draw(st.sampled_from(parents))
            name = f"write#{at % 2}#{at}" if node == WRITE else f"{node}: {at}"
            self.lineage.capture(f"{node}#", source, name)
            self.captured.add((node, source, name))
            if node != WRITE:
                self.records[node].append(name)

    def expected(self) -> set[Flow]:
        flows = set(self.captured)
        for end, (is_input, node, output, tag, _) in enumerate(self.calls):
            if is_input:
                continue
            for was_input, of_node, name, of_tag, reset in reversed(self.calls[:end]):
                if (of_node, of_tag) != (node, tag):
                    continue
                if was_input:
                    flows.add((node, name, output))
                if reset:
                    break
        return flows

    def sent(self) -> set[Flow]:
        blocks = self.wire.blocks
        names = {
            (block.run, position): text
            for block in blocks
            if block.relation == contract.KEYS
            for position, (_, text) in zip(block.columns["out"], block.columns["text"], strict=True)
        }
        return {
            (block.node, names[run, input_], names.get((block.run, out)) or f"write#{block.split}#{out}")
            for block in blocks
            if block.relation == contract.PAIRS
            for out, input_, run in zip(*(block.columns[name] for name in ("out", "in", "run")), strict=True)
        }

    def teardown(self) -> None:
        self.lineage.__exit__(None, None, None)
        self.patch.undo()
        assert self.sent() == self.expected()


Calls.TestCase.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
TestTimedCapture = Calls.TestCase

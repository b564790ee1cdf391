"""One task of the agent without Spark: a chain of operators, and where its outputs come from."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from spark_agent import contract
from spark_agent.contract import Block
from spark_agent.delivery.settings import AgentSettings
from spark_agent.worker.culprits import Stage
from spark_agent.worker.operator import Operator
from spark_agent.worker.plan import Plan
from spark_agent.worker.task_run import TaskRun

Origins = dict[int, list[int]]
"""Position of an output -> positions of its inputs."""


@dataclass
class Recorder:
    """A sender that keeps the blocks."""

    blocks: list[Block] = field(default_factory=list)

    def send(self, _topic: str, _partition: int, _key: bytes, message: bytes, _delivery: object) -> None:
        self.blocks.append(contract.decode_block(message))

    def flush(self, _delivery: object) -> int:
        return 0


@dataclass(frozen=True)
class Ran:
    """What a chain gave, and what was captured of it. Its input is node 0, its operators are 1, 2, ..."""

    outputs: list[Any]
    blocks: list[Block]
    manifest: dict[str, Any]

    def origins(self, node: int) -> Origins:
        """Of the outputs of a node; empty of one that is an identity in this task."""
        return _origins(block for block in self.blocks if block.node == node)

    def winners(self, node: int) -> dict[int, int]:
        """Of the outputs of a node that have one, the input that decides it alone."""
        return {
            output: position
            for block in self.blocks
            if (block.node, block.relation) == (node, contract.WINNERS)
            for output, position in zip(block.columns["out"], block.columns["in"], strict=True)
        }

    def of_chain(self, nodes: int, outputs: int | None = None) -> list[list[int]]:
        """The inputs of the chain that each of its outputs comes from; `outputs` if they leave in batches."""
        outputs = len(self.outputs) if outputs is None else outputs
        reached = {position: [position] for position in range(outputs)}
        for node in range(nodes, 0, -1):
            origins = self.origins(node)
            is_identity = not any(block.node == node for block in self.blocks)
            if not is_identity:
                reached = {
                    output: sorted({origin for position in inputs for origin in origins.get(position, [])})
                    for output, inputs in reached.items()
                }
        return [reached[position] for position in range(outputs)]


def run_chain(records: Iterable[Any], *operators: Operator, **settings: Any) -> Ran:
    """Capture a chain of operators, pull all of it, and read back what was captured."""
    plan = Plan(
        application_id="app",
        settings=AgentSettings(bootstrap_servers="nowhere:1", **settings),
        flow_partitions=1,
        input_node=0,
        reads_shuffle=False,
        nodes=tuple(range(1, len(operators) + 1)),
    )
    recorder = Recorder()
    run = TaskRun(plan, 3, recorder)  # type: ignore[arg-type] # what a sender is to a run
    source: Any = run.inputs.through(iter(records))
    run.pulled = lambda: run.inputs.count
    for node, operator in zip(plan.nodes, operators, strict=True):
        operator.node = node
    for node, operator in zip(plan.nodes, operators, strict=True):
        run.stages.append(Stage(node))
        source = operator.capture(run, source)
    outputs = list(source)
    run.close()
    return Ran(outputs, recorder.blocks, json.loads(run.manifest(0, "")))


def _origins(blocks: Iterable[Block]) -> Origins:
    origins: Origins = defaultdict(list)
    for block in blocks:
        columns, output = block.columns, block.base_out
        if block.relation == contract.POSITIONS:
            for position in columns["in"]:
                origins[output].append(position)
                output += 1
        elif block.relation == contract.COUNTS:
            for at, count in enumerate(columns["count"], block.base_in):
                for _ in range(count):
                    origins[output].append(at)
                    output += 1
        elif block.relation == contract.CODES:
            for at, code in enumerate(columns["code"], block.base_in):
                origins[code].append(at)
        elif block.relation == contract.SPANS:
            for count, start, step in zip(columns["count"], columns["in"], columns["step"], strict=True):
                for at in range(count):
                    origins[output].append(start + at * step)
                    output += 1
        elif block.relation == contract.GATHER:
            inputs = iter(columns["in"])
            for count in columns["count"]:
                origins[output].extend(islice(inputs, count))
                output += 1
    return origins

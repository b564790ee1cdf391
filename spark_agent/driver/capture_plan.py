"""What executors run for a chain of operators: its functions, and the plan of what is captured of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_agent.driver import value_filters
from spark_agent.driver.nodes import Node
from spark_agent.worker.operator import Operator
from spark_agent.worker.operators.shuffle import ShuffleWrite
from spark_agent.worker.pipeline import Capture, Pipeline
from spark_agent.worker.plan import Plan

if TYPE_CHECKING:
    from spark_agent.driver.session import Session


def captured(session: Session, pipeline: Pipeline, *, writes_headers: bool, is_of_action: bool) -> Capture:
    """`pipeline` with its plan; without one in a job that a transformation runs for itself.

    Nor has it one in a replay of which nothing is captured. `is_of_action`: the driver gets what leaves it.
    """
    if session.replay is not None and session.replay.skips_failing:
        for function in pipeline.functions:
            if isinstance(function, Operator):
                function.skip_failing()
    nodes, input_node, settings = pipeline.nodes, pipeline.input_node, session.settings
    if session.scope.is_in_inner_job or session.is_silent or nodes[-1].is_left_out:
        return Capture(pipeline.functions, None)
    numbers = tuple(node.number for node in nodes)
    published = [node.number for node in nodes if node.is_published]
    plan = Plan(
        application_id=session.application_id,
        settings=settings,
        flow_partitions=session.events.flow_partitions(),
        input_node=input_node.number,
        reads_shuffle=input_node.is_shuffle,
        read_by_action=published[-1] if published and published[-1] != numbers[-1] else None,
        sides=input_node.sides,
        reads_sides=input_node.has_sides,
        writes_headers=writes_headers,
        is_read_in_task=not is_of_action and not isinstance(pipeline.functions[-1], ShuffleWrite),
        nodes=numbers,
        value_nodes=value_filters.filtered_operations(settings, nodes) if settings.detailed else (),
        user_nodes=tuple(node.number for node in nodes if node.name.startswith("mapPartitions")),
        names=session.scope.operation_names(nodes) if settings.redact else (),
        problem=session.events.block_problem(),
        digest_nodes=_digested((input_node, *nodes)) if session.digest_salt else (),
        digest_salt=session.digest_salt,
    )
    return Capture(pipeline.functions, plan)


def _digested(nodes: tuple[Node, ...]) -> tuple[int, ...]:
    """Those of a chain, the node that it reads among them, whose records get digests in it."""
    if nodes[1].is_passthrough:  # it gets batches, no records
        return ()
    digested = [node for node in nodes if node.digests_left > 0 and not node.is_passthrough]
    for node in digested:
        node.digests_left -= 1
    return tuple(node.number for node in digested)

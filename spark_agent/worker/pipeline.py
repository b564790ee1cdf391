"""The chain of operators that a worker runs, and its capture, which PySpark calls in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spark_agent import contract
from spark_agent.delivery import producer
from spark_agent.delivery.tracebacks import hide_agent
from spark_agent.worker import derived_values, task_run
from spark_agent.worker.operator import Operator
from spark_agent.worker.plan import Plan
from spark_agent.worker.position_streams import Counter, Told, last_read
from spark_agent.worker.row_by_row import is_row_by_row
from spark_agent.worker.task_run import Run
from spark_agent.worker.worker_init import arrive


class Pipeline:
    """The functions of a chain, flat; each takes (split, records) and gives records.

    On the driver it knows the node of each function and the node that the chain reads; neither travels.
    """

    plan: Plan | None = None

    def __init__(
        self,
        functions: tuple[Callable[[int, Any], Any], ...],
        nodes: tuple[Any, ...] = (),
        input_node: Any = None,
    ) -> None:
        self.functions = functions
        self.nodes = nodes
        self.input_node = input_node

    def __call__(self, split: int, records: Any) -> Any:
        for function in self.functions:
            records = function(split, records)
        return records

    def __reduce__(self) -> Any:
        return arrive, (type(self), self.plan is not None), vars(self)


class Capture(Pipeline):
    """What a worker calls for a chain: records a run while it is pulled, or nothing when `plan` is None."""

    def __init__(self, functions: tuple[Callable[[int, Any], Any], ...], plan: Plan | None) -> None:
        super().__init__(functions)
        self.plan = plan

    def __call__(self, split: int, records: Any) -> Any:
        task_run.current = None  # a task that failed early may have left its run in this worker
        try:
            plan = self.plan
            if plan is None:
                return super().__call__(split, records)
            sender = producer.sender_in_worker(plan.settings, plan.application_id, plan.problem)
            for node, function in zip(plan.nodes, self.functions, strict=True):
                if isinstance(function, Operator):
                    function.node = node
            task_run.current = run = Run(plan, split, sender)
            run.result = self._captured(plan, run, split, records)
            if run.pulled is None:
                return run.outputs.through(run.result)
            run.outputs = Told(run.pulled)
            return run.result
        except BaseException as error:
            hide_agent(error)
            raise

    def _captured(self, plan: Plan, run: Run, split: int, records: Any) -> Any:
        records, ways = run.inputs.through(run.to_the_end(records)), run.ways
        run.pulled = lambda: run.inputs.count
        run.derived = derived_values.prepare(plan, self.functions, run.texts)
        if ways is not None:
            records = ways.read(records, self.functions[0])
        for index, (node, function) in enumerate(zip(plan.nodes, self.functions, strict=True)):
            if ways is not None:
                ways.enter(node, function, records)
            inputs, pulled = records, run.pulled
            if node in plan.user_nodes:
                records = _of_user(run, node, function, split, records)
            else:
                records = function(split, records)
            if run.pulled is pulled and records is not inputs:
                run.pulled = None  # the function does not say it
            following = self.functions[index + 1] if index + 1 < len(self.functions) else None
            if node == plan.read_by_action or (following is not None and _says_no_count(function)):
                records = run.counted(node, records)
            if (
                following is not None
                and not isinstance(following, Operator)
                and not hasattr(records, "__next__")
            ):
                continue  # a user's function may want the very object of the one before it (a list's length)
            is_kept = node in plan.value_nodes and node not in run.derived.nodes
            texts = run.texts(node, contract.VALUES) if is_kept else None
            if ways is not None:
                is_last = following is None
                if texts is not None or not is_last or plan.writes_tags:
                    records = ways.leave(
                        node, records, following, texts, is_tagged=is_last and plan.writes_tags
                    )
            elif texts is not None:
                records = texts.through(records)
        return records


def _of_user(run: Run, node: int, function: Callable[[int, Any], Any], split: int, records: Any) -> Any:
    """What a user's function makes of a partition; where it reads row by row, these rows are noted."""
    if not hasattr(records, "__next__"):
        return function(split, records)
    counter = Counter()
    counted = counter.through(records)
    result = function(split, counted)
    if not is_row_by_row(result, counted):
        return result
    return last_read(result, counter, run.override(node, contract.POSITIONS))


def _says_no_count(function: Any) -> bool:
    """Do neither flows nor the inputs tell how many outputs the function had?"""
    return not isinstance(function, Operator) or function.relation == contract.PARTITION

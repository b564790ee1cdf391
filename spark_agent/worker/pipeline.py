"""The chain of operators that a worker runs, and its capture, which PySpark calls in its place."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from itertools import zip_longest
from typing import Any

from spark_agent import contract
from spark_agent.delivery import process_sender
from spark_agent.delivery.tracebacks import hide_agent
from spark_agent.worker import derived_values
from spark_agent.worker.culprits import Stage
from spark_agent.worker.failed_runs import failure_of
from spark_agent.worker.function_traits import is_partition_bound, looks_back
from spark_agent.worker.operator import Operator
from spark_agent.worker.pace import Pace
from spark_agent.worker.partition_sources import outputs_of_user
from spark_agent.worker.plan import Plan
from spark_agent.worker.position_streams import ComputedCounter
from spark_agent.worker.process_state import worker_process
from spark_agent.worker.task_run import TaskRun
from spark_agent.worker.worker_init import new_command


class Pipeline:
    """The functions of a chain, flat; each takes (partition, records) and gives records.

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

    def __call__(self, partition: int, records: Any) -> Any:
        for function in self.functions:
            records = function(partition, records)
        return records

    def __reduce__(self) -> Any:
        return new_command, (type(self), self.plan is not None), vars(self)


def _run_to_look_at() -> TaskRun | None:
    run = worker_process.run
    return run if run is not None and run.plan.settings.pace else None


class Capture(Pipeline):
    """What a worker calls for a chain: records a run while it is pulled, or nothing when `plan` is None."""

    def __init__(self, functions: tuple[Callable[[int, Any], Any], ...], plan: Plan | None) -> None:
        super().__init__(functions)
        self.plan = plan

    def __call__(self, partition: int, records: Any) -> Any:
        worker_process.run = None  # a task that failed early may have left its run in this worker
        try:
            plan = self.plan
            if plan is None:
                return super().__call__(partition, records)
            return self._begun(plan, partition, records)
        except BaseException as error:
            run = worker_process.run
            failure = failure_of(run, error)
            hide_agent(error)
            if run is not None and failure is not None:
                with contextlib.suppress(Exception):
                    run.fail(failure)
            raise

    def _begun(self, plan: Plan, partition: int, records: Any) -> Any:
        """What the chain gives, and its run as that of the worker."""
        sender = process_sender.sender_in_worker(plan.settings, plan.application_id, plan.problem)
        for node, function in zip(plan.nodes, self.functions, strict=True):
            if isinstance(function, Operator):
                function.node = node
        worker_process.run = run = TaskRun(plan, partition, sender, worker_process.distinct_texts)
        if plan.settings.pace:
            if worker_process.pace is None:
                worker_process.pace = Pace(_run_to_look_at)
            worker_process.pace.attend()
        run.result = self._captured(plan, run, records)
        if run.pulled is None:
            return run.outputs.through(run.result)
        run.outputs = ComputedCounter(run.pulled)
        return run.result

    def _captured(self, plan: Plan, run: TaskRun, records: Any) -> Any:
        records = run.digested(plan.input_node, run.inputs.through(run.to_the_end(records)))
        run.pulled = lambda: run.inputs.count
        run.derived = derived_values.prepare(plan, self.functions, run.texts)
        if run.sampled_paths is not None:
            records = run.sampled_paths.read(records, self.functions[0])
        functions = zip_longest(self.functions, self.functions[1:])
        is_by_input = True
        for node, (function, next_function) in zip(plan.nodes, functions, strict=True):
            records = _outputs(run, node, function, records, is_by_input=is_by_input)
            is_by_input = is_by_input and not looks_back(function)
            # Of a partition bound neither flows nor inputs say how many outputs there were.
            if node == plan.read_by_action or (next_function is not None and is_partition_bound(function)):
                records = run.counted(node, records)
            if not _needs_the_very_object(next_function, records):
                records = _with_texts(run, node, next_function, run.digested(node, records))
        return records


def _outputs(
    run: TaskRun, node: int, function: Callable[[int, Any], Any], records: Any, *, is_by_input: bool
) -> Any:
    """What `function` makes of `records`, captured. `is_by_input`: of a record, made of the last input."""
    if run.sampled_paths is not None:
        run.sampled_paths.enter(node, function, records)
    pulled = run.pulled
    run.stages.append(_stage(node, function, pulled, is_by_input=is_by_input))
    if isinstance(function, Operator):
        outputs = function.capture(run, records)
    elif node in run.plan.user_nodes:
        outputs = _outputs_of_user(run, node, function, records)
    else:
        outputs = function(run.partition, records)
    if run.pulled is pulled and outputs is not records:
        run.pulled = None  # the function does not say it
    return outputs


def _stage(node: int, function: Any, pulled: Callable[[], int] | None, *, is_by_input: bool) -> Stage:
    """What is read last matters where a function may read one record after the other."""
    is_operator = isinstance(function, Operator)
    return Stage(
        node,
        None if is_operator else pulled,
        is_operator and function.notes_culprits,
        is_by_input=is_by_input,
    )


def _outputs_of_user(run: TaskRun, node: int, function: Callable[[int, Any], Any], records: Any) -> Any:
    """What a user's function makes of a partition; where it is known how it reads, that is noted."""
    if not hasattr(records, "__next__"):
        return function(run.partition, records)
    return outputs_of_user(run, node, function, records)


def _needs_the_very_object(function: Any, records: Any) -> bool:
    """A user's function may want the very object of the one before it (a list's length)."""
    return function is not None and not isinstance(function, Operator) and not hasattr(records, "__next__")


def _with_texts(run: TaskRun, node: int, next_function: Any, records: Any) -> Any:
    """The outputs of `node`, whose values are captured as they pass if they are to be."""
    plan, paths = run.plan, run.sampled_paths
    has_texts = node in plan.value_nodes and node not in run.derived.nodes
    texts = run.texts(node, contract.VALUES) if has_texts else None
    if paths is None:
        return records if texts is None else texts.through(records)
    gets_header = next_function is None and plan.writes_headers
    if texts is None and next_function is None and not gets_header:
        return records
    return paths.leave(node, records, next_function, texts, gets_header=gets_header)

"""Reports the run of a task that fails: its flows up to the error, and the record that the error is about.

Promises that the error itself goes on unchanged, that nothing is raised, and that a broker is waited for no
longer than the wait budget allows. What the message of the error or the record says goes through the user's
redaction function. Whether the task is tried again, and how that ends, is not known here.
"""

from __future__ import annotations

import contextlib
from typing import Any

from spark_agent import contract
from spark_agent.delivery.database_names import without_secrets
from spark_agent.delivery.producer import DeliveryError
from spark_agent.delivery.tracebacks import innermost_line
from spark_agent.worker.culprits import BEHIND, Culprit, culprit_of
from spark_agent.worker.redaction import redacting
from spark_agent.worker.task_run import TaskRun, task_ids

MAX_MESSAGE_CHARACTERS = contract.MAX_TEXT_CHARACTERS
MAX_FRAME_CHARACTERS = MAX_DROPPED_CHARACTERS = 1_000

Fields = dict[str, Any]
"""Of a `run_failed` event, beside those of a manifest."""


def failure_of(run: TaskRun | None, error: BaseException, *, is_closing: bool = False) -> Fields | None:
    """What `error`, which leaves the task now, is about. None if it is not one of the user's.

    To be asked while the traceback has the frames of the agent. `is_closing`: it came when the records were
    let go of.
    """
    if run is None or isinstance(error, (GeneratorExit, KeyboardInterrupt, DeliveryError)):
        return None
    with contextlib.suppress(Exception):  # an agent bug: the error is told as without lineage
        frame = innermost_line(error.__traceback__)
        culprit = culprit_of(error, run.stages, run.plan.input_node, run.outputs.count)
        if isinstance(error, OSError) and frame is None and not culprit.is_certain:
            return None  # the JVM has hung up
        if is_closing:
            culprit = culprit._replace(position=None, is_certain=False)
        return _fields(run, culprit, error, frame)
    return None


def described(run: TaskRun, culprit: Culprit, error: BaseException) -> Fields:
    """The fields of a record that is dropped, for who runs the replay: with the record in any case."""
    fields = _fields(run, culprit._replace(record=()), error, innermost_line(error.__traceback__))
    fields["message"] = fields["message"][:MAX_DROPPED_CHARACTERS]
    fields["record"] = _redacted(run, culprit.node, "value", culprit.record[0], MAX_DROPPED_CHARACTERS)
    return fields


def _fields(run: TaskRun, culprit: Culprit, error: BaseException, frame: str | None) -> Fields:
    node = culprit.node
    if node == BEHIND:
        action = task_ids()["action"]
        node = run.plan.nodes[-1] if action is None else action
        if action is None:
            culprit = Culprit(node, None)
    message = _redacted(run, node, "error", _message(error), MAX_MESSAGE_CHARACTERS)[1]
    is_certain = culprit.is_certain and culprit.position is not None
    fields: Fields = {
        "failed_node": node,
        "position": culprit.position,
        "certain": is_certain,
        "error": type(error).__name__[:200],
        "message": message,
        "frame": None if frame is None else frame[-MAX_FRAME_CHARACTERS:],
    }
    if culprit.position is not None and not is_certain:
        fields["first"] = culprit.first
    if culprit.record and _may_leave(run, node):
        limit = run.plan.settings.values_max_characters
        fields["record"] = _redacted(run, node, "value", culprit.record[0], limit)
    return fields


def _message(error: BaseException) -> str:
    try:
        return without_secrets(str(error))
    except Exception:  # noqa: BLE001 - a class of the user's may raise anything
        return ""


def _may_leave(run: TaskRun, node: int) -> bool:
    """Is the value of a record before `node` one of those that are captured?"""
    plan = run.plan
    before = plan.nodes[plan.nodes.index(node) - 1] if node in plan.nodes[1:] else None
    return before in plan.value_nodes and not plan.settings.follows_paths


def _redacted(run: TaskRun, node: int, kind: str, value: Any, limit: int) -> contract.Text:
    """What of a text or a value may leave, at most `limit` characters."""
    settings = run.plan.settings
    if not settings.redact:
        return contract.typed_text(value, limit)
    texts: list[contract.Text] = []
    operation = dict(zip(run.plan.nodes, run.plan.names, strict=False)).get(node, "")
    redacting(settings.redact, operation, kind, run.tally, texts.append, limit)(value)
    return contract.cut_text(texts[0], limit)

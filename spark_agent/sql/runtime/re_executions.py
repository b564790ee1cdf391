"""Actions that execute a plan again which was rewritten for an RDD or a checkpoint: it is rewritten no more.

Task runs of such a plan's node that an execution of the plan made are its action's. They wait until the end
of the query says which action that was, and then get a sink of their own. Touches nothing but its arguments.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from spark_agent import contract

#: What Spark's listeners call an action, where that is not what PySpark does.
_NAMES = {"toPythonIterator": "toLocalIterator"}
_TO_PYTHON = re.compile(r"(As\w+)?ToPython$")
#: Those that give nobody records: what they persist goes on in later queries.
_PERSISTING = frozenset(("checkpoint", "localCheckpoint"))


class ReExecutions:
    """The nodes of plans that were rewritten for an RDD or a checkpoint."""

    def __init__(
        self,
        next_number: Callable[[], int],
        emit: Callable[..., None],
        publish_manifest: Callable[[dict[str, Any]], None],
    ) -> None:
        self._next_number, self._emit, self._publish_manifest = next_number, emit, publish_manifest
        self._nodes: set[int] = set()
        self._waiting: dict[int, list[dict[str, Any]]] = defaultdict(list)

    def add(self, node: int) -> None:
        self._nodes.add(node)

    def leave_out(self, node: int) -> None:
        """Executions of other plans read this one, so that its task runs say nothing of an action."""
        self._nodes.discard(node)

    def takes(self, manifest: dict[str, Any]) -> bool:
        """Is it a task run of an action? Then it is published once the action has ended."""
        is_of_action = manifest["input"] in self._nodes and "execution" in manifest
        if is_of_action:
            self._waiting[manifest["input"]].append(manifest)
        return is_of_action

    def end(self, node: int, name: str, *, is_failed: bool) -> None:
        """The action of this name has executed the plan whose rows are those of `node`."""
        runs = self._waiting.pop(node, [])
        if runs and not is_failed and name not in _PERSISTING:
            sink, reason = self._next_number(), upper_bound_reason(name)
            self._emit(
                contract.NODE_REGISTERED,
                node=sink,
                name=action_of(name),
                description="",
                kind="sink",
                relation=contract.IDENTITY,
                exact=not reason,
                reason=reason,
                call_site="",
                operation=None,
                dataset=None,
            )
            self._emit(contract.LINK, source=node, target=sink, port=0)
            for run in runs:
                run["action"] = sink
        for run in runs:
            self._publish_manifest(run)

    def end_all(self) -> None:
        """The application ends: nothing will say any more which action the waiting task runs were of."""
        for node in list(self._waiting):
            self.end(node, "", is_failed=True)


def upper_bound_reason(action: str) -> str:
    """Why an action gives fewer records than it reads, if one cannot tell which; empty of others."""
    is_of_last = action_of(action) == "tail"
    return "only the last of these records are what tail() gave" if is_of_last else ""


def action_of(name: str) -> str:
    """The method of PySpark, of the name that Spark's listeners hear."""
    return _NAMES.get(name) or _TO_PYTHON.sub("", name) or "query"

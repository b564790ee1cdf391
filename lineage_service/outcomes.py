"""What became of an application and of its actions: ended, failed, lost, or running still.

From events alone, in whatever order they came. A program may report its end twice, at `spark.stop()` and,
where it went on to fail, at its exit: the later one counts. `lost` is a matter of time: a driver that sent
signs of life and then nothing, nor an end. A driver whose agent sends none runs until it says that it ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lineage_service.lineage import ActionState, ApplicationError, ApplicationState, NodeError
from spark_agent import contract

__all__ = ["LOST_AFTER_MS", "NodeOutcome", "Outcome", "actions_of", "outcome_of"]

#: Signs of life come each minute. So many may be late or lost before the driver counts as gone.
LOST_AFTER_MS = 300_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOutcome:
    """How the latest execution of an action ended."""

    state: ActionState
    error: NodeError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`last_seen` is when the driver last sent something (Unix ms), if it sends signs of life and runs."""

    state: ApplicationState
    ended: int | None
    error: ApplicationError | None
    last_seen: int | None

    def at(self, now_ms: float) -> Outcome:
        """The same at another time: what runs may be lost by then."""
        is_lost = self.last_seen is not None and now_ms - self.last_seen > LOST_AFTER_MS
        return replace(self, state="lost") if is_lost else self


def outcome_of(events: Sequence[Mapping[str, Any]]) -> Outcome:
    """Of one application, as it was when the last of these events was sent."""
    ends = [event for event in events if event["type"] == contract.APPLICATION_ENDED]
    if not ends:
        is_alive = any(event["type"] == contract.ALIVE for event in events)
        # A check of an explanation comes of another process, however long the driver is gone.
        of_driver = [event["time"] for event in events if event["type"] != contract.EXPLANATION_CHECKED]
        last_seen = max(of_driver) if is_alive else None
        return Outcome(state="running", ended=None, error=None, last_seen=last_seen)
    last = max(ends, key=_order)
    is_failed = last.get("state") == contract.FAILED
    error = _error_of(last.get("error"), events) if is_failed else None
    state: ApplicationState = "failed" if is_failed else "ended"
    return Outcome(state=state, ended=last["time"], error=error, last_seen=None)


def actions_of(events: Iterable[Mapping[str, Any]]) -> dict[int, NodeOutcome]:
    """Node -> what became of the action, of those that have ended."""
    return {
        event["node"]: NodeOutcome(state=event["state"], error=_node_error(event.get("error")))
        for event in _ended_actions(events)
    }


def _ended_actions(events: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted((event for event in events if event["type"] == contract.ACTION_ENDED), key=_order)


def _order(event: Mapping[str, Any]) -> tuple[int, int]:
    return event["time"], event.get("event", 0)


def _node_error(error: Mapping[str, Any] | None) -> NodeError | None:
    if error is None:
        return None
    return NodeError(type=error["type"], message=error["message"], frame=error.get("frame"))


def _error_of(error: Mapping[str, Any] | None, events: Sequence[Mapping[str, Any]]) -> ApplicationError:
    """With the action that failed: the last one that says the same, or that was the last of all to end."""
    error = error or {"type": "", "message": ""}
    ended = _ended_actions(events)
    failed = [action for action in ended if action["state"] == contract.ACTION_FAILED]
    same = [action for action in failed if (action.get("error") or {}).get("message") == error["message"]]
    action = same[-1] if same else failed[-1] if failed and failed[-1] is ended[-1] else None
    node = None
    if action is not None:
        registered = (event for event in events if event["type"] == contract.NODE_REGISTERED)
        node = next((event for event in registered if event["node"] == action["node"]), None)
    return ApplicationError(
        type=error["type"],
        message=error["message"],
        frame=error.get("frame"),
        node_id=None if node is None else contract.node_id(node["application_id"], node["node"]),
        name=None if node is None else node["name"],
        call_site=None if node is None else node.get("call_site") or None,
    )

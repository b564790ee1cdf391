"""One side of an operation with several inputs, such as a join, in the session that ran the job.

The graph does not say which input came first. The recipes of the session do.
"""

from __future__ import annotations

from spark_agent.client.application import Application
from spark_agent.client.http import TraceError
from spark_agent.client.replays import number_of, running_agent

__all__ = ["side_before"]


def side_before(application: Application, node_id: str, path: int) -> tuple[str, bool]:
    """What the operation reads, of several inputs number `path`; and whether there are several.

    An input stays. Raises TraceError.
    """
    sides = _sides(application, node_id)
    if len(sides) > 1:
        return _side(application, node_id, sides, path), True
    return sides[0], False


def _sides(application: Application, node_id: str) -> list[str]:
    """What an operation reads, in the order of its arguments; itself if it reads nothing."""
    before = application.neighbours(frozenset({node_id}), "backward")
    running = running_agent(application.id)
    is_sink = application.nodes[node_id]["kind"] == "sink"
    recipe = None if running is None or is_sink else running.session.recipes.of(number_of(node_id))
    parents = [] if recipe is None else recipe.parents
    if len(before) == 1 and len(parents) < 2:
        return list(before)
    if not parents:
        raise TraceError(
            f"which input of {application.nodes[node_id]['name']} came first is known in the session that "
            "ran it, while its RDD is there: keep it in a variable"
        )
    return [f"{application.id}#{parent.number}" for parent in parents]


def _side(application: Application, node_id: str, sides: list[str], path: int) -> str:
    name = application.nodes[node_id]["name"]
    if not 0 <= path < len(sides):
        raise TraceError(f"{name} has {len(sides)} inputs: path= is from 0 to {len(sides) - 1}")
    side = sides[path]
    others = frozenset(sides[:path] + sides[path + 1 :])
    if side in application.all_before(others):
        raise TraceError(
            f"the inputs of {name} cannot be told apart, since one is made of the other: go back without "
            "path="
        )
    return side

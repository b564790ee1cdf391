"""`DataFrame.explain` shows the plan that runs without lineage, and leaves the DataFrame as it was.

A DataFrame keeps the plan that is made for it first. So what is shown is planned for another one of the same
query: the plan with lineage is made when an action comes, under that action's name. Where an action has run,
its plan is shown, with lineage in it. Whatever goes wrong leaves `explain` to unmodified PySpark.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spark_agent.delivery.log import logger
from spark_agent.delivery.tracebacks import hiding
from spark_agent.driver.monkeypatch import frame_class, like

if TYPE_CHECKING:
    from spark_agent.driver.monkeypatch import Patches


def install(patches: Patches, strategy: Any, *, is_pinned: bool) -> None:
    """Patch DataFrame.explain, where each thread of Python has one of the JVM's to itself, as it mostly has.

    `strategy` is the agent's PlanStrategy, which knows by the thread that a plan is only to be shown.
    """
    if is_pinned:
        frame = frame_class()
        patches.replace(frame, "explain", _explain(frame.explain, strategy))


def _explain(original: Callable[..., None], strategy: Any) -> Callable[..., None]:
    def explain(self: Any, *args: Any, **kwargs: Any) -> None:
        another = _not_planned(self)
        if another is None:
            original(self, *args, **kwargs)
            return
        try:
            strategy.suspend(True)
            original(another, *args, **kwargs)
        finally:
            with contextlib.suppress(Exception):  # the JVM may have gone
                strategy.suspend(False)

    return like(original, hiding(explain))


def _not_planned(frame: Any) -> Any:
    """Another DataFrame of the same query; None where this one has its plan, or is none."""
    try:
        execution = frame._jdf.queryExecution()
        if (
            execution.tracker().phases().contains("planning")
            or execution.analyzed().isStreaming()
            or execution.commandExecuted().nodeName() == "CommandResult"
        ):
            return None
        classes = frame._sc._jvm
        for part in str(frame._jdf.getClass().getName()).split("."):
            classes = getattr(classes, part)
        return type(frame)(classes.ofRows(execution.sparkSession(), execution.logical()), frame.sparkSession)
    except Exception:  # noqa: BLE001 - the user is shown what there is
        logger.debug("a plan is shown with lineage in it", exc_info=True)
        return None

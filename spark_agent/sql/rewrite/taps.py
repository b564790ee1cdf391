"""The taps of rewritten plans: expressions of the agent's jar that number rows and write ids.

Implements `Taps` of `plan_walk`. What the expressions of an application share is made for its first query,
since it waits for the topics of Kafka.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from spark_agent.sql.database_keys import RecordNames
from spark_agent.sql.rewrite.plan_nodes import PlanNode
from spark_agent.sql.rewrite.plan_walk import Ids
from spark_agent.sql.rewrite.row_paths import calls_python
from spark_agent.sql.types import Expression, OutputFiles, Plan

if TYPE_CHECKING:
    from spark_agent.driver.replay.replay import Replay
    from spark_agent.driver.session import Session
    from spark_agent.sql.jvm_gateway import Jvm


class PlanTaps:
    """The taps of one plan. With `is_persisted` its rows are to be cached or checkpointed."""

    def __init__(
        self,
        jvm: Jvm,
        config: Any,
        replay: Replay | None = None,
        *,
        is_persisted: bool = False,
        is_explained: bool = False,
    ) -> None:
        self._jvm, self._config, self._replay = jvm, config, replay
        self._is_persisted, self.is_explained = is_persisted, is_explained

    def kept(self, node: PlanNode, roots: Sequence[str], query: Plan) -> Any:
        if self._replay is None:
            return None
        blocks = self._replay.blocks_of(node.number, node.name, node.call_site, roots)
        if blocks is None:
            return None
        if self._replay.mode == "without":
            return self._jvm.kept_rows(blocks, is_without=True)
        has_candidates = self._replay.is_silent and not self._jvm.asks_for_files(query)
        return self._jvm.kept_rows(blocks, is_without=False, has_candidates=has_candidates)

    def source(
        self,
        node: int,
        row_index: Expression | None,
        kept: Any = None,
        *,
        is_striped: bool,
        is_of_branch: bool,
        topic_place: Sequence[Expression] = (),
    ) -> Expression:
        return self._jvm.source(
            self._config,
            node,
            row_index,
            is_striped=is_striped,
            is_of_branch=is_of_branch,
            kept=kept,
            topic_place=topic_place,
        )

    def record_key(self, node: int, ids: Expression, names: RecordNames) -> Expression:
        return self._jvm.record_key(self._config, node, names.columns, [ids, *names.texts])

    def tap(
        self,
        node: int,
        ids: Ids,
        key: Expression | None = None,
        key_nodes: tuple[int, int] = (-1, -1),
        output_files: OutputFiles | None = None,
        step_size: int = 0,
        digest: Expression | None = None,
        operation: Expression | None = None,
        record_names: RecordNames | None = None,
    ) -> Expression:
        columns, sources = [column for column, _ in ids], [source for _, source in ids]
        codes, keys = key_nodes
        return self._jvm.tap(
            self._config,
            node,
            columns,
            sources,
            key=key,
            codes=codes,
            keys=keys,
            output_files=output_files,
            is_persisted=self._is_persisted,
            step_size=step_size,
            digest=digest,
            operation=operation,
            record_key=None if record_names is None else (record_names.columns, record_names.texts),
        )

    def attend_calls(self, nodes: Iterable[PlanNode]) -> None:
        """If these call functions of Python: let their workers say on which row one fails.

        Those of a replay may write nothing outside of its sandbox.
        """
        if self._replay is None and calls_python(nodes):
            self._config.attendCalls()

    def winners(self, nodes: Sequence[int], ids: Ids, key: Expression) -> Expression:
        columns, sources = [column for column, _ in ids], [source for _, source in ids]
        return self._jvm.winners_tap(
            self._config, nodes, columns, sources, key, is_persisted=self._is_persisted
        )

    def reads(self, tap: Expression) -> Expression:
        return self._jvm.reads(tap)

    def frames(
        self,
        nodes: tuple[int, int, int],
        sources: list[int],
        frames: Sequence[tuple[bool, int | None, int | None]],
    ) -> Any:
        return self._jvm.frames(self._config, nodes, sources, frames, is_persisted=self._is_persisted)


class TapFactory:
    """Makes the taps of the plans of one application. Thread-safe."""

    def __init__(self, session: Session, jvm: Jvm) -> None:
        self._session, self._jvm = session, jvm
        self._lock = threading.Lock()
        self._config: Any = None

    def taps(self, *, is_persisted: bool) -> PlanTaps:
        with self._lock:
            if self._config is None:
                session = self._session
                self._config = self._jvm.agent_config(
                    session.application_id,
                    session.settings,
                    session.events.flow_partitions(),
                    session.notices.say,
                    is_silent=session.is_silent,
                )
                self._jvm.ship()
        replay = self._session.replay
        return PlanTaps(
            self._jvm,
            self._config,
            replay,
            is_persisted=is_persisted,
            is_explained=self._session.settings.is_explained and replay is None,
        )

    def none(self) -> PlanTaps:
        """For a plan that stays as it is."""
        return PlanTaps(self._jvm, None)

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query.service import LineageQueries
from tests.support.large_application import LARGE, tell


def test_an_application_that_several_threads_open_first_is_complete_to_all_of_them(tmp_path: Path) -> None:
    store = DeltaFlowStore(tmp_path / "flows")
    tell(store, tmp_path / "rows.txt", operations=60)
    with ThreadPoolExecutor(4) as threads:
        for _ in range(20):
            questions = LineageQueries(store, time_budget_s=60)  # has opened nothing yet
            found = threads.map(lambda ask: ask(LARGE), [questions.application] * 4)
            assert [(each.complete, each.counters["blocks"]) for each in found] == [(True, 2)] * 4

"""In which candidates a sift looks, of jobs that read some sources whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from lineage_service.replays.agent_report import AgentReport, ReportedSource
from lineage_service.replays.errors import ReplayError
from lineage_service.replays.sift import sift_search
from lineage_service.replays.sift.candidates import Candidates
from lineage_service.replays.sift.job_runs import JobRun
from lineage_service.replays.sift.sift_search import SiftRequest, SiftSearch
from lineage_service.replays.specification import Plan

SINK = 9


def source(node: int, *texts: str) -> dict[str, Any]:
    """With these lines, or whole if there are none."""
    if not texts:
        return {"node": node, "name": "textFile", "whole": True, "why": "not on the way"}
    return {
        "node": node,
        "name": "textFile",
        "whole": False,
        "splits": [{"split": 0, "positions": [[0, len(texts)]]}],
        "texts": {"0": list(texts)},
    }


class Runs:
    """Runs a job that copies two sources, of which `whole` cannot be restricted. Whole, they have `bad`."""

    def __init__(self, *whole: int) -> None:
        self.count, self._whole = 0, whole

    def run(self, plan: Plan, sinks: Sequence[int]) -> JobRun:
        self.count += 1
        rows: list[str] = []
        ways = []
        for of in plan.sources:
            is_whole = of["whole"] or of["node"] in self._whole
            rows += ["bad"] if is_whole else of["texts"].get("0", ())
            ways.append(ReportedSource(of["node"], "textFile", "whole" if is_whole else "literal", "why"))
        return JobRun(0, "", AgentReport(is_there=True, sources=tuple(ways)), {SINK: rows})


class Check:
    """Fails on bad rows."""

    description, is_of_all, unresolved, why = "a bad row", False, 0, ""

    def failing(self, texts: Sequence[str]) -> list[int]:
        return [number for number, text in enumerate(texts) if text.startswith("bad")]

    def fails(self, run: JobRun) -> bool:
        return any(self.failing(texts) for texts in run.rows.values())


def search_among(runs: Any, sets: Sequence[Candidates], monkeypatch: pytest.MonkeyPatch) -> SiftSearch:
    class Sets:
        def __init__(self, *of: Any) -> None:
            pass

        def of(self, starts: object) -> Iterator[Candidates]:
            return iter(sets)

    monkeypatch.setattr(sift_search, "CandidateSets", Sets)
    original: Any = SimpleNamespace(application_id="app-1", sinks={}, sources={})
    template = Plan(mode="only", sources=())
    request = SiftRequest(kind="fails", text="")
    nothing: Any = None
    return SiftSearch(original, nothing, nothing, runs, request, Check(), template)


def test_rows_without_which_a_source_that_is_read_whole_fails_are_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of_copy = Candidates([source(0), source(1, "bad copy")])
    of_input = Candidates([source(0, "a", "bad", "b")])
    search = search_among(Runs(), [of_copy, of_input], monkeypatch)
    candidates, tested = search._failing_candidates([])
    assert candidates is of_input
    assert True in tested.values()


def test_where_all_rows_fail_anyway_the_first_ones_are_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    sets = [Candidates([source(0), source(1, text)]) for text in ("bad copy", "bad, too")]
    candidates, tested = search_among(Runs(), sets, monkeypatch)._failing_candidates([])
    assert candidates is sets[0]
    assert tested[()]


def test_where_one_set_cannot_be_restricted_the_next_one_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    of_copy, of_input = Candidates([source(1, "bad copy")]), Candidates([source(0, "a", "bad", "b")])
    candidates, _ = search_among(Runs(1), [of_copy, of_input], monkeypatch)._failing_candidates([])
    assert candidates is of_input
    all_rows = Candidates([source(1, "bad copy", "c")], is_whole=True)
    runs = Runs(1)
    with pytest.raises(ReplayError, match="nothing can be sifted: textFile was read whole: why"):
        search_among(runs, [of_copy, all_rows], monkeypatch)._failing_candidates([])
    assert runs.count == 1


def test_a_run_that_had_other_rows_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    candidates = Candidates([source(0, "a", "b")])
    search = search_among(Runs(0), [candidates], monkeypatch)
    assert not search._fails(candidates, (0,))
    assert (search._check.unresolved, search._unresolved) == (1, {(0,)})
    assert search._check.why == "textFile was read whole: why"

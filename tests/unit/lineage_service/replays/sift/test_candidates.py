"""The rows among which a sift looks, and which are tried first."""

from __future__ import annotations

from pathlib import Path

import pytest

from lineage_service.queries import StartQuery
from lineage_service.replays.original import Original
from lineage_service.replays.sift.candidate_sets import CandidateSets
from lineage_service.replays.sift.candidates import Candidates
from lineage_service.replays.sift.sift_search import order_of_tests
from lineage_service.replays.specification import Plan
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query import source_files
from tests.support.file_applications import APP, SINK, questions_of, splits_of

LINES = ["shop,amount", "Graz,1", "Graz,2", "Graz,4", "Graz,917", "Graz,3", "Graz,5"]
SOURCE = {
    "node": 0,
    "name": "textFile",
    "whole": False,
    "partitions": 1,
    "splits": [{"split": 0, "positions": [[0, len(LINES)]]}],
    "texts": {"0": LINES},
}


def test_what_the_program_took_is_tried_with_the_oddest_row() -> None:
    candidates = Candidates([SOURCE], taken=[(0, 0, 0)])
    assert order_of_tests(candidates)[:2] == [4, 0]
    assert sorted(order_of_tests(candidates)) == list(range(len(LINES)))


def test_a_row_that_nobody_took_stands_where_it_is_odd() -> None:
    odd_first = [4, 0, 1, 2, 6, 3, 5]
    assert order_of_tests(Candidates([SOURCE])) == odd_first
    everything = [(0, 0, number) for number in range(len(LINES))]
    assert order_of_tests(Candidates([SOURCE], taken=everything)) == odd_first
    assert order_of_tests(Candidates([SOURCE], taken=[(0, 0, 3), (0, 0, 4)])) == [0, 4, 3, 1, 2, 6, 5]


def test_rows_of_some_are_those_that_were_taken_too() -> None:
    candidates = Candidates([SOURCE], taken=[(0, 0, 0)])
    assert candidates.common([candidates]).taken == {(0, 0, 0)}
    assert candidates.whole_but({1}, "why").taken == {(0, 0, 0)}
    assert order_of_tests(Candidates([SOURCE], is_whole=True)) == ()


@pytest.mark.parametrize("most", [len(LINES), len(LINES) - 1])
def test_all_rows_of_an_input_are_planned_though_they_are_too_many_to_be_given_as_texts(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = tmp_path / "in.csv", tmp_path / "out.csv"
    for path in paths:
        path.write_text("".join(f"{line}\n" for line in LINES))
    queries = questions_of(tmp_path, splits_of(paths[0]), [len(LINES)], written=splits_of(paths[1]))
    monkeypatch.setattr(source_files, "MOST_ROWS", most)
    original = Original(DeltaFlowStore(tmp_path / "flows"), APP)
    sets = CandidateSets(original, queries, queries.source_files, lambda _: None)
    lineage, everything = sets.of([StartQuery(node=str(SINK), path=str(paths[1]), row=4)])
    assert (lineage.rows, lineage.texts()) == (((0, 0, 4),), ["Graz,917"])
    assert everything.is_whole
    assert len(everything.rows) == len(LINES)
    [source] = everything.plan(Plan(mode="only", sources=()), [0, 5]).sources
    assert source["splits"] == [{"split": 0, "positions": [[0, 1], [5, 1]]}]
    assert source.get("texts") == (None if most < len(LINES) else {"0": ["shop,amount", "Graz,3"]})


def test_texts_that_do_not_belong_to_the_positions_are_not_taken() -> None:
    with pytest.raises(ValueError, match="zip"):
        Candidates([{**SOURCE, "texts": {"0": LINES[1:]}}])
